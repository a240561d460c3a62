"""The lab: worked examples from course notes, printed beside computed; every number may be changed."""

import streamlit as st

from visformer.errors import VisformerError
from visformer.examples import WORKED
from visformer.examples.worked import compute
from visformer.pictures import lab as pictures
from visformer.ui import controls, lab, lesson, state

CHOSEN = "lab_example"

_ = state.gettext()
by_name = {example.name: example for example in WORKED}
choice, words = st.columns([42, 58], gap="large", vertical_alignment="bottom")
name = choice.selectbox(_("Worked example"), list(by_name), format_func=lambda name: _(by_name[name].title), key=CHOSEN)
words.caption(
    _(
        "Change any number: everything behind it is computed anew. Cells of a print in an orange frame differ from "
        "what is computed. A row or column that you clear is taken away; one that you fill is added."
    )
)
example = by_name[name]
given, side = st.columns([68, 32], gap="large")
with side:
    lesson.formula(example.formula, section=example.section, code=example.code)
    st.button(_("Reset"), key="lab_reset", on_click=state.renew, args=("lab",))
with given:
    chosen, typed = st.container(horizontal=True), st.container(horizontal=True)
with chosen:
    at = lab.places(example, example.inputs, {})
with typed:
    inputs = lab.inputs(example, at)
try:
    results = compute(example, inputs)
except VisformerError as error:
    st.badge(_("This does not fit"), color="red")
    st.text(error.localized(_))
    if example.instead:
        st.button(
            _("Show the nearest one that does"), on_click=lambda: st.session_state.update({CHOSEN: example.instead})
        )
else:
    with chosen:
        view = pictures.View(example, inputs, lab.places(example, results, at))
    shown = []
    for title, values in results.items():
        shown += pictures.beside(view, title, values, titles=lab.titles(example, title, values))
    controls.draw([shown] if example.tokens else shown, key=f"lab_{name}")
    if view.changed:
        st.text(_("These inputs have been changed: what is printed belongs to the notes' own."))
    line = _("{title}: {remark}")
    remarks = {
        title: remark for title, remark in example.remarks.items() if not (view.changed and title in example.printed)
    }
    st.text("\n".join(line.format(title=_(title), remark=_(remark)) for title, remark in remarks.items()))
