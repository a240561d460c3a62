"""Decoding: the translation token by token, what else it might have been, and what beam search keeps."""

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

FORMULA = r"""&P(y_t \mid y_{<t}%s) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} %s"""
TIED, APART = r"\sym{embed}{E}^T", r"\sym{embed}{W}_{out}"
LONGEST = 24  # tokens that a decoder adds
CODE = (("model/decoding.py", "decode"), ("model/decoding.py", "reshape"), ("model/decoding.py", "beam_search"))

_, trace = boxes.gettext(), controls.current_trace()


def steps():
    left, right = st.columns([52, 48], gap="medium")
    setting = controls.setting_of(CANDIDATES, trace)
    with left:
        more = {"max_new_tokens": most, **decoding.settings(setting)}
    found = decoding.begun(model, lambda ids: bench.decoded(boxes.source(), prefix=ids, **more))
    at = setting["step"] = decoding.step(len(every := decoding.steps(found)))
    setting.source = replace(setting.source, speak=lambda: replace(found, steps=every))
    with bar:
        controls.draw(SURE.draw(setting), key="decoding_sure", on_click=decoding.look_at, share=0.3, kept=False)
    decoding.tell(found, at, told, other=found.text != trace.meta.get("target"))
    with right:
        another, depth = st.columns(2, vertical_alignment="bottom")
    with another:
        decoding.choose_another(model, found, at, every[at].reshaped(**shape(setting)))
    with left:
        controls.draw(CANDIDATES.draw(setting), key="decoding_bars")
    decoding.attended(setting, found, at, depth, right)


def beams():
    setting = controls.setting_of(TREE, trace)
    url_widgets.draw(BEAMS, setting, "decoding", place=bar, width=300)
    found = bench.decoded(boxes.source(), beam_size=setting["beams"], max_new_tokens=most)
    with st.container(horizontal=True, gap="large"):
        st.text(_("Decoded with these settings: {text}").format(text=found.text), width="content")
        decoding.tell_winner(best_path(found.beams))
    setting.source = replace(setting.source, speak=lambda **_: found)
    controls.draw(TREE.draw(setting), key="decoding_tree")


if trace is not None and unavailable.kind_of(trace) == "encoder":
    unavailable.say(N_("This model is an encoder: it generates no text, so there are no decoding steps."))
    unavailable.elsewhere()
elif trace is not None:
    most = LONGEST if unavailable.kind_of(trace) == "decoder" else None
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="decoding_view"))
        bar = st.container()
    with maths:
        last = TIED if boxes.model() in (None, MODEL) else APART
        formula_box.formula(FORMULA % ("" if most else ", x", last), section="3.4, 6.1", code=CODE)
    told = st.container()
    try:
        model = (bench := controls.bench()).loaded(boxes.source())
        (beams if view is TREE else steps)()
    except VisformerError as error:
        st.text(error.localized(_))
    if not decoding.prefix() or view is TREE:
        goes_on = _("It continues for at most {n} tokens.").format(n=most) if most else ""
        controls.look_for(i18n.paragraph(_(view.look_for), goes_on), told)
