"""Export under the pictures: closed it costs nothing, open it offers the formats of what the page shows."""

import time
from types import SimpleNamespace

import pytest

from tests.app.support import in_a_session
from visformer.app.serving.admission import Admission
from visformer.app.session import boxes
from visformer.app.streamlit_private import other_sessions
from visformer.app.widgets import downloads
from visformer.errors import BudgetError, BusyError
from visformer.export.formats import FORMATS
from visformer.system import limits
from visformer.web import page as html


def names(kind, *contents):
    """Return the formats that the page offers for a kind of thing; a PNG is drawn by the browser."""
    formats = [item for item in FORMATS if kind in item.offers and item.name != "PNG"]
    return [item.name for item in formats if not contents or item.content in contents]


def offered(app):
    return [button.proto.label for button in app.get("download_button")]


def open_export(app, key):
    app.session_state[f"{key}_export"] = True
    app.run()
    assert not app.exception
    return offered(app)


def test_attention_can_be_exported_in_every_format(new_app, monkeypatch):
    monkeypatch.setattr(html, "page", lambda *_, **__: pytest.fail("made before it was requested"))
    app = new_app(lang="zh")
    assert offered(app) == []
    assert open_export(app, "attention") == names("trace")
    numbers = "、".join(names("trace", "numbers"))
    assert f"SVG：当前头；{numbers}：所有头的权重；HTML：整个探索界面。" in [caption.value for caption in app.caption]


def test_text_formats_are_not_offered_for_too_many_numbers(new_app, monkeypatch):
    monkeypatch.setattr(limits, "MAX_NUMBERS", 10)
    app = new_app()
    assert open_export(app, "attention") == [one.name for one in FORMATS if one.name != "PNG" and not one.limited]
    [text] = [caption.value for caption in app.caption if "too many for CSV" in caption.value]
    limited = " and ".join(one.name for one in FORMATS if one.limited)
    assert f"{limited}, which hold up to 10. safetensors holds all of them" in text


def test_two_pictures_of_a_page_have_their_own_exports(new_app):
    app = new_app().switch_page("pages/understand/head.py").run()
    assert open_export(app, "head_steps") == names("panels")
    assert open_export(app, "head_sum") == names("panels") * 2


@pytest.mark.parametrize(
    ("page", "state", "key"),
    [
        ("see/positions", {}, "positions_waves"),
        ("see/positions", {"positions_view": "rotation"}, "positions_circle"),
        ("understand/decoding", {}, "decoding_bars"),
        ("understand/decoding", {"decoding_view": "beams"}, "decoding_tree"),
    ],
)
def test_curves_bars_and_trees_can_be_exported(new_app, page, state, key):
    app = new_app()
    for name, value in state.items():
        app.session_state[name] = value
    app.switch_page(f"pages/{page}.py").run()
    assert open_export(app, key) == names("figure")


def test_file_names_contain_the_model_and_the_content():
    with in_a_session({boxes.MODEL: "/models/Mini LM"}):
        assert downloads.file_name("positions_waves") == "Mini-LM-positions-waves"
    with in_a_session({boxes.MODEL: "猫/../x:y"}):
        assert set(downloads.file_name("encoder-L2-H5")) <= set("xyencoder-LH25.")


@pytest.mark.parametrize(("key", "about"), [("head_sum", "en-zh: a b"), ("positions_waves", ""), ("lab_x", "")])
def test_a_picture_names_its_model_unless_it_is_a_formula(monkeypatch, key, about):
    monkeypatch.setattr(boxes, "model", lambda: None)
    monkeypatch.setattr(boxes, "source", lambda: "a b")
    assert downloads._about(key) == about


@pytest.fixture
def session(monkeypatch):
    """A session whose browser is connected; returns the sessions that were woken."""
    woken = []
    monkeypatch.setattr(other_sessions, "own_session", lambda: "mine")
    monkeypatch.setattr(other_sessions, "is_connected", lambda session: True)
    monkeypatch.setattr(other_sessions, "wake", woken.extend)
    with in_a_session({}):
        yield woken


def test_a_file_is_made_where_long_work_is_done_in_its_session_s_share(session, monkeypatch):
    asked, desk = [], Admission(at_once=1)
    monkeypatch.setattr(downloads, "ADMISSION", desk)
    run = desk.run
    monkeypatch.setattr(desk, "run", lambda *given, **how: asked.append(how) or run(*given, **how))
    make = downloads.made(lambda: b"file", key="a", place="attention")
    assert asked == []
    assert make() == b"file"
    assert (asked[0]["session"], asked[0]["is_long"]) == ("mine", True)


def test_a_page_says_why_a_file_was_not_made(session):
    told = []

    def refuse():
        raise BudgetError("It holds {n} numbers: take fewer.", n=7)

    with pytest.raises(BudgetError):
        downloads.made(refuse, key="a", place="attention")()
    assert session == ["mine"], "its page runs again"
    for _ in range(2):
        downloads.tell("attention", SimpleNamespace(text=told.append))
    assert told == ["It holds 7 numbers: take fewer."], "said once"


def test_no_file_is_made_for_a_session_that_has_left(session, monkeypatch):
    monkeypatch.setattr(other_sessions, "is_connected", lambda session: False)
    desk = Admission(at_once=1)
    monkeypatch.setattr(downloads, "ADMISSION", desk)
    with pytest.raises(BusyError, match="Nobody waits"):
        downloads.made(lambda: time.sleep(0.8), key="a", place="attention")()
