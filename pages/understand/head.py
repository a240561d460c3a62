"""Inside a head: all numbers from queries to outputs, the sum behind each, and heads that can be silenced."""

from functools import partial

import streamlit as st

from visformer.app.edits import comparison, editing, silences
from visformer.app.session import address, boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, formula_box, pick, unavailable, url_widgets
from visformer.pictures.block import Stack
from visformer.pictures.head import (
    FACTOR,
    JOINED,
    PAGE,
    SILENCE,
    STEPS,
    factors,
    place_of,
    shapes,
    stages,
    written_out,
)
from visformer.trace.stacks import shape_of
from visformer.web.panels import Click

FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V})
= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
PROJECTED = ((r"&\sym{q}{q} = x", "q"), (r",\; \sym{k}{K} = X", "k"), (r" \\ &\sym{v}{V} = X", "v"))
CODE = (("model/attention.py", "attention"), ("model/attention.py", "MultiHeadAttention.forward"))
SHOWN: Slot[Click | None] = Slot("head_cell", None, resets=True)  # the clicked cell, whose sum is written out

_ = boxes.gettext()
trace = controls.current_trace()

if trace is not None:
    words, maths = st.columns([62, 38], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="head_view"))
        bar = st.container()
    part: Stack = "encoder" if "src" in trace.tokens else "decoder"
    needed = f"{part}.{next(iter(trace.layers(f'{part}.self_attn')))}.self_attn.heads"
    if has_heads := trace.lacks(needed) is None:
        controls.look_for(_(view.look_for))
    else:
        unavailable.tell(trace, needed, unavailable.NOT_TO_CHANGE if view is SILENCE else unavailable.NOTHING_BETWEEN)

    formula = FORMULA
    if view is SILENCE and has_heads:
        setting = controls.setting_of(SILENCE, trace)
        with bar:
            pick.selected_stack(setting)
        stack = setting["stack"]
        left, right = st.columns([42, 58], gap="medium")
        with left:
            factor = url_widgets.draw(FACTOR, setting, "head")
            patterns = trace.layers(setting["stack"])
            layers, (n_layers, n_heads, *_sides) = tuple(patterns), shape_of(patterns)
            editing.take_scales(stack, layers, n_heads)
            scales = editing.head_scales(stack, n_layers, n_heads)
            address.show_changes(editing.HEADS, editing.heads_text(scales, layers))
            scale = partial(editing.scale_all, stack, before=scales, value=factor)
            controls.draw([factors(scales, layers)], key="head_scales", on_click=scale)
        with right:
            silences.offer()
            st.button(_("Reset"), on_click=editing.reset, disabled=bool((scales == 1).all()), key="head_reset")
            comparison.compare(trace, editing.head_edits(stack, scales, layers=layers))
    else:
        picture = JOINED if view is JOINED and has_heads else STEPS
        setting = controls.setting_of(picture, trace)
        with bar:
            pick.selected(setting, picture)
        if controls.current_trace(setting.needs) is None:
            pass  # the head of the page says why
        elif not has_heads:
            controls.pattern(trace, setting.path, setting["head"], key="head_only")
        elif picture is JOINED:
            controls.draw(JOINED.draw(setting), key="head_joined")
        else:
            weights = setting.trace.params
            projected = "".join(
                rf"{made} W_{what.upper()}" + rf" + b_{what.upper()}" * (f"{setting.path}.b_{what}" in weights)
                for made, what in PROJECTED
                if f"{setting.path}.w_{what}" in weights
            )
            formula = rf"{projected} \\ {FORMULA}" if projected else FORMULA
            full, place, click = setting.trace, place_of(setting), SHOWN.get()
            told = ""
            if click is not None and click.row is not None and click.column is not None:  # otherwise a label
                told = written_out(full, place, click.panel, click.column, click.row, _)
            # What is called on a click is kept by the session: it is no function of this script, which knows the Trace.
            controls.draw(
                STEPS.draw(setting), key="head_steps", on_click=SHOWN.set, stages=stages(full, place, _), told=told
            )
            st.caption(_("Shapes, with the batch of one sentence: {shapes}").format(shapes=shapes(full, place)))

    with maths:
        formula_box.formula(formula, section="3.2", code=CODE, page="head")
