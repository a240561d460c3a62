"""The notice that a visitor sees while waiting in the queue."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.support import captions, texts
from visformer.app.widgets.waiting import queue_notice


def page():
    import streamlit as st

    from visformer.app.widgets.waiting import queue_notice

    st.session_state["lang"] = st.query_params.get("lang", "en")
    end = st.query_params["end"]
    try:
        with queue_notice() as show:
            for ahead in () if end == "no queue" else (3, 2):
                show(ahead)
            if end == "waits":
                st.stop()
            if end == "fails":
                raise KeyError("raised by the model")
            show(None)
    except KeyError:
        st.text("failed")


def run(**query):
    app = AppTest.from_function(page)
    app.query_params.update(query)
    return app.run()


def test_the_number_of_requests_ahead_is_shown():
    for lang, text in (("en", "In the queue: 2 ahead of you."), ("zh", "排队中：前面还有 2 个。")):
        assert captions(run(end="waits", lang=lang)) == [text]


def test_the_notice_disappears():
    for end in ("computes", "fails"):
        app = run(end=end)
        assert not app.caption, end
        assert texts(app) == ["failed"] * (end == "fails")


def test_without_a_queue_nothing_is_sent():
    assert len(run(end="no queue").main) == 0


def test_outside_a_page_nothing_is_shown(monkeypatch):
    monkeypatch.setattr("streamlit.empty", lambda: pytest.fail("something is shown"))
    with queue_notice() as show:
        show(3)
