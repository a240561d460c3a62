"""Guess first: a question to the room, on the presenter's page and on phones."""

import csv
import io
import json
from html import unescape

import numpy as np
import pytest

from tests.addresses import address_of
from tests.app.pages.seen import script_of
from tests.app.support import badges, call, captions, presented, texts
from tests.kinds import model_of
from visformer.app.lessons import lesson_file
from visformer.app.presentation import following, guessing, rooms
from visformer.app.session import boxes
from visformer.app.widgets import controls
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, short_name

SESSION = "test session id"  # that of every AppTest
SENTENCE = "I went to Northeastern University."
HOSTILE = "<b>Ana</b> **x** :smile: \u202egnp"
LESSON = """\
visformer_lesson: 1
title: Guess
steps:
  - title: Who finds the name
    say: Ask first.
    link: {text: I went to Northeastern University., stack: cross, layer: 3, head: 3}
    guess: {word: 3}
"""


@pytest.fixture
def presenter(new_app, own_rooms):
    app = new_app(text=SENTENCE, stack="cross", layer="3", head="3")
    app.session_state["room"] = own_rooms.open(SESSION)
    return app.run()


@pytest.fixture
def phone(new_app, presenter):
    def scan(kept="", **link):
        """Open the room's link; ``kept``: the key that the browser kept from before a reload."""
        app = new_app(follow=rooms.code_of(presenter.session_state["room"]), **link)
        assert not app.exception
        guess = following.ROOMS.guess(rooms.code_of(presenter.session_state["room"]))
        if kept:
            call(app, guessing._return_to_answer, guess, kept)
        return app

    return scan


def press(app, key):
    app.button(key=key).click().run()
    assert not app.exception
    return app


def ask(app, kind="head", **places):
    press(app, "guess_begin")
    app.segmented_control(key="guess_kind").set_value(kind).run()
    for name, value in places.items():
        app.selectbox(key=f"guess_{name}").set_value(value).run()
    return press(app, "guess_ask")


def tap(app, *words):
    (pills,) = app.pills
    pills.set_value(words[0] if pills._is_single_select else [*words]).run()
    assert not app.exception
    return app


def told(app, start):
    (found,) = texts(app, start)
    return found


def sent(monkeypatch):
    """Collect the pictures that are drawn."""
    drawn = []
    monkeypatch.setattr(controls, "draw", lambda shown, **_: drawn.append(shown))
    return drawn


# A question from its beginning to its end -----------------------------------------------------------------------------


def test_a_question_takes_the_place_of_the_page_until_it_is_over(presenter, phone):
    app = phone()
    press(presenter, "guess_begin")
    assert texts(app.run(), "The presenter is choosing a question")
    assert not app.text_input, "no box, and no translation that would tell the answer"
    press(presenter, "guess_ask")
    question = "Layer 3, head 3: which English word does “去” read most?"
    for each in (presenter, app.run()):
        assert told(each, "Layer 3") == question
        assert not texts(each, "Translation"), "it tells the answer"
    assert badges(app) == ["No guess yet."]
    tap(app, 1, 3)
    assert badges(app) == [":material/check: Your guess is in."]
    assert told(presenter.run(), "1 of 1") == "1 of 1 phones have answered."
    press(presenter, "guess_reveal")
    assert told(app.run(), "You chose") == told(app, "You chose went, Northeastern")
    assert told(app, "What was chosen") == told(presenter, "What was chosen")
    press(presenter, "guess_end")
    for each in (presenter, app.run()):
        assert not each.exception
        assert texts(each, "Translation")
        assert each.text_input(key=boxes.SOURCE).value == SENTENCE
        assert not texts(each, "Layer 3, head 3: which")


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("head", "en-zh"),
        ("model", "mini-gpt"),
        ("next", "en-zh"),
        *(
            pytest.param(*row, marks=pytest.mark.full)
            for row in (("head", "mini-gpt"), ("model", "en-zh"), ("next", "mini-gpt"))
        ),
    ],
)
def test_every_kind_of_question_is_asked_and_revealed(presenter, phone, monkeypatch, kind, model):
    presenter.selectbox(key=boxes.MODEL).set_value(model).run()
    ask(presenter, kind)
    guess = following.ROOMS.guess(rooms.code_of(presenter.session_state["room"]))
    phones = [tap(phone(), i) for i in range(2)]
    drawn = sent(monkeypatch)
    press(presenter, "guess_reveal")
    phones[0].run()
    for figure in (drawn[0], drawn[-1]):
        room, told_by_model = figure.data
        assert [unescape(text) for text in figure.layout.yaxis.ticktext] == [*guess.question.options]
        assert sum(room.x) == pytest.approx(1), "each chose one"
        assert told_by_model.x == guess.question.shares
    assert any("interval" in caption for caption in captions(presenter))
    assert (sum(guess.question.shares) == pytest.approx(1)) == (kind != "next")


def test_which_of_two_words_comes_next_is_told_with_the_difference_of_their_logits(presenter, phone):
    presenter.selectbox(key=boxes.MODEL).set_value("mini-gpt").run()
    press(presenter, "guess_begin")
    presenter.text_input(key=boxes.SOURCE).set_value("Tom").run()
    presenter.segmented_control(key="guess_kind").set_value("next").run()
    presenter.selectbox(key="guess_word").set_value(1).run()
    for typed, said in (("are", "“are” is not two words"), ("are - zebra", "'zebra' is not one token of this model")):
        presenter.text_input(key="guess_between").set_value(typed).run()
        assert texts(presenter, said) and presenter.button(key="guess_ask").disabled
    presenter.text_input(key="guess_between").set_value("are - is").run()
    press(presenter, "guess_ask")
    guess = following.ROOMS.guess(rooms.code_of(presenter.session_state["room"]))
    assert {*guess.question.options} == {"is", "are"}
    app = phone()
    assert captions(app, "Tap the one that you think the model finds likelier.")
    tap(app, guess.question.options.index("are"))
    press(presenter, "guess_reveal")
    model = model_of("mini-gpt")
    logits = model.trace("Tom", record="logits")["logits"].value[-1]
    ahead = logits[model.token_id("is")] - logits[model.token_id("are")]
    assert ahead > 0.1, "the model knows the grammar"
    assert told(presenter, "0% chose") == (
        f"0% chose “is”, which the model finds likelier: its logit is {ahead:.1f} above that of “are”."
    )
    assert told(app.run(), "You chose").startswith("You chose are: of the two, the model gives it the probability ")
    assert any("its probability, of these two." in caption for caption in captions(presenter))


def test_what_comes_next_is_not_told_by_the_sentence(presenter, phone):
    presenter.selectbox(key=boxes.MODEL).set_value("mini-gpt").run()
    ask(presenter, "next", word=2)
    app = phone()
    assert told(app, "What comes next?") == "What comes next? “</s> I went …”"
    assert not any("Northeastern" in text for text in texts(app))


def test_the_presenter_can_ask_about_another_sentence_and_returns_to_the_head_that_was_asked_about(presenter):
    press(presenter, "guess_begin")
    presenter.text_input(key=boxes.SOURCE).set_value("I like cats.").run()
    presenter.selectbox(key="guess_head").set_value(0).run()
    press(presenter, "guess_ask")
    press(presenter, "guess_reveal")
    press(presenter, "guess_end")
    assert presenter.text_input(key=boxes.SOURCE).value == "I like cats."
    assert address_of(presenter) == {"text": "I like cats.", "stack": "cross", "layer": "3"}, "its first head"


def test_the_page_comes_back_as_it_was_on_every_screen(new_app, own_rooms):
    presenter = new_app(page="see/masks", masks_view="scores", masks_layer="2")
    presenter.session_state["room"] = own_rooms.open(SESSION)
    app = new_app(follow=rooms.code_of(presenter.run().session_state["room"]))
    ask(presenter)
    assert told(app.run(), "Layer")
    press(presenter, "guess_end")
    for each in (presenter, app.run()):
        assert not each.exception
        assert (each.session_state["masks_view"], each.query_params["masks_layer"]) == ("scores", "2")


def test_another_question_forgets_the_answers_and_a_reopened_one_keeps_them(presenter, phone):
    ask(presenter)
    app = tap(phone(), 0)
    app.text_input(key="guess_name").set_value("Ana").run()
    press(presenter, "guess_reveal")
    app.run()
    press(presenter, "guess_reopen")
    assert app.run().pills[0].value == [0]
    tap(app, 3)
    press(presenter, "guess_another")
    assert texts(app.run(), "The presenter is choosing")
    press(presenter, "guess_ask")
    assert app.run().pills[0].value == []
    assert badges(app) == ["No guess yet."]
    assert app.text_input(key="guess_name").value == "Ana", "who is still the same"


def test_a_presenter_who_goes_to_another_page_ends_the_question(presenter, phone):
    ask(presenter)
    app = phone()
    presenter.switch_page(script_of("see/masks")).run()
    assert not presenter.exception
    assert following.ROOMS.guess(rooms.code_of(presenter.session_state["room"])) is None
    assert app.run().session_state["page"] == "masks"


def test_a_room_that_is_closed_ends_its_question(presenter, phone):
    ask(presenter)
    app = phone()
    press(presenter, "following_stop")
    assert texts(presenter, "Translation")
    assert address_of(presenter) == {"stack": "cross", "layer": "3", "head": "3"}
    assert captions(app.run(), "The presenter has stopped")
    assert texts(app, "Translation")


def test_somebody_who_browses_alone_is_not_asked_and_who_is_asked_computes_nothing(presenter, phone, monkeypatch):
    ask(presenter)
    app = press(phone(), "following_turn")
    assert texts(app, "Translation")

    def fail(*_args, **_options):
        raise AssertionError("a phone asked for a trace")

    for name in ("current_trace", "prefetch"):
        monkeypatch.setattr(controls, name, fail)
    assert told(press(app, "following_turn"), "Layer 3")
    tap(phone(), 2)


def test_the_keys_of_a_presentation_reveal_the_answer_and_bring_the_page_back(presenter):
    ask(presenter)
    guess = following.ROOMS.guess(rooms.code_of(presenter.session_state["room"]))
    assert presented(presenter)["typed"] is None
    assert not presented(presenter)["guesses"], "one question at a time"
    assert "g" not in dict(presented(presenter)["keys"])
    (turn,) = presenter.session_state["run"].steps.turns
    notes = lambda: following.ROOMS.desk(presenter.session_state["room"]).told  # noqa: E731
    assert notes()["next"] == "Reveal"
    call(presenter, turn, 1)
    assert guess.result is not None
    assert notes()["next"] == "Back to the page"
    (turn,) = presenter.session_state["run"].steps.turns
    call(presenter, turn, -1)
    assert guess.result is None
    for _ in range(2):
        (turn,) = presenter.session_state["run"].steps.turns
        call(presenter, turn, 1)
    assert texts(presenter, "Translation")
    assert presented(presenter)["guesses"]
    assert "g" in dict(presented(presenter)["keys"])


def test_a_presenter_who_reloads_while_a_question_is_open_gets_the_same_page_back(new_app, own_rooms):
    place = {"page": "understand/head", "stack": "cross", "layer": "3", "head": "3"}
    presenter, room = new_app(**place), own_rooms.open(SESSION)
    presenter.session_state["room"] = room
    ask(presenter.run())
    again = new_app(**place)
    call(again, guessing.return_to_room, room)
    assert texts(again.run(), "Layer 3, head 3: which")
    press(again, "guess_end")
    assert address_of(again) == {"stack": "cross", "layer": "3", "head": "3"}


# Late, lost and hostile phones ----------------------------------------------------------------------------------------


def key_of(app):
    """Return the key that the browser of a phone is to keep."""
    (sent,) = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "visformer_kept_key"]
    return json.loads(sent.bytes)[1]


def test_a_phone_that_is_reloaded_comes_back_to_its_answer_and_a_late_one_to_the_question(presenter, phone):
    ask(presenter)
    app = tap(phone(), 2, 3)
    app.text_input(key="guess_name").set_value("Ana").run()
    again = phone(kept=key_of(app))
    assert again.pills[0].value == [2, 3]
    assert again.text_input(key="guess_name").value == "Ana"
    assert key_of(again) == key_of(app)
    others = [phone(kept=kept) for kept in ("", "made up", "x" * 1000)]
    assert len({key_of(each) for each in (app, *others)}) == 4, "nobody chooses a key"
    late = others[0]
    assert late.pills[0].value == []
    assert told(late, "Layer 3")
    tap(late, 3)
    assert told(presenter.run(), "2 of") == "2 of 2 phones have answered."
    press(presenter, "guess_reveal")
    assert told(phone(kept=key_of(app)), "You chose to, Northeastern")
    assert told(phone(), "What was chosen has")


def test_a_copied_address_has_neither_name_nor_answer(presenter, phone):
    ask(presenter)
    app = tap(phone(), 2, 3)
    app.text_input(key="guess_name").set_value("Ana").run()
    copied = {name: app.query_params[name] for name in app.query_params}
    assert key_of(app) not in str(copied)
    other = phone(**{name: value for name, value in copied.items() if name != "follow"})
    assert other.pills[0].value == []
    assert other.text_input(key="guess_name").value == ""
    assert key_of(other) != key_of(app)


def test_the_number_of_answers_from_one_network_is_that_of_its_phones(presenter, phone, monkeypatch):
    """One connection after the other, each with another key, gives few answers."""
    monkeypatch.setattr(limits, "GUESSES_ALONE", 2)
    here = [SESSION]
    monkeypatch.setattr(following.ROOMS, "_connected", lambda session: session in here)
    monkeypatch.setattr(following, "own_session", lambda: here[-1])
    ask(presenter)

    def arrive(name):
        here.append(name)
        return phone()

    for number in range(2):
        tap(arrive(f"fake {number}"), 1)
        here.pop()
    refused = arrive("fake 2")
    assert texts(tap(refused, 1), "2 answers came from your network")
    app = arrive("beside it")
    assert not texts(tap(arrive("a third"), 1), "2 answers"), "three are here at a time"
    assert texts(tap(app, 1), "3 answers came from your network")
    monkeypatch.setattr(following, "own_address", lambda: "another")
    assert not texts(tap(arrive("elsewhere"), 3), "3 answers")


def test_the_presenter_locks_a_question_and_resets_its_answers(presenter, phone):
    ask(presenter)
    app = tap(phone(), 2, 3)
    press(presenter, "guess_lock")
    assert captions(app.run(), "The presenter takes no more guesses.")
    assert app.pills[0].disabled and app.pills[0].value == [2, 3], "its guess counts"
    app.session_state[app.pills[0].key] = [1]  # a tap that no browser sends
    app.run()
    assert following.ROOMS.guess(rooms.code_of(presenter.session_state["room"])).answer_of(key_of(app)).chosen == {2, 3}
    late = phone()
    assert late.pills[0].disabled and badges(late) == ["No guess yet."]
    press(presenter, "guess_reopen")
    tap(late.run(), 1)
    assert told(presenter.run(), "2 of") == "2 of 2 phones have answered."
    press(presenter, "guess_reset")
    assert told(presenter, "0 of") == "0 of 1 phones have answered."
    for each in (app.run(), late.run()):
        assert each.pills[0].value == [] and not each.pills[0].disabled
    assert told(presenter.run(), "0 of"), "what the phones had chosen is not given again"
    tap(app, 1)
    press(presenter, "guess_reveal")
    press(presenter, "guess_reset")
    assert told(presenter, "0 of")


def test_names_are_shown_as_they_are_typed_and_never_needed(presenter, phone):
    ask(presenter)
    tap(phone(), 1)
    app = tap(phone(), 3)
    app.text_input(key="guess_name").set_value(HOSTILE).run()
    press(presenter, "guess_reveal")
    shown = told(presenter, "Nearest")
    assert shown == "Nearest: <b>Ana</b> **x** :smile: U+202Egnp"
    for each in (presenter, app.run()):
        assert not [one for kind in ("markdown", "caption", "html") for one in each.get(kind) if "Ana" in str(one)]


def test_a_full_question_says_so_and_a_wrong_code_tells_nothing(presenter, phone, monkeypatch):
    ask(presenter)
    tap(phone(), 1)
    monkeypatch.setattr(limits, "GUESSES", 1)
    assert texts(tap(phone(), 2), "1 people have answered")
    monkeypatch.setattr(limits, "WRONG_CODES", 0)
    assert not texts(phone(), "Layer 3")


def test_a_sentence_with_too_many_words_says_so(presenter, monkeypatch):
    monkeypatch.setattr(limits, "GUESS_WORDS", 6)
    press(presenter, "guess_begin")
    assert texts(presenter, "This sentence has 7 words to choose from; a question takes at most 6.")
    assert presenter.button(key="guess_ask").disabled


# The file -------------------------------------------------------------------------------------------------------------


def test_the_file_has_the_answers_and_nobodys_name_or_id(presenter, phone, monkeypatch):
    ask(presenter)
    for number, word in enumerate((1, 3, 3)):
        app = tap(phone(), word)
        app.text_input(key="guess_name").set_value(f"Name {number}").run()
    tables = []
    monkeypatch.setattr(guessing.downloads, "csv", lambda table, what: tables.append((what, table)))
    assert not tables, "nothing is made before the answer"
    press(presenter, "guess_reveal")
    ((what, table),) = tables
    content = table.to_csv(index=False)
    assert what == "answers"
    rows = [*csv.DictReader(io.StringIO(content))]
    assert [*rows[0]] == ["answer", "option", "chosen", "model"]
    assert sorted(row["option"] for row in rows if row["chosen"] == "1") == ["Northeastern", "Northeastern", "went"]
    assert "Name" not in content
    assert "guest-" not in content


@pytest.mark.parametrize(
    ("model", "text", "read"),
    [
        ("en-zh", "I went to school.", {"encoder": "en", "decoder": "zh", "cross": "en"}),
        ("en-zh", "我去学校。", {"encoder": "zh", "decoder": "en", "cross": "zh"}),
        ("mini-gpt", "I went to school.", {"decoder": ""}),
    ],
)
def test_a_question_names_the_language_of_the_words_to_choose_from(model, text, read):
    trace = model_of(model).trace(text)
    stacks = {short_name(stack.name): stack for stack in STACKS if stack.in_trace(trace)}
    assert {name: guessing.language_read(trace, stack) for name, stack in stacks.items()} == read


def test_the_target_of_another_model_reads_the_source():
    weights = np.full((1, 1, 2, 2), 0.5)
    trace = Trace.from_attention(["a", "b"], weights, target=["c", "d"], decoder=weights, cross=weights)
    reads = [guessing.language_read(trace, stack) for stack in STACKS if stack.in_trace(trace)]
    assert reads == ["", "", "source"]


# In a lesson ----------------------------------------------------------------------------------------------------------


def test_a_lesson_carries_a_question_which_a_presenter_of_a_room_can_ask(new_app, own_rooms):
    app = new_app(lesson=lesson_file.pack(LESSON.encode()), step="1")
    assert not [button for button in app.button if button.key == "lesson_guess"], "there is no room"
    app.session_state["room"] = own_rooms.open(SESSION)
    press(app.run(), "lesson_guess")
    assert app.selectbox(key="guess_word").value == 2
    press(app, "guess_ask")
    assert told(app, "Layer 3") == "Layer 3, head 3: which English word does “去” read most?"
    press(app, "guess_reveal")
    press(app, "guess_end")
    assert told(app, "Ask first.")
