"""Inside a head: all numbers from queries to outputs, the sum behind each, and heads that can be silenced."""

import streamlit as st

from visformer.app.pages.head import SHOWN, show, silence
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, pick, unavailable
from visformer.pictures.head import JOINED, PAGE, SILENCE, STEPS, place_of, shapes, stages, written_out

FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V})
= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
CODE = (("model/attention.py", "attention"), ("model/attention.py", "MultiHeadAttention.forward"))

_ = boxes.gettext()
trace = controls.current_trace()


def selected(picture):
    """Return the selected place with its numbers; None if they cannot be computed."""
    setting = controls.setting_of(picture, trace)
    with bar:
        pick.selected(setting, picture)
    return setting if controls.current_trace(setting.needs) is not None else None


def steps():
    """Draw the steps; return the sum behind the clicked cell, if any."""
    setting = selected(STEPS)
    if setting is None:
        return ""
    full, place = setting.trace, place_of(setting)
    inputs, weights, output = STEPS.draw(setting)
    left, right = st.columns([66, 34], gap="small")
    with left:
        controls.draw([inputs, weights], key="head_steps", on_click=show, stages=stages(full, place, _))
    with right:
        controls.draw([output], key="head_sum", on_click=show)
    st.caption(_("Shapes, with the batch of one sentence: {shapes}").format(shapes=shapes(full, place)))
    click = SHOWN.get()
    return written_out(full, place, click.panel, click.column, click.row) if click else ""


def joined():
    setting = selected(JOINED)
    if setting is not None:
        controls.draw(JOINED.draw(setting), key="head_joined")


def pattern():
    setting = selected(STEPS)
    if setting is not None:
        controls.pattern(trace, setting.path, setting["head"], key="head_only")


if trace is not None:
    words, maths = st.columns([62, 38], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="head_view"))
        bar = st.container()
    draw = {"steps": steps, "joined": joined, "silence": lambda: silence(trace, bar)}[view.view]
    part = "encoder" if "src" in trace.tokens else "decoder"
    needed = f"{part}.{next(iter(trace.layers(part)))}.self_attn.heads"
    if trace.lacks(needed) is None:
        controls.look_for(_(view.look_for))
    else:
        unavailable.tell(trace, needed, unavailable.NOT_TO_CHANGE if view is SILENCE else unavailable.NOTHING_BETWEEN)
    text = draw() if trace.lacks(needed) is None else pattern()
    with maths, st.container(key="head_maths"):
        if text:
            formula_box.written_out(_(text), back=SHOWN.key)
        else:
            formula_box.formula(FORMULA, section="3.2", code=CODE, page="head")
