"""Inside a head: every number from the query to the output, the sum behind each, and heads that can be silenced."""

import streamlit as st

from visformer.errors import N_
from visformer.pictures import head as pictures
from visformer.ui import comparison, controls, editing, lesson, pick, state

VIEWS = {"steps": N_("One query"), "joined": N_("All heads"), "silence": N_("Silence a head")}
LOOK_FOR = {
    "steps": N_("One query: q times every key, scaled, masked, softmax, V weighted. Click a cell to read its sum."),
    "joined": N_("The heads' sums stand end to end, and W_O mixes them. Which head says most about this query?"),
    "silence": N_("Click a head: its output is multiplied by the factor, and the model translates again without it."),
}
FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V})
= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
CODE = (("model/attention.py", "attention"), ("model/attention.py", "MultiHeadAttention.forward"))
SHOWN = "head_cell"

_ = state.gettext()
trace = controls.current_trace()


def show(click):
    st.session_state[SHOWN] = None if None in (click.row, click.column) else click


def steps():
    """Gives the sum behind the clicked cell, if there is one."""
    place, full = chosen()
    asked, answered, summed = pictures.steps(full, place)
    left, right = st.columns([66, 34], gap="small")
    with left:
        controls.draw([asked, answered], key="head_steps", on_click=show)
    with right:
        controls.draw([summed], key="head_sum", on_click=show)
    st.caption(_("Shapes, with the batch of one sentence: {shapes}").format(shapes=pictures.shapes(full, place)))
    click = st.session_state.get(SHOWN)
    return pictures.written_out(full, place, click.panel, click.column, click.row) if click else ""


def joined():
    place, full = chosen()
    controls.draw(pictures.joined(full, place), key="head_joined")


def chosen():
    """What is looked at, and a trace of it with the weights."""
    with bar:
        stack, layer, number, query = pick.place(trace, key="head", query=True)
    place = pictures.Place(f"{stack.part}.{layer}.{stack.kind}", number, query)
    return place, controls.current_trace((*place.record, f"{place.path}.w_*", f"{place.path}.b_*"))


def silence():
    with bar:
        stack = pick.stack(key="head_stack")
    left, right = st.columns([42, 58], gap="medium")
    with left:
        scale = st.slider(_("Factor"), 0.0, 2.0, 0.0, 0.25, key="head_factor", help=_("0 silences, 1 changes nothing."))
        scales = editing.scales(stack.name, *trace.stack(stack.part, stack.kind).shape[:2])
        panel = pictures.factors(scales)
        controls.draw([panel], key="head_scales", on_click=lambda c: editing.scale_all(stack.name, c, scales, scale))
    with right:
        st.button(_("Reset"), on_click=editing.reset, disabled=bool((scales == 1).all()), key="head_reset")
        comparison.compare(trace, editing.head_edits(stack.name))


if trace is not None:
    words, maths = st.columns([62, 38], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="head_view")
        bar = st.container()
    st.caption(_(LOOK_FOR[view]))
    text = {"steps": steps, "joined": joined, "silence": silence}[view]()
    with maths:
        if text:
            lesson.written_out(text, back=SHOWN)
        else:
            lesson.formula(FORMULA, section="3.2", code=CODE, page="head")
