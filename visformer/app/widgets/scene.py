"""The box of a model that reads pictures: the picture, and a chooser of its shapes, or of a file, for a sentence's."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from visformer import scenes
from visformer.adapters import picture_files
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, picture_file
from visformer.errors import N_
from visformer.panel import Labels, Panel
from visformer.pictures.picture import COLOUR_NAMES, PLACES
from visformer.scenes import EXAMPLES, LANGUAGES, MOST, SHAPES, SIZE, Scene, SceneObject
from visformer.web.panels import Click

if TYPE_CHECKING:
    from visformer.trace import Trace

_SHAPES = dict(zip(SHAPES, (N_("circle"), N_("square"), N_("triangle"), N_("cross")), strict=True))
_LANGUAGES = {"en": "English", "zh": "中文"}
_SIDES = ((PLACES[1], PLACES[4], PLACES[7]), PLACES[3:6])  # of rows and columns
_COLOUR, _SHAPE = Slot("scene_colour", "red"), Slot("scene_shape", "circle")
_TOLD = Slot("scene_caption", "")
_IS_FULL = Slot("scene_is_full", False)


def draw(place: Any, trace: "Trace | None") -> None:
    """Draw the picture and what changes it; ``trace``: of the model that reads it, if there is one."""
    with place, st.container(horizontal=True, vertical_alignment="center", key="scene"):
        picture_file.thumbnail(_image(trace))
        chooser(trace)


def _shown() -> tuple[Scene | None, str]:
    """Return the scene that the model reads, None if the picture is another, and the language of its description."""
    own = picture_files.language_of(boxes.source())
    return scenes.described(boxes.source()) or (None, own or "en")


def _image(trace: "Trace | None") -> Any:
    """Return the picture, uint8 (row, column, RGB); white, where it is not known yet."""
    scene, _ = _shown()
    if scene is not None:
        return scenes.render(scene)
    return np.full((SIZE, SIZE, 3), 255, dtype=np.uint8) if trace is None else trace.image


def chooser(trace: "Trace | None") -> None:
    """Draw the button that opens the chooser of the picture."""
    with st.popover(boxes.gettext()(N_("Change the picture"))):
        _choices(*_shown(), _image(trace))


def _choices(scene: Scene | None, language: str, image: Any) -> None:
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
        picture=image,
        click="places",
    )
    left, right = st.columns([2, 3], gap="medium")
    with left:
        controls.draw([drawn], key="scene_places", on_click=partial(_place, scene, language), export=False, share=0.6)
        if _IS_FULL.pop():
            st.caption(_("Three shapes at most: take one away first."))
    with right:
        _own_file(language)
    _TOLD.set(language)
    st.segmented_control(
        _("The caption is in"), LANGUAGES, format_func=_LANGUAGES.__getitem__, key=_TOLD.key, required=True,
        on_change=lambda: _tell(scene, _TOLD.get()),
    )  # fmt: skip


def _own_file(language: str) -> None:
    """Draw the box for a file, whose picture becomes a text for the link."""
    about = boxes.gettext()(N_("It is scaled to {size} x {size} pixels, which the link then holds."))
    read = partial(picture_files.text_of, language=language, size=(SIZE, SIZE))
    picture_file.draw(read, boxes.enter_example, about=about.format(size=SIZE))


def _tell(scene: Scene | None, language: str) -> None:
    """Have the picture described in another language."""
    if scene is not None:
        _take(scene, language)
    else:
        boxes.enter_example(picture_files.told_in(boxes.source(), language))


def _place(scene: Scene | None, language: str, click: Click) -> None:
    """Put the chosen shape where the visitor clicked, or take away what is there; the last one stays."""
    if click.row is None or click.column is None:
        return
    cell = 3 * click.row + click.column
    before = () if scene is None else scene.objects
    others = tuple(one for one in before if one.cell != cell)
    is_taken = len(others) < len(before)
    if len(others) == MOST:
        _IS_FULL.set(True)
    elif not is_taken or not others:
        _take(Scene((*others, SceneObject(_SHAPE.get(), _COLOUR.get(), cell))), language)
    else:
        _take(Scene(others), language)


def _take(scene: Scene, language: str) -> None:
    boxes.enter_example(scenes.caption(scene, language))
