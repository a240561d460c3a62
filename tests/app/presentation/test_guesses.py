"""A question and its answers: who is heard, what is kept of them, and the limits."""

import numpy as np
import pytest

from visformer.app.presentation.guesses import Guess, Question
from visformer.app.presentation.rooms import Rooms, code_of
from visformer.errors import BusyError
from visformer.system import limits

READING = Question("head", "", "went", options=("I", "went", "to"), shares=(0.7, 0.2, 0.1))
NEXT = Question("next", "", "I", options=("go", "went", "."), shares=(0.1, 0.6, 0.05))


def asked(question=READING, **answers):
    guess = Guess("")
    guess.ask(question)
    for guest, chosen in answers.items():
        assert guess.answer(guest, question, chosen, f"{guest} \n name")
    return guess


def test_a_person_has_one_answer_the_last_and_can_take_it_back():
    guess = asked(ana=[1], ben=[0, 1], cem=[2])
    assert guess.answer("ana", READING, [0], "x" * 1000)
    assert guess.answer("cem", READING, [])
    assert guess.count() == 2
    assert guess.answer_of("ana").chosen == {0}
    assert len(guess.answer_of("ana").name) == limits.GUESS_NAME
    assert guess.answer_of("ben").name == "ben name", "on one line"
    guess.reveal()
    assert sorted(guess.result.chosen.tolist()) == [[True, False, False], [True, True, False]]


def test_an_answer_counts_only_for_the_question_that_is_open():
    guess = asked(ana=[1])
    guess.reveal()
    assert not guess.answer("ben", READING, [0])
    guess.reopen()
    assert guess.answer("ben", READING, [0])
    guess.ask(NEXT)
    assert not guess.answer("cem", READING, [0]), "a tap that was on its way"
    assert guess.count() == 0
    assert guess.result is None


def test_a_question_takes_so_many_people_and_those_can_change_their_answers(monkeypatch):
    monkeypatch.setattr(limits, "GUESSES", 2)
    guess = asked(ana=[1], ben=[0])
    with pytest.raises(BusyError, match="2 people"):
        guess.answer("cem", READING, [0])
    assert guess.answer("ben", READING, [1])


def test_what_is_on_its_way_when_answers_are_locked_or_reset_does_not_count():
    guess = asked(ana=[1])
    guess.lock()
    assert not guess.answer("ben", READING, [0])
    assert not guess.answer("ana", READING, []), "nor is it taken back"
    guess.reopen()
    assert guess.answer("ben", READING, [0])
    guess.reset()
    assert guess.count() == 0
    assert not guess.answer("ana", READING, [1])
    assert (guess.question.options, guess.question.shares) == (READING.options, READING.shares)
    assert guess.answer("ana", guess.question, [1])


def test_one_network_has_its_share_and_nobody_else_is_refused_for_it():
    guess = asked()
    there = {"address": "192.0.2.1", "share": 2}
    for guest in ("ana", "ben"):
        assert guess.answer(guest, READING, [0], **there)
    with pytest.raises(BusyError, match="2 answers came from your network"):
        guess.answer("cem", READING, [0], **there)
    assert guess.answer("ana", READING, [1], **there), "a change is no other answer"
    assert guess.answer("dan", READING, [0], address="192.0.2.2", share=2)
    assert guess.answer("ben", READING, [], **there)
    assert guess.answer("cem", READING, [0], **there)


def test_the_nearest_are_named_as_far_as_they_gave_a_name():
    guess = asked(ana=[0], ben=[2], cem=[0])
    guess.answer("cem", READING, [0])
    guess.reveal()
    assert guess.result.nearest == ("ana name",)
    assert guess.result.agreement.covered == pytest.approx((0.7 + 0.1 + 0.7) / 3)


def test_of_the_next_token_those_who_are_right_are_nearest():
    guess = asked(NEXT, ana=[1], ben=[0])
    guess.reveal()
    right, low, high = guess.result.right
    assert right == 1
    assert low < 0.5 < high
    assert guess.result.nearest == ("ana name",)


def test_nobody_has_to_answer():
    guess = asked()
    guess.reveal()
    assert guess.result.n == 0
    assert guess.result.agreement is guess.result.right is None


def test_the_order_of_the_answers_tells_nothing_about_who_gave_them():
    first = set()
    for _ in range(40):
        guess = asked(ana=[0], ben=[1])
        guess.reveal()
        first.add(int(np.argmax(guess.result.chosen[0])))
    assert first == {0, 1}


def test_only_the_presenters_key_asks_a_room_and_the_question_goes_with_it():
    rooms = Rooms(lambda session: True)
    key, guess = rooms.open("presenter"), asked()
    rooms.follow(code_of(key), "phone")
    assert rooms.ask(f"{code_of(key)}.forged", guess) == frozenset()
    assert rooms.guess(code_of(key)) is None
    assert rooms.ask(key, guess) == {"phone"}
    assert rooms.guess(code_of(key)) is guess
    rooms.close(key)
    assert rooms.guess(code_of(key)) is None
