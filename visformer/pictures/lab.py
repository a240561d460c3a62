"""The results of a worked example of the course notes, beside the numbers that they print."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from visformer.errors import N_, translated
from visformer.formulas import Floats
from visformer.i18n import Gettext
from visformer.panel import AXIS_TITLES, Labels, Panel, common_limit, numbered
from visformer.pictures.registry.options import Choice, PlaceOption
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import Theme
from visformer.pictures.worked import SLICED, Arrays, Worked, compute, decimals, differs

SYMBOL = {
    **dict.fromkeys(("Q", "X · W_Q", "cut into heads", "head before token: Q"), "q"),
    **dict.fromkeys(("W_Q · x", "xᵀ · W_Qᵀ", "xᵀ · W_Q", "1 / base^(2i/d)", "σ, divided by d"), "q"),
    **dict.fromkeys(("K", "pos", "s, divided by d − 1"), "k"),
    "V": "v",
    **dict.fromkeys(("scores", "Q·Kᵀ", "Q·Kᵀ / √d_k", "pos × frequency"), "scores"),
    "mask": "mask",
    **dict.fromkeys(("pattern", "softmax", "without √d_k: softmax", "softmax(Q·Kᵀ / √d_k)"), "pattern"),
    **dict.fromkeys(("softmax of that", "visformer's rule"), "pattern"),
    **dict.fromkeys(("softmax · V", "without √d_k: softmax · V", "pattern · V", "heads end to end"), "heads"),
    "scores where the mask is 1, else −1e9": "heads",
    "times W_O": "out",
    **dict.fromkeys(("E", "embedding"), "embed"),
    **dict.fromkeys(("P", "PE"), "position"),
    **dict.fromkeys(("x", "X", "E + P", "embedding + PE"), "input"),
}
"""Name of an input or result to its symbol in the example's formula."""


@dataclass(frozen=True)
class LabView:
    """The current example, its inputs and the selected slice.

    Args:
        example: the worked example.
        inputs: the inputs as edited by the visitor.
        at: the index on each axis in :data:`~visformer.pictures.worked.SLICED`.
    """

    example: Worked
    inputs: Arrays
    at: Mapping[str, int]

    @property
    def changed(self) -> bool:
        """Whether the inputs differ from those in the notes."""
        return any(not np.array_equal(self.inputs[name], values) for name, values in self.example.inputs.items())


def drawn(view: LabView, results: Arrays, gettext: Gettext) -> list[Panel]:
    """Draw every result that is no curve, beside its printed version if there is one; ``gettext``: of their names."""
    shown = {name: values for name, values in results.items() if name not in curved(view.example)}
    return [panel for name, values in shown.items() for panel in beside(view, name, values, gettext)]


_WIDE = 16  # columns


def in_rows(panels: list[Panel]) -> list[Panel] | list[list[Panel]]:
    """Put panels one below the other if one of them is wide; otherwise they stand beside each other where they fit."""
    return [panels] if any(panel.values.shape[1] > _WIDE for panel in panels) else panels


def curved(example: Worked) -> tuple[str, ...]:
    """Return the names of the results that are drawn as curves, and of the one that they are drawn over."""
    return (example.curves.over, *example.curves.results) if example.curves is not None else ()


def curves(example: Worked, inputs: Arrays, results: Arrays, *, theme: Theme, gettext: Gettext) -> Any:
    """Draw the results that are curves: a Plotly figure."""
    from visformer.pictures.charts.positions import curves_over

    drawn_as = example.curves
    assert drawn_as is not None
    return curves_over(
        {gettext(name): results[name].ravel() for name in drawn_as.results},
        {**inputs, **results}[drawn_as.over].ravel(),
        axes=(gettext(drawn_as.over), gettext(drawn_as.axis)),
        title=gettext(example.title),
        log=drawn_as.log,
        theme=theme,
    )


def beside(view: LabView, name: str, computed: Floats, gettext: Gettext = str) -> list[Panel]:
    """Draw the computed matrix and, if there is one of the same shape, the printed matrix, on one colour scale.

    Printed numbers that differ from the computed ones are outlined.
    """
    printed, place, title = view.example.printed.get(name), view.example.place(name, view.at), gettext(name)
    marks = None if printed is None else differs(computed, printed)
    values, prints = computed[place], None if printed is None or marks is None else printed[place]
    rows, columns = _labels(view, name, values.shape, gettext)
    symbol = SYMBOL.get(name, "")
    limit = common_limit(values, *([] if prints is None else [prints]))
    finite = [] if prints is None else prints[np.isfinite(prints)].tolist()
    digits = max([4, *map(decimals, finite)])  # at least those that are printed
    look: dict[str, Any] = {"rows": rows, "columns": columns, "limit": limit, "digits": digits, "symbol": symbol}
    look["scale"] = "weight" if symbol == "pattern" else "signed"
    shape = f"  ({', '.join(map(str, computed.shape))})" if name in view.example.axes else ""
    panels = [Panel(name=name, title=f"{title}{shape}", values=values, note=N_("computed"), **look)]
    if prints is not None and marks is not None and np.isfinite(prints).any():
        wrong = marks[place]
        panels.append(
            Panel(
                name=f"{name} printed",
                title=gettext(N_("{title}, as printed")).format(title=title),
                values=prints,
                note=N_("as printed in the course notes"),
                before="≠" if wrong.any() else "=",
                outlined=wrong,
                **look,
            )
        )
    return panels


def _labels(view: LabView, name: str, shape: tuple[int, ...], gettext: Gettext) -> tuple[Labels, Labels]:
    axes = [axis for axis in view.example.axes.get(name, ()) if axis not in SLICED] or ["", ""]
    across = view.example.columns.get(name, ())
    texts = [tuple(translated(text, gettext) for text in view.example.labels(name, view.inputs)), across]
    if view.example.tokens:
        words = view.example.tokens[view.at["sample"]]
        texts = [words if axis in ("token", "query", "key") else () for axis in axes]
    rows, columns = map(_labelled, axes, texts, shape)
    return rows, columns


def _labelled(axis: str, texts: tuple[str, ...], size: int) -> Labels:
    title = AXIS_TITLES.get(axis, "")
    return Labels(texts, title) if len(texts) == size else numbered(size, title, first=int(axis in _COUNTED))


_COUNTED = ("token", "query", "key", "head")
"""Axes that count from 1, as everywhere on screen; dimensions count from 0."""


@cache
def examples() -> dict[str, Worked]:
    """Return every worked example by name, in order; imported on first use, which keeps the list of pages fast."""
    from visformer.pictures.course import TOPICS

    return {example.name: example for topic in TOPICS for example in topic.examples}


def _count(axis: str) -> Callable[[Setting], int]:
    def count(setting: Setting) -> int:
        example = examples()[setting["example"]]
        return example.choices({**example.inputs, **compute(example, example.inputs)}).get(axis, 1)

    return count


def _among(axis: str) -> Callable[[Setting], range]:
    return lambda setting: range(_count(axis)(setting))


def _drawn(setting: Setting) -> Any:
    example = examples()[setting["example"]]
    at = {axis: setting[axis] for axis in SLICED}
    results = compute(example, example.inputs)
    if example.curves is not None:
        return curves(example, example.inputs, results, theme=setting.source.theme, gettext=setting.gettext)
    return in_rows(drawn(LabView(example, example.inputs, at), results, setting.gettext))


# fmt: off
EXAMPLE = Choice(
    name="example", widget="selectbox", label=N_("Worked example"),
    help="For example self-attention; by default the first.",
    values=lambda _: {name: example.title for name, example in examples().items()},
)
SAMPLE = PlaceOption(
    name="sample", label=N_("Sample"), help="The sentence, from 1; for --example shapes.", among=_among("sample"),
    per=_count("sample"), link=lambda setting: f"{setting['example']}_sample",
)
HEAD = PlaceOption(
    name="head", label=N_("Head"), help="From 1.", among=_among("head"), per=_count("head"),
    link=lambda setting: f"{setting['example']}_head",
)
LAB = Picture(name="lab", formula=True, alone=True, in_handouts=False, options=(EXAMPLE, SAMPLE, HEAD), draw=_drawn)
PAGE = Page(name="lab", section="understand", order=90, title=N_("Course notes"),
    about=N_("The course notes by topic: their numbers recomputed, their misprints, and the reasons as experiments."),
    views=(LAB,), has_sentence=False)
# fmt: on
