"""The export of a page: nothing is made while it is closed; open, it offers the formats of each picture."""

import threading
from types import SimpleNamespace

import pandas as pd
import pytest
import streamlit

from tests.app.support import captions, in_a_session
from visformer.app.serving.admission import Admission
from visformer.app.session import boxes, run
from visformer.app.session.page import enter
from visformer.app.streamlit_private import other_sessions
from visformer.app.widgets import downloads
from visformer.errors import BudgetError, BusyError
from visformer.export.formats import FORMATS
from visformer.panel import one_by_one
from visformer.system import limits
from visformer.web import page as html


def formats(kind, *contents):
    """Return the formats that the page offers for a trace, panels or a figure."""
    offered = [item for item in FORMATS if item.offers.get(kind)]
    return [item.name for item in offered if not contents or item.content in contents]


def offered(app):
    return [button.proto.label for button in app.get("download_button")]


def open_menu(app):
    app.session_state["saving"] = True
    app.run()
    assert not app.exception
    *files, state = offered(app)
    assert state in ("State", "状态")
    return files


def test_attention_can_be_exported_in_every_format(new_app, monkeypatch):
    monkeypatch.setattr(html, "page", lambda *_, **__: pytest.fail("made before it was requested"))
    app = new_app(lang="zh")
    assert offered(app) == []
    assert open_menu(app) == [*formats("trace"), "HTML（训练历程）"]
    pictures, numbers = ("、".join(formats("trace", content)) for content in ("picture", "numbers"))
    assert f"{pictures.removeprefix('PNG、')}：当前头；{numbers}：所有头的权重；HTML：整个探索界面。" in captions(app)


def test_the_explorer_at_every_moment_is_made_where_the_moments_were_kept(new_app, monkeypatch):
    asked = {}
    monkeypatch.setattr(downloads, "made", lambda make, **how: asked.update({how["place"]: make}) or (lambda: b""))
    app = new_app(model="mini-gpt@3", q="The boat was late.", layer="2", head="5", lang="zh")
    assert open_menu(app)[-1] == "HTML（训练历程）"
    page = asked["history"]().decode()
    assert page.count(' id="moment-') == 10
    assert "<small>mini-gpt</small>" in page and '<html lang="zh">' in page
    assert "HTML, its training" not in open_menu(new_app(model="untrained-16x2-enc1-dec1-ff32"))


def test_the_whole_model_is_offered_as_a_page_that_plays(new_app):
    app = new_app(page="see/map", lang="zh")
    assert open_menu(app) == formats("model") == ["HTML"]
    assert "HTML：这幅图，无需网络即可播放。" in captions(app)


def test_text_formats_are_not_offered_for_too_many_numbers(new_app, monkeypatch):
    monkeypatch.setattr(limits, "MAX_NUMBERS", 10)
    app = new_app()
    unlimited = [one.name for one in FORMATS if one.offers.get("trace") and not one.limited]
    assert open_menu(app) == [*unlimited, "HTML, its training"]
    [text] = [caption for caption in captions(app) if "too many for CSV" in caption]
    limited = " and ".join(one.name for one in FORMATS if one.limited)
    assert f"{limited}, which hold up to 10. safetensors holds all of them" in text


def test_the_formats_that_people_use_most_come_first(new_app):
    """PNG of the explorer is drawn by the browser, as it is on screen."""
    assert open_menu(new_app())[:3] == ["SVG", "PDF", "HTML"]
    assert open_menu(new_app(page="understand/head"))[:3] == ["PNG", "SVG", "PDF"]


def test_no_cell_or_name_of_a_table_becomes_a_formula(monkeypatch):
    files = []
    monkeypatch.setattr(streamlit, "download_button", lambda _label, make, *_given, **_named: files.append(make()))
    table = pd.DataFrame({"=1": ["=1+1", " @SUM(A1)", None], "n": [1, -2, 3], "share": [0.1, float("nan"), -1.5]})
    with in_a_session({}):
        downloads.csv(table, "answers")
    assert files == ["\ufeff'=1,n,share\r\n'=1+1,1,0.1\r\n' @SUM(A1),-2,\r\n,3,-1.5\r\n".encode()]


def test_a_page_has_one_row_for_all_its_panels_and_one_for_each_figure(new_app, monkeypatch):
    made = []
    monkeypatch.setattr(downloads, "file_of", lambda *args: made.append(args))
    monkeypatch.setattr(downloads, "made", lambda make, **_: make() or b"")
    app = new_app(page="understand/head")
    assert [one.proto.popover.label for one in app.get("popover")].count("Save") == 1
    assert open_menu(app) == formats("panels")
    (names,) = {tuple(panel.name for panel in one_by_one(shown)) for _, shown, _ in made}
    assert {"q", "k", "pattern", "v", "heads"} <= {*names}, "those of both columns"
    assert open_menu(new_app(page="understand/decoding")) == [*formats("figure"), *formats("panels")]


def test_the_head_is_drawn_and_named_as_it_is_viewed(new_app, monkeypatch):
    drawn, names = [], []
    monkeypatch.setattr(downloads, "file_of", lambda name, shown, how: drawn.append(how.view))

    def made(make, *, place, **_):
        return make() or b"" if place == "attention" else b""  # not the history, which takes seconds

    monkeypatch.setattr(downloads, "made", made)
    monkeypatch.setattr(streamlit, "download_button", lambda label, data, name, *_, **__: names.append(name))
    for view, viewed, file in (
        ("heatmap", "heatmap", "cross-L3-H2"),
        ("layer", "heatmap", "cross-L3-H2"),
        ("arcs", "arcs", "cross-L3-H2-arcs"),
    ):
        drawn.clear(), names.clear()
        app = new_app(stack="cross", layer="3", head="2", view=view)
        app.session_state["saving"] = True
        assert not app.run().exception
        assert {*drawn} == {viewed}, view
        assert names[:3] == [f"en-zh-{file}.svg", f"en-zh-{file}.pdf", "en-zh-attention.html"], view


def test_curves_and_trees_can_be_exported(new_app):
    for where in ({"page": "see/positions"}, {"page": "understand/decoding", "decoding_view": "beams"}):
        assert open_menu(new_app(**where)) == formats("figure"), where


@pytest.mark.parametrize(
    ("page", "view", "is_of_model"),
    [
        *(("head", "", True), ("positions", "model", True), ("positions", "", False), ("positions", "rotary", False)),
        *(("lab", "", False), ("atlas", "", False), ("learning", "", False), ("learning", "history", False)),
    ],
)
def test_a_file_has_the_model_and_the_sentence_if_its_numbers_are_theirs(page, view, is_of_model):
    with in_a_session({boxes.MODEL: "/models/Mini LM", boxes.SOURCE: "a b"}):
        enter(page)
        run.begin(run.Run(choices={f"{page}_view": view or None}))
        assert downloads.file_name("x_y") == ("Mini-LM-x-y" if is_of_model else "x-y")
        assert downloads._about() == ("Mini LM: a b" if is_of_model else "")


def test_a_file_name_has_characters_that_every_system_accepts():
    with in_a_session({boxes.MODEL: "猫/../x:y"}):
        assert set(downloads.file_name("encoder-L2-H5")) <= set("xyencoder-LH25.")


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
    has_been_told = threading.Event()
    with pytest.raises(BusyError, match="Nobody waits"):
        downloads.made(lambda: has_been_told.wait(60), key="a", place="attention")()
    has_been_told.set()
