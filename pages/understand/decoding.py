"""Decoding: the translation token by token, what else it might have been, and what beam search keeps."""

import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.figures import beam_tree, candidate_bars
from visformer.pictures import decoding
from visformer.ui import controls, lesson, pick, state
from visformer.ui.resources import workbench

VIEWS = {"steps": N_("Step by step"), "beams": N_("Beam search")}
LOOK_FOR = {
    "steps": N_(
        "Each step is a choice among 8,000 tokens. Where was the model least sure? Take another there, and go on."
    ),
    "beams": N_("Beam search keeps several beginnings alive. Which one that looked worse at first wins in the end?"),
}
FORMULA = r"""P(y_t \mid y_{<t}, x) = \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{scores}{z_t}}{\sym{k}{T}}\right),
\quad \sym{scores}{z_t} = \sym{out}{h_t} \sym{embed}{E}^T"""
CODE = (("decoding.py", "decode"), ("decoding.py", "reshape"), ("decoding.py", "beam_search"))
PREFIX = "decoding_prefix"

_ = state.gettext()
trace = controls.current_trace()


def steps(model):
    place = (state.source(), str(state.target()))
    kept, prefix = st.session_state.get(PREFIX, (place, ""))
    prefix = prefix if kept == place else ""
    with side:
        temperature = st.slider(_("Temperature"), 0.1, 3.0, 1.0, 0.1, key="decoding_temperature")
        top_k = st.slider(_("top-k (0: all)"), 0, 50, 0, key="decoding_top_k")
        top_p = st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="decoding_top_p")
        draws = st.toggle(_("Draw instead of taking the likeliest"), key="decoding_draws")
        seed = st.number_input(_("Seed"), 0, 10_000, 0, key="decoding_seed") if draws else 0
    shape = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p}
    found = model.translate(state.source(), prefix=prefix, seed=seed, **(shape if draws else {}))
    st.text(_("Translation: {text}").format(text=found.text))
    count = len(found.steps)
    first = len(found.ids) - count + found.finished  # tokens that were given
    step = st.slider(_("Step"), 1, count, min(2, count), key=f"decoding_step_{count}") - 1 if count > 1 else 0
    chosen, candidates = found.steps[step].chosen, decoding.reshaped(found.steps[step], **shape)
    ids = [candidate.id for candidate in candidates]
    names = (_("model"), _("drawn from"))
    at = ids.index(chosen.id) if chosen.id in ids else -1
    st.plotly_chart(candidate_bars(candidates, at, names=names, theme=lesson.theme()), theme=None, key="decoding_bars")
    others = [c for c in candidates if c.id != chosen.id and c.id >= decoding.FIRST_TEXT_ID]
    taken = st.selectbox(
        _("Take another, and go on from it"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {others[i].probability:.3f}",
        key=f"decoding_other_{prefix}_{step}",
    )
    if taken is not None:
        text = model.tokenizer.decode([*found.ids[: first + step], others[taken].id])
        st.session_state[PREFIX] = (place, text)
        st.rerun()
    if prefix and st.button(_("Back to its own beginning")):
        del st.session_state[PREFIX]
        st.rerun()
    if found.text.strip():
        forced = workbench().trace(state.source(), found.text)
        layer = pick.number(_("Layer"), len(forced.stack("decoder", "cross_attn")), key="decoding_layer")
        controls.draw([decoding.growing(forced, layer, first + step)], key="decoding_cross")


def beams(model):
    with side:
        size = st.slider(_("Hypotheses kept"), 2, 8, 4, key="decoding_beams")
    found = model.translate(state.source(), beam_size=size)
    st.text(_("Translation: {text}").format(text=found.text))
    st.plotly_chart(beam_tree(found.beams, theme=lesson.theme()), theme=None, key="decoding_tree")


if trace is not None:
    view = controls.view(_("View"), VIEWS, key="decoding_view")
    st.caption(_(LOOK_FOR[view]))
    picture, side = st.columns([7, 3], gap="large")
    with side:
        lesson.formula(FORMULA, section="3.4, 6.1", code=CODE)
    with picture:
        try:
            {"steps": steps, "beams": beams}[view](workbench().loaded(state.source()))
        except VisformerError as error:
            st.text(error.localized(_))
