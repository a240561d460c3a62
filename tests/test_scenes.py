"""Scenes: what a rule draws, and what it says of it."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visformer.errors import ConfigError
from visformer.scenes import (
    CHINESE,
    COLOURS,
    LANGUAGES,
    PLACES,
    SHAPES,
    Scene,
    SceneObject,
    caption,
    coverage,
    draw,
    patches_of,
    render,
    words_of,
)

OBJECTS = st.builds(SceneObject, st.sampled_from([*SHAPES]), st.sampled_from([*COLOURS]), st.integers(0, 8))
SCENES = st.lists(OBJECTS, min_size=1, max_size=3, unique_by=lambda one: one.cell).map(tuple).map(Scene)


@settings(deadline=None, max_examples=60)
@given(SCENES)
def test_objects_share_no_pixel_and_no_patch_and_are_all_there_is(scene):
    covered, picture = coverage(scene), render(scene)
    assert picture.shape == (32, 32, 3) and picture.dtype == np.uint8
    assert ((covered > 0).sum(axis=0) <= 1).all()
    assert ((covered == 0).all(axis=0) <= (picture == 255).all(axis=-1)).all()
    for size in (4, 8):
        patches = patches_of(scene, size)
        assert patches.shape == (len(scene.objects), (32 // size) ** 2)
        assert patches.any(axis=1).all() and (patches.sum(axis=0) <= 1).all()
        shown = (picture < 250).any(axis=-1).reshape(32 // size, size, 32 // size, size).any(axis=(1, 3)).ravel()
        assert (shown <= patches.any(axis=0)).all()


@settings(deadline=None, max_examples=60)
@given(SCENES, st.sampled_from(LANGUAGES))
def test_a_caption_names_every_object_and_its_words_are_known(scene, language):
    text = caption(scene, language)
    for one, words in zip(scene.objects, words_of(scene, language), strict=True):
        wanted = {"colour": one.colour, "shape": one.shape, "place": PLACES[one.cell]}
        said = {what: text[start:end] for what, (start, end) in words.items()}
        assert said == (wanted if language == "en" else {what: CHINESE[name] for what, name in wanted.items()})
    starts = [words["shape"][0] for words in words_of(scene, language)]
    assert starts == sorted(starts) and [one.cell for one in scene.objects] == sorted(o.cell for o in scene.objects)


@settings(deadline=None, max_examples=20)
@given(SCENES)
def test_an_object_is_drawn_in_its_cell_and_colour(scene):
    for one, covered in zip(scene.objects, coverage(scene), strict=True):
        row, column = (np.average(np.arange(32), weights=covered.sum(axis=axis)) for axis in (1, 0))
        assert (row // (32 / 3), column // (32 / 3)) == divmod(one.cell, 3)
        inside = render(scene)[covered == 1].astype(int)
        assert abs(inside - COLOURS[one.colour]).max() <= 20


def test_a_scene_is_told_in_the_order_of_its_cells():
    scene = Scene((SceneObject("square", "blue", 4), SceneObject("circle", "orange", 0)))
    assert caption(scene, "en") == "an orange circle at the top left and a blue square in the middle"
    assert caption(scene, "zh") == "左上角的橙色圆形和中间的蓝色方形"
    assert scene == Scene(scene.objects[::-1]) and (np.asarray(scene) == render(scene)).all()


def test_what_is_drawn_from_a_seed_is_the_same_and_held_out_scenes_are_never_trained_on():
    trained, held_out = (set(islice(draw(1, held_out=held), 400)) for held in (False, True))
    assert list(islice(draw(1, held_out=True), 50)) == list(islice(draw(1, held_out=True), 50))
    assert not trained & held_out and all(scene.is_held_out for scene in held_out)
    assert not any(scene.is_held_out for scene in trained)
    assert {len(scene.objects) for scene in held_out} == {1, 2, 3}


def test_held_out_scenes_and_pictures_are_the_same_on_every_machine():
    first = next(draw(0, held_out=True))
    assert (caption(first, "en"), int(render(first).astype(int).sum())) == FIRST


FIRST = ("a red triangle on the left and a green cross on the right", 765651)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SceneObject("star", "red", 0), "shape='star' is not known: choose one of circle, square"),
        (lambda: SceneObject("circle", "pink", 0), "colour='pink' is not known: choose one of red, orange"),
        (lambda: SceneObject("circle", "red", 9), "cell=9 is not known: choose one of 0, 1"),
        (lambda: Scene(()), "A scene has 1 to 3 objects, not 0"),
        (lambda: Scene((SceneObject("circle", "red", 3),) * 2), "Two objects are in cell 3: give each a cell"),
        (lambda: caption(next(draw(0, held_out=True)), "fr"), "language='fr' is not known: choose one of en, zh"),
    ],
)
def test_what_cannot_be_drawn_is_named(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
