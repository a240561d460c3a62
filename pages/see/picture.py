"""Picture and words: which patches a word or another patch reads, and what changes when some cannot be read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from visformer.app.serving.models import MODEL, label
from visformer.app.serving.uploaded_pictures import EXAMPLES, named, text_of
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
    VECTORS,
    WORD,
    blocked,
    can_be_blocked,
    changes,
    head_of,
    objects,
    patch_weights,
    reading_stack,
    word_weights,
    writes,
    written,
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
RECORD = ("*.pattern", "src.*", "tgt.input")
NOT_APART = {
    "src": N_("This model adds the embedding of a patch and its position in one step: their sum is shown."),
    "tgt": N_("A patch enters this decoder as the vector that the vision model makes of it."),
}
"""Of other models than ours, by the side of their patches."""

_ = boxes.gettext()


def slot_of(option: Any, setting: Setting) -> Slot[Any]:
    """Return where the widget of an option keeps its value."""
    return Slot(widget_key(option.key("picture", setting), option.per(setting)), None)


def tell(trace: Trace, view: Any, setting: Setting) -> None:
    """Say what the chosen word or token reads."""
    found: Mapping[int, Any] = {}
    if view is READING:
        row, found = setting["word"], objects(trace)
        weights, reader = word_weights(trace, head_of(setting["heads"]))[row], trace.tokens["next"][written(trace)[row]]
    else:
        weights = patch_weights(trace, head_of(setting["encoder_heads"]))[setting["patch"]]
        reader = trace.tokens[trace.patches[0]][setting["patch"]]
    (side, patches), most, everything = trace.patches, int(weights.argmax()), weights.sum()
    names = {"word": visible(reader), "patch": trace.tokens[side][patches[most]], "most": f"{weights[most]:.2f}"}
    said = _("“{word}” reads the patch {patch} most, with {most} of its weight.")
    if found:
        at = max(found, key=lambda place: weights[found[place]].sum())
        said = _("“{word}” gives {weight} of its weight to the object {place}, {most} to the patch {patch} alone.")
        names |= {"place": _(PLACES[at]), "weight": f"{weights[found[at]].sum():.2f}"}
    elif len(trace.tokens[side]) > len(patches):
        said = _("“{word}” gives {weight} of its weight to the picture, {most} to the patch {patch} alone.")
        if view is READING:
            said = _(
                "To predict “{word}”, the model gives {weight} of its weight to the picture, {most} to the patch "
                "{patch} alone."
            )
        names["weight"] = f"{everything:.2f}"
    st.text(said.format(**names))


def draw_reading(trace: Trace, view: Any, bar: Any) -> None:
    """Draw a view in which words or patches are chosen."""
    if view is READING and not writes(trace):
        st.info(_("The model writes no word after the picture: type a text beside it."))
        return
    setting = controls.setting_of(view, trace, RECORD)
    url_widgets.draw_all(view, setting, "picture", place=bar)
    if view is not VECTORS:
        tell(trace, view, setting)
    elif "src.embed" not in trace:
        st.text(_(NOT_APART[trace.patches[0]]))
    option, names = (WORD, ("words",)) if view is READING else (PATCH, ("picture", "read"))
    slot, columns, first = slot_of(option, setting), trace.meta["grid"][1], trace.patches[1].start

    def choose(click: Click) -> None:
        if click.panel in names and click.row is not None and click.column is not None:
            slot.set(click.row if view is READING else first + click.row * columns + click.column)

    controls.draw(view.draw(setting), key=f"picture_{view.view}", on_click=choose)


def draw_blocking(trace: Trace, bar: Any) -> None:
    """Draw a part that cannot be read, and what the model makes of the picture with and without it."""
    setting = controls.setting_of(BLOCKING, trace, RECORD)
    url_widgets.draw_all(BLOCKING, setting, "picture", place=bar)
    found = blocked(setting)
    between = " " if "next" in trace.tokens else " · "
    left, right = st.columns(2)
    left.markdown(_("As it is: {text}").format(text=marked(found.before, found.kept[0], between)))
    right.markdown(_("While blocked: {text}").format(text=marked(found.after, found.kept[1], between)))
    controls.draw(changes(trace, setting["object"], found, _), key="picture_block")


def marked(words: Sequence[str], kept: Iterable[bool], between: str) -> str:
    """Return words in Markdown, with those that are not kept on a background."""
    text = ""
    for word, same in zip(words, kept, strict=True):
        apart = between if text and word.isascii() and word != "," else ""
        text += apart + (plain(visible(word)) if same else f":orange-background[{plain(visible(word))}]")
    return text


def titles(trace: Trace) -> dict[str, str]:
    """Return the titles of the views that the model has: an encoder writes no words, and may predict nothing."""
    lacking = {"words": "next" not in trace.tokens, "block": not can_be_blocked(trace)}
    return {name: title for name, title in PAGE.titles.items() if not lacking.get(name)}


def ask_for_picture() -> None:
    """Say that the model reads a text now, and offer a picture."""
    said = _("{model} reads a text now, and this page shows what is read of a picture: choose one, or begin with this.")
    st.info(said.format(model=plain(label(boxes.model() or MODEL))))
    text = text_of(EXAMPLES[0], named(boxes.typed())[1])
    st.button(_("Example {n}").format(n=EXAMPLES[0]), key="first_picture", on_click=boxes.enter_example, args=(text,))


def draw() -> None:
    """Draw the page."""
    expected, trace = boxes.model(), controls.current_trace(RECORD)
    if boxes.model() != expected:  # once it was loaded, it turned out to read no pictures
        trace = controls.current_trace(RECORD)
    own, chosen = boxes.own_model(), boxes.MODEL_BOX.get() or MODEL
    if own and own != chosen:
        said = _("{model} reads no pictures. This page shows {own}, which does, and describes them.")
        st.caption(said.format(own=plain(own), model=plain(label(chosen))))
    if trace is None:
        return
    if "grid" not in trace.meta:
        ask_for_picture()
        return
    words, maths = st.columns([66, 34], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), titles(trace), key="picture_view"))
        controls.look_for(_(view.look_for), words)
        bar = st.container(horizontal=True, vertical_alignment="bottom", key="picture_options")
    code = CODE[1:] if view is VECTORS else CODE[:1]
    formula = "heads" if view is READING and reading_stack(trace) == "decoder.self_attn" else view.view
    with maths:
        formula_box.formula(FORMULAS[formula], code=code, page="picture", **SOURCE.get(view.view, {"section": "3.2"}))
    if own:
        with bar:
            scene.chooser(trace)
    if view is BLOCKING:
        draw_blocking(trace, bar)
    else:
        draw_reading(trace, view, bar)
    st.caption(_("The same model and picture on other pages:"))
    query = {**address.to_query(), **({"model": own, "text": boxes.source()} if own else {})}
    with st.container(horizontal=True, key="picture_elsewhere"):
        for name in ("", "attention", "embedding", "head"):
            st.page_link(page_named(name), query_params=query)


draw()
