"""A guided lesson in the app: going through it, leaving and resuming it, links to steps, and uploaded lessons."""

from dataclasses import replace

import pytest

from tests.app.lessons.test_lesson_file import GOOD
from tests.app.support import (
    address_of,
    button,
    choose,
    choose_other_token,
    enter,
    ignored,
    in_a_session,
    texts,
    upload,
)
from visformer.app.lessons import lesson_file, lesson_panel
from visformer.app.session import url_state
from visformer.app.session.page import LESSON

SHIPPED, _faults = lesson_file.read(lesson_file.content(url_state.SHIPPED))
NUMBERS = range(1, len(SHIPPED.steps) + 1)


def is_open(app):
    return "lesson_next" in {button.key for button in app.button}


def click(app, key):
    app.button(key=key).click().run()


def assert_shows(app, number):
    """Check that the page shows this step, from 1, with its text, and that nothing was ignored."""
    step = SHIPPED.steps[number - 1]
    expected = [step.text(name, "en") for name in ("title", "say", "try")]
    assert not app.exception
    assert [text for text in texts(app) if text in expected] == expected
    assert app.session_state["remarks"] == []
    address = address_of(app)
    assert (address.pop("lesson"), address.pop("step")) == (url_state.SHIPPED, str(number))
    defaults = {"masks_stack": "decoder", "masks_layer": "1", "positions_view": "waves", "block_view": "stream"}
    assert address == {n: v for n, v in replace(step.state, page="").fields().items() if defaults.get(n) != v}
    assert app.session_state["page"] == step.state.page


def test_next_and_back_go_through_all_steps(new_app):
    app = new_app()
    assert not is_open(app)
    click(app, "lesson_start")
    for number in NUMBERS:
        assert_shows(app, number)
        if number < len(NUMBERS):
            click(app, "lesson_next")
    assert app.button(key="lesson_next").disabled
    for number in reversed(NUMBERS[:-1]):
        click(app, "lesson_back")
        assert_shows(app, number)
    assert app.button(key="lesson_back").disabled


def test_a_changed_step_can_be_reset_and_a_lesson_left_and_resumed(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="5")
    assert app.button(key="lesson_again").label == ""
    app.slider(key="head_layer_3").set_value(1).run()
    enter(app, "I like cats.")
    assert app.button(key="lesson_again").label == "Back to step 5"
    assert SHIPPED.steps[4].text("say", "en") in texts(app), "its text is still there"
    click(app, "lesson_again")
    assert_shows(app, 5)
    click(app, "lesson_leave")
    assert not is_open(app)
    assert "lesson" not in address_of(app)
    app.switch_page("pages/see/masks.py").run()
    assert app.button(key="lesson_return").label == "Back to step 5"
    click(app, "lesson_return")
    assert_shows(app, 5)


def test_a_dot_opens_its_step(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="1")
    click(app, "lesson_dot_10")
    assert_shows(app, 10)


def upload_lesson(app, content):
    return upload(app, "lesson_menu", "lesson.yaml", content)


def test_a_lesson_too_long_for_a_link_works_without_one(new_app):
    content = lesson_file.content(url_state.SHIPPED)
    assert lesson_file.pack(content) == ""
    app = upload_lesson(new_app(), content)
    assert SHIPPED.steps[0].text("say", "en") in texts(app)
    assert "lesson" not in address_of(app)
    click(app, "lesson_next")
    assert SHIPPED.steps[1].text("say", "en") in texts(app)


def test_faults_of_a_file_are_shown_with_their_lines(new_app):
    app = upload_lesson(new_app(), GOOD.replace("layer: 3,", "layer: x,").encode())
    assert "line 6: layer: x: expected a whole number of at least 1." in texts(app)
    assert not is_open(app)


def test_a_lesson_whose_file_disappears_while_it_is_open_is_closed(new_app, monkeypatch, tmp_path):
    monkeypatch.setenv("VISFORMER_LESSONS", str(tmp_path))
    file = tmp_path / "my-own.yaml"
    file.write_text(GOOD, encoding="utf-8")
    app = new_app(lesson="my-own", step="2")
    assert "And at this." in texts(app)
    file.unlink()
    app.run()
    assert not app.exception
    assert ignored(app) == ["lesson=my-own: there is no lesson of this name here."]
    assert not is_open(app)


def test_presentation_mode_goes_through_a_lesson_and_leaves_it(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="4")
    assert app.session_state["run"].steps.note == SHIPPED.steps[3].text("note", "en")
    with in_a_session({key: app.session_state[key] for key in ("lesson", "lang")}):
        assert LESSON.get().is_open
        assert lesson_panel._turn(1)
        assert LESSON.get().step == 5
        assert lesson_panel._turn(-1)
        lesson_panel.leave()
        assert LESSON.get() == (url_state.SHIPPED, 4, False)


def test_resetting_a_step_undoes_a_chosen_token(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="11")
    assert app.button(key="lesson_again").label == ""
    choose_other_token(app, 2)
    assert texts(app, "Step 3: you chose")
    assert app.button(key="lesson_again").label == "Back to step 11"
    click(app, "lesson_again")
    assert_shows(app, 11)
    assert not texts(app, "Decoded with these settings") and not texts(app, "Step 3: you chose")
    assert app.button(key="lesson_again").label == ""


def test_resetting_a_step_undoes_edits_of_masks(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="7")
    choose(app, "masks_view", "edit")
    button(app, "Remove the causal mask").click().run()
    assert texts(app, "After: ")
    choose(app, "masks_view", "scores")
    assert app.button(key="lesson_again").label == "Back to step 7", "the edit is still there"
    click(app, "lesson_again")
    assert_shows(app, 7)
    assert app.button(key="lesson_again").label == ""
    choose(app, "masks_view", "edit")
    assert not texts(app, "After: ")


@pytest.mark.parametrize(
    ("lesson", "language", "names"),
    [
        (url_state.SHIPPED, "en", ["from-text-to-translation.yaml", "from-text-to-translation-en.html"]),
        (url_state.SHIPPED, "zh", ["from-text-to-translation.yaml", "from-text-to-translation-zh.html"]),
        (lesson_file.pack(GOOD.encode()), "en", ["names.yaml", "names-en.html"]),
        (
            lesson_file.pack(GOOD.replace("{en: Names, zh: 名字}", "名字").encode()),
            "zh",
            ["lesson.yaml", "lesson-zh.html"],
        ),
    ],
)
def test_files_are_named_after_their_lesson(new_app, monkeypatch, lesson, language, names):
    files = []
    monkeypatch.setattr(lesson_panel.st, "download_button", lambda _label, _data, name, *_, **__: files.append(name))
    app = new_app(lang=language, lesson=lesson, step="1")
    app.session_state["lesson_menu"] = True
    app.run()
    assert [file for file in files if "lesson" in file or file.startswith(("names", "from"))] == names
    title = lesson_panel._lesson(lesson).title_in(language)
    assert [text for text in texts(app) if f"“{title}”" in text]
    (uploader,) = app.get("file_uploader")
    assert "40 kB" in uploader.label
