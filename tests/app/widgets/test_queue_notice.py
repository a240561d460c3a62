"""The notice that a visitor sees while waiting in the queue."""

import pytest
from streamlit.testing.v1 import AppTest

from visformer.app.widgets.queue_notice import notice


def page():
    import streamlit as st

    from visformer.app.widgets.queue_notice import notice

    st.session_state["lang"] = st.query_params.get("lang", "en")
    ends = st.query_params["ends"]
    try:
        with notice() as look:
            for before in () if ends == "no queue" else (3, 2):
                look(before)
            if ends == "waits":
                st.stop()
            if ends == "fails":
                raise KeyError("the model's own")
            look(None)
    except KeyError:
        st.text("failed")


def run(**query):
    app = AppTest.from_function(page)
    app.query_params.update(query)
    return app.run()


@pytest.mark.parametrize(("lang", "text"), [("en", "In the queue: 2 ahead of you."), ("zh", "排队中：前面还有 2 个。")])
def test_the_place_in_the_queue_is_shown(lang, text):
    assert [caption.value for caption in run(ends="waits", lang=lang).caption] == [text]


@pytest.mark.parametrize("ends", ["computes", "fails"])
def test_the_notice_disappears(ends):
    app = run(ends=ends)
    assert not app.caption
    assert [text.value for text in app.text] == ["failed"] * (ends == "fails")


def test_without_a_queue_nothing_is_sent():
    assert len(run(ends="no queue").main) == 0


def test_outside_a_page_nothing_is_shown():
    with notice() as look:
        look(3)
