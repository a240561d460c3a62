"""Admission to the model."""

import threading
import time
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visformer.app.serving import admission
from visformer.app.serving.admission import BOUNDS, Admission, Histogram
from visformer.app.serving.recent_use import RecentUse
from visformer.errors import BusyError, DeadlineError
from visformer.system import cancellation, limits

SECONDS = 20  # timeout


class Left(BaseException):
    """The visitor leaves."""


def never(ahead):
    raise AssertionError("nobody should see a notice")


class Visitors:
    """Visitors, each in a thread of their own."""

    def __init__(self, desk):
        self.desk, self.results, self.threads = desk, {}, []

    def request(self, name, key, work, on_wait=lambda ahead: None, **how):
        def run():
            try:
                self.results[name] = self.desk.run(key, work, on_wait=on_wait, **how)
            except BaseException as error:
                self.results[name] = error

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join(SECONDS)
        return self.results


def no_thread(thread):
    """Fail as Python does when there is no memory for a thread."""
    raise RuntimeError("can't start new thread")


def until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(admission, "PATIENCE", 0.02)
    monkeypatch.setattr(admission, "POLL", 0.01)


@pytest.fixture
def desk():
    return Admission(at_once=1, queue=2)


@pytest.fixture
def gate():
    """An event on which the running computation waits."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def busy(desk, gate):
    """Visitors, of whom the first has a long computation running."""
    visitors = Visitors(desk)
    visitors.request("first", "long", lambda: gate.wait(SECONDS) and "long")
    until(lambda: desk.running == 1)
    return visitors


def test_a_lone_visitor_sees_no_notice(desk):
    assert desk.run("a", lambda: 1, on_wait=never) == 1
    assert desk.counts.outcomes["computed"] == sum(desk.counts.outcomes.values()) == 1


def test_never_more_at_once_than_allowed():
    desk, lock, now, most = Admission(at_once=2, queue=30), threading.Lock(), [0], [0]

    def work():
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1
        return threading.current_thread().name

    visitors = Visitors(desk)
    for i in range(20):
        visitors.request(i, i, work)
    results = visitors.wait()
    assert most == [2]
    assert len(results) == 20
    assert len(set(results.values())) <= 2, "OpenMP would make a team for each thread that ever computed"


def test_concurrent_requests_for_the_same_key_are_computed_once(desk, busy, gate):
    runs = []
    for i in range(5):
        busy.request(i, "same", lambda: runs.append(1) or "result")
    until(lambda: desk.counts.outcomes["shared"] == 4)
    assert desk.waiting == 1, "joining another's request takes no place in the queue"
    gate.set()
    results = busy.wait()
    assert runs == [1]
    assert [results[i] for i in range(5)] == ["result"] * 5


def test_first_come_first_served(desk, busy, gate):
    order = []
    for name in ("a", "b"):
        busy.request(name, name, lambda name=name: order.append(name))
        until(lambda name=name: desk.waiting == {"a": 1, "b": 2}[name])
    gate.set()
    busy.wait()
    assert order == ["a", "b"]


def test_a_full_queue_rejects_with_an_error(desk, busy, gate):
    for name in ("a", "b"):
        busy.request(name, name, lambda: "in time")
    until(lambda: desk.waiting == 2)
    with pytest.raises(BusyError, match="2 are waiting"):
        desk.run("c", lambda: "never", on_wait=never)
    busy.request("d", "a", lambda: "never")  # but joining another's request is free
    until(lambda: desk.counts.outcomes["shared"] == 1)
    gate.set()
    results = busy.wait()
    assert results["a"] == results["b"] == results["d"] == "in time"
    assert desk.counts.outcomes["rejected"] == 1
    assert desk.run("c", lambda: "now", on_wait=never) == "now"


def test_an_error_reaches_all_callers_and_the_next_request_tries_again(desk, busy, gate):
    def fail():
        raise KeyError("broken")

    for i in range(3):
        busy.request(i, "bad", fail)
    until(lambda: desk.counts.outcomes["shared"] == 2)
    gate.set()
    results = busy.wait()
    assert [type(results[i]) for i in range(3)] == [KeyError] * 3
    assert desk.counts.outcomes["failed"] == 1
    assert desk.run("bad", lambda: "mended", on_wait=never) == "mended"


def test_a_timeout_raised_by_the_work_is_an_error_like_any_other(desk):
    def fail():
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        desk.run("a", fail, on_wait=never)


def test_a_waiting_visitor_sees_how_many_are_ahead(desk, busy, gate):
    told = {"a": [], "b": []}
    for name in told:
        busy.request(name, name, lambda: None, on_wait=told[name].append)
        until(lambda name=name: told[name])
    assert told["a"][0] == 1
    assert told["b"][0] == 2
    gate.set()
    busy.wait()
    assert desk.waiting == desk.running == 0


def leave(ahead):
    raise Left


def test_nothing_is_computed_for_a_visitor_who_has_left(desk, busy, gate):
    runs = []
    busy.request("gone", "a", lambda: runs.append(1), on_wait=leave)
    until(lambda: "gone" in busy.results)
    assert isinstance(busy.results["gone"], Left)
    assert desk.waiting == 0
    assert desk.counts.outcomes["left"] == 1
    gate.set()
    busy.wait()
    assert runs == []


def test_a_leaving_visitor_does_not_cancel_the_result_of_others(desk, busy, gate):
    leaving = threading.Event()

    def on_wait(ahead):
        if leaving.is_set():
            raise Left

    busy.request("gone", "a", lambda: "result", on_wait=on_wait)
    until(lambda: desk.waiting == 1)
    busy.request("stays", "a", lambda: "never")
    until(lambda: desk.counts.outcomes["shared"] == 1)
    leaving.set()
    until(lambda: "gone" in busy.results)
    assert desk.waiting == 1
    gate.set()
    assert busy.wait()["stays"] == "result"


def test_leaving_during_the_computation_blocks_nobody(desk, gate):
    visitors = Visitors(desk)
    visitors.request("gone", "long", lambda: gate.wait(SECONDS), on_wait=leave)
    until(lambda: "gone" in visitors.results)
    visitors.request("next", "b", lambda: "done")
    until(lambda: desk.waiting == 1)
    gate.set()
    assert visitors.wait()["next"] == "done"


def test_durations_are_counted(desk, busy, gate):
    busy.request("a", "a", lambda: time.sleep(0.03))
    time.sleep(0.05)
    gate.set()
    busy.wait()
    until(lambda: sum(desk.counts.computed.counts) == 2)
    assert desk.counts.queued.total > 0.04
    assert desk.counts.computed.total > 0.07


def test_the_bounds_of_a_histogram_are_inclusive():
    histogram = Histogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] * 1.001, BOUNDS[-1], BOUNDS[-1] + 1):
        histogram.add(seconds)
    assert histogram.counts == [2, 1] + [0] * (len(BOUNDS) - 3) + [1, 1]
    assert sum(histogram.counts) == 5


def test_a_request_joins_the_computation_that_was_begun_for_it():
    desk, go = Admission(at_once=1), threading.Event()
    ran = []

    def work():
        go.wait(SECONDS)
        ran.append(1)
        return "done"

    begun = desk.begin("a", work)
    assert desk.begin("a", work) is begun
    assert desk.begin("b", work) is None, "no thread is free"
    visitors = Visitors(desk)
    visitors.request("first", "a", work)
    while not desk._flights["a"].callers:
        time.sleep(0.001)
    go.set()
    visitors.wait()
    assert visitors.results == {"first": "done"}
    assert begun.result() == "done"
    assert ran == [1]
    assert (desk.counts.outcomes["computed"], desk.counts.outcomes["shared"]) == (1, 0)


def test_requests_start_no_new_threads(monkeypatch):
    desk = Admission(at_once=2)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert [desk.run(n, lambda n=n: 2 * n, on_wait=never) for n in range(4)] == [0, 2, 4, 6]
    assert desk.running == 0


def steps(done):
    """Work that takes for ever, step by step."""
    try:
        while True:
            cancellation.check()
            time.sleep(0.001)
    finally:
        done.set()


def test_work_ends_at_its_deadline_and_says_so():
    desk, done = Admission(at_once=1, seconds=0.1), threading.Event()
    with pytest.raises(DeadlineError, match=r"longer than 0\.1 seconds"):
        desk.run("endless", lambda: steps(done), on_wait=lambda before: None)
    assert done.wait(SECONDS)
    assert desk.run("next", lambda: "answer", on_wait=never) == "answer"


def test_work_ends_when_nobody_waits_for_it_any_more(desk):
    done, running = threading.Event(), threading.Event()

    def leave(before):
        if running.is_set():
            raise Left

    def work():
        running.set()
        steps(done)

    with pytest.raises(Left):
        desk.run("endless", work, on_wait=leave)
    assert done.wait(SECONDS)
    until(lambda: desk.running == 0)
    assert desk.run("endless", lambda: "computed anew", on_wait=never) == "computed anew"


def test_work_that_somebody_else_waits_for_goes_on(desk, busy, gate):
    with pytest.raises(Left):
        desk.run("long", pytest.fail, on_wait=lambda before: (_ for _ in ()).throw(Left))
    gate.set()
    assert busy.wait()["first"] == "long"


def test_it_is_known_for_how_long_nothing_gets_through(gate):
    desk = Admission(at_once=1, seconds=0.05)
    visitors = Visitors(desk)
    visitors.request("deaf", "deaf", lambda: gate.wait(SECONDS))
    assert desk.stuck_seconds == 0, "it is not late yet"
    until(lambda: desk.stuck_seconds > 0.01)
    gate.set()
    visitors.wait()
    until(lambda: desk.stuck_seconds == 0)


def test_what_takes_long_has_time_by_the_clock_as_long_as_it_does_not_compute():
    desk = Admission(at_once=1, seconds=0.05, long_seconds=SECONDS)
    assert desk.run("starved", lambda: time.sleep(0.4) or "made", on_wait=lambda before: None, is_long=True) == "made"


def test_work_ends_once_it_has_computed_for_too_long(desk, monkeypatch):
    monkeypatch.setattr(limits, "WORK_SECONDS", 0.1)

    def compute():
        while True:
            cancellation.check()

    begin = time.thread_time()
    for is_long in (False, True):
        with pytest.raises(DeadlineError, match=r"longer than 0\.1 seconds"):
            desk.run("endless", compute, on_wait=lambda before: None, is_long=is_long)
    assert time.thread_time() - begin < 0.1, "it was computed in another thread"
    assert desk.run("next", lambda: cancellation.check() or "answer", on_wait=never) == "answer"


def test_what_takes_long_keeps_no_ordinary_sentence_waiting(desk, gate):
    visitors = Visitors(desk)
    for name in ("a", "b"):
        visitors.request(name, name, lambda: gate.wait(SECONDS), is_long=True)
    until(lambda: (desk.running, desk.waiting) == (1, 1))
    assert desk.run("short", lambda: "at once", on_wait=never) == "at once"
    gate.set()
    visitors.wait()
    assert desk.running == 0


def test_ordinary_sentences_do_not_take_the_place_of_what_takes_long(desk, busy, gate):
    assert desk.run("long export", lambda: "made", on_wait=never, is_long=True) == "made"


def waits(desk, session, key, work=lambda: None, *, is_long=False):
    """Ask without waiting."""
    return desk._join(key, session, admission._Flight(work, is_long=is_long))


def used(desk, **seconds):
    for session, each in seconds.items():
        desk._recent.add([session], each, time.perf_counter())


def test_sessions_take_turns(gate):
    """Everybody's first comes before anybody's second."""
    desk, order = Admission(at_once=1), []
    waits(desk, "somebody", "long", lambda: gate.wait(SECONDS))
    for key in ("a1", "a2", "a3", "b1"):
        last = waits(desk, key[0], key, lambda key=key: order.append(key))
    gate.set()
    last.result.result(SECONDS)
    until(lambda: desk.running == 0)
    assert order == ["a1", "b1", "a2", "a3"]


@cache
def desk_with(at_once):
    return Admission(at_once=at_once, queue=3)


STEPS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 8), st.booleans()), max_size=12)


@given(
    before=STEPS,
    meanwhile=STEPS,
    heavy=st.lists(st.floats(0.1, 100), min_size=5, max_size=5),
    mine=st.floats(0, 0.09),
    at_once=st.integers(1, 3),
)
def test_who_has_computed_least_waits_for_what_is_being_computed_and_nothing_else(
    before, meanwhile, heavy, mine, at_once
):
    """Whatever the others ask for, join and leave, before and meanwhile."""
    desk, go, started = desk_with(at_once), threading.Semaphore(0), []
    desk._recent = RecentUse()
    used(desk, light=mine, **dict(zip("abcde", heavy, strict=True)))

    def ask(session, key):
        return waits(desk, session, key, lambda: started.append(key) or go.acquire(timeout=SECONDS))

    def act(steps):
        for session, key, leaves in steps:
            with suppress(BusyError):
                flight = ask(session, key)
                if leaves:
                    desk._leave(key, session, flight)

    for i in range(at_once):
        ask("abcde"[i], f"running {i}")
    act(before)
    light = ask("light", "mine")
    act(meanwhile)
    until(lambda: len(started) == at_once)
    go.release()
    until(lambda: len(started) > at_once)
    assert started[at_once] == "mine"
    go.release(100)
    assert light.result.result(SECONDS)
    until(lambda: desk.running == 0)


def test_the_one_who_has_computed_most_is_refused_where_too_many_wait(desk, busy):
    used(desk, greedy=9, busy=3, modest=1)
    greedy, modest = waits(desk, "greedy", "g"), waits(desk, "modest", "m")
    newcomer = waits(desk, "new", "n")
    with pytest.raises(BusyError, match="2 are waiting"):
        greedy.result.result(SECONDS)
    assert not newcomer.result.done() and not modest.result.done()
    with pytest.raises(BusyError, match="2 are waiting"):
        desk.run("b", lambda: "never", session="busy", on_wait=never)
    assert desk.counts.outcomes["rejected"] == 2
    assert desk.waiting == 2


def test_what_a_newcomer_asks_for_comes_first_though_somebody_else_has_asked_before(desk, busy, gate):
    order = []
    used(desk, greedy=9, modest=1)
    for session, key in (("greedy", "shared"), ("modest", "m"), ("new", "shared")):
        flight = waits(desk, session, key, lambda key=key: order.append(key))
    gate.set()
    flight.result.result(SECONDS)
    busy.wait()
    until(lambda: desk.running == 0)
    assert order == ["shared", "m"]


def test_who_leaves_has_computed_all_the_same(desk):
    done = threading.Event()
    flight = waits(desk, "hasty", "endless", lambda: steps(done))
    time.sleep(0.05)
    desk._leave("endless", "hasty", flight)
    assert done.wait(SECONDS)
    until(lambda: desk.running == 0)
    assert desk._recent.at(time.perf_counter())["hasty"] > 0.04


def test_a_session_has_its_share_and_no_more(gate):
    limited = Admission(at_once=1, queue=99)
    visitors = Visitors(limited)
    for i in range(limits.SHARE):
        visitors.request(i, i, lambda: gate.wait(SECONDS), session="greedy", is_long=bool(i % 2))
        until(lambda i=i: limited.running + limited.waiting == i + 1)
    with pytest.raises(BusyError, match=f"You have {limits.SHARE} computations waiting"):
        limited.run("more", lambda: "never", on_wait=never, session="greedy")
    visitors.request("joined", 0, lambda: "never", session="greedy")  # somebody's own request again
    visitors.request("other", "other", lambda: "done", session="other")
    until(lambda: limited.running + limited.waiting == limits.SHARE + 1)
    gate.set()
    assert visitors.wait()["other"] == "done"
    assert limited.run("more", lambda: "now", on_wait=never, session="greedy") == "now"
