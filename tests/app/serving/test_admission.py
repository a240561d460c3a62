"""What stands in front of the model."""

import threading
import time

import pytest

from visformer.app.serving import admission
from visformer.app.serving.admission import BOUNDS, Admission, Histogram
from visformer.errors import BusyError

SECONDS = 20  # until something that has to happen counts as not happening


class Left(BaseException):
    """A visitor goes away."""


def never(before):
    raise AssertionError("nobody was to be told anything")


class Askers:
    """Visitors, each in a thread of its own."""

    def __init__(self, desk):
        self.desk, self.found, self.threads = desk, {}, []

    def ask(self, name, key, work, on_wait=lambda before: None):
        def asking():
            try:
                self.found[name] = self.desk.run(key, work, on_wait=look)
            except BaseException as error:
                self.found[name] = error

        self.threads.append(threading.Thread(target=asking))
        self.threads[-1].start()

    def wait(self):
        for thread in self.threads:
            thread.join(SECONDS)
        return self.found


def no_thread(thread):
    """What Python does where there is no memory for one."""
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
    """Opens what is being computed."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def busy(desk, gate):
    """Somebody's long computation runs already."""
    askers = Askers(desk)
    askers.ask("first", "long", lambda: gate.wait(SECONDS) and "long")
    until(lambda: desk.running == 1)
    return askers


def test_a_lone_visitor_is_told_nothing(desk):
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

    askers = Askers(desk)
    for i in range(20):
        askers.ask(i, i, work)
    found = askers.wait()
    assert most == [2]
    assert len(found) == 20
    assert len(set(found.values())) <= 2, "OpenMP would make a team for each thread that ever computed"


def test_the_same_is_computed_once(desk, busy, gate):
    runs = []
    for i in range(5):
        busy.ask(i, "same", lambda: runs.append(1) or "result")
    until(lambda: desk.counts.outcomes["shared"] == 4)
    assert desk.waiting == 1, "who waits for another's takes no place"
    gate.set()
    found = busy.wait()
    assert runs == [1]
    assert [found[i] for i in range(5)] == ["result"] * 5


def test_first_come_first_served(desk, busy, gate):
    order = []
    for name in ("a", "b"):
        busy.ask(name, name, lambda name=name: order.append(name))
        until(lambda name=name: desk.waiting == {"a": 1, "b": 2}[name])
    gate.set()
    busy.wait()
    assert order == ["a", "b"]


def test_a_full_queue_turns_away_and_says_so(desk, busy, gate):
    for name in ("a", "b"):
        busy.ask(name, name, lambda: "in time")
    until(lambda: desk.waiting == 2)
    with pytest.raises(BusyError, match="2 are waiting"):
        desk.run("c", lambda: "never", on_wait=never)
    busy.ask("d", "a", lambda: "never")  # but waiting for another's costs nothing
    until(lambda: desk.counts.outcomes["shared"] == 1)
    gate.set()
    found = busy.wait()
    assert found["a"] == found["b"] == found["d"] == "in time"
    assert desk.counts.outcomes["rejected"] == 1
    assert desk.run("c", lambda: "now", on_wait=never) == "now"


def test_an_error_reaches_all_who_wait_and_is_tried_again(desk, busy, gate):
    def fail():
        raise KeyError("broken")

    for i in range(3):
        busy.ask(i, "bad", fail)
    until(lambda: desk.counts.outcomes["shared"] == 2)
    gate.set()
    found = busy.wait()
    assert [type(found[i]) for i in range(3)] == [KeyError] * 3
    assert desk.counts.outcomes["failed"] == 1
    assert desk.run("bad", lambda: "mended", on_wait=never) == "mended"


def test_a_timeout_of_the_work_itself_is_an_error_like_any_other(desk):
    def fail():
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        desk.run("a", fail, on_wait=never)


def test_who_waits_is_told_how_many_come_first(desk, busy, gate):
    told = {"a": [], "b": []}
    for name in told:
        busy.ask(name, name, lambda: None, on_wait=told[name].append)
        until(lambda name=name: told[name])
    assert told["a"][0] == 1
    assert told["b"][0] == 2
    gate.set()
    busy.wait()
    assert desk.waiting == desk.running == 0


def leave(before):
    raise Left


def test_nothing_is_computed_for_who_has_left(desk, busy, gate):
    runs = []
    busy.ask("gone", "a", lambda: runs.append(1), on_wait=leave)
    until(lambda: "gone" in busy.found)
    assert isinstance(busy.found["gone"], Left)
    assert desk.waiting == 0
    assert desk.counts.outcomes["left"] == 1
    gate.set()
    busy.wait()
    assert runs == []


def test_who_leaves_takes_nobodys_result_away(desk, busy, gate):
    going = threading.Event()

    def look(before):
        if going.is_set():
            raise Left

    busy.ask("gone", "a", lambda: "result", on_wait=look)
    until(lambda: desk.waiting == 1)
    busy.ask("stays", "a", lambda: "never")
    until(lambda: desk.counts.outcomes["shared"] == 1)
    going.set()
    until(lambda: "gone" in busy.found)
    assert desk.waiting == 1
    gate.set()
    assert busy.wait()["stays"] == "result"


def test_who_leaves_while_it_is_computed_holds_nobody_up(desk, gate):
    askers = Askers(desk)
    askers.ask("gone", "long", lambda: gate.wait(SECONDS), on_wait=leave)
    until(lambda: "gone" in askers.found)
    askers.ask("next", "b", lambda: "done")
    until(lambda: desk.waiting == 1)
    gate.set()
    assert askers.wait()["next"] == "done"


def test_times_are_counted(desk, busy, gate):
    busy.ask("a", "a", lambda: time.sleep(0.03))
    time.sleep(0.05)
    gate.set()
    busy.wait()
    until(lambda: sum(desk.counts.computed.counts) == 2)
    assert desk.counts.queued.total > 0.04
    assert desk.counts.computed.total > 0.07


def test_a_histogram_counts_what_is_at_most_a_bound():
    histogram = Histogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] * 1.001, BOUNDS[-1], BOUNDS[-1] + 1):
        histogram.add(seconds)
    assert histogram.counts == [2, 1] + [0] * (len(BOUNDS) - 3) + [1, 1]
    assert sum(histogram.counts) == 5


def test_what_is_begun_is_joined_and_counts_once():
    desk, go = Admission(at_once=1), threading.Event()
    ran = []

    def work():
        go.wait(SECONDS)
        ran.append(1)
        return "done"

    begun = desk.begin("a", work)
    assert desk.begin("a", work) is begun
    assert desk.begin("b", work) is None, "no thread is free"
    askers = Askers(desk)
    askers.ask("first", "a", work)
    while not desk._flights["a"].callers:
        time.sleep(0.001)
    go.set()
    askers.wait()
    assert askers.found == {"first": "done"}
    assert begun.result() == "done"
    assert ran == [1]
    assert (desk.counts.outcomes["computed"], desk.counts.outcomes["shared"]) == (1, 0)


def test_what_is_asked_for_needs_no_thread_that_is_not_there(monkeypatch):
    desk = Admission(at_once=2)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert [desk.run(n, lambda n=n: 2 * n, on_wait=never) for n in range(4)] == [0, 2, 4, 6]
    assert desk.running == 0
