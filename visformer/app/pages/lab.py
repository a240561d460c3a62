"""The lab's inputs: numbers to be changed, and the place that is looked at in a tensor of more than two axes."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from visformer.app.session import boxes, slots
from visformer.app.widgets import formula_box, pick, url_widgets
from visformer.errors import N_, ShapeError
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, trimmed
from visformer.pictures.lab import HEAD, SAMPLE, SYMBOL
from visformer.pictures.setting import Setting, Source
from visformer.system import limits

_NARROWEST, _DIGIT, _ROW = 48, 8, 26  # pixels: five tables fit beside each other in two rows
_TOOLBAR = 136  # pixels: what appears over a table that is pointed at, and must not cover a neighbour's name


def places(example: Worked, arrays: Arrays, at: Mapping[str, int]) -> dict[str, int]:
    """A slider for each axis of these arrays of which one place is looked at, unless ``at`` has it; all places."""
    setting, sizes = Setting(Source(), values={"example": example.name}), example.choices(arrays)
    found = {**at}
    for option in (SAMPLE, HEAD):
        if option.name in sizes and option.name not in at:
            found[option.name] = url_widgets.draw(pick.counted(option, sizes[option.name]), setting, "lab")
    return found


def inputs(example: Worked, at: Mapping[str, int]) -> dict[str, Floats]:
    """The example's inputs as the visitor has them, one box or table for each."""
    found = {}
    for name, values in example.inputs.items():
        place = example.place(name, at)
        key = "_".join(map(str, ("lab", example.name, name, *at.values(), slots.version("lab"))))
        narrow = values.size > 1 and values[place].shape[1] == 1
        with st.container(width=_TOOLBAR if narrow else "content", horizontal_alignment="right", gap="xxsmall"):
            if values.size == 1:
                found[name] = np.full((1, 1), st.number_input(name, value=int(values.item()), key=key, width=130))
                continue
            st.caption(_title(name), width="content" if narrow else "stretch")
            found[name] = values.copy()
            edited = _table(values[place], example.labels(name, example.inputs), key, fixed=bool(place))
            if place:
                found[name][place] = edited
            else:
                found[name] = edited
    return found


def _title(name: str) -> str:
    symbol, said = SYMBOL.get(name), boxes.gettext()(name)
    return formula_box.coloured_text(said, symbol) if symbol else said


def _table(values: Floats, rows: tuple[str, ...], key: str, *, fixed: bool) -> Floats:
    """A table to type into. Unless it is fixed, it has an empty column to be filled; what is empty does not count."""
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
