"""Inside a head: every number from the query to the output, the sum behind each, and heads that can be silenced."""

import streamlit as st

from visformer.app.pages.head import silencing
from visformer.app.session import state
from visformer.app.widgets import controls, formula_box, pick, unavailable
from visformer.errors import N_
from visformer.pictures import head as pictures

VIEWS = {"steps": N_("One query"), "joined": N_("All heads"), "silence": N_("Silence or scale a head")}
LOOK_FOR = {
    "steps": N_("One query: q times every key, scaled, masked, softmax, V weighted. Click a cell to read its sum."),
    "joined": N_("The heads' sums stand end to end, and W_O mixes them. Which head says most about this query?"),
    "silence": N_("Click a head: its output is multiplied by the factor, and the model runs again. 0 silences it."),
}
FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V})
= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
CODE = (("model/attention.py", "attention"), ("model/attention.py", "MultiHeadAttention.forward"))
SHOWN = state.Slot("head_cell", None)

_ = state.gettext()
trace = controls.current_trace()


def show(click):
    SHOWN.set(None if None in (click.row, click.column) else click)


def chosen():
    """What is looked at, and a trace of it with the weights."""
    with bar:
        place = pictures.Place(*pick.selected(trace))
    return place, controls.current_trace((*place.record, f"{place.path}.w_*", f"{place.path}.b_*"))


def steps():
    """Gives the sum behind the clicked cell, if there is one."""
    place, full = chosen()
    if full is None:
        return ""
    asked, answered, summed = pictures.steps(full, place)
    left, right = st.columns([66, 34], gap="small")
    with left:
        controls.draw([asked, answered], key="head_steps", on_click=show)
    with right:
        controls.draw([summed], key="head_sum", on_click=show)
    st.caption(_("Shapes, with the batch of one sentence: {shapes}").format(shapes=pictures.shapes(full, place)))
    click = SHOWN.get()
    return pictures.written_out(full, place, click.panel, click.column, click.row) if click else ""


def joined():
    place, full = chosen()
    if full is not None:
        controls.draw(pictures.joined(full, place), key="head_joined")


def pattern():
    place, _full = chosen()
    controls.pattern(trace, place.path, place.head, key="head_only")


if trace is not None:
    words, maths = st.columns([62, 38], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="head_view")
        bar = st.container()
    make = {"steps": steps, "joined": joined, "silence": lambda: silencing.silence(trace, bar)}[view]
    between = f"{'encoder' if 'src' in trace.tokens else 'decoder'}.0.self_attn.heads"
    if trace.lacks(between) is None:
        controls.look_for(_(LOOK_FOR[view]))
    else:
        unavailable.tell(
            trace, between, unavailable.NOT_TO_CHANGE if view == "silence" else unavailable.NOTHING_BETWEEN
        )
    text = make() if trace.lacks(between) is None else pattern()
    with maths:
        if text:
            formula_box.written_out(_(text), back=SHOWN.key)
        else:
            formula_box.formula(FORMULA, section="3.2", code=CODE, page="head")
