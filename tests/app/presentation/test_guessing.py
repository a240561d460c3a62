"""Guess first: a question to the room, on the presenter's page and on phones."""

import pytest

from tests.app.support import captions, texts
from visformer.app.presentation import following, rooms

SESSION = "test session id"


@pytest.fixture
def own_rooms(monkeypatch):
    own = rooms.Rooms(lambda session: session != "gone")
    monkeypatch.setattr(following, "ROOMS", own)
    monkeypatch.setattr(following, "wake", list)
    monkeypatch.setattr(following, "_start_checks", lambda: None)
    return own


@pytest.fixture
def presenter(new_app, own_rooms):
    app = new_app(text="I went to Northeastern University.")
    app.session_state["room"] = own_rooms.open(SESSION)
    return app.run()


def test_try(new_app, presenter, own_rooms):
    presenter.button(key="guess_begin").click().run()
    assert not presenter.exception, presenter.exception
    print(
        texts(presenter),
        captions(presenter),
        [(s.label, s.options, s.value) for s in presenter.selectbox],
        presenter.text_input,
    )
    phone = new_app(follow=rooms.code_of(presenter.session_state["room"]), guest="abc")
    print("PHONE", texts(phone), captions(phone))
    presenter.button(key="guess_ask").click().run()
    assert not presenter.exception, presenter.exception
    print(texts(presenter), captions(presenter))
    phone.run()
    assert not phone.exception, phone.exception
    print("PHONE", texts(phone), captions(phone), [g for g in phone.get("button_group")])
    g = phone.pills[0]
    g.set_value([1, 3]).run()
    print("PHONE", texts(phone), captions(phone), phone.markdown)
    presenter.button(key="guess_reveal").click().run()
    assert not presenter.exception, presenter.exception
    print(texts(presenter), captions(presenter))
    phone.run()
    print("PHONE", texts(phone), captions(phone), phone.markdown)
    presenter.button(key="guess_end").click().run()
    assert not presenter.exception, presenter.exception
    print(texts(presenter), captions(presenter))
    phone.run()
    print("PHONE", texts(phone), captions(phone), phone.text_input)
