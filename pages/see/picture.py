"""Picture and words: which patches each word of a caption reads, and what changes when some cannot be read."""

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from visformer.adapters.checkpoints import CAPTIONER
from visformer.app.serving.models import MODEL, label
from visformer.app.session import address, boxes
from visformer.app.session.markdown import plain
from visformer.app.session.page import page_named
from visformer.app.session.slots import Slot, widget_key
from visformer.app.widgets import controls, formula_box, scene, url_widgets
from visformer.errors import N_
from visformer.pictures.picture import (
    BLOCKING,
    PAGE,
    PATCH,
    PLACES,
    READING,
    WORD,
    blocked,
    changes,
    head_of,
    objects,
    word_weights,
)
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import visible
from visformer.trace import Trace
from visformer.web.panels import Click

FORMULAS = {
    "words": (
        r"\sym{pattern}{A} = \mathrm{softmax}\left(\frac{\sym{q}{Q}_{words} \sym{k}{K}_{patches}^T}{\sqrt{d_k}}\right)"
    ),
    "patches": r"\sym{input}{x} = p W + b + \sym{position}{PE}_{patch}",
    "heads": r"\sym{pattern}{A} = \mathrm{softmax}\left(\frac{\sym{q}{Q} \sym{k}{K}^T}{\sqrt{d_k}}\right)",
    "block": r"\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log \sym{mask}{M}\right)",
}
CODE = (("model/attention.py", "attention"), ("model/patches.py", "PatchEmbedding.forward"))
SOURCE = {"patches": {"source": N_("Dosovitskiy et al. 2021, § 3.1")}}
RECORD = ("*.pattern", "src.*")

_ = boxes.gettext()


def slot_of(option: Any, setting: Setting) -> Slot[Any]:
    """Return where the widget of an option keeps its value."""
    return Slot(widget_key(option.key("picture", setting), option.per(setting)), None)


def tell_word(trace: Trace, setting: Setting) -> None:
    """Say what the chosen word reads."""
    weights = word_weights(trace, head_of(setting["heads"]))[setting["word"]]
    found, most = objects(trace), int(weights.argmax())
    said = _("“{word}” gives most of its weight, {most}, to the patch {patch}.")
    names = {"word": visible(trace.tokens["next"][setting["word"]]), "patch": trace.tokens["src"][most]}
    if found:
        at = max(found, key=lambda place: weights[found[place]].sum())
        said = _("“{word}” gives {weight} of its weight to the object {place}, {most} to the patch {patch} alone.")
        names |= {"place": _(PLACES[at]), "weight": f"{weights[found[at]].sum():.2f}"}
    st.text(said.format(**names, most=f"{weights[most]:.2f}"))


def draw_reading(trace: Trace, view: Any, bar: Any) -> None:
    """Draw a view in which words or patches are chosen."""
    setting = controls.setting_of(view, trace, RECORD)
    url_widgets.draw_all(view, setting, "picture", place=bar)
    if view is READING:
        tell_word(trace, setting)
    option, name = (WORD, "words") if view is READING else (PATCH, "picture")
    slot, columns = slot_of(option, setting), trace.meta["grid"][1]

    def choose(click: Click) -> None:
        if click.panel == name and click.row is not None and click.column is not None:
            slot.set(click.row if view is READING else click.row * columns + click.column)

    controls.draw(view.draw(setting), key=f"picture_{view.view}", on_click=choose)


def draw_blocking(trace: Trace, bar: Any) -> None:
    """Draw an object that cannot be read, and both captions."""
    if not objects(trace):
        st.info(
            _("Only of a drawn scene is it known which patches show an object: change the picture to see one blocked.")
        )
        return
    setting = controls.setting_of(BLOCKING, trace, RECORD)
    url_widgets.draw_all(BLOCKING, setting, "picture", place=bar)
    found = blocked(setting)
    left, right = st.columns(2)
    left.markdown(_("As it is: {text}").format(text=marked(found.before, found.kept[0])))
    right.markdown(_("While blocked: {text}").format(text=marked(found.after, found.kept[1])))
    controls.draw(changes(trace, setting["object"], found, _), key="picture_block")


def marked(words: Sequence[str], kept: Iterable[bool]) -> str:
    """Return a caption in Markdown, with the words that are not kept on a background."""
    text = ""
    for word, same in zip(words, kept, strict=True):
        between = " " if text and word.isascii() and word != "," else ""
        text += between + (plain(visible(word)) if same else f":orange-background[{plain(visible(word))}]")
    return text


def draw() -> None:
    """Draw the page."""
    trace = controls.current_trace(RECORD)
    if trace is None:
        return
    words, maths = st.columns([66, 34], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="picture_view"))
        controls.look_for(_(view.look_for), words)
        bar = st.container(horizontal=True, vertical_alignment="bottom", key="picture_options")
    code = CODE[1:] if view.view == "patches" else CODE[:1]
    with maths:
        formula_box.formula(FORMULAS[view.view], code=code, page="picture", **SOURCE.get(view.view, {"section": "3.2"}))
    chosen = boxes.MODEL_BOX.get() or MODEL
    if boxes.pictures(chosen) != "none":
        said = _(
            "This page shows {own} alone, whose encoder reads the picture and whose decoder writes about it. {model} "
            "is on the other pages, such as Attention."
        )
        st.info(said.format(own=plain(CAPTIONER), model=plain(label(chosen))))
    with bar:
        scene.chooser(trace)
    if view is BLOCKING:
        draw_blocking(trace, bar)
    else:
        draw_reading(trace, view, bar)
    st.caption(_("The same model and picture on other pages:"))
    query = {**address.to_query(), "model": CAPTIONER, "text": boxes.source()}
    with st.container(horizontal=True, key="picture_elsewhere"):
        for name in ("", "attention", "embedding", "head"):
            st.page_link(page_named(name), query_params=query)


draw()
