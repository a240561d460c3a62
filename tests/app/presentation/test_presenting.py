"""Presentation mode: the captions over the picture, the steps, the QR code of the address, and rooms that follow."""

from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import streamlit
import zxingcpp

from tests.addresses import address_of
from tests.app.support import VIEWS, address, captions, enter, ignored, in_a_session, presented
from visformer.app.presentation import following, presenting, rooms
from visformer.app.session import boxes, page, presentation_steps, url_state
from visformer.app.session import run as runs
from visformer.app.session.run import Run
from visformer.app.widgets import component
from visformer.pictures import lab as pictures
from visformer.pictures.lab import examples
from visformer.system import limits
from visformer.web.selection import Selection

SESSION = "test session id"  # that of every AppTest
ADDRESS = "http://192.168.1.20:8501"


def walk(app, direction):
    """Go one step on or back as with an arrow key: call the component's callback, then rerun."""
    before = app.session_state.to_dict()
    with in_a_session(before) as session:
        presenting.step(direction)
        for name, value in session.items():
            if name not in before or before[name] is not value:
                app.session_state[name] = value
    app.run()
    assert not app.exception


def page_of(app):
    return app.session_state["page"]


# Captions -------------------------------------------------------------------------------------------------------------


def test_the_sentence_and_its_translation_are_one_line(new_app):
    assert presented(new_app(text="I like cats."))["sentence"] == "I like cats.    Translation: 我喜欢猫。"


# Tables ---------------------------------------------------------------------------------------------------------------


def written(cell):
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)


def test_a_presentation_draws_the_tables_of_a_page_whole_and_with_their_titles(new_app):
    for where, titles in (
        ({"page": "see/embedding", "text": "A visualisation."}, ["The tokens and their ids", "How letters are merged"]),
        ({"page": "understand/block", "block_view": "parts"}, ["Who talks to whom"]),
    ):
        app = new_app(**where)
        shown = presented(app)["tables"]
        assert [table["title"] for table in shown] == titles
        for table, drawn in zip(shown, app.dataframe, strict=True):
            assert table["columns"] == [*drawn.value.columns]
            assert table["rows"] == [[*map(written, row)] for row in drawn.value.itertuples(index=False)]


def test_a_presentation_draws_the_inputs_of_an_example_that_cannot_be_computed(new_app):
    app = new_app(page="understand/lab", lab_example="broken")
    (q, k, *_) = presented(app)["tables"]
    assert [q["title"], k["title"]] == [*pictures.examples()["broken"].inputs][:2]
    for table, values in zip((q, k), pictures.examples()["broken"].inputs.values(), strict=False):
        np.testing.assert_array_equal(np.array(table["rows"], dtype=float), values)


def test_a_page_without_tables_presents_none(new_app):
    assert presented(new_app(page="see/masks"))["tables"] == []


# Steps ----------------------------------------------------------------------------------------------------------------


def test_steps_go_through_the_views_of_a_page_and_then_to_the_next_page(new_app):
    app = new_app(page="see/masks")
    key, views = VIEWS["see/masks"]
    for number, view in enumerate(views):
        assert app.session_state[key] == view
        assert presented(app)["at"] == f"{number + 1}/{len(views)}"
        walk(app, 1)
    assert page_of(app) == "head"
    for view in reversed(views):
        walk(app, -1)
        assert (page_of(app), app.session_state[key]) == ("masks", view)
    walk(app, -1)
    assert page_of(app) == "positions"


def test_steps_go_through_the_steps_of_decoding(new_app):
    app = new_app(page="understand/decoding", text="I like cats.")
    count = int(presented(app)["at"].split("/")[-1])
    assert count > 2
    for step in range(1, count + 1):
        assert presented(app)["at"] == f"1/2 · {step}/{count}"
        walk(app, 1)
    assert app.session_state["decoding_view"] == "beams"
    walk(app, -1)
    assert presented(app)["at"] == f"1/2 · {count}/{count}"


def test_steps_end_at_the_first_and_the_last_page(new_app):
    app = new_app()
    for _ in range(2):
        walk(app, -1)
        assert page_of(app) == ""
    app = new_app(page="understand/lab", lab_example=[*examples()][-2])
    for _ in range(3):
        walk(app, 1)
    assert page_of(app) == "lab"


def test_an_open_lesson_takes_all_steps(new_app):
    shown = presented(new_app(lesson=url_state.SHIPPED, step="3"))
    assert (shown["guided"], shown["at"]) == (True, "3/12")


def test_a_key_pressed_before_the_next_run_is_a_step_of_the_page_on_screen():
    """As when the QR code is closed and a key follows at once: the run in between is aborted."""
    steps = []
    with in_a_session({}):
        runs.begin(Run())
        presentation_steps.offer(lambda direction: steps.append(direction) or True)
        presentation_steps.arrive()
        runs.begin(Run())
        assert presentation_steps.take(1)
        page.enter("masks")
        assert not presentation_steps.take(-1), "the steps of the previous page are gone"
    assert steps == [1]


# The QR code of the address -------------------------------------------------------------------------------------------


def decoded(code):
    """Return the text of a QR code as it is drawn: dark squares on white with a border of four."""
    size = code["size"]
    squares = np.array([int(square) for square in code["rows"]]).reshape(size, size)
    drawn = np.pad(1 - squares, 4, constant_values=1).astype(np.uint8) * 255
    (barcode,) = zxingcpp.read_barcodes(np.kron(drawn, np.ones((6, 6), np.uint8)))
    return barcode.text


@contextmanager
def browsing(app, *, url=ADDRESS):
    """Use the session of an app, whose browser is at this address."""
    context = SimpleNamespace(url=url, locale="en")
    with in_a_session(app.session_state.to_dict()) as session, patch.object(streamlit, "context", context):
        yield session


def qr_code(app, *, url=ADDRESS):
    """Return the QR code that a session shows for its address."""
    with browsing(app, url=url):
        return presenting.code()


def test_the_qr_code_contains_the_address(new_app):
    app = new_app(page="see/masks", masks_view="scores", text="我喜欢猫。")
    expected = f"{ADDRESS}/masks?v=2&text=%E6%88%91%E5%96%9C%E6%AC%A2%E7%8C%AB%E3%80%82&masks_view=scores"
    for url in (f"{ADDRESS}/masks", ADDRESS, f"{ADDRESS}/"):
        code = qr_code(app, url=url)
        assert decoded(code) == code["address"] == expected, url
        assert code["hint"] == ""


def test_where_the_operator_has_a_page_without_a_server_the_qr_code_leads_there(new_app, monkeypatch):
    monkeypatch.setenv("VISFORMER_SITE", "https://example.org/v/")
    app = new_app(page="see/attention", text="I like cats.", stack="cross", layer="2", head="3")
    expected = "https://example.org/v/#page=attention&v=2&text=I+like+cats.&stack=cross&layer=2&head=3"
    assert decoded(qr_code(app)) == expected
    elsewhere = new_app(page="see/masks", masks_view="scores")
    assert qr_code(elsewhere)["address"].startswith(f"{ADDRESS}/masks")
    another = new_app(page="see/attention", model="mini-gpt")
    assert qr_code(another)["address"].startswith(f"{ADDRESS}/attention")
    monkeypatch.setenv("VISFORMER_SITE", "http://localhost:8000/")
    assert "Only this computer" in qr_code(app)["hint"]


def test_an_address_that_no_phone_can_open_has_a_hint_with_the_port_of_this_server(new_app):
    app = new_app()
    for url, instead in (
        ("http://localhost:8600", "http://192.168.1.20:8600,"),
        ("http://127.0.0.1:8501", "http://192.168.1.20:8501,"),
        ("https://[::1]:443", "https://192.168.1.20:443,"),
        ("http://localhost", "http://192.168.1.20,"),
    ):
        hint = qr_code(app, url=url)["hint"]
        assert "Only this computer" in hint, url
        assert f"such as {instead}" in hint


@pytest.mark.full
def test_an_address_too_long_for_a_qr_code_has_a_hint(new_app):
    code = qr_code(new_app(text="我去东北大学。" * 50))  # each character takes 9 in an address
    assert not code.get("size")
    assert "too long for a QR code" in code["hint"]


# Rooms that follow ----------------------------------------------------------------------------------------------------


@pytest.fixture
def presenter(new_app, own_rooms):
    app = new_app(page="see/masks", masks_view="scores", text="I like cats.")
    app.session_state["room"] = own_rooms.open(SESSION)
    return app.run()


def room_code(app):
    return rooms.code_of(app.session_state["room"])


def test_two_phones_show_what_the_presenter_shows(new_app, presenter, own_rooms):
    phones = [new_app(follow=room_code(presenter)), new_app(follow=room_code(presenter), lang="zh")]
    for phone in phones:
        assert not phone.exception
        assert page_of(phone) == "masks"
        assert phone.session_state["masks_view"] == "scores"
        assert phone.text_input(key=boxes.SOURCE).value == "I like cats."
        assert address_of(phone)["follow"] == room_code(presenter), "it follows after a reload, too"
    assert [phone.session_state[boxes.LANGUAGE] for phone in phones] == ["en", "zh"], "each keeps its language"
    walk(presenter, 1)
    enter(presenter, "Thanks.")
    for phone in phones:
        phone.run()
        assert phone.session_state["masks_view"] == "steps"
        assert phone.text_input(key=boxes.SOURCE).value == "Thanks."
    presenter.session_state["masks_view"] = "batch"
    presenter.run()
    assert phones[0].run().session_state["masks_view"] == "batch", "defaults are followed, too"
    while page_of(presenter) == "masks":
        walk(presenter, 1)
    assert page_of(phones[0].run()) == page_of(presenter) == "head"
    own_rooms.write(presenter.session_state["room"], {"page": "masks", "masks_view": "scores", "masks_layer": "9"})
    assert ignored(phones[1].run()) == ["masks_layer=9: 应为以下编号之一：1–3。"]


def test_a_head_selected_in_the_explorer_is_selected_on_the_phone(new_app, own_rooms, monkeypatch):
    """The component's own callback, since AppTest has no browser that could call it."""
    selects = []
    monkeypatch.setattr(component, "attention_view", selects.append)
    app = new_app()
    app.session_state["room"] = own_rooms.open("")  # the session of a callback outside a run
    phone = new_app(follow=room_code(app))
    with in_a_session(app.session_state.to_dict()), address():
        selects[0](Selection(layer=1, head=2, view="arcs").start())
    assert address_of(phone.run()) == {"follow": room_code(app), "layer": "2", "head": "3", "view": "arcs"}


def test_a_place_of_the_whole_model_is_opened_on_the_phone(new_app, own_rooms, monkeypatch):
    zooms = []
    monkeypatch.setattr(component, "map_picture", lambda *_, on_zoom, **__: zooms.append(on_zoom))
    app = new_app(page="see/map")
    app.session_state["room"] = own_rooms.open("")
    phone = new_app(page="see/map", follow=room_code(app))
    for zoom, kept in (("decoder.2.cross_attn.3", "decoder.2.cross_attn.3"), ("no place", "decoder.2.cross_attn.3")):
        with in_a_session(app.session_state.to_dict()), address():
            zooms[0](zoom)
        assert address_of(phone.run())["zoom"] == kept
        assert page_of(phone) == "", "the first page"


def test_an_unknown_code_is_reported_and_a_session_can_try_only_one(new_app, presenter):
    app = new_app(follow="nowhere")
    app.query_params["follow"] = room_code(presenter)
    assert captions(app.run(), "No room has this code")
    app.button(key="following_closed").click().run()
    assert not captions(app, "No room has this code")
    assert not captions(app, "You are following")


def test_after_too_many_wrong_codes_only_new_followers_are_refused(new_app, presenter, monkeypatch):
    follower = new_app(follow=room_code(presenter))
    monkeypatch.setattr(limits, "WRONG_CODES", 0)
    app = new_app(follow=room_code(presenter))
    assert captions(app, "Too many wrong codes were tried")
    assert address_of(app)["follow"] == room_code(presenter)
    assert captions(follower.run(), "You are following the presenter.")


def test_a_session_resumes_one_room_only(own_rooms):
    keys = [own_rooms.open("gone") for _ in range(2)]
    with in_a_session({}):
        for key in keys:
            following.take_up(key)
        assert following.presented() == rooms.code_of(keys[0])
        following.dismiss()
        assert following.room() == {"key": keys[0], "open": False}, "so that the browser forgets it"
        for invalid in ("nonsense", f"{keys[1]}x", None, 7, "x" * 10**6, {"key": keys[1]}):
            following.take_up(invalid)
            assert not following.presented()


def test_a_presenter_follows_nobody(new_app, presenter, own_rooms):
    other = own_rooms.open("gone")
    own_rooms.write(other, {"page": "lab"})
    presenter.session_state["follow"] = rooms.code_of(other)
    assert page_of(presenter.run()) == "masks"


def test_the_presenter_sees_the_room_and_can_close_it(new_app, presenter):
    phone = new_app(follow=room_code(presenter))
    assert captions(presenter, "The audience follows")
    assert not captions(phone, "The audience follows")
    presenter.button(key="following_stop").click().run()
    assert not captions(presenter, "The audience follows")
    phone.run()
    assert captions(phone, "The presenter has stopped and this room is closed.")
    assert ignored(phone) == []
    assert phone.text_input(key=boxes.SOURCE).value == "I like cats.", "the last state stays"


def test_a_presentation_opens_one_room_and_closes_it(new_app, presenter, own_rooms, monkeypatch):
    with browsing(new_app()) as session:
        presenting.ask("follow")
        room = following.presented()
        presenting.ask("follow")
        assert following.presented() == room, "a session has one room"
        code = presenting.code()
        assert code["followed"]
        assert code["address"] == f"{ADDRESS}/?follow={room}" == decoded(code)
        presenting.ask("stop")
        assert not following.presented()
        monkeypatch.setattr(limits, "ROOMS", 1)  # the presenter's
        presenting.ask("follow")
        assert "Too many presentations" in presenting.code()["hint"]
        assert session["present_code"]
