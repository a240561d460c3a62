"""The lab: worked examples from course notes, printed next to computed values; every number can be changed."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from visformer.app.session import boxes, presentation_steps, run, slots
from visformer.app.widgets import controls, formula_box, pick, tables, url_widgets
from visformer.errors import N_, NumberError, ShapeError, VisformerError
from visformer.formulas import Floats
from visformer.pictures import lab
from visformer.pictures.lab import EXAMPLE, HEAD, SAMPLE, SYMBOL
from visformer.pictures.registry.setting import Setting, Source
from visformer.pictures.worked import Arrays, compute, trimmed
from visformer.system import limits

CHOSEN = "lab_example"
NARROWEST, DIGIT, ROW = 48, 8, 26  # pixels: five tables fit beside each other in two rows

_ = boxes.gettext()


def draw_places(arrays: Arrays, at: Mapping[str, int]) -> dict[str, int]:
    """Draw a slider for each axis of which one index is shown, unless it is in ``at``; return all indices."""
    setting, sizes = Setting(Source(), values={"example": example.name}), example.choices(arrays)
    indices = {**at}
    for option in (SAMPLE, HEAD):
        if option.name in sizes and option.name not in at:
            indices[option.name] = url_widgets.draw(pick.counted(option, sizes[option.name]), setting, "lab")
    return indices


def edit_table(values: Floats, rows: tuple[str, ...], key: str, *, fixed: bool) -> Floats:
    """Draw an editable table. Unless fixed, it has an empty column to fill in; empty cells are ignored."""
    table = pd.DataFrame(values, index=rows or None, columns=[str(i) for i in range(values.shape[1])])
    if values.shape[1] > 1 and not fixed:
        table["+"] = np.nan
    longest = max(len(f"{value:g}") for value in values.flat)
    width = max(NARROWEST, (longest + 3) * DIGIT)
    edited = st.data_editor(
        table,
        num_rows="fixed" if rows or fixed else "add",
        hide_index=not rows,
        column_config={name: st.column_config.NumberColumn(width=width) for name in table},
        width="content",
        row_height=ROW,
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


choice, words = st.columns([42, 58], gap="large", vertical_alignment="bottom")
names = [*lab.examples()]
presentation_steps.begin_options(CHOSEN, names)
name = url_widgets.draw(EXAMPLE, url_widgets.nothing(), "lab", place=choice)
presentation_steps.offer_options(CHOSEN, names, name)
example = lab.examples()[name]
title, line = _(example.title), _("{title}: {remark}")
run.current().caption = title
words.caption(
    _(
        "Examples from course notes on the Transformer, the printed values beside the computed ones: an orange "
        "frame marks a difference. Change any number, and everything after it is recomputed. Clear a row or "
        "column to remove it; fill one in to add it."
    )
)
main, side = st.columns([68, 32], gap="large")
with side:
    formula_box.formula(example.formula, section=example.section, code=example.code)
    st.button(_("Reset"), key="lab_reset", on_click=slots.renew, args=("lab",))
with main:
    chosen, typed = st.container(horizontal=True), st.container(horizontal=True, key="lab_inputs")
with chosen:
    at = draw_places(example.inputs, {})
inputs: dict[str, Floats] = {}  # the visitor's
for input_name, values in example.inputs.items():
    place, label = example.place(input_name, at), _(input_name)
    key = "_".join(map(str, ("lab", example.name, input_name, *at.values(), slots.version("lab"))))
    with typed, st.container(width="content", gap="xxsmall"):
        if values.size == 1:
            edited = np.full((1, 1), st.number_input(label, value=int(values.item()), key=key, width=130))
        else:
            symbol = SYMBOL.get(input_name)  # a caption would be too faint in colour
            st.markdown(formula_box.coloured_text(label, symbol) if symbol else label, width="content")
            edited = edit_table(values[place], example.labels(input_name, example.inputs), key, fixed=bool(place))
        inputs[input_name] = edited
        if place and values.size > 1:
            inputs[input_name] = values.copy()
            inputs[input_name][place] = edited
    tables.present(label, [[f"{value:g}" for value in row] for row in edited])
if lab.LabView(example, inputs, at).changed:
    run.current().unlinked = _("The link opens the example with its own numbers: those that you typed are not in it.")
try:
    results = compute(example, inputs)
except VisformerError as error:
    st.badge(_("Check the numbers") if isinstance(error, NumberError) else _("The shapes do not fit"), color="red")
    st.text(error.localized(_))
    run.current().caption = line.format(title=title, remark=error.localized(_))
    if example.instead:
        st.button(_("Show the closest one that fits"), on_click=slots.Slot(CHOSEN, "").set, args=(example.instead,))
else:
    with chosen:
        view = lab.LabView(example, inputs, draw_places(results, at))
    shown = lab.drawn(view, results, _)
    controls.draw([shown] if example.tokens else shown, key=f"lab_{name}")
    if view.changed:
        st.text(_("These inputs have been changed: the printed values belong to the original ones."))
    remarks = {
        title: remark for title, remark in example.remarks.items() if not (view.changed and title in example.printed)
    }
    st.text("\n".join(line.format(title=_(title), remark=_(remark)) for title, remark in remarks.items()))
