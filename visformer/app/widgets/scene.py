"""The box of a model that reads pictures: the picture, and a chooser of its shapes in place of a sentence."""

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from visformer import scenes
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls
from visformer.errors import N_
from visformer.panel import Labels, Panel
from visformer.pictures.picture import COLOUR_NAMES, PLACES
from visformer.scenes import EXAMPLES, LANGUAGES, MOST, SHAPES, Scene, SceneObject
from visformer.web.panels import Click

_SHAPES = dict(zip(SHAPES, (N_("circle"), N_("square"), N_("triangle"), N_("cross")), strict=True))
_LANGUAGES = {"en": "English", "zh": "中文"}
_SIDES = ((PLACES[1], PLACES[4], PLACES[7]), PLACES[3:6])  # of rows and columns
_COLOUR, _SHAPE = Slot("scene_colour", "red"), Slot("scene_shape", "circle")
_TOLD = Slot("scene_caption", "")
_FRAME, _GREY = 4, 150  # of the small picture, white on white
_IS_FULL = Slot("scene_is_full", False)


def draw(place: Any) -> None:
    """Draw the picture and what changes it."""
    with place, st.container(horizontal=True, vertical_alignment="center", key="scene"):
        large = np.kron(scenes.render(shown()[0]), np.ones((8, 8, 1), dtype=np.uint8))
        st.image(np.pad(large, ((_FRAME, _FRAME), (_FRAME, _FRAME), (0, 0)), constant_values=_GREY), width=72)
        chooser()


def shown() -> tuple[Scene, str]:
    """Return the scene that the model reads, and the language in which it is described."""
    return scenes.described(boxes.source()) or (EXAMPLES[0], "en")


def chooser(place: Any = st) -> None:
    """Draw the button that opens the chooser of the picture."""
    with place.popover(boxes.gettext()(N_("Change the picture"))):
        _choices(*shown())


def _choices(scene: Scene, language: str) -> None:
    _ = boxes.gettext()
    with st.container(horizontal=True, key="scene_examples"):
        for i, example in enumerate(EXAMPLES):
            number = _("Example {n}").format(n=i + 1)
            st.button(number, key=f"scene_example_{i}", on_click=_take, args=(example, language), type="tertiary")
    for slot, label, offered in ((_SHAPE, _("Shape"), _SHAPES), (_COLOUR, _("Colour"), COLOUR_NAMES)):
        slot.set(slot.get())  # the popover drops it while it is closed
        said = {name: _(each) for name, each in offered.items()}
        st.segmented_control(
            label, [*said], format_func=said.__getitem__, key=slot.key, required=True, label_visibility="collapsed"
        )
    drawn = Panel(
        name="scene",
        symbol="input",
        title="",
        values=np.ones((3, 3)),
        rows=Labels(_SIDES[0], written=False),
        columns=Labels(_SIDES[1], written=False),
        scale="unsigned",
        limit=1.0,
        picture=scenes.render(scene),
        click="places",
    )
    controls.draw([drawn], key="scene_places", on_click=partial(_place, scene, language), export=False, share=0.6)
    if _IS_FULL.pop():
        st.caption(_("Three shapes at most: take one away first."))
    _TOLD.set(language)
    st.segmented_control(
        _("The caption is in"), LANGUAGES, format_func=_LANGUAGES.__getitem__, key=_TOLD.key, required=True,
        on_change=lambda: _take(scene, _TOLD.get()),
    )  # fmt: skip


def _place(scene: Scene, language: str, click: Click) -> None:
    """Put the chosen shape where the visitor clicked, or take away what is there; the last one stays."""
    if click.row is None or click.column is None:
        return
    cell = 3 * click.row + click.column
    others = tuple(one for one in scene.objects if one.cell != cell)
    is_taken = len(others) < len(scene.objects)
    if len(others) == MOST:
        _IS_FULL.set(True)
    elif not is_taken or not others:
        _take(Scene((*others, SceneObject(_SHAPE.get(), _COLOUR.get(), cell))), language)
    else:
        _take(Scene(others), language)


def _take(scene: Scene, language: str) -> None:
    boxes.enter_example(scenes.caption(scene, language))
