"""Exports under the pictures: nothing is made while they are closed; open, they offer the formats of the picture."""

import time
from types import SimpleNamespace

import pytest

from tests.app.support import captions, in_a_session
from visformer.app.serving.admission import Admission
from visformer.app.session import boxes
from visformer.app.streamlit_private import other_sessions
from visformer.app.widgets import downloads
from visformer.errors import BudgetError, BusyError
from visformer.export.formats import FORMATS
from visformer.system import limits
from visformer.web import page as html


def formats(kind, *contents):
    """Return the formats that the page offers for a trace, panels or a figure; the browser draws a PNG."""
    offered = [item for item in FORMATS if kind in item.offers and item.name != "PNG"]
    return [item.name for item in offered if not contents or item.content in contents]


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
    assert open_export(app, "attention") == formats("trace")
    numbers = "、".join(formats("trace", "numbers"))
    assert f"SVG：当前头；{numbers}：所有头的权重；HTML：整个探索界面。" in captions(app)


def test_text_formats_are_not_offered_for_too_many_numbers(new_app, monkeypatch):
    monkeypatch.setattr(limits, "MAX_NUMBERS", 10)
    app = new_app()
    assert open_export(app, "attention") == [one.name for one in FORMATS if one.name != "PNG" and not one.limited]
    [text] = [caption for caption in captions(app) if "too many for CSV" in caption]
    limited = " and ".join(one.name for one in FORMATS if one.limited)
    assert f"{limited}, which hold up to 10. safetensors holds all of them" in text


def test_two_pictures_of_a_page_have_their_own_exports(new_app):
    app = new_app(page="understand/head")
    assert open_export(app, "head_steps") == formats("panels")
    assert open_export(app, "head_sum") == formats("panels") * 2


@pytest.mark.parametrize(
    ("page", "link", "key"),
    [
        ("see/positions", {}, "positions_waves"),
        ("see/positions", {"positions_view": "rotation"}, "positions_circle"),
        ("understand/decoding", {}, "decoding_bars"),
        ("understand/decoding", {"decoding_view": "beams"}, "decoding_tree"),
    ],
)
def test_curves_bars_and_trees_can_be_exported(new_app, page, link, key):
    assert open_export(new_app(page=page, **link), key) == formats("figure")


def test_a_file_is_named_after_model_and_picture():
    with in_a_session({boxes.MODEL: "/models/Mini LM"}):
        assert downloads.file_name("positions_waves") == "Mini-LM-positions-waves"
    with in_a_session({boxes.MODEL: "猫/../x:y"}):
        assert set(downloads.file_name("encoder-L2-H5")) <= set("xyencoder-LH25.")


@pytest.mark.parametrize(("key", "about"), [("head_sum", "en-zh: a b"), ("positions_waves", ""), ("lab_x", "")])
def test_a_picture_is_described_by_model_and_sentence_unless_it_is_of_a_formula(monkeypatch, key, about):
    monkeypatch.setattr(boxes, "model", lambda: None)
    monkeypatch.setattr(boxes, "source", lambda: "a b")
    assert downloads._about(key) == about


@pytest.fixture
def woken(monkeypatch):
    """The sessions that were woken, in a session whose browser is connected."""
    sessions = []
    monkeypatch.setattr(other_sessions, "own_session", lambda: "mine")
    monkeypatch.setattr(other_sessions, "is_connected", lambda session: True)
    monkeypatch.setattr(other_sessions, "wake", sessions.extend)
    with in_a_session({}):
        yield sessions


@pytest.mark.usefixtures("woken")
def test_a_file_is_made_as_long_work_and_counts_for_its_session(monkeypatch):
    requests, admission = [], Admission(at_once=1)
    run = admission.run
    monkeypatch.setattr(downloads, "ADMISSION", admission)
    monkeypatch.setattr(admission, "run", lambda *args, **options: requests.append(options) or run(*args, **options))
    make = downloads.made(lambda: b"file", key="a", place="attention")
    assert requests == []
    assert make() == b"file"
    assert (requests[0]["session"], requests[0]["kind"]) == ("mine", "long")


def test_the_page_says_once_why_a_file_was_not_made(woken):
    shown = []

    def refuse():
        raise BudgetError("It holds {n} numbers: take fewer.", n=7)

    with pytest.raises(BudgetError):
        downloads.made(refuse, key="a", place="attention")()
    assert woken == ["mine"], "its page runs again"
    for _ in range(2):
        downloads.tell("attention", SimpleNamespace(text=shown.append))
    assert shown == ["It holds 7 numbers: take fewer."]


@pytest.mark.usefixtures("woken")
def test_no_file_is_made_for_a_session_that_has_left(monkeypatch):
    monkeypatch.setattr(other_sessions, "is_connected", lambda session: False)
    monkeypatch.setattr(downloads, "ADMISSION", Admission(at_once=1))
    with pytest.raises(BusyError, match="Nobody waits"):
        downloads.made(lambda: time.sleep(0.8), key="a", place="attention")()
