"""Decoding: the translation token by token, what else it might have been, and what beam search keeps."""

import streamlit as st

from visformer import i18n
from visformer.app.pages.decoding import forced_decoding, searching
from visformer.app.serving.models import MODEL
from visformer.app.session import state
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.figures.decoding import beam_tree, best_path, candidate_bars
from visformer.pictures import decoding

VIEWS = {"steps": N_("Step by step"), "beams": N_("Beam search")}
LOOK_FOR = {
    "steps": N_(
        "Each step is one choice: take another. Orange: what Draw draws from, after temperature, top-k and top-p."
    ),
    "beams": N_("Numbers: log-probability; at an end also per token, which ranks. Does one that looked worse win (◂)?"),
}
FORMULA = r"""&P(y_t \mid y_{<t}%s) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} %s"""
TIED, APART = r"\sym{embed}{E}^T", r"\sym{embed}{W}_{out}"
LONGEST = 24  # tokens that a decoder adds
CODE = (("model/decoding.py", "decode"), ("model/decoding.py", "reshape"), ("model/decoding.py", "beam_search"))

_, trace = state.gettext(), controls.current_trace()


def steps():
    left, right = st.columns([52, 48], gap="medium")
    with left:
        shape, drawn = searching.settings()
    found = forced_decoding.begun(
        model, lambda ids: bench.decoded(state.source(), prefix=ids, max_new_tokens=most, **drawn)
    )
    at = forced_decoding.step(len(every := forced_decoding.steps(found)))
    candidates = every[at].reshaped(**shape)
    with bar:
        sure = decoding.sureness(every, at, title=_("how sure of each step (least: {step}, {token})"))
        controls.draw([sure], key="decoding_sure", on_click=forced_decoding.look_at, share=0.3, kept=False)
    forced_decoding.tell(found, at, told, other=found.text != trace.meta.get("target"))
    with right:
        another, depth = st.columns(2, vertical_alignment="bottom")
    with another:
        forced_decoding.choose_another(model, found, at, candidates)
    with left:
        words = {"title": _("step {step}: what might come next"), "theme": formula_box.theme()}
        words["names"] = _("model"), _("drawn from"), _("all others")
        controls.draw_figure(candidate_bars(candidates, every[at].chosen.id, step=at, **words), key="decoding_bars")
    forced_decoding.attended(found, at, depth, right)


def beams():
    size = url_widgets.number(bar.slider, _("Hypotheses kept"), 2, 8, 4, key="decoding_beams", width=300)
    found = bench.decoded(state.source(), beam_size=size, max_new_tokens=most)
    with st.container(horizontal=True, gap="large"):
        st.text(_("Decoded here: {text}").format(text=found.text), width="content")
        searching.tell_winner(best_path(found.beams))
    words = {"unit": _("nats"), "title": _("beam search: {size} hypotheses kept"), "theme": formula_box.theme()}
    controls.draw_figure(beam_tree(found.beams, **words), key="decoding_tree")


if trace is not None and unavailable.kind_of(trace) == "encoder":
    unavailable.say(N_("This model is an encoder: it reads a text and writes none, so it takes no steps of decoding."))
    unavailable.elsewhere()
elif trace is not None:
    most = LONGEST if unavailable.kind_of(trace) == "decoder" else None
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="decoding_view")
        bar = st.container()
    with maths:
        last = TIED if state.model() in (None, MODEL) else APART
        formula_box.formula(FORMULA % ("" if most else ", x", last), section="3.4, 6.1", code=CODE)
    told = st.container()
    try:
        model = (bench := controls.bench()).loaded(state.source())
        {"steps": steps, "beams": beams}[view]()
    except VisformerError as error:
        st.text(error.localized(_))
    if not forced_decoding.prefix() or view == "beams":
        goes_on = _("It goes on for at most {n} tokens.").format(n=most) if most else ""
        controls.look_for(i18n.paragraph(_(LOOK_FOR[view]), goes_on), told)
