"""The notice that a visitor sees while waiting in the queue."""

import pytest
from streamlit.testing.v1 import AppTest

from visformer.app.widgets.queue_notice import notice


def waiting():
    import streamlit as st

    from visformer.app.widgets.queue_notice import notice

    st.session_state["lang"] = st.query_params.get("lang", "en")
    with notice() as look:
        for before in (3, 2):
            look(before)
        st.stop()  # the queue does not move


def through():
    import streamlit as st

    from visformer.app.widgets.queue_notice import notice

    try:
        with notice() as look:
            for before in (3, 2, None):
                look(before)
            if "fails" in st.query_params:
                raise KeyError("the model's own")
    except KeyError:
        st.text("failed")


def at_once():
    from visformer.app.widgets.queue_notice import notice

    with notice():
        pass


@pytest.mark.parametrize(("lang", "text"), [("en", "In the queue: 2 before you."), ("zh", "排队中：前面还有 2 个。")])
def test_the_place_in_the_queue_is_shown(lang, text):
    app = AppTest.from_function(waiting)
    app.query_params["lang"] = lang
    assert [caption.value for caption in app.run().caption] == [text]


@pytest.mark.parametrize("query", ["", "fails"])
def test_the_notice_disappears(query):
    app = AppTest.from_function(through)
    if query:
        app.query_params[query] = "1"
    app.run()
    assert not app.caption
    assert [text.value for text in app.text] == ["failed"] * bool(query)


def test_without_a_queue_nothing_is_sent():
    assert len(AppTest.from_function(at_once).run().main) == 0


def test_outside_a_page_nothing_is_shown():
    with notice() as look:
        look(3)
