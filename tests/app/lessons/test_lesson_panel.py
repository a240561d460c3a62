"""A guided lesson in the app: its steps and its end, leaving and resuming it, links to steps, and uploaded lessons."""

from dataclasses import replace

import pytest

from tests.addresses import address_of
from tests.app.lessons.test_lesson_file import GOOD, model, told
from tests.app.pages.seen import script_of
from tests.app.support import (
    button,
    call,
    captions,
    choose,
    choose_other_token,
    enter,
    ignored,
    in_a_session,
    lesson_bar,
    presented,
    texts,
    upload,
)
from visformer.app.lessons import lesson_file, lesson_menu, open_lesson
from visformer.app.session import boxes, url_state
from visformer.app.session.page import LESSON, LESSON_OPENED
from visformer.pictures.examples import EXAMPLES
from visformer.web.panels import Click

SHIPPED_NAMES = tuple(lesson_file.offered({}))
SHIPPED, SHORT, FAULTS = map(lesson_file.load, (url_state.SHIPPED, url_state.SHORT, url_state.FAULTS))
NUMBERS = range(1, len(SHIPPED.steps) + 1)


def is_open(app):
    return lesson_bar(app) is not None


def click(app, key):
    app.button(key=key).click().run()
    assert not app.exception


def open_step(app, number):
    """Click a dot of the bar, or a button that leads to this step."""
    call(app, open_lesson.open_step, number)


START, START_SHORT, START_FAULTS = (
    f"lesson_start_{name}" for name in (url_state.SHIPPED, url_state.SHORT, url_state.FAULTS)
)


def assert_shows(app, number, lesson=SHIPPED, name=url_state.SHIPPED):
    """Check that the page shows this step, from 1, with its text, and that nothing was ignored."""
    step = lesson.steps[number - 1]
    expected = [told(step, name) for name in ("title", "say", "try")]
    assert not app.exception
    assert (lesson_bar(app)["at"], lesson_bar(app)["changed"]) == (number, False)
    assert [text for text in texts(app) if text in expected] == expected
    assert app.session_state["remarks"] == []
    assert address_of(app) == {"lesson": name, "step": str(number)}, "an unchanged step is named, not written out"
    shown = app.session_state[LESSON_OPENED.key].fields()
    assert (shown.pop("lesson"), shown.pop("step")) == (name, str(number))
    defaults = {
        "text": EXAMPLES[0],
        "masks_stack": "decoder",
        "masks_layer": "1",
        "positions_view": "waves",
        "block_view": "stream",
        "block_stack": "encoder",
        "embedding_view": "letters",
    }
    assert shown == {n: v for n, v in replace(step.state, page="").fields().items() if defaults.get(n) != v}
    assert app.session_state["page"] == step.state.page


@pytest.mark.parametrize(
    ("key", "lesson", "name"),
    [(START, SHIPPED, url_state.SHIPPED), (START_SHORT, SHORT, url_state.SHORT)],
)
def test_next_and_back_go_through_all_steps(new_app, key, lesson, name):
    app = new_app()
    assert not is_open(app)
    click(app, key)
    count = len(lesson.steps)
    for number in range(1, count + 1):
        assert_shows(app, number, lesson, name)
        if number < count:
            open_step(app, number + 1)
    for number in reversed(range(1, count)):
        open_step(app, number)
        assert_shows(app, number, lesson, name)


OWN = "I like cats."


def shows_own(app, number):
    """Return whether a step has the visitor's own sentence, in its address, too, and can be put back."""
    assert lesson_bar(app)["at"] == number
    is_own = boxes_of(app) == OWN
    assert lesson_bar(app)["changed"] == is_own
    expected = {"lesson": url_state.SHIPPED, "step": str(number), **({"text": OWN} if is_own else {})}
    assert address_of(app) == expected
    return is_own


def boxes_of(app):
    return app.text_input(key=boxes.SOURCE).value


def test_a_sentence_typed_in_a_step_goes_on_to_every_step_which_speaks_of_its_words_and_numbers(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="1")
    enter(app, OWN)
    for number in NUMBERS[1:]:
        open_step(app, number)
        assert shows_own(app, number)
        step = SHIPPED.steps[number - 1]
        for name in ("say", "try"):
            assert told(step, name, sentence=OWN) in texts(app), (number, name)
        assert not texts(app, "This step is about its own sentence") and not texts(app, "This text is about")


MIXED = """
visformer_lesson: 1
title: Mixed
steps:
  - {title: Any, say: Any sentence.}
  - {title: One, say: Its cell., link: {stack: encoder, query: 3, key: 4}}
  - {title: Again, say: Any again.}
"""


def test_a_step_about_its_own_sentence_says_so_and_shows_the_visitors_on_request(new_app):
    app = new_app(lesson=lesson_file.pack(MIXED.encode()), step="1")
    enter(app, OWN)
    open_step(app, 2)
    assert boxes_of(app) == EXAMPLES[0]
    (said,) = texts(app, "This step is about its own sentence")
    assert OWN in said and said.endswith("comes back in step 3.")
    click(app, "lesson_own")
    assert boxes_of(app) == OWN
    assert texts(app, "This text is about the lesson's sentence")
    click(app, "lesson_its")
    assert boxes_of(app) == EXAMPLES[0]


@pytest.mark.parametrize("number", [4, 11])
def test_another_sentence_moves_the_selected_row_to_one_of_its_own(new_app, number):
    """By hand: in the head of the step, the word whose weight on another word is the largest of its row, and of all."""
    step = SHIPPED.steps[number - 1]
    place = step.state.selection
    part, kind = place.stack.split(".")
    trace = model().trace(OWN)
    pattern = trace[f"{part}.{place.layer}.{kind}.pattern"].value[place.head]
    queries, keys = trace.tokens["src" if part == "encoder" else "tgt"], trace.tokens["src"]
    words = {
        (pattern[i, j], i, j)
        for i, query in enumerate(queries)
        for j, key in enumerate(keys)
        if j == pattern[i].argmax() and query.isalpha() and key.isalpha() and (kind == "cross_attn" or i != j)
    }
    _, query, key = max(words)
    app = new_app(lesson=url_state.SHIPPED, step=str(number))
    enter(app, OWN)
    shown = app.session_state["selection"]
    assert (shown.query, shown.key) == (query, key)
    assert any(f"{queries[query]}" in text and f"{pattern[query, key]:.2f}" in text for text in texts(app))


def test_a_step_put_back_forgets_the_sentence_where_it_fits_any(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="4")
    enter(app, OWN)
    assert shows_own(app, 4)
    open_step(app, 4)
    assert_shows(app, 4)
    open_step(app, 8)
    assert_shows(app, 8)


def test_a_link_to_a_step_with_a_sentence_of_its_own_opens_the_step_with_it(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="10", text=OWN)
    assert shows_own(app, 10)
    assert app.session_state["page"] == "masks"
    assert app.session_state[LESSON_OPENED.key].choices == {"masks_view": "scores", "masks_head": "7"}
    assert told(SHIPPED.steps[9], "say", sentence=OWN) in texts(app)


def test_a_sentence_from_before_a_lesson_is_carried_on_and_back_when_it_is_left(new_app):
    app = new_app(text=OWN)
    click(app, START)
    for number in (2, 4, 1):
        open_step(app, number)
        assert shows_own(app, number)
    click(app, START_FAULTS)
    assert boxes_of(app) == FAULTS.steps[0].sentence
    assert texts(app, f"This step is about its own sentence, not about yours, “{OWN}”.")
    call(app, open_lesson.leave)
    assert boxes_of(app) == OWN and address_of(app)["text"] == OWN
    click(app, "lesson_return")
    assert boxes_of(app) == FAULTS.steps[0].sentence


def test_a_sentence_of_ones_own_goes_from_one_lesson_into_the_other_where_it_fits(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="1")
    enter(app, OWN)
    click(app, START_SHORT)
    assert boxes_of(app) == OWN
    assert address_of(app) == {"lesson": url_state.SHORT, "step": "1", "text": OWN}
    click(app, START)
    assert shows_own(app, 1)


def test_a_link_to_a_step_that_writes_out_the_steps_own_sentence_opens_the_step(new_app):
    app = new_app(lesson=url_state.FAULTS, step="5", text=FAULTS.steps[4].sentence)
    assert app.session_state["run"].request.target == FAULTS.steps[4].state.target
    assert address_of(app) == {"lesson": url_state.FAULTS, "step": "5"}


def test_the_button_of_the_lesson_that_was_left_has_its_name_and_leads_back_with_the_sentence(new_app):
    app = new_app(lesson=url_state.SHORT, step="3")
    enter(app, OWN)
    call(app, open_lesson.leave)
    assert app.button(key="lesson_return").label == "Attention in three minutes: back to step 3"
    assert app.button(key=START).label == SHIPPED.title_in("en")
    assert not [button for button in app.button if button.key == START_SHORT]
    click(app, "lesson_return")
    assert (lesson_bar(app)["at"], boxes_of(app)) == (3, OWN)


def test_the_side_bar_names_each_of_our_lessons_once_and_one_of_the_visitors_own_that_was_left(new_app):
    app = new_app(lesson=lesson_file.pack(GOOD.encode()), step="2")
    call(app, open_lesson.leave)
    assert app.button(key="lesson_return").label == "Names: back to step 2"
    names = [lesson.title_in("en") for lesson in (SHORT, SHIPPED, FAULTS)]
    assert [one.label for one in app.sidebar.button if one.label in names] == names


def test_your_own_sentence_is_in_the_box_which_gets_the_focus_once(new_app):
    def asked(app):
        return [one.proto.bytes for one in app.get("bidi_component") if one.proto.id.endswith("focus")]

    for own in ("", OWN):
        app = new_app(text=own)
        click(app, START)
        open_step(app, len(SHIPPED.steps))
        click(at_the_end(app), "lesson_own_sentence")
        assert asked(app) == [f'["source", "{own or EXAMPLES[0]}"]'.encode()]
        app.run()
        assert not asked(app)


def at_the_end(app):
    """Go on behind the last step."""
    open_step(app, len(SHIPPED.steps) + 1)
    return app


def test_behind_the_last_step_a_card_says_what_was_learnt_above_the_page_as_it_is(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="12")
    enter(app, "I like cats.")
    at_the_end(app)
    assert SHIPPED.learnt_in("en") in texts(app)
    assert not {SHIPPED.steps[-1].text(name, "en") for name in ("title", "say", "try")} & {*texts(app)}
    assert (lesson_bar(app)["at"], lesson_bar(app)["changed"]) == (13, False)
    assert app.text_input(key="source").value == "I like cats."
    assert presented(app)["caption"] == SHIPPED.learnt_in("en")
    assert presented(app)["note"] == ""
    open_step(app, 12)
    assert shows_own(app, 12)


def test_the_card_leads_to_the_other_lesson(new_app):
    app = at_the_end(new_app(lesson=url_state.SHIPPED, step="12"))
    assert f"lesson_on_{url_state.SHIPPED}" not in {button.key for button in app.button}
    click(app, f"lesson_on_{url_state.SHORT}")
    assert_shows(app, 1, SHORT, url_state.SHORT)
    open_step(app, len(SHORT.steps))
    open_step(app, len(SHORT.steps) + 1)
    click(app, f"lesson_on_{url_state.SHIPPED}")
    assert_shows(app, 1)


def test_the_card_leads_out_of_the_lesson(new_app):
    for key, page in (("lesson_explore", "decoding"), ("lesson_own_sentence", "")):
        app = at_the_end(new_app(lesson=url_state.SHIPPED, step="12"))
        click(app, key)
        assert not is_open(app)
        assert app.session_state["page"] == page
        assert "lesson" not in address_of(app)
        assert app.button(key=START).label == SHIPPED.title_in("en"), "a finished lesson has no step to go back to"


def test_a_lesson_that_does_not_say_what_was_learnt_ends_all_the_same(new_app):
    app = new_app(lesson=lesson_file.pack(GOOD.encode()), step="2")
    open_step(app, 3)
    assert "This was the last step." in texts(app)
    assert {f"lesson_on_{name}" for name in (url_state.SHIPPED, url_state.SHORT)} <= {one.key for one in app.button}


def test_a_changed_step_can_be_reset_and_a_lesson_left_and_resumed(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="5")
    assert not lesson_bar(app)["changed"]
    app.slider(key="head_layer_1–3").set_value(1).run()
    enter(app, "I like cats.")
    assert lesson_bar(app)["changed"]
    said = told(SHIPPED.steps[4], "say", sentence="I like cats.")
    assert said in texts(app)
    assert presented(app)["caption"] == said
    open_step(app, 5)
    assert_shows(app, 5)
    call(app, open_lesson.leave)
    assert not is_open(app)
    assert "lesson" not in address_of(app)
    app.switch_page(script_of("see/masks")).run()
    assert app.button(key="lesson_return").label == "From a sentence to its translation: back to step 5"
    click(app, "lesson_return")
    assert_shows(app, 5)


def test_a_step_opens_without_the_cell_that_was_clicked_in_it_before(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="5")
    app.session_state["head_cell"] = Click("pattern", 0, 4)  # a click, which only a browser can send
    app.run()
    assert app.code, "the arithmetic"
    open_step(app, 6)
    open_step(app, 5)
    assert not [code for code in app.code if code.value.startswith("0.")]
    assert app.latex, "the formula"


def upload_lesson(app, content):
    return upload(app, "lesson_menu", "lesson.yaml", content)


def test_a_lesson_too_long_for_a_link_works_without_one(new_app):
    content = lesson_file.content(url_state.SHIPPED)
    assert lesson_file.pack(content) == ""
    app = upload_lesson(new_app(), content)
    assert told(SHIPPED.steps[0], "say") in texts(app)
    assert "lesson" not in address_of(app)
    open_step(app, 2)
    assert told(SHIPPED.steps[1], "say") in texts(app)


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


def test_a_step_has_its_title_at_its_dot_a_note_for_the_presenter_and_an_answer_to_what_it_asks(new_app):
    for language in ("en", "zh"):
        app = new_app(lesson=url_state.SHIPPED, step="4", lang=language)
        assert lesson_bar(app)["titles"] == [step.text("title", language) for step in SHIPPED.steps]
        assert app.session_state["run"].steps.note == SHIPPED.steps[3].text("note", language)
        keys = {one.key for one in app.button}
        assert "lesson_hint" not in keys and SHIPPED.steps[3].answer_in(language) not in texts(app)
        click(app, "lesson_answer")
        assert SHIPPED.steps[3].answer_in(language) in texts(app)
    with in_a_session({key: app.session_state[key] for key in ("lesson", "lang")}):
        assert LESSON.get().is_open
        open_lesson.leave()
        assert LESSON.get() == (url_state.SHIPPED, 4, False)


def test_resetting_a_step_undoes_a_chosen_token(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="12")
    assert not lesson_bar(app)["changed"]
    choose_other_token(app, 2)
    assert texts(app, "Step 3: you chose")
    assert lesson_bar(app)["changed"]
    open_step(app, 12)
    assert_shows(app, 12)
    assert not texts(app, "Decoded with these settings") and not texts(app, "Step 3: you chose")


def test_resetting_a_step_undoes_edits_of_masks(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="10")
    choose(app, "masks_view", "edit")
    button(app, "Remove the causal mask").click().run()
    said = [one.value for one in app.main if one.type in ("text", "caption")]
    why = next(i for i, text in enumerate(said) if text.startswith("Translation and table are both right."))
    assert why < said.index(texts(app, "After: ")[0]), "why it stays the same is told before it"
    choose(app, "masks_view", "scores")
    assert lesson_bar(app)["changed"], "the edit is still there"
    open_step(app, 10)
    assert_shows(app, 10)
    choose(app, "masks_view", "edit")
    assert not texts(app, "After: ")


def test_a_translation_that_changes_without_the_causal_mask_gets_another_reason(new_app):
    app = new_app(lesson=url_state.SHIPPED, step="10")
    app.text_input(key="source").set_value("老师让我们写一篇关于秋天的作文。").run()
    choose(app, "masks_view", "edit")
    button(app, "Remove the causal mask").click().run()
    assert texts(app, "Before: ")[0][8:] != texts(app, "After: ")[0][7:]
    assert captions(app, "Step by step, the tokens already written now also read those after them.")
    assert not captions(app, "Translation and table are both right.")


def test_files_are_named_after_their_lesson(new_app, monkeypatch):
    files = []
    monkeypatch.setattr(lesson_menu.st, "download_button", lambda _label, _data, name, *_, **__: files.append(name))
    packed, chinese = (
        lesson_file.pack(text.encode()) for text in (GOOD, GOOD.replace("{en: Names, zh: 名字}", "名字"))
    )
    for lesson, language, names in (
        (url_state.SHIPPED, "en", []),
        (url_state.SHIPPED, "zh", []),
        (packed, "en", ["names.yaml", "names-en.html", "names-worksheet-en.html"]),
        (chinese, "zh", ["lesson.yaml", "lesson-zh.html", "lesson-worksheet-zh.html"]),
    ):
        app = new_app(lang=language, lesson=lesson, step="1")
        app.session_state["lesson_menu"] = True
        files.clear()
        app.run()
        every = [file for file in files if file.endswith((".yaml", f"-{language}.html"))]
        ends = (".yaml", f"-{language}.html", f"-worksheet-{language}.html")
        shipped = [f"{each}{end}" for each in sorted(SHIPPED_NAMES) for end in ends]
        assert every == [*shipped, *names], "those of each lesson"
        assert open_lesson.lesson_of(lesson).title_in(language) in texts(app)
        (uploader,) = app.get("file_uploader")
        assert "40 kB" in uploader.label


@pytest.mark.parametrize(
    "numbers", [(1, 2), pytest.param(range(3, len(FAULTS.steps) + 1), marks=pytest.mark.full)], ids=str
)
def test_every_step_of_the_lesson_on_faults_opens_with_its_model_and_without_remarks(new_app, numbers):
    app = new_app(lesson=url_state.FAULTS, step="1")
    for number in numbers:
        open_step(app, number)
        step = FAULTS.steps[number - 1]
        assert not app.error, number
        assert app.session_state["remarks"] == [], number
        assert (app.session_state["page"], app.session_state[boxes.MODEL]) == (step.state.page, f"broken-{number}")
        assert {step.text(name, "en") for name in ("title", "say", "try")} <= {*texts(app)}, number
        assert not {*step.hints_in("en"), step.answer_in("en")} & {*texts(app)}, "they open one after another"


def test_hints_open_one_after_another_and_the_answer_in_their_place(new_app):
    app, step = new_app(lesson=url_state.FAULTS, step="4"), FAULTS.steps[3]
    hints = step.hints_in("en")
    for number in (1, 2, 3):
        assert button(app, f"Hint {number}")
        click(app, "lesson_hint")
        assert [text for text in texts(app) if text in hints] == hints[:number]
        assert app.session_state["run"].caption == hints[number - 1], "a presentation shows the last one"
        assert app.session_state["run"].steps.has_more
    assert "lesson_hint" not in {one.key for one in app.button}
    click(app, "lesson_answer")
    assert app.session_state["run"].caption == step.answer_in("en")
    assert not app.session_state["run"].steps.has_more
    assert step.answer_in("en") in texts(app) and not {*hints} & {*texts(app)}
    (code,) = app.code
    assert code.value == step.code.text and code.value.count("softmax(dim=-1)") == 2
    assert "visformer/model/attention.py, line" in " ".join(captions(app))


def test_the_answer_shows_the_same_page_with_the_sound_model_and_back(new_app):
    app = new_app(lesson=url_state.FAULTS, step="1")
    click(app, "lesson_answer")
    for shown, other in (("en-zh", "broken-1"), ("broken-1", "en-zh")):
        click(app, "lesson_beside")
        assert app.session_state[boxes.MODEL] == shown
        assert lesson_bar(app)["at"] == 1 and not app.error
        assert button(app, f"The same page with {other}")
    open_step(app, 2)
    assert "lesson_hint" in {one.key for one in app.button}, "the next step begins with all hints closed"
