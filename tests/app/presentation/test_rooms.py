"""Rooms that follow a presenter: who may write, who is notified, and the limits."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visformer.app.presentation.rooms import Rooms, code_of
from visformer.errors import BusyError
from visformer.system import limits
from visformer.system.sockets import network_of

DOCS = Path(__file__).parents[3] / "docs"
SHOWN = {"page": "masks", "text": "I like cats."}


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def connected():
    """The sessions whose browsers are connected."""
    return {"presenter", "phone"}


@pytest.fixture
def rooms(connected, clock):
    return Rooms(connected.__contains__, lambda: clock.now)


def test_followers_are_notified_of_changes_and_see_the_latest_state(rooms):
    key = rooms.open("presenter")
    assert rooms.follow(code_of(key), "phone") == (0, {}, True)
    assert rooms.write(key, SHOWN) == {"phone"}
    assert rooms.write(key, dict(SHOWN)) == frozenset(), "nothing has changed"
    assert rooms.follow(code_of(key), "phone") == (1, SHOWN, True)
    rooms.leave(code_of(key), "phone")
    assert rooms.write(key, {}) == frozenset()


@given(st.text(max_size=30), st.booleans())
def test_a_room_can_be_changed_only_with_its_key(text, has_code):
    rooms = Rooms(lambda session: True)
    key = rooms.open("presenter")
    rooms.write(key, SHOWN)
    forged = f"{code_of(key)}.{text}" if has_code else text
    assert rooms.write(forged, {"page": "lab"}) == frozenset()
    assert rooms.close(forged) == frozenset()
    assert not rooms.take_up(forged, "phone")
    assert not rooms.is_presented_by(forged, "presenter")
    assert rooms.is_presented_by(key, "presenter")
    assert rooms.follow(code_of(key), "phone") == (1, SHOWN, True)


def test_a_closed_room_cannot_be_followed_or_written(rooms):
    key = rooms.open("presenter")
    rooms.follow(code_of(key), "phone")
    assert rooms.close(key) == {"phone"}
    assert rooms.follow(code_of(key), "phone") is None
    assert rooms.write(key, SHOWN) == frozenset()


def test_at_the_limit_a_room_without_its_presenter_is_replaced(rooms, connected, clock):
    others = [f"session {number}" for number in range(limits.ROOMS - 2)]
    connected.update(others)
    mine, gone = rooms.open("presenter"), rooms.open("gone")
    keys = [rooms.open(other) for other in others]
    assert len({code_of(key) for key in keys}) == len(others)
    clock.now = 1
    rooms.take_up(mine, "reloading")
    assert rooms.open("presenter")
    assert rooms.is_presented_by(mine, "reloading"), "the one abandoned for longest is replaced"
    assert not rooms.is_presented_by(gone, "gone")
    assert rooms.open("presenter"), "in place of the reloading one's, who is not connected either"
    assert not rooms.open("presenter")


def test_a_room_is_closed_some_time_after_its_presenter_has_left_and_followers_are_notified(rooms, connected, clock):
    key = rooms.open("presenter")
    rooms.follow(code_of(key), "phone")
    clock.now = 100 * limits.ROOM_SECONDS
    assert rooms.check() == frozenset()
    connected.remove("presenter")
    assert rooms.check() == {"phone"}
    assert rooms.follow(code_of(key), "phone") == (0, {}, False)
    clock.now += limits.ROOM_SECONDS
    assert rooms.check() == frozenset()
    clock.now += 1
    assert rooms.check() == {"phone"}
    assert rooms.follow(code_of(key), "phone") is None
    assert not rooms.take_up(key, "presenter again")


def test_a_room_that_its_presenter_resumes_continues(rooms, connected, clock):
    key = rooms.open("presenter")
    rooms.follow(code_of(key), "phone")
    connected.remove("presenter")
    rooms.check()
    clock.now = limits.ROOM_SECONDS
    connected.add("presenter again")
    assert rooms.take_up(key, "presenter again")
    assert rooms.check() == {"phone"}
    clock.now += limits.ROOM_SECONDS
    assert rooms.check() == frozenset()
    assert rooms.follow(code_of(key), "phone").is_presented
    assert not rooms.is_presented_by(key, "presenter"), "of two copies of a tab, the latest presents"


def test_followers_are_removed_when_their_sessions_end(rooms, connected):
    key = rooms.open("presenter")
    for number in range(3):
        connected.add(f"phone {number}")
        rooms.follow(code_of(key), f"phone {number}")
    connected -= {"phone 0", "phone 1"}
    rooms.check()
    connected.add("phone 0")
    assert rooms.write(key, SHOWN) == {"phone 2"}
    rooms.follow(code_of(key), "phone 0")
    assert rooms.write(key, {}) == {"phone 0", "phone 2"}


def test_a_network_has_as_large_a_share_of_a_room_as_it_had_followers_at_a_time(rooms, connected):
    code, alone = code_of(rooms.open("presenter")), limits.GUESSES_ALONE
    for number in range(100):  # one after the other
        connected.add("fake")
        rooms.follow(code, f"fake {number}", address="192.0.2.1")
    assert rooms.share(code, "192.0.2.1") == alone
    hall = [f"phone {number}" for number in range(60)]
    connected.update(hall)
    for phone in hall:
        rooms.follow(code, phone, address="192.0.2.2")
    assert rooms.share(code, "192.0.2.2") == 60
    connected.difference_update(hall[10:])  # they sleep once they have answered
    rooms.check()
    rooms.follow(code, hall[0], address="192.0.2.2")
    assert rooms.share(code, "192.0.2.2") == 60
    assert rooms.share(code, "192.0.2.1") == rooms.share("closed", "192.0.2.2") == alone
    many = [f"fake {number}" for number in range(limits.GUESSES_ADDRESS + 50)]
    connected.update(many)
    for fake in many:
        rooms.follow(code, fake, address="192.0.2.3")
    assert rooms.share(code, "192.0.2.3") == limits.GUESSES_ADDRESS < limits.GUESSES


def test_of_ipv6_a_whole_network_is_one_address():
    for address, known in {
        "2001:db8::1": "2001:db8::",
        "2001:db8:0:0:ffff::1": "2001:db8::",
        "2001:db8:0:1::1": "2001:db8:0:1::",
        "192.0.2.1": "192.0.2.1",
        "x" * 1000: "",
        "": "",
    }.items():
        assert network_of(address) == known


def test_too_many_wrong_codes_lock_out_newcomers_for_a_minute_but_not_followers(rooms, clock):
    key = rooms.open("presenter")
    assert len(code_of(key)) == 10
    for _ in range(limits.WRONG_CODES):
        assert rooms.follow("wrong", "phone") is None
    for code in ("wrong", code_of(key)):
        with pytest.raises(BusyError):
            rooms.follow(code, "phone")
    assert rooms.follow(code_of(key), "phone", is_new=False) is not None
    assert rooms.follow("closed", "phone", is_new=False) is None
    clock.now = 60
    assert rooms.follow(code_of(key), "phone") is not None


def test_codes_have_no_ambiguous_characters(rooms):
    for _ in range(50):
        code = code_of(rooms.open("presenter"))
        assert not set(code) & set("0o1il")
        assert code == code.lower()
        assert code.isalnum()


def test_the_docs_say_what_a_code_consists_of(rooms):
    codes = [code_of(rooms.open("presenter")) for _ in range(100)]
    assert {len(code) for code in codes} == {10}
    kinds = {"letter" if character.isalpha() else "digit" for code in codes for character in code}
    assert kinds == {"letter", "digit"}, "or the sentences below are wrong"
    for page in ("presenting", "security"):
        assert "ten letters and digits" in (DOCS / f"{page}.md").read_text(encoding="utf-8"), page
        assert "代码由十个字母和数字组成" in (DOCS / f"{page}.zh-CN.md").read_text(encoding="utf-8"), page
