"""Picture and words: what each word of a caption reads, and every other page on the model that reads pictures."""

from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.addresses import address_of
from tests.app.support import (
    PAGES,
    VIEWS,
    call,
    captions,
    ignored,
    picture_components,
    shows_something,
    texts,
    unescaped,
)
from visformer import scenes
from visformer.adapters.picture_files import text_of, told_in
from visformer.app.session import boxes
from visformer.app.widgets import picture_file, scene
from visformer.pictures.picture import PAGE
from visformer.web.panels import Click

ROOT = Path(__file__).parents[3]
CAPTIONER, PICTURE = "mini-caption", "see/picture"
FIRST = scenes.caption(scenes.EXAMPLES[0], "en")


def every_view():
    """Yield each page's views; `make test` has the first of each page."""
    for page in ("", *PAGES):
        _, views = VIEWS.get(page, ("", [""]))
        for view in views:
            marks = () if view == views[0] else pytest.mark.full
            yield pytest.param(page, view, id=f"{page}-{view}", marks=marks)


@pytest.mark.parametrize(("page", "view"), [*every_view()])
def test_every_page_shows_a_model_that_reads_pictures_or_says_why_not(new_app, page, view):
    key, _ = VIEWS.get(page, ("", [""]))
    app = new_app(page=page, model=CAPTIONER, **({key: view} if view else {}))
    assert not app.exception
    assert shows_something(app) or app.info
    assert not ignored(app)
    assert not [text for text in texts(app) if "reads a picture, not a text" in text]
    own = page in ("understand/lab", "understand/learning", "research/atlas")
    assert own or texts(app, "Caption: a red circle at the top left")


def test_a_page_with_a_model_of_its_own_leaves_the_visitors_model_and_sentence_as_they_are(new_app):
    app = new_app(page=PICTURE, text="I like cats.", target="我喜欢猫。")
    assert texts(app, f"Caption: {FIRST}") and not ignored(app)
    assert address_of(app) == {"text": "I like cats.", "target": "我喜欢猫。"}
    (picker,) = [box for box in app.selectbox if box.key == boxes.MODEL]
    assert picker.label == "Other pages' model" and picker.value != CAPTIONER
    assert captions(app, "en-zh reads no pictures. This page shows mini-caption")
    assert not captions(new_app(page=PICTURE, model=CAPTIONER), "mini-caption reads no pictures")


def test_the_page_opens_with_the_word_that_gives_most_to_its_object(new_app):
    app = new_app(page=PICTURE)
    assert texts(app, "“red” gives 0.94 of its weight to the object at the top left, 0.32 to the patch r2c1 alone.")
    assert texts(new_app(page=PICTURE, lang="zh"), "“绿色”把 0.89 的权重给了“右下角”的物体")


def test_word_head_and_object_are_in_the_address_and_come_back(new_app):
    text = "an orange square on the left and a green square on the right"
    link = {"picture_word": "9", "picture_head": "2.4", "text": text}
    app = new_app(page=PICTURE, **link)
    assert not ignored(app) and address_of(app) == link
    assert texts(app, "“green” gives")
    link = {"picture_view": "block", "picture_object": "3", "picture_where": "all", "text": text}
    app = new_app(page=PICTURE, **link)
    assert not ignored(app) and address_of(app) == link
    link = {"picture_view": "heads", "picture_patch": "30", "picture_encoder_head": "1.1"}
    app = new_app(page=PICTURE, **link)
    assert not ignored(app) and address_of(app) == link


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_blocking_shows_both_captions_with_the_changed_words_marked(new_app, lang):
    app = new_app(page=PICTURE, picture_view="block", lang=lang)
    before, after = [unescaped(each.value) for each in app.markdown if "orange-background" in each.value]
    marked = {"en": ("[blue] :orange-background[square]", "[red] :orange-background[circle]")}
    marked["zh"] = ("[蓝色]:orange-background[方形]", "[红色]:orange-background[圆形]")
    assert marked[lang][0] in before and marked[lang][1] in after


def test_a_click_puts_a_shape_into_the_picture_or_takes_it_away(new_app):
    app = new_app(page=PICTURE)
    told = scenes.EXAMPLES[0], "en"
    call(app, scene._place, *told, Click("scene", 1, 1))
    text = "a red circle at the top left and a green triangle at the bottom right"
    assert address_of(app) == {"text": text}
    assert texts(app, f"Caption: {text}")
    call(app, scene._place, *scenes.described(text), Click("scene", 2, 0))
    assert address_of(app)["text"].endswith("a red circle at the bottom left and a green triangle at the bottom right")
    call(app, scene._place, *told, Click("scene", 1, 0))
    assert captions(app, "Three shapes at most") or scene._IS_FULL.get() is False


PHOTOGRAPH = text_of((ROOT / "docs/images/app-map-en.webp").read_bytes(), "a.webp", "en", (scenes.SIZE, scenes.SIZE))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_picture_of_ones_own_is_in_the_address_and_said_to_be_none_that_the_model_knows(new_app, lang):
    text = told_in(PHOTOGRAPH, lang)
    app = new_app(page=PICTURE, text=text, lang=lang)
    assert not ignored(app) and address_of(app)["text"] == text
    known = {"en": "knows coloured shapes on white alone", "zh": "这个模型只认识白底上的彩色图形"}
    (said,) = texts(app, {"en": "Caption: a ", "zh": "图片说明："}[lang])
    assert known[lang] in said and not any("picture.en" in each for each in texts(app))
    call(app, scene._place, None, lang, Click("scene", 1, 1))
    assert scenes.described(address_of(app)["text"])[0].objects[0].cell == 4


@pytest.mark.parametrize("view", ["words", "patches", "heads", "block"])
def test_every_view_shows_such_a_picture(new_app, view):
    app = new_app(page=PICTURE, picture_view=view, text=PHOTOGRAPH)
    assert not app.exception and not ignored(app)
    assert picture_components(app) and not app.info
    assert view != "block" or [box.value for box in app.selectbox if box.label == "Blocked part"] == [4], "the middle"


def test_other_pages_show_such_a_picture_without_its_text(new_app):
    for page, query in (("", {}), ("research/compare", {"compare_view": "texts"}), ("see/attention", {})):
        app = new_app(page=page, model=CAPTIONER, text=PHOTOGRAPH, **query)
        assert not app.exception and shows_something(app) and not any("picture.en" in each for each in texts(app))


def test_a_damaged_picture_in_a_link_is_said_to_be_one(new_app):
    app = new_app(page=PICTURE, text=PHOTOGRAPH[:-60])
    assert texts(app, "This link holds a picture that was changed or cut off")


@pytest.mark.parametrize("name", ["photo.png", "broken.png"])
def test_an_uploaded_picture_takes_the_place_of_the_scene_or_is_refused_with_the_reason(new_app, name):
    uploaded = Mock(getvalue=(ROOT / "docs/images/app-map-en.webp").read_bytes if name == "photo.png" else lambda: b"x")
    uploaded.name = name
    app = new_app(page=PICTURE)
    app.session_state["uploaded"] = uploaded
    read = partial(text_of, language="en", size=(scenes.SIZE, scenes.SIZE))
    call(app, picture_file.opened, read, boxes.enter_example, "uploaded")
    if name == "photo.png":
        assert address_of(app)["text"] == PHOTOGRAPH
    else:
        assert texts(app, "'broken.png' cannot be read as a picture (it has none of these formats)")


def test_the_lesson_shows_each_view_of_the_page(new_app):
    views = ["patches", None, "heads", "block"]
    for step, view in enumerate(views, start=1):
        app = new_app(lesson="a-word-finds-its-object", step=str(step))
        assert not app.exception and not ignored(app)
        assert app.session_state["run"].choices.get("picture_view") == view
    assert {view.view for view in PAGE.views} == {"patches", "words", "heads", "block"}
    assert picture_components(app)
