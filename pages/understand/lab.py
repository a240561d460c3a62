"""The lab: worked examples from course notes, printed beside computed; every number may be changed."""

import pandas as pd
import streamlit as st

from visformer.errors import VisformerError
from visformer.examples.worked import WORKED, compute, differs
from visformer.pictures import lab
from visformer.ui import controls, lesson, state

FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V}) \\[4pt]
&= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
CODE = (("formulas.py", "attention"), ("formulas.py", "softmax"), ("formulas.py", "layer_norm"))
CHOSEN = "lab_example"

_ = state.gettext()
by_name = {example.name: example for example in WORKED}
st.caption(_("Change any number: everything behind it is computed anew. Outlined cells differ from what notes print."))
name = st.selectbox(
    _("Worked example"), list(by_name), format_func=lambda name: _(by_name[name].title), key=CHOSEN, width=520
)
example = by_name[name]
given, side = st.columns([68, 32], gap="large")
with side:
    lesson.formula(FORMULA, section=example.section, code=CODE)
    scaled = st.toggle(_("Scale by √d_k"), value=True, key=f"lab_scale_{name}") if example.scalable else True
    if st.button(_("Reset"), key="lab_reset"):
        state.renew("lab")
inputs = {}
with given, st.container(horizontal=True):
    for title, values in example.inputs.items():
        with st.container(width="content"):
            st.caption(title)
            labels = example.rows.get(title)
            table = pd.DataFrame(values, index=labels, columns=[str(i) for i in range(values.shape[1])])
            edited = st.data_editor(
                table,
                num_rows="fixed" if labels else "dynamic",
                hide_index=labels is None,
                width="content",
                key=f"lab_{name}_{title}_{state.version('lab')}",
            )
            inputs[title] = edited.to_numpy(dtype=float)
try:
    results = compute(example, inputs | lab.scale(scaled))
except VisformerError as error:
    st.badge(_("This does not fit"), color="red")
    st.text(error.localized(_))
    if example.instead:
        st.button(
            _("Show the nearest one that does"), on_click=lambda: st.session_state.update({CHOSEN: example.instead})
        )
else:
    shown, remarks = [], []
    for title, values in results.items():
        printed = example.printed.get(title)
        marks = None if printed is None else differs(values, printed)
        shown += lab.beside(title, values, printed, marks, example.rows.get(title))
        if title in example.remarks and (marks is None or marks.any()):
            remarks.append(f"{title}: {_(example.remarks[title])}")
    controls.draw(shown, key=f"lab_{name}")
    st.text("\n".join(remarks))
