"""Through the block: the residual stream, what each sublayer adds, and where tokens talk to each other."""

import streamlit as st

from visformer.errors import N_
from visformer.pictures import block
from visformer.ui import controls, lesson, pick, state, who_talks
from visformer.ui.resources import workbench

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
FORMULA = r"&\sym{scores}{y} = \mathrm{LN}(\sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\sym{input}{x}))"
FORMULAS = {
    "zeros": r"\sym{out}{\mathrm{FFN}}(\sym{input}{x}) = \sym{pattern}{\max(0, x W_1 + b_1)}\, W_2 + b_2",
    "norms": r"&\sym{scores}{y} = \mathrm{LN}(\sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\sym{input}{x}))"
    r" \text{ (post)} \\[4pt]"
    r"&\sym{scores}{y} = \sym{input}{x} + \sym{out}{\mathrm{Sublayer}}(\mathrm{LN}(\sym{input}{x})) \text{ (pre)}",
}
CODE = (("model/layers.py", "_Block._add"), ("model/layers.py", "EncoderLayer.forward"))
STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}
PARTS = {"self": N_("self-attention"), "cross": N_("cross-attention"), "ffn": N_("feed-forward")}
SHOWN = {
    "stream": lambda trace, stack: [block.stream(trace, stack)],
    "zeros": lambda trace, stack: [block.silent_share(trace, stack)],
    "similar": lambda trace, stack: block.similarities(trace, stack, _("after layer {layer}")),
}

_ = state.gettext()
trace = controls.current_trace(block.RECORD)


def added(stack):
    left, right, _rest = st.columns([2, 3, 4], vertical_alignment="bottom")
    parts = {name: label for name, label in PARTS.items() if stack == "decoder" or name != "cross"}
    with left:
        layer = pick.number(_("Layer"), block.depth(trace, stack), key="block_layer")
    with right:
        part = controls.view(_("Sublayer"), parts, key=f"block_part_{stack}")
    controls.draw([block.added(trace, stack, layer, part)], key="block_added")


def norms(stack):
    traces = [
        (title, workbench().untrained(state.source(), trace.meta["target"], norm=norm, record=block.RECORD))
        for norm, title in (("post", N_("untrained, post-norm")), ("pre", N_("untrained, pre-norm")))
    ]
    traces.append((N_("trained, post-norm"), trace))
    controls.draw(block.noted(block.norms(traces, stack), _("strongest colour: {limit:.1f}")), key="block_norms")


def parts(stack):
    who_talks.table(block.who_talks(controls.current_trace((*block.RECORD, f"{stack}.0.*", "encoder.out")), stack))


if trace is not None:
    view = controls.view(_("View"), VIEWS, key="block_view")
    words, choice, maths = st.columns([36, 22, 42], gap="medium", vertical_alignment="center")
    words.caption(_(LOOK_FOR[view]))
    with choice:
        stack = controls.view(_("Stack"), STACKS, key="block_stack")
    with maths:
        lesson.formula(FORMULAS.get(view, FORMULA), section="3.1, 3.3", code=CODE, page="block")
    if view in SHOWN:
        controls.draw(SHOWN[view](trace, stack), key=f"block_{view}")
    else:
        {"added": added, "norms": norms, "parts": parts}[view](stack)
