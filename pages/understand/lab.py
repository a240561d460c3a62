"""The lab: worked examples from course notes, printed next to computed values; every number can be changed."""

import streamlit as st

from visformer.app.pages import lab
from visformer.app.session import presentation_steps, run, slots
from visformer.app.session.boxes import gettext
from visformer.app.widgets import controls, formula_box, url_widgets
from visformer.errors import NumberError, VisformerError
from visformer.pictures import lab as pictures
from visformer.pictures.examples.worked import compute
from visformer.pictures.lab import EXAMPLE

CHOSEN = "lab_example"

_ = gettext()
choice, words = st.columns([42, 58], gap="large", vertical_alignment="bottom")
names = [*pictures.examples()]
presentation_steps.begin_options(CHOSEN, names)
name = url_widgets.draw(EXAMPLE, url_widgets.nothing(), "lab", place=choice)
presentation_steps.offer_options(CHOSEN, names, name)
example = pictures.examples()[name]
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
    at = lab.places(example, example.inputs, {})
with typed:
    inputs = lab.inputs(example, at)
if pictures.View(example, inputs, at).changed:
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
        view = pictures.View(example, inputs, lab.places(example, results, at))
    shown = pictures.drawn(view, results, _)
    controls.draw([shown] if example.tokens else shown, key=f"lab_{name}")
    if view.changed:
        st.text(_("These inputs have been changed: the printed values belong to the original ones."))
    remarks = {
        title: remark for title, remark in example.remarks.items() if not (view.changed and title in example.printed)
    }
    st.text("\n".join(line.format(title=_(title), remark=_(remark)) for title, remark in remarks.items()))
