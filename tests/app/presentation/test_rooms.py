"""Rooms that follow a presenter: who may write, who is woken, and the limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visformer.app.presentation.rooms import Key, Rooms
from visformer.system import limits

SHOWN = {"page": "masks", "text": "I like cats."}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def rooms(clock):
    return Rooms(clock)


def test_a_follower_sees_what_was_written_last(rooms):
    key = rooms.open()
    assert rooms.follow(key.code, "phone") == (0, {})
    assert rooms.write(key, SHOWN) == {"phone"}
    assert rooms.follow(key.code, "phone") == (1, SHOWN)


def test_an_unchanged_state_wakes_nobody(rooms):
    key = rooms.open()
    rooms.follow(key.code, "phone")
    assert rooms.write(key, SHOWN) == {"phone"}
    assert rooms.write(key, dict(SHOWN)) == frozenset()
    assert rooms.follow(key.code, "phone")[0] == 1


def test_a_follower_who_has_left_is_not_woken(rooms):
    key = rooms.open()
    rooms.follow(key.code, "phone")
    rooms.leave(key.code, "phone")
    assert rooms.write(key, SHOWN) == frozenset()


@given(st.text(max_size=30))
def test_without_its_secret_a_room_cannot_be_written(secret):
    rooms = Rooms()
    key = rooms.open()
    rooms.write(key, SHOWN)
    forged = Key(key.code, secret)
    assert rooms.write(forged, {"page": "lab"}) == frozenset()
    assert rooms.close(forged) == frozenset()
    assert not rooms.is_open(forged)
    assert rooms.follow(key.code, "phone") == (1, SHOWN)


def test_a_room_that_is_closed_is_gone(rooms):
    key = rooms.open()
    rooms.follow(key.code, "phone")
    assert rooms.close(key) == {"phone"}
    assert rooms.follow(key.code, "phone") is None
    assert rooms.write(key, SHOWN) == frozenset()


def test_the_number_of_rooms_is_limited_until_one_expires(rooms, clock):
    keys = [rooms.open() for _ in range(limits.ROOMS)]
    assert len({key.code for key in keys}) == limits.ROOMS
    assert rooms.open() is None
    clock.now = limits.ROOM_SECONDS
    rooms.write(keys[0], SHOWN)
    clock.now += 1
    assert rooms.open() is not None
    assert rooms.is_open(keys[0]), "its presenter is still active"
    assert not rooms.is_open(keys[1])


def test_followers_beyond_the_limit_see_the_state_but_are_not_woken(rooms):
    key = rooms.open()
    for number in range(limits.FOLLOWERS + 5):
        assert rooms.follow(key.code, str(number)) is not None
    assert len(rooms.write(key, SHOWN)) == limits.FOLLOWERS


def test_codes_have_no_ambiguous_characters(rooms):
    for _ in range(50):
        code = rooms.open().code
        assert not set(code) & set("0o1il")
        assert code == code.lower()
        assert code.isalnum()
