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
    with side:
        temperature = st.slider(_("Temperature"), 0.1, 3.0, 1.0, 0.1, key="decoding_temperature")
        top_k = st.slider(_("top-k (0: all)"), 0, 50, 0, key="decoding_top_k")
        top_p = st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="decoding_top_p")
        draws = st.toggle(_("Draw instead of taking the likeliest"), key="decoding_draws")
        seed = st.number_input(_("Seed"), 0, 10_000, 0, key="decoding_seed") if draws else 0
    shape = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p}
    found = model.translate(state.source(), prefix=going_on.prefix(), seed=seed, **(shape if draws else {}))
    step = pick.number(_("Step"), len(found.steps), key="decoding_step")
    st.text(_("Decoded here: {text}").format(text=found.text))
    candidates = decoding.reshaped(found.steps[step], **shape)
    ids = [candidate.id for candidate in candidates]
    chosen = found.steps[step].chosen.id
    at, names = (ids.index(chosen) if chosen in ids else -1), (_("model"), _("drawn from"))
    st.plotly_chart(candidate_bars(candidates, at, names=names, theme=lesson.theme()), theme=None, key="decoding_bars")
    going_on.choose_another(model, found, step, candidates)
    if found.text.strip():
        forced = workbench().trace(state.source(), found.text)
        layer = pick.number(_("Layer"), len(forced.stack("decoder", "cross_attn")), key="decoding_layer")
        controls.draw([decoding.growing(forced, layer, going_on.given(found) + step)], key="decoding_cross")


def beams(model):
    with side:
        size = st.slider(_("Hypotheses kept"), 2, 8, 4, key="decoding_beams")
    found = model.translate(state.source(), beam_size=size)
    st.text(_("Decoded here: {text}").format(text=found.text))
    st.plotly_chart(beam_tree(found.beams, theme=lesson.theme()), theme=None, key="decoding_tree")


if trace is not None:
    view = controls.view(_("View"), VIEWS, key="decoding_view")
    st.caption(_(LOOK_FOR[view]))
    picture, side = st.columns([68, 32], gap="large")
    with side:
        lesson.formula(FORMULA, section="3.4, 6.1", code=CODE)
    with picture:
        try:
            {"steps": steps, "beams": beams}[view](workbench().loaded(state.source()))
        except VisformerError as error:
            st.text(error.localized(_))
