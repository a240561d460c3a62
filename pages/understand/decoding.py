"""Decoding: the translation token by token, what else it might have been, and what beam search keeps."""

import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.figures import beam_tree, candidate_bars
from visformer.figures.decoding import best_path
from visformer.pictures import decoding
from visformer.ui import controls, going_on, lesson, pick, searching, state
from visformer.ui.resources import workbench

VIEWS = {"steps": N_("Step by step"), "beams": N_("Beam search")}
LOOK_FOR = {
    "steps": N_(
        "Each step is one choice: take another. Orange: what Draw draws from, after temperature, top-k and top-p."
    ),
    "beams": N_("Numbers: log-probability; at an end also per token, which ranks. Does one that looked worse win (◂)?"),
}
FORMULA = r"""&P(y_t \mid y_{<t}, x) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} \sym{embed}{E}^T"""
CODE = (("decoding.py", "decode"), ("decoding.py", "reshape"), ("decoding.py", "beam_search"))

_ = state.gettext()
trace = controls.current_trace()


def steps(model):
    left, right = st.columns([52, 48], gap="medium")
    with left:
        shape, drawn = searching.settings()
    found = model.translate(state.source(), prefix=going_on.prefix(), **drawn)
    every = going_on.steps(found)
    at = going_on.step(len(every))
    candidates = every[at].reshaped(**shape)
    with bar:
        sure = decoding.sureness(every, at, title=_("how sure of each step (least: {step}, {token})"))
        controls.draw([sure], key="decoding_sure", on_click=going_on.look_at, share=0.3, kept=False)
    with told.container(horizontal=True, vertical_alignment="center", gap="large"):
        if found.text != trace.meta["target"]:
            st.text(_("Decoded here: {text}").format(text=found.text), width="content")
        going_on.tell(found, at)
    with right:
        another, depth = st.columns(2, vertical_alignment="bottom")
    with another:
        going_on.choose_another(model, found, at, candidates)
    with left:
        names = _("model"), _("drawn from"), _("all others")
        figure = candidate_bars(candidates, every[at].chosen.id, names=names, theme=lesson.theme())
        st.plotly_chart(figure, theme=None, key="decoding_bars")
    if found.text.strip():
        forced = workbench().trace(state.source(), found.ids)
        with depth:
            layer = pick.number(_("Layer"), len(forced.stack("decoder", "cross_attn")), key="decoding_layer")
        with right:
            controls.draw([decoding.growing(forced, layer, going_on.row(found, at))], key="decoding_cross", share=0.5)


def beams(model):
    size = bar.slider(_("Hypotheses kept"), 2, 8, 4, key="decoding_beams", width=300)
    found = model.translate(state.source(), beam_size=size)
    st.text(_("Decoded here: {text}").format(text=found.text))
    searching.tell_winner(best_path(found.beams))
    st.plotly_chart(beam_tree(found.beams, theme=lesson.theme()), theme=None, key="decoding_tree")


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="decoding_view")
        bar = st.container()
    with maths:
        lesson.formula(FORMULA, section="3.4, 6.1", code=CODE)
    told = st.container()
    if not going_on.prefix() or view == "beams":
        told.caption(_(LOOK_FOR[view]))
    try:
        {"steps": steps, "beams": beams}[view](workbench().loaded(state.source()))
    except VisformerError as error:
        st.text(error.localized(_))
