"""Followers are drawn a few at a time, each once for all that has changed meanwhile."""

from types import SimpleNamespace

import pytest

from visformer.app.presentation.rooms import Waking
from visformer.system import limits

ROOM = [f"phone {number}" for number in range(50)]


@pytest.fixture
def room(monkeypatch):
    """Followers that are woken; ``gone`` are those of them that have left."""
    monkeypatch.setattr(limits, "FOLLOWERS", 2)
    it = SimpleNamespace(woken=[], gone=set(), now=0.0)
    it.waking = Waking(it.woken.append, lambda name: name not in it.gone, lambda: it.now)
    return it


def test_fourteen_steps_of_a_presenter_are_two_runs_of_each_follower_and_two_at_a_time(room):
    for _ in range(14):
        room.waking.wake(ROOM)
        assert room.woken == ROOM[:2]
    for at in range(200):
        if at < len(room.woken):
            assert len(room.woken) <= at + 2
            room.waking.drawn(room.woken[at])
    assert room.woken[:50] == ROOM, "in the order in which they fell behind"
    assert sorted(room.woken[50:]) == sorted(ROOM[:2]), "who was being drawn when the presenter went on"


def test_a_follower_is_not_woken_again_while_it_is_drawn(room):
    room.waking.wake(["a"])
    room.waking.wake(["a"])
    assert room.woken == ["a"]
    room.waking.drawn("a")
    assert room.woken == ["a", "a"]
    room.waking.drawn("a")
    room.waking.drawn("somebody else, by a click")
    assert room.woken == ["a", "a"]


def test_who_has_left_or_waits_for_the_model_keeps_nobody_waiting(room):
    room.gone = {"c"}
    room.waking.wake(["a", "b", "c", "d", "e"])
    room.gone.add("a")
    room.waking.go_on()
    assert room.woken == ["a", "b", "d"]
    room.now = 10.0
    room.waking.go_on()
    assert room.woken == ["a", "b", "d", "e"]
