"""Decoding: the translation token by token, what else it might have been, and what beam search keeps."""

import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.figures import beam_tree, candidate_bars
from visformer.pictures import decoding
from visformer.ui import controls, going_on, lesson, pick, state
from visformer.ui.resources import workbench

VIEWS = {"steps": N_("Step by step"), "beams": N_("Beam search")}
LOOK_FOR = {
    "steps": N_("Each step is one choice among all tokens. Where was the model least sure? Take another there."),
    "beams": N_("Beam search keeps several beginnings alive. Which one that looked worse at first wins in the end?"),
}
FORMULA = r"""&P(y_t \mid y_{<t}, x) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} \sym{embed}{E}^T"""
CODE = (("decoding.py", "decode"), ("decoding.py", "reshape"), ("decoding.py", "beam_search"))

_ = state.gettext()
trace = controls.current_trace()


def steps(model):
    boxes = st.columns([3, 3, 3, 2, 3], vertical_alignment="bottom")
    with boxes[0]:
        temperature = st.slider(_("Temperature"), 0.1, 3.0, 1.0, 0.1, key="decoding_temperature")
    with boxes[1]:
        top_k = st.slider(_("top-k (0: all)"), 0, 50, 0, key="decoding_top_k")
    with boxes[2]:
        top_p = st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="decoding_top_p")
    with boxes[3]:
        draws = st.toggle(_("Draw"), key="decoding_draws", help=_("Draw instead of taking the likeliest"))
        seed = st.number_input(_("Seed"), 0, 10_000, 0, key="decoding_seed") if draws else 0
    shape = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p}
    found = model.translate(state.source(), prefix=going_on.prefix(), seed=seed, **(shape if draws else {}))
    with bar:
        first, second = st.columns(2, vertical_alignment="bottom")
    with first:
        at = pick.number(_("Step"), len(found.steps), key="decoding_step")
    step = found.steps[at]
    candidates, names = step.reshaped(**shape), (_("model"), _("drawn from"), _("all others"))
    with second:
        going_on.choose_another(model, found, at, candidates)
    left, right = st.columns([52, 48], gap="medium")
    with left:
        st.text(_("Decoded here: {text}").format(text=found.text))
        figure = candidate_bars(candidates, step.chosen.id, names=names, theme=lesson.theme())
        st.plotly_chart(figure, theme=None, key="decoding_bars")
    if found.text.strip():
        forced = workbench().trace(state.source(), found.ids)
        with boxes[4]:
            layer = pick.number(_("Layer"), len(forced.stack("decoder", "cross_attn")), key="decoding_layer")
        with right:
            controls.draw([decoding.growing(forced, layer, going_on.given(found) + at)], key="decoding_cross")


def beams(model):
    size = bar.slider(_("Hypotheses kept"), 2, 8, 4, key="decoding_beams", width=300)
    found = model.translate(state.source(), beam_size=size)
    st.text(_("Decoded here: {text}").format(text=found.text))
    st.plotly_chart(beam_tree(found.beams, theme=lesson.theme()), theme=None, key="decoding_tree")


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="decoding_view")
        bar = st.container()
    with maths:
        lesson.formula(FORMULA, section="3.4, 6.1", code=CODE)
    st.caption(_(LOOK_FOR[view]))
    try:
        {"steps": steps, "beams": beams}[view](workbench().loaded(state.source()))
    except VisformerError as error:
        st.text(error.localized(_))
