"""The numbers of Traces, panels and figures as text: CSV for spreadsheets, JSON for programs."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as safetensors

from visformer.errors import N_, BudgetError, TraceError, translated
from visformer.export.curves import numbers_of
from visformer.panel import Panel
from visformer.system import cancellation, limits
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import Axis
from visformer.web.payload import SINK, sink_of, with_sink

if TYPE_CHECKING:  # plotly
    from plotly.graph_objects import Figure

_FORMULA = re.compile(r"""(\A(?=[\t\r\n])|(?:\A|[;\t\r\n])(?=(?:[^\S;\t\r\n]|")*[=+\-@＝＋－＠]))""")
"""Where a formula would begin: in a cell, and in what a spreadsheet that separates cells by tabs or semicolons takes
for one. Behind spaces and quotation marks, too, and in full width, which some spreadsheets read as half width."""


def to_csv(trace: Trace, *names: str) -> str:
    """Write one line for each number: its tensor, its index on each axis (from 0), the tokens there, and the number.

    A float32 is written with as many digits as it takes to read the same float32 again.

    Args:
        trace: what to write.
        names: of tensors with the same axes; none: all attention patterns, or maps. Weight that rows give to a sink is
            written behind the last token, as one more key whose token is "sink".

    Returns:
        Text with a byte order mark, by which spreadsheets recognize UTF-8. A token that a spreadsheet would take
        for a formula begins with an apostrophe, as spreadsheets themselves write it.

    Raises:
        MissingTensor: a tensor was not recorded.
        TraceError: no patterns were recorded, or the tensors have different axes.
        BudgetError: there are more than limits.MAX_NUMBERS numbers.
    """
    tensors = [trace[name] for name in names] or _patterns(trace)
    axes = [axis.name for axis in tensors[0].axes]
    for tensor in tensors:
        if [axis.name for axis in tensor.axes] != axes:
            raise TraceError(
                N_("{name} and {first} have different axes: a table has one kind of row."),
                name=tensor.name,
                first=tensors[0].name,
            )
    _check_size(tensors)
    labelled = [[axis, f"{axis}_token"] if tensors[0].axes[i].side else [axis] for i, axis in enumerate(axes)]
    head = ["tensor", *(harmless(name) for pair in labelled for name in pair), "value"]
    return _as_csv(chain([head], *(_rows(trace, tensor) for tensor in tensors)))


def panels_csv(*panels: Panel, gettext: Callable[[str], str] = str) -> str:
    """Write panels one below the other, as they are drawn: the labels along both sides, and every number.

    Args:
        panels: at least one.
        gettext: translates titles that are message ids.

    Returns:
        CSV with a byte order mark, and an empty line after each panel.
    """
    rows: list[list[str]] = []
    for panel in panels:
        rows.append([harmless(words) for words in (translated(panel.title, gettext), *panel.columns.texts)])
        cells = zip(panel.rows.texts, panel.values, strict=True)
        rows += [[harmless(label), *_digits(values)] for label, values in cells]
        rows.append([])
    return _as_csv(rows)


def panels_json(*panels: Panel, gettext: Callable[[str], str] = str, about: str = "") -> str:
    """Write panels as they are drawn: titles, the labels along both sides, and every number; null for NaN.

    Args:
        panels: at least one.
        gettext: translates titles that are message ids.
        about: the model and the input that the numbers come from.

    Returns:
        JSON, as text.
    """
    described = [
        {
            "name": panel.name,
            "title": translated(panel.title, gettext),
            **{
                side: {"title": translated(labels.title, gettext), "labels": list(labels.texts)}
                for side, labels in (("rows", panel.rows), ("columns", panel.columns))
            },
            "values": _plain_numbers(panel.values),
        }
        for panel in panels
    ]
    return json.dumps({"about": about, "panels": described}, ensure_ascii=False, allow_nan=False)


def panels_tensors(*panels: Panel) -> bytes:
    """Write panels as safetensors: "0.q" is the first panel's matrix, named q; their labels are JSON in its metadata.

    Args:
        panels: at least one.

    Returns:
        The content of the file.
    """
    arrays = {f"{i}.{panel.name}": np.ascontiguousarray(panel.values) for i, panel in enumerate(panels)}
    labels = json.loads(panels_json(*panels))["panels"]
    named = {name: {**label, "values": None} for name, label in zip(arrays, labels, strict=True)}
    return safetensors(arrays, metadata={"visformer_panels": json.dumps(named, ensure_ascii=False)})


def figure_csv(figure: "Figure") -> str:
    """Write the numbers of a figure, one row for each bar, hypothesis or position; places count from 0.

    Args:
        figure: see :func:`visformer.export.curves.figure_svg`.

    Returns:
        CSV with a byte order mark, so that spreadsheets read Chinese.
    """
    return columns_csv(numbers_of(figure)[1])


def columns_csv(columns: Mapping[str, Iterable[Any]]) -> str:
    """Write a table by its columns.

    Args:
        columns: by name, all of the same length; plain numbers, texts, and None where there is nothing.

    Returns:
        CSV with a byte order mark. A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    return _as_csv(map(_spelled, row) for row in chain([columns], zip(*columns.values(), strict=True)))


def figure_json(figure: "Figure", *, about: str = "") -> str:
    """Write the numbers of a figure: its title, and a row for each bar, hypothesis or position; places from 0.

    Args:
        figure: see :func:`visformer.export.curves.figure_svg`.
        about: the model and the input that the numbers come from.

    Returns:
        JSON, as text.
    """
    title, columns = numbers_of(figure)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps({"title": title, "about": about, "rows": rows}, ensure_ascii=False, allow_nan=False)


def to_json(trace: Trace, *names: str) -> str:
    """Write tokens, labels, and every number with the names of its axes.

    Args:
        trace: what to write.
        names: of tensors; none: everything that was recorded, including the parameters used.

    Returns:
        One JSON object, in one line.

    Raises:
        MissingTensor: a tensor was not recorded.
        BudgetError: there are more than limits.MAX_NUMBERS numbers.
    """
    tensors = [trace[name] for name in names] or list(trace.tensors.values())
    params = [] if names else list(trace.params.values())
    _check_size([*tensors, *params])
    content: dict[str, Any] = {
        "tokens": dict(trace.tokens),
        "special": dict(trace.special),
        "words": dict(trace.words),
        **({"roles": dict(trace.roles)} if trace.roles else {}),
        "meta": dict(trace.meta),
        "tensors": {tensor.name: _described(tensor) for tensor in tensors},
    }
    if params:
        content["params"] = {param.name: _described(param) for param in params}
    return json.dumps(content, ensure_ascii=False)


def _as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows of cells as CSV, with a byte order mark."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    return "\ufeff" + out.getvalue()


def _patterns(trace: Trace) -> list[TracedTensor]:
    patterns = [tensor for name, tensor in trace.tensors.items() if name.endswith((".pattern", ".map"))]
    if not patterns:
        raise TraceError(N_("This trace holds no attention patterns; record them with record=('*.pattern',)."))
    return patterns


def _check_size(tensors: list[TracedTensor]) -> None:
    count = sum(tensor.value.size for tensor in tensors)
    if count > limits.MAX_NUMBERS:
        raise BudgetError(
            N_("{count:,} numbers are too many for text; at most {limit:,} are written. Use safetensors."),
            count=count,
            limit=limits.MAX_NUMBERS,
        )


def _rows(trace: Trace, tensor: TracedTensor) -> Iterator[list[Any]]:
    cancellation.check()
    cells = [_axis_cells(trace, axis, size) for axis, size in zip(tensor.axes, tensor.shape, strict=True)]
    name, values = harmless(tensor.name), tensor.value
    if tensor.name.endswith(".pattern") and (sink := sink_of(trace, tensor)) is not None:
        values = with_sink(tensor, sink)
        cells[-1].append((len(cells[-1]), SINK))
    for place, value in zip(np.ndindex(*values.shape), _digits(values), strict=True):
        yield [name, *(cell for axis, i in enumerate(place) for cell in cells[axis][i]), value]


def _axis_cells(trace: Trace, axis: Axis, size: int) -> list[tuple[Any, ...]]:
    """Return the cells for each index on an axis: the index and, if the axis has tokens, the token."""
    if axis.side is None:
        return [(i,) for i in range(size)]
    return [(i, harmless(token)) for i, token in enumerate(trace.tokens[axis.side])]


def harmless(text: str) -> str:
    """Escape text that a spreadsheet would take for a formula."""
    return _FORMULA.sub(r"\1'", text)


def _spelled(value: object) -> str:
    """Write a cell of CSV; None is empty."""
    if isinstance(value, str):
        return harmless(value)
    return "" if value is None else repr(int(value) if isinstance(value, bool) else value)


def _digits(values: NDArray[Any]) -> list[str]:
    if values.dtype == np.bool_:
        return values.ravel().astype(int).astype(str).tolist()
    return [str(value) for value in values.ravel()]


def _described(tensor: TracedTensor) -> dict[str, Any]:
    cancellation.check()
    return {
        "axes": [axis.name for axis in tensor.axes],
        "shape": list(tensor.shape),
        "values": _shortest(tensor.value).tolist(),
    }


def _shortest(values: NDArray[Any]) -> NDArray[Any]:
    """Turn each float32 into the float64 whose shortest decimal is also its own."""
    if values.dtype == np.bool_:
        return values
    return np.array(_digits(values), dtype=object).astype(np.float64).reshape(values.shape)


def _plain_numbers(values: NDArray[Any]) -> list[list[Any]]:
    """Replace NaN and infinity, which JSON lacks, by null and text."""
    return [
        [value if math.isfinite(value) else None if math.isnan(value) else str(value) for value in row]
        for row in _shortest(values).tolist()
    ]
