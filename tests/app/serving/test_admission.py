"""Admission to the model: how many computations at once, in which order, and who waits, shares or is rejected."""

import threading
import time

import pytest

from tests.app.serving.support import cannot_start
from tests.waiting import until
from visformer.app.serving.admission import BOUNDS, Admission, Histogram, _Flight
from visformer.app.serving.turns import Visitor
from visformer.errors import BusyError, DeadlineError
from visformer.system import cancellation, limits

SECONDS = 60  # only ends a test that hangs


class Left(BaseException):
    """The visitor has left."""


def leave(ahead):
    raise Left


def at_once(ahead):
    """Fail where the request has to wait for others; ``ahead`` is None while it is computed."""
    assert ahead is None, f"{ahead} are ahead"


class Visitors:
    """Visitors, each in a thread of their own."""

    def __init__(self, admission):
        self.admission, self.results, self.threads = admission, {}, []

    def request(self, name, key, work, on_wait=lambda ahead: None, **options):
        def run():
            try:
                self.results[name] = self.admission.run(key, work, on_wait=on_wait, **options)
            except BaseException as error:
                self.results[name] = error

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join(SECONDS)
        return self.results


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr("visformer.app.serving.admission.PATIENCE", 0.02)
    monkeypatch.setattr("visformer.app.serving.admission.POLL", 0.01)


@pytest.fixture
def admission():
    return Admission(at_once=1, queue=2)


@pytest.fixture
def gate():
    """An event on which the running computation waits."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def visitors(admission, gate):
    """Visitors, of whom the first has a computation running that waits for the gate."""
    visitors = Visitors(admission)
    visitors.request("first", "long", lambda: gate.wait(SECONDS) and "long")
    until(lambda: admission.running == 1)
    return visitors


def test_a_lone_visitor_sees_no_notice(admission, monkeypatch):
    monkeypatch.setattr("visformer.app.serving.admission.PATIENCE", SECONDS)
    assert admission.run("a", lambda: 1, on_wait=pytest.fail) == 1
    assert admission.counts.outcomes["computed"] == sum(admission.counts.outcomes.values()) == 1


def test_no_more_computations_run_at_once_than_allowed(gate):
    admission, begun = Admission(at_once=2, queue=30), []

    def work():
        begun.append(1)
        gate.wait(SECONDS)
        return threading.current_thread().name

    visitors = Visitors(admission)
    for i in range(20):
        visitors.request(i, i, work)
    until(lambda: admission.running + admission.waiting == 20 and len(begun) == 2)
    assert admission.running == 2
    gate.set()
    threads = visitors.wait()
    assert len(threads) == len(begun) == 20
    assert len(set(threads.values())) <= 2, "OpenMP would create a team for each thread that computes"


def test_concurrent_requests_for_the_same_key_are_computed_once(admission, visitors, gate):
    runs = []
    for i in range(5):
        visitors.request(i, "same", lambda: runs.append(1) or "result")
    until(lambda: admission.counts.outcomes["shared"] == 4)
    assert admission.waiting == 1, "joining another's request takes no place in the queue"
    gate.set()
    results = visitors.wait()
    assert runs == [1]
    assert [results[i] for i in range(5)] == ["result"] * 5


def test_a_full_queue_rejects_with_an_error(admission, visitors, gate):
    for name in ("a", "b"):
        visitors.request(name, name, lambda: "in time")
    until(lambda: admission.waiting == 2)
    with pytest.raises(BusyError, match="2 are waiting"):
        admission.run("c", lambda: "never", on_wait=at_once)
    visitors.request("d", "a", lambda: "never")  # joining another's request is still possible
    until(lambda: admission.counts.outcomes["shared"] == 1)
    gate.set()
    results = visitors.wait()
    assert results["a"] == results["b"] == results["d"] == "in time"
    assert admission.counts.outcomes["rejected"] == 1
    assert admission.run("c", lambda: "now", on_wait=at_once) == "now"


def test_an_error_reaches_all_callers_and_the_next_request_tries_again(admission, visitors, gate):
    def fail():
        raise TimeoutError("its own, which nobody takes for a wait that is over")

    for i in range(3):
        visitors.request(i, "bad", fail)
    until(lambda: admission.counts.outcomes["shared"] == 2)
    gate.set()
    results = visitors.wait()
    assert [str(results[i])[:7] for i in range(3)] == ["its own"] * 3
    assert admission.counts.outcomes["failed"] == 1
    assert admission.run("bad", lambda: "works", on_wait=at_once) == "works"


def test_a_waiting_visitor_sees_how_many_are_ahead_and_who_came_first_is_served_first(admission, visitors, gate):
    ahead, order = {"a": [], "b": []}, []
    for name in ahead:
        visitors.request(name, name, lambda name=name: order.append(name), on_wait=ahead[name].append)
        until(lambda name=name: ahead[name])
    assert [ahead["a"][0], ahead["b"][0]] == [1, 2]
    gate.set()
    visitors.wait()
    assert order == ["a", "b"]
    assert admission.waiting == admission.running == 0


def test_nothing_is_computed_for_a_visitor_who_has_left(admission, visitors, gate):
    runs = []
    visitors.request("gone", "a", lambda: runs.append(1), on_wait=leave)
    until(lambda: "gone" in visitors.results)
    assert isinstance(visitors.results["gone"], Left)
    assert admission.waiting == 0
    assert admission.counts.outcomes["left"] == 1
    gate.set()
    visitors.wait()
    assert runs == []


def test_a_leaving_visitor_does_not_cancel_the_result_of_others(admission, visitors, gate):
    leaving = threading.Event()

    def on_wait(ahead):
        if leaving.is_set():
            raise Left

    visitors.request("gone", "a", lambda: "result", on_wait=on_wait)
    until(lambda: admission.waiting == 1)
    visitors.request("stays", "a", lambda: "never")
    until(lambda: admission.counts.outcomes["shared"] == 1)
    leaving.set()
    until(lambda: "gone" in visitors.results)
    assert admission.waiting == 1
    gate.set()
    assert visitors.wait()["stays"] == "result"


def test_durations_are_counted(admission, visitors, gate):
    visitors.request("a", "a", lambda: time.sleep(0.01))
    until(lambda: admission.waiting == 1)
    time.sleep(0.02)
    gate.set()
    visitors.wait()
    until(lambda: sum(admission.counts.computed.counts) == 2)
    assert admission.counts.queued.total > 0.019, "of the second"
    assert admission.counts.computed.total > 0.029, "of both"


def test_the_bounds_of_a_histogram_are_inclusive():
    histogram = Histogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] * 1.001, BOUNDS[-1], BOUNDS[-1] + 1):
        histogram.add(seconds)
    assert histogram.counts == [2, 1] + [0] * (len(BOUNDS) - 3) + [1, 1]


def test_a_request_joins_the_computation_that_was_begun_for_it(gate):
    admission, runs = Admission(at_once=1), []

    def work():
        gate.wait(SECONDS)
        runs.append(1)
        return "done"

    begun = admission.begin("a", work)
    assert admission.begin("a", work) is begun
    assert admission.begin("b", work) is None, "no thread is free"
    visitors = Visitors(admission)
    visitors.request("first", "a", work)
    until(lambda: admission._flights["a"].callers)
    gate.set()
    assert visitors.wait() == {"first": "done"}
    assert begun.result() == "done"
    assert runs == [1]
    assert (admission.counts.outcomes["computed"], admission.counts.outcomes["shared"]) == (1, 0)


def test_requests_start_no_new_threads(monkeypatch):
    admission = Admission(at_once=2)
    monkeypatch.setattr(threading.Thread, "start", cannot_start)
    assert [admission.run(n, lambda n=n: 2 * n, on_wait=at_once) for n in range(4)] == [0, 2, 4, 6]
    assert admission.running == 0


def work_forever(stopped):
    """Work until cancelled, then set an event."""
    try:
        while True:
            cancellation.check()
            time.sleep(0.001)
    finally:
        stopped.set()


def test_work_is_stopped_at_its_deadline_with_an_error():
    admission, stopped = Admission(at_once=1, seconds=0.02), threading.Event()
    with pytest.raises(DeadlineError, match=r"longer than 0\.02 seconds"):
        admission.run("endless", lambda: work_forever(stopped), on_wait=lambda ahead: None)
    assert stopped.wait(SECONDS)
    assert admission.run("next", lambda: "answer", on_wait=at_once) == "answer"


def test_work_is_stopped_when_nobody_waits_for_it_any_more(admission):
    stopped, running = threading.Event(), threading.Event()

    def leave_once_running(ahead):
        if running.is_set():
            raise Left

    def work():
        running.set()
        work_forever(stopped)

    with pytest.raises(Left):
        admission.run("endless", work, on_wait=leave_once_running)
    assert stopped.wait(SECONDS)
    until(lambda: admission.running == 0)
    assert (admission.counts.outcomes["left"], admission.counts.outcomes["failed"]) == (1, 0)
    assert admission.run("endless", lambda: "computed anew", on_wait=at_once) == "computed anew"


def test_work_continues_while_somebody_else_waits_for_it(admission, visitors, gate):
    with pytest.raises(Left):
        admission.run("long", pytest.fail, on_wait=leave)
    gate.set()
    assert visitors.wait()["first"] == "long"


def test_a_computation_whose_visitors_have_left_does_not_end_the_one_that_others_wait_for(gate):
    admission, ended = Admission(at_once=2), threading.Event()
    visitors = Visitors(admission)
    with pytest.raises(Left):
        admission.run("sentence", lambda: ended.wait(SECONDS), on_wait=leave)
    visitors.request("first", "sentence", lambda: gate.wait(SECONDS) and "computed anew")
    until(lambda: admission.running == 2)
    ended.set()
    until(lambda: admission.running == 1)
    visitors.request("second", "sentence", pytest.fail)
    until(lambda: admission.counts.outcomes["shared"] == 1)
    gate.set()
    assert visitors.wait() == dict.fromkeys(("first", "second"), "computed anew")


def test_the_time_for_which_nothing_was_finished_is_known(gate, clock):
    admission = Admission(at_once=1, seconds=5)
    visitors = Visitors(admission)
    visitors.request("deaf", "deaf", lambda: gate.wait(SECONDS))
    until(lambda: admission.running == 1)
    clock.now += 5
    assert admission.stuck_seconds == 0, "it is not late yet"
    clock.now += 2
    assert admission.stuck_seconds == 2
    gate.set()
    visitors.wait()
    assert admission.stuck_seconds == 0


def test_what_takes_long_has_longer_by_the_clock_as_long_as_it_does_not_compute(gate, clock):
    admission = Admission(at_once=1, seconds=5, long_seconds=20)
    visitors = Visitors(admission)
    visitors.request("long", "long", lambda: gate.wait(SECONDS) and not cancellation.check() and "made", kind="long")
    until(lambda: admission.running == 1)
    visitors.request("ordinary", "endless", lambda: work_forever(threading.Event()))
    until(lambda: admission.running == 2)
    clock.now += 10
    until(lambda: "ordinary" in visitors.results)  # its deadline is looked at after that of the long one
    assert isinstance(visitors.results["ordinary"], DeadlineError)
    gate.set()
    assert visitors.wait()["long"] == "made"


def test_work_ends_once_it_has_computed_for_too_long(admission, monkeypatch):
    monkeypatch.setattr(limits, "WORK_SECONDS", 0.02)
    threads = []

    def compute():
        threads.append(threading.current_thread())
        while True:
            cancellation.check()

    for kind in ("ordinary", "long"):
        with pytest.raises(DeadlineError, match=r"longer than 0\.02 seconds"):
            admission.run("endless", compute, on_wait=at_once, kind=kind)
    assert threading.current_thread() not in threads
    assert admission.run("next", lambda: cancellation.check() or "answer", on_wait=at_once) == "answer"


def test_long_work_and_ordinary_sentences_do_not_delay_each_other(gate):
    for kind, other in (("long", "ordinary"), ("ordinary", "long")):
        admission = Admission(at_once=1)
        visitors = Visitors(admission)
        for name in ("a", "b"):
            visitors.request(name, name, lambda: gate.wait(SECONDS), kind=kind)
        until(lambda admission=admission: (admission.running, admission.waiting) == (1, 1))
        assert admission.run("other", lambda: "at once", on_wait=at_once, kind=other) == "at once"
    gate.set()


def waits(admission, session, key, work=lambda: None, *, kind="ordinary"):
    """Ask without waiting; the session's first letter is its address."""
    return admission._join(_Flight(key, work, [Visitor(session[:1], session)], kind))


def test_visitors_take_turns(gate):
    """Everybody's first comes before anybody's second."""
    admission, order = Admission(at_once=1), []
    waits(admission, "somebody", "long", lambda: gate.wait(SECONDS))
    for key in ("a1", "a2", "a3", "b1"):
        last = waits(admission, key[0], key, lambda key=key: order.append(key))
    gate.set()
    last.result.result(SECONDS)
    until(lambda: admission.running == 0)
    assert order == ["a1", "b1", "a2", "a3"]


def test_who_comes_again_and_again_keeps_nobody_waiting(admission, visitors, gate):
    """Each time as another session, and more of them than there is room for."""
    order = []
    flood = [waits(admission, f"flood{i}", f"flood{i}", lambda: order.append("flood")) for i in range(2)]
    light = waits(admission, "light", "light", lambda: order.append("light"))
    with pytest.raises(BusyError, match="2 are waiting"):
        flood[1].result.result(SECONDS)
    gate.set()
    light.result.result(SECONDS)
    visitors.wait()
    until(lambda: admission.running == 0)
    assert order == ["flood", "light"]
    assert admission.counts.outcomes["rejected"] == 1


def test_who_leaves_is_charged_all_the_same(gate):
    admission, order = Admission(at_once=1), []
    hasty = waits(admission, "hasty", "endless", lambda: work_forever(threading.Event()))
    time.sleep(0.01)
    admission._leave(hasty.callers[0], hasty)
    until(lambda: admission.running == 0)
    waits(admission, "somebody", "long", lambda: gate.wait(SECONDS))
    last, _ = (waits(admission, name, name, lambda name=name: order.append(name)) for name in ("hasty", "calm"))
    gate.set()
    last.result.result(SECONDS)
    until(lambda: admission.running == 0)
    assert order == ["calm", "hasty"]


def test_new_visitors_draw_in_half_of_the_places(admission):
    """However many come, pages of those who are here go on."""
    admission = Admission(pages=4)
    admission.draw("here")()
    drawn = [Visitors(admission) for _ in range(9)]
    for i, visitor in enumerate(drawn):
        visitor.threads.append(threading.Thread(target=admission.draw, args=(f"new{i}",), daemon=True))
        visitor.threads[0].start()
    until(lambda: len(admission._computing) == 2 and len(admission._waiting) == 7)
    admission.draw("here")()


def test_the_number_of_computations_of_a_session_is_limited(gate):
    admission = Admission(at_once=1, queue=99)
    visitors = Visitors(admission)
    for i in range(limits.SHARE):
        visitors.request(i, i, lambda: gate.wait(SECONDS), session="greedy", kind=("ordinary", "long")[i % 2])
        until(lambda i=i: admission.running + admission.waiting == i + 1)
    with pytest.raises(BusyError, match=f"You have {limits.SHARE} computations waiting"):
        admission.run("more", lambda: "never", on_wait=at_once, session="greedy")
    visitors.request("joined", 0, lambda: "never", session="greedy")  # requested before: it takes no place
    visitors.request("other", "other", lambda: "done", session="other")
    until(lambda: admission.running + admission.waiting == limits.SHARE + 1)
    gate.set()
    assert visitors.wait()["other"] == "done"
    assert admission.run("more", lambda: "now", on_wait=at_once, session="greedy") == "now"
