"""Decoding: the translation token by token, the alternatives at each step, and the hypotheses of beam search."""

from dataclasses import replace

import streamlit as st

from visformer import i18n
from visformer.app.pages import decoding
from visformer.app.serving.models import MODEL
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures.charts.decoding import best_path
from visformer.pictures.decoding import BEAMS, CANDIDATES, PAGE, SURE, TREE, shape
from visformer.pictures.style.theme import decoded_text

FORMULA = r"""&P(y_t \mid y_{<t}%s) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} %s"""
TIED, UNTIED = r"\sym{embed}{E}^T", r"\sym{embed}{W}_{out}"
LONGEST = 24  # tokens that a decoder-only model adds
CODE = (("model/decoding.py", "decode"), ("model/decoding.py", "reshape"), ("model/decoding.py", "beam_search"))

_, trace = boxes.gettext(), controls.current_trace()


def steps():
    left, right = st.columns([52, 48], gap="medium")
    setting = controls.setting_of(CANDIDATES, trace)
    with left:
        kwargs = {"max_new_tokens": most, **decoding.settings(setting)}
    decoded = decoding.resume(model, lambda ids: bench.decoded(boxes.source(), prefix=ids, **kwargs))
    at = setting["step"] = decoding.step(len(every := decoding.steps(decoded)))
    setting.source = replace(setting.source, speak=lambda: replace(decoded, steps=every))
    with bar:
        controls.draw(SURE.draw(setting), key="decoding_sure", on_click=decoding.look_at, share=0.3, export=False)
    decoding.tell(decoded, at, top, other=decoded.text != trace.meta.get("target"))
    with right:
        another, depth = st.columns([3, 2], vertical_alignment="bottom")
    with another:
        decoding.choose_another(model, decoded, at, every[at].reshaped(**shape(setting)))
    with left:
        controls.draw(CANDIDATES.draw(setting), key="decoding_bars")
    decoding.attended(setting, decoded, at, depth, right)


def beams():
    setting = controls.setting_of(TREE, trace)
    url_widgets.draw(BEAMS, setting, "decoding", place=bar, width=300)
    decoded = bench.decoded(boxes.source(), beam_size=setting["beams"], max_new_tokens=most)
    with st.container(horizontal=True, gap="large"):
        st.text(_("Decoded with these settings: {text}").format(text=decoded_text(decoded.text, _)), width="content")
        decoding.tell_winner(best_path(decoded.beams))
    setting.source = replace(setting.source, speak=lambda **_: decoded)
    controls.draw(TREE.draw(setting), key="decoding_tree")


if trace is not None and unavailable.kind_of(trace) == "encoder":
    unavailable.say(N_("This model is an encoder: it generates no text, so there are no decoding steps."))
    unavailable.elsewhere()
elif trace is not None:
    most = LONGEST if unavailable.kind_of(trace) == "decoder" else None
    words, maths = st.columns([63, 37], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="decoding_view"))
        bar = st.container()
    with maths:
        last = TIED if boxes.model() in (None, MODEL) else UNTIED
        formula_box.formula(FORMULA % ("" if most else ", x", last), section="3.4, 6.1", code=CODE)
    top = st.container()
    try:
        model = (bench := controls.bench()).loaded(boxes.source())
        (beams if view is TREE else steps)()
    except VisformerError as error:
        st.text(error.localized(_))
    if not decoding.prefix() or view is TREE:
        length = _("It continues for at most {n} tokens.").format(n=most) if most else ""
        controls.look_for(i18n.paragraph(_(view.look_for), length), top)
