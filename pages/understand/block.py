"""Through the block: the residual stream, what each sublayer adds, and where tokens talk to each other."""

import streamlit as st

from visformer.app.pages.block import norms, who_talks
from visformer.app.session import state
from visformer.app.widgets import controls, formula_box, pick, unavailable
from visformer.errors import N_
from visformer.pictures import block

VIEWS = {
    "stream": N_("Residual stream"),
    "added": N_("One sublayer"),
    "zeros": N_("Feed-forward"),
    "similar": N_("Similarity"),
    "norms": N_("Pre- and post-norm"),
    "parts": N_("Who talks to whom"),
}
LOOK_FOR = {
    "stream": N_("How long each vector is. Lengths do not add up: vectors point apart, and LN norms their sum."),
    "added": N_("What goes by, what is added, what LayerNorm makes of the sum. Few dimensions do most of the work."),
    "zeros": N_("ReLU leaves most at zero. Blue: more zeros than the mean of all cells; orange: fewer, more in use."),
    "similar": N_("The cosine of every two tokens, layer by layer: do they grow alike, or apart?"),
    "norms": N_("With post-norm every sum is normed, so lengths stay level; with pre-norm the stream only grows."),
    "parts": N_("Measured: 1 is added to each number of one token's input, and every other token's output is watched."),
}
SMOOTH = N_(
    "This activation is smooth: hardly a value is exactly zero. Counted are those that are small beside others."
)
FORMULA = r"\sym{scores}{y} = \mathrm{LN}(\sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\sym{input}{x}))"
FORMULAS = {
    "zeros": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{\max(0, x W_1 + b_1)}\, W_2 + b_2",
    "smooth": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{f(x W_1 + b_1)}\, W_2 + b_2",
    "pre": r"\sym{scores}{y} = \sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\mathrm{LN}(\sym{input}{x}))",
    "norms": r"&\sym{scores}{y} = \mathrm{LN}(\sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\sym{input}{x}))"
    r" \ \text{Post-LN} \\[4pt]"
    r"&\sym{scores}{y} = \sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\mathrm{LN}(\sym{input}{x})) \ \text{Pre-LN}",
}
CODE = (("model/layers.py", "_Block._add"), ("model/layers.py", "EncoderLayer.forward"))
STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}
PARTS = {"self": N_("self-attention"), "cross": N_("cross-attention"), "ffn": N_("feed-forward")}
NEEDED = {"added": "ffn.out", "zeros": "ffn.hidden", "parts": "self_attn.out"}

_ = state.gettext()
trace = controls.current_trace(block.RECORD)


def added():
    left, right, _rest = st.columns([2, 3, 4], vertical_alignment="bottom")
    there = {name: PARTS[name] for name in block.sublayers(trace, stack)}
    with left:
        layer = pick.number(_("Layer"), block.depth(trace, stack), key="block_layer")
    with right:
        part = controls.view(_("Sublayer"), there, key=f"block_part_{stack}")
    controls.draw([block.added(trace, stack, layer, part)], key="block_added")


def drawn():
    make = {"stream": block.stream, "zeros": block.silent_share}.get(view)
    shown = [make(trace, stack)] if make else block.similarities(trace, stack, _("after layer {layer}"))
    controls.draw(block.told_ends(shown, _), key=f"block_{view}")


if trace is not None:
    view = controls.view(_("View"), VIEWS, key="block_view")
    words, choice, maths = st.columns([36, 22, 42], gap="medium", vertical_alignment="center")
    with choice:
        stack = controls.view(_("Stack"), unavailable.shown(STACKS, trace), key="block_stack")
    needed = f"{stack}.0.{NEEDED.get(view, 'resid_post')}"
    smooth = view == "zeros" and needed in trace and not block.has_zeros(trace, stack)
    controls.look_for(_(SMOOTH if smooth else LOOK_FOR[view]), words)
    with maths:
        usual = FORMULAS["pre"] if needed in trace and block.norms_first(trace, stack) else FORMULA
        formula_box.formula(
            FORMULAS.get("smooth" if smooth else view, usual), section="3.1, 3.3", code=CODE, page="block"
        )
    if unavailable.tell(trace, needed, N_("This model does not show this part of its block: {reason}.")):
        unavailable.elsewhere()
    else:
        other = {"norms": lambda: norms.norms(trace, stack), "parts": lambda: who_talks.measured(stack)}
        {**other, "added": added}.get(view, drawn)()
