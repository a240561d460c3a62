"""Through the block: the residual stream, what each sublayer adds to it, and where tokens exchange information."""

from collections.abc import Sequence
from contextlib import nullcontext

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, tables, unavailable, url_widgets
from visformer.errors import N_
from visformer.panel import Stage
from visformer.pictures import block
from visformer.pictures.block import AT, INSIDE, PAGE, PARTS, SUBLAYER, WHO_TALKS, ZEROS
from visformer.pictures.registry.options import TOKEN
from visformer.pictures.registry.picture import Picture

SMOOTH = N_(
    "This activation is smooth: hardly any value is exactly zero. Counted instead are values small compared "
    "with the rest."
)
UNMEASURED = N_("This measurement needs the weights of each part, which are not available for this model family.")
FORMULA = r"\sym{scores}{y} = \mathrm{LN}(\sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\sym{input}{x}))"
FORMULAS = {
    "inside": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{\max(0, x W_1 + b_1)}\, W_2 + b_2",
    "zeros": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{\max(0, x W_1 + b_1)}\, W_2 + b_2",
    "smooth": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{f(x W_1 + b_1)}\, W_2 + b_2",
    "pre": r"\sym{scores}{y} = \sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\mathrm{LN}(\sym{input}{x}))",
}
CODE = (("model/layers.py", "_Block._add"), ("model/layers.py", "EncoderLayer.forward"))
STACKS: dict[block.Stack, str] = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}
NEEDED = {
    "stream": "ffn.out",
    "added": "ffn.out",
    "inside": "ffn.hidden",
    "zeros": "ffn.hidden",
    "parts": "self_attn.out",
}

_ = boxes.gettext()
trace = controls.current_trace(block.RECORD)

if trace is not None:
    view = PAGE.view(controls.view(_("View"), PAGE.titles, key="block_view"))
    left, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with left:
        words, choice = st.columns([36, 22], gap="medium", vertical_alignment="center")
    with choice:
        stack = controls.view(_("Stack"), unavailable.shown(STACKS, trace), key="block_stack")
    needed = f"{block.first(trace, stack)}.{NEEDED.get(view.view, 'resid_post')}"
    smooth = view in (INSIDE, ZEROS) and needed in trace and not block.has_zeros(trace, stack)
    controls.look_for(_(SMOOTH if smooth and view is ZEROS else view.look_for), words)
    with maths:
        default = FORMULAS["pre"] if needed in trace and block.norms_first(trace, stack) else FORMULA
        formula_box.formula(
            FORMULAS.get("smooth" if smooth else view.view, default), section="3.1, 3.3", code=CODE, page="block"
        )
    if unavailable.tell(trace, needed, N_("This model does not show this part of its block: {reason}.")):
        unavailable.elsewhere()
    elif view is WHO_TALKS:
        full = controls.current_trace((*block.RECORD, f"{stack}.0.*", "encoder.out"))
        if full is not None and {f"{stack}.0.self_attn.w_q", f"{stack}.0.ffn.w_1"} <= {*full.params}:
            say = {True: _("yes"), False: _("no")}
            rows = [
                {
                    _("part"): _(part.name),
                    _("tokens talk to each other"): say[part.talks],
                    _("largest change in the others"): part.moved,
                    _("parameters in one layer"): part.parameters,
                }
                for part in block.who_talks(full, stack)
            ]
            tables.draw(pd.DataFrame(rows), title=_(WHO_TALKS.title))
        elif full is not None:
            unavailable.say(UNMEASURED)
    else:
        assert isinstance(view, Picture)
        setting = controls.setting_of(view, trace, block.RECORD, stack=f"{stack}.self_attn")
        if view is SUBLAYER:
            parts = {name: PARTS[name] for name in block.sublayers(trace, stack)}
            with st.container(horizontal=True, vertical_alignment="bottom"):
                url_widgets.draw(AT, setting, "block", width=200)
                setting["part"] = controls.view(_("Sublayer"), parts, key=f"block_part_{stack}")
        stages: Sequence[Stage] = ()
        if view is INSIDE:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                url_widgets.draw(AT, setting, "block", width=200)
                url_widgets.draw(TOKEN, setting, "block", width=200)
            stages = block.inside_stages(setting.trace, stack, setting["layer"], setting["token"], _)
        with left if view is ZEROS else nullcontext():  # a few rows, which have room beside the formula
            controls.draw(view.draw(setting), key=f"block_{view.view}", stages=stages)
