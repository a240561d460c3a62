"""The guided lesson in the app: next and back, left and resumed, opened by a link, and a visitor's own lesson."""

from dataclasses import replace

import pytest

from tests.app.lessons.test_lesson_file import GOOD
from tests.app.pages.test_anatomy import choose
from tests.app.session.test_links import ignored
from tests.app.support import address_of, in_a_session
from visformer.app.lessons import lesson_file, lesson_panel
from visformer.app.session import url_state
from visformer.app.session.page import LESSON

SHIPPED, _faults = lesson_file.read(lesson_file.content(url_state.SHIPPED))
NUMBERS = range(1, len(SHIPPED.steps) + 1)


def texts(app):
    return [text.value for text in app.text]


def keys(app):
    return {button.key for button in app.button}


def shows(app, number, language="en"):
    """Check that the page shows this step with its text, and that nothing was ignored."""
    step = SHIPPED.steps[number - 1]
    said = [step.text(name, language) for name in ("title", "say", "try")]
    assert not app.exception
    assert [text for text in texts(app) if text in said] == said
    assert app.session_state["remarks"] == []
    address = address_of(app)
    assert (address.pop("lesson"), address.pop("step")) == (url_state.SHIPPED, str(number))
    address.pop("lang", None)
    defaults = {"masks_stack": "decoder", "masks_layer": "1", "positions_view": "waves", "block_view": "stream"}
    wanted = {n: v for n, v in replace(step.state, page="").fields().items() if defaults.get(n) != v}
    assert address == wanted
    assert app.session_state["page"] == step.state.page
    return True


def test_next_and_back(new_app):
    app = new_app()
    assert "lesson_next" not in keys(app)
    app.button(key="lesson_start").click().run()
    for number in NUMBERS:
        assert shows(app, number)
        if number < len(NUMBERS):
            app.button(key="lesson_next").click().run()
    assert app.button(key="lesson_next").disabled
    for number in reversed(NUMBERS[:-1]):
        app.button(key="lesson_back").click().run()
        assert shows(app, number)
    assert app.button(key="lesson_back").disabled


def test_changed_left_and_resumed(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="5")
    assert app.button(key="lesson_again").label == ""
    app.slider(key="head_layer_3").set_value(1).run()
    app.text_input(key="source").set_value("I like cats.").run()
    assert app.button(key="lesson_again").label == "Back to step 5"
    assert SHIPPED.steps[4].text("say", "en") in texts(app), "the words stay while one plays"
    app.button(key="lesson_again").click().run()
    assert shows(app, 5)
    app.button(key="lesson_leave").click().run()
    assert "lesson_next" not in keys(app)
    assert "lesson" not in address_of(app)
    app.switch_page("pages/see/masks.py").run()
    assert app.button(key="lesson_return").label == "Back to step 5"
    app.button(key="lesson_return").click().run()
    assert shows(app, 5)


def test_a_dot_opens_its_step(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="1")
    app.button(key="lesson_dot_10").click().run()
    assert shows(app, 10)


def upload(app, content):
    """Upload a file in the menu."""
    app.session_state["lesson_menu"] = True
    app.run()
    app.get("file_uploader")[0].upload("lesson.yaml", content, "text/yaml").run()
    assert not app.exception
    return app


def test_a_lesson_too_long_for_a_link_works_without_one(new_app):
    content = lesson_file.content(url_state.SHIPPED)
    assert lesson_file.pack(content) == ""
    app = upload(new_app(), content)
    assert SHIPPED.steps[0].text("say", "en") in texts(app)
    assert "lesson" not in address_of(app)
    app.button(key="lesson_next").click().run()
    assert SHIPPED.steps[1].text("say", "en") in texts(app)


def test_faults_of_a_file_are_shown_with_their_lines(new_app):
    app = upload(new_app(), GOOD.replace("layer: 3,", "layer: x,").encode())
    assert "line 6: layer: x: expected a whole number of at least 1." in texts(app)
    assert "lesson_next" not in keys(app)


def test_a_file_of_the_operator_that_disappears_while_it_is_open(new_app, monkeypatch, tmp_path):
    monkeypatch.setenv("VISFORMER_LESSONS", str(tmp_path))
    file = tmp_path / "my-own.yaml"
    file.write_text(GOOD, encoding="utf-8")
    app = new_app(lesson="my-own", step="2")
    assert "And at this." in texts(app)
    file.unlink()
    app.run()
    assert not app.exception
    assert ignored(app) == ["lesson=my-own: there is no lesson of this name here."]
    assert "lesson_next" not in keys(app)


def test_presentation_mode_walks_and_leaves_a_lesson(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="4")
    assert app.session_state["run"].steps.note == SHIPPED.steps[3].text("note", "en")
    with in_a_session({key: app.session_state[key] for key in ("lesson", "lang")}):
        assert LESSON.get().is_open
        assert lesson_panel._turn(1)
        assert LESSON.get().step == 5
        assert lesson_panel._turn(-1)
        lesson_panel.leave()
        assert LESSON.get() == (url_state.SHIPPED, 4, False)


def starting_with(app, begins):
    return [text for text in texts(app) if text.startswith(begins)]


def test_resetting_a_step_undoes_a_chosen_token(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="11")
    assert app.button(key="lesson_again").label == ""
    app.session_state["decoding_step"] = 2
    app.run()
    next(box for box in app.selectbox if box.key.startswith("decoding_other")).select_index(0).run()
    assert starting_with(app, "Step 3: you chose")
    assert app.button(key="lesson_again").label == "Back to step 11"
    app.button(key="lesson_again").click().run()
    assert shows(app, 11)
    assert not starting_with(app, "Decoded with these settings") and not starting_with(app, "Step 3: you chose")
    assert app.button(key="lesson_again").label == ""


def test_resetting_a_step_undoes_edits_of_masks(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="7")
    choose(app, "masks_view", "edit")
    next(button for button in app.button if button.label == "Remove the causal mask").click().run()
    assert starting_with(app, "After: ")
    choose(app, "masks_view", "scores")
    assert app.button(key="lesson_again").label == "Back to step 7", "the edit is still there"
    app.button(key="lesson_again").click().run()
    assert shows(app, 7)
    assert app.button(key="lesson_again").label == ""
    choose(app, "masks_view", "edit")
    assert not starting_with(app, "After: ")


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
def test_a_file_is_named_after_its_lesson(new_app, monkeypatch, lesson, language, names):
    files = []
    monkeypatch.setattr(lesson_panel.st, "download_button", lambda label, made, name, *more, **look: files.append(name))
    app = new_app(lang=language, lesson=lesson, step="1")
    app.session_state["lesson_menu"] = True
    app.run()
    assert [file for file in files if "lesson" in file or file.startswith(("names", "from"))] == names
    title = lesson_panel._lesson(lesson).title_in(language)
    assert [text for text in texts(app) if f"“{title}”" in text]
    (uploader,) = app.get("file_uploader")
    assert "40 kB" in uploader.label
