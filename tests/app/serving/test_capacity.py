"""The limits on the number of visitors, and of pages drawn at a time."""

import threading
from contextlib import nullcontext, suppress

import pytest

from tests.app.support import picture_components, texts
from tests.waiting import until
from visformer.app.serving import capacity
from visformer.app.serving.admission import Admission
from visformer.system import limits


def set_visitors(monkeypatch, count, *, limit=2):
    monkeypatch.setattr(limits, "SESSIONS", limit)
    monkeypatch.setattr(capacity, "count", lambda: count)


def test_one_visitor_too_many_gets_an_error_and_is_admitted_later(new_app, monkeypatch):
    set_visitors(monkeypatch, 3)
    app = new_app(lang="zh")
    assert texts(app) == ["这台服务器最多同时接待 2 位访客，现在已经满了。请一分钟后再试。"]
    assert not picture_components(app)
    assert not app.exception
    assert not app.text_input
    set_visitors(monkeypatch, 2)  # this visitor included
    app.button(key="try_again").click().run()
    assert picture_components(app)
    assert app.text_input
    set_visitors(monkeypatch, 3)
    assert picture_components(app.run()), "who was admitted stays"


@pytest.fixture
def admission(monkeypatch):
    """Two places to draw."""
    admission = Admission(at_once=1, pages=2)
    monkeypatch.setattr(capacity, "ADMISSION", admission)
    return admission


def drawn(admission):
    """The number of pages that are being drawn."""
    return len(admission._in_progress("page"))


def draw(admission, most, begin, waits=nullcontext):
    """Draw a page in a thread, with a fragment inside; ``most``: the numbers of those that were drawn at a time."""

    def page():
        with capacity.drawing(), capacity.drawing():
            most.append(drawn(admission))
            with waits():
                begin.wait(60)
            assert capacity.is_drawing()
        assert not capacity.is_drawing()

    thread = threading.Thread(target=page, daemon=True)
    thread.start()
    return thread


def test_no_more_pages_are_drawn_at_a_time_than_there_are_places(admission):
    begun, go_on = [], threading.Event()
    threads = [draw(admission, begun, go_on) for _ in range(5)]
    until(lambda: len(admission._waiting) == 3 and len(begun) == 2)
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert len(begun) == 5 and max(begun) == 2 and drawn(admission) == 0


def test_a_page_that_waits_keeps_no_other_from_being_drawn(admission):
    begun, go_on = [], threading.Event()
    threads = [draw(admission, begun, go_on, capacity.aside) for _ in range(5)]
    until(lambda: len(begun) == 5)
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert drawn(admission) == 0


def test_an_error_gives_the_place_back_and_what_draws_no_page_has_none(admission):
    with capacity.aside():
        assert not capacity.is_drawing()
    for context in (capacity.drawing, capacity.aside):
        with suppress(ZeroDivisionError), capacity.drawing(), context():
            raise ZeroDivisionError
    assert not capacity.is_drawing() and drawn(admission) == 0


def test_pages_delay_no_sentence(admission):
    places = [admission.draw(), admission.draw()]
    assert admission.run("key", lambda: "at once", on_wait=lambda ahead: None, session="mine") == "at once"
    for give_back in places:
        give_back()
