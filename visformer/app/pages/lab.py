"""The lab's inputs: editable numbers, and the index shown on further axes of tensors with more than two."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from visformer.app.session import boxes, slots
from visformer.app.widgets import formula_box, pick, tables, url_widgets
from visformer.errors import N_, ShapeError
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, trimmed
from visformer.pictures.lab import HEAD, SAMPLE, SYMBOL
from visformer.pictures.registry.setting import Setting, Source
from visformer.system import limits

_NARROWEST, _DIGIT, _ROW = 48, 8, 26  # pixels: five tables fit beside each other in two rows


def places(example: Worked, arrays: Arrays, at: Mapping[str, int]) -> dict[str, int]:
    """Draw a slider for each axis of which one index is shown, unless it is in ``at``; return all indices."""
    setting, sizes = Setting(Source(), values={"example": example.name}), example.choices(arrays)
    indices = {**at}
    for option in (SAMPLE, HEAD):
        if option.name in sizes and option.name not in at:
            indices[option.name] = url_widgets.draw(pick.counted(option, sizes[option.name]), setting, "lab")
    return indices


def inputs(example: Worked, at: Mapping[str, int]) -> dict[str, Floats]:
    """Draw a box or table for each of the example's inputs; return the visitor's values."""
    edited = {}
    for name, values in example.inputs.items():
        place, title = example.place(name, at), boxes.gettext()(name)
        key = "_".join(map(str, ("lab", example.name, name, *at.values(), slots.version("lab"))))
        with st.container(width="content", gap="xxsmall"):
            if values.size == 1:
                shown = np.full((1, 1), st.number_input(title, value=int(values.item()), key=key, width=130))
            else:
                st.markdown(_coloured(name, title), width="content")  # a caption would be too faint in colour
                shown = _table(values[place], example.labels(name, example.inputs), key, fixed=bool(place))
            edited[name] = shown
            if place and values.size > 1:
                edited[name] = values.copy()
                edited[name][place] = shown
        tables.present(title, [[f"{value:g}" for value in row] for row in shown])
    return edited


def _coloured(name: str, title: str) -> str:
    symbol = SYMBOL.get(name)
    return formula_box.coloured_text(title, symbol) if symbol else title


def _table(values: Floats, rows: tuple[str, ...], key: str, *, fixed: bool) -> Floats:
    """Draw an editable table. Unless fixed, it has an empty column to fill in; empty cells are ignored."""
    table = pd.DataFrame(values, index=rows or None, columns=[str(i) for i in range(values.shape[1])])
    if values.shape[1] > 1 and not fixed:
        table["+"] = np.nan
    longest = max(len(f"{value:g}") for value in values.flat)
    width = max(_NARROWEST, (longest + 3) * _DIGIT)
    edited = st.data_editor(
        table,
        num_rows="fixed" if rows or fixed else "add",
        hide_index=not rows,
        column_config={name: st.column_config.NumberColumn(width=width) for name in table},
        width="content",
        row_height=_ROW,
        placeholder="",
        key=key,
    )
    if len(edited) > limits.LAB_ROWS:
        raise ShapeError(
            N_("The table has {rows} rows, and at most {limit} are computed: take some away."),
            rows=len(edited),
            limit=limits.LAB_ROWS,
        )
    numbers = edited.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    return numbers if fixed else trimmed(numbers)
