"""The question to the room in a lesson's step: every mistake has its line, and what a model lacks is found."""

import visformer as vf
from tests.app.lessons.test_lesson_file import faults_of, lesson_of
from visformer.app.lessons import lesson_file
from visformer.web.selection import Selection

LESSON = """\
visformer_lesson: 1
title: Guess
steps:
  - title: One
    say: Ask first.
    link: {{stack: cross, layer: 3, head: 3}}
    guess: {}
"""
PAIR = "expected two words, such as is − are, with the kind next."


def step_of(guess):
    return lesson_of(LESSON.format(guess)).steps[0]


def test_a_question_is_about_the_head_of_the_link_unless_it_says_otherwise():
    place = Selection(stack="decoder.cross_attn", layer=2, head=2)
    assert step_of("{word: 3}").guess.place == place
    wanted = step_of("{kind: model, stack: encoder, layer: 1}").guess
    assert (wanted.kind, wanted.word) == ("model", None)
    assert (wanted.place.stack, wanted.place.layer, wanted.place.head) == ("encoder.self_attn", 0, 2)
    assert step_of("{kind: next, between: is − are}").guess.between == "is − are"


def test_a_step_with_a_question_keeps_its_sentence():
    assert not step_of("{word: 1}").fits_any
    assert lesson_of(LESSON.format("{}").replace("    guess: {}\n", "")).steps[0].fits_any


def test_a_mistake_has_its_line_and_a_remedy():
    for guess, fault in (
        ("{kind: mood}", "kind: mood: choose one of head, model, next."),
        ("{word: first}", "word: first: expected a whole number of at least 1."),
        ("{word: 0}", "word: 0: expected a whole number of at least 1."),
        ("{layer: -1}", "layer: -1: expected a whole number of at least 1."),
        ("{stack: middle}", "stack: middle: choose one of encoder, decoder, cross."),
        ("{name: Ana}", "name: there is no such name here: choose one of between, head, kind, layer, stack, word."),
        ("{between: is − are}", f"between: is − are: {PAIR}"),
        ("{kind: next, between: is}", f"between: is: {PAIR}"),
        ("{word: [1]}", "word: expected a text here."),
        ("next", "guess: expected lines of the form name: value here."),
    ):
        assert faults_of(LESSON.format(guess)) == [f"line 7: {fault}"]


def test_what_a_model_lacks_is_found():
    trace = vf.load("en-zh").trace("I went to Northeastern University.")
    for guess, missing in (
        ("{word: 3}", []),
        ("{kind: next, word: 6}", []),
        ("{word: 7}", ["line 4: word: 7: the words that read here are 1 to 6."]),
        ("{head: 9}", ["line 4: head: 9: the heads of a layer are 1 to 8."]),
        ("{layer: 4}", ["line 4: layer: 4: the layers of this attention are 1–3."]),
    ):
        faults = lesson_file.check_against_model(lesson_of(LESSON.format(guess)), lambda state, needs: trace)
        assert [fault.localized(str) for fault in faults] == missing, guess


def test_an_encoder_says_nothing_next():
    lesson = lesson_of(LESSON.format("{kind: next}").replace("stack: cross, layer: 3, head: 3", "layer: 1"))
    trace = vf.Trace.from_attention(["a", "b"], [[[[0.5, 0.5], [0.5, 0.5]]]])
    (fault,) = lesson_file.check_against_model(lesson, lambda state, needs: trace)
    assert fault.localized(str) == "line 4: kind: next: this model predicts no next tokens."
