"""The presenter's own window: what it is told, and to whom."""

from starlette.applications import Starlette
from starlette.testclient import TestClient

from visformer.app.presentation import desk, rooms
from visformer.app.presentation.guesses import Guess, Question

ASKED = Question("head", "", "went", options=("I", "went"), shares=(0.9, 0.1))


def opened(monkeypatch):
    """Return a room with one follower, its clock, and what the window gets with a key."""
    now = [100.0]
    own = rooms.Rooms(connected=lambda _session: True, clock=lambda: now[0])
    monkeypatch.setattr(desk, "ROOMS", own)
    client = TestClient(Starlette(routes=desk.ROUTES))
    key = own.open("presenter")
    own.follow(rooms.code_of(key), "phone")
    return own, key, now, lambda given: client.get("/presenter/now", headers={desk.KEY: given})


def test_it_shows_what_the_presenter_told_how_long_and_who_follows(monkeypatch):
    own, key, now, ask = opened(monkeypatch)
    own.tell(key, {"title": "Masks", "next": "Inside a head"})
    now[0] += 65
    shown = ask(key).json()
    assert (shown["title"], shown["next"], shown["seconds"], shown["followers"]) == ("Masks", "Inside a head", 65, 1)
    assert (shown["options"], shown["answered"], shown["away"]) == ([], 0, False)


def test_answers_are_counted_as_they_come(monkeypatch):
    own, key, _now, ask = opened(monkeypatch)
    guess = Guess("attention")
    guess.ask(ASKED)
    own.ask(key, guess)
    for guest, chosen in (("a", [0]), ("b", [0, 1])):
        guess.answer(guest, ASKED, chosen)
    assert (ask(key).json()["options"], ask(key).json()["answered"]) == ([["I", 2], ["went", 1]], 2)


def test_only_the_whole_key_opens_it(monkeypatch):
    own, key, _now, ask = opened(monkeypatch)
    code = rooms.code_of(key)
    assert [ask(given).status_code for given in ("", code, f"{code}.wrong", key + "x")] == [404] * 4
    own.tell(f"{code}.wrong", {"title": "forged"})
    assert "title" not in ask(key).json()
    own.close(key)
    assert ask(key).status_code == 404
