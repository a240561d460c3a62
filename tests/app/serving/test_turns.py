"""Whose turn it is: how long one waits, whatever the others do."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visformer.app.serving.turns import Turns, Visitor

STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.floats(0.01, 5)), max_size=30)
"""Requests: an address, a session there, and the seconds that it takes."""


@dataclass(eq=False)
class Asked:
    """A request for something that takes so many seconds."""

    callers: list[Visitor]
    seconds: float
    requested: float = field(default=0.0)


class Queue:
    """One place, with its clock."""

    def __init__(self):
        self.turns, self.waiting, self.now, self.served = Turns(), [], 0.0, []

    def ask(self, visitor, seconds):
        self.now += 1e-6
        self.waiting.append(Asked([visitor], seconds, self.now))
        return self.waiting[-1]

    def serve(self):
        request = next(self.turns.order(self.waiting))
        self.waiting.remove(request)
        charged = self.turns.begin(request.callers)
        self.turns.end(charged, request.callers, request.seconds)
        self.served.append(request)
        return request


def asked(queue, steps):
    for address, session, seconds in steps:
        queue.ask(Visitor(address, f"{address}{session}"), seconds)


@given(before=STEPS, meanwhile=STEPS, served=st.integers(0, 30), knows=st.booleans())
def test_who_has_rested_waits_for_one_request_of_each_other_address_at_most(before, meanwhile, served, knows):
    """However many visitors ask there, old or new, before and after."""
    queue, mine = Queue(), Visitor("here", "mine")
    if knows:
        queue.ask(mine, 0.1)
        queue.serve()
        asked(queue, [("a", 0, 9.0)] * 2)
        queue.serve(), queue.serve()
    asked(queue, before)
    for _ in range(min(served, len(queue.waiting))):
        queue.serve()
    request, begun = queue.ask(mine, 0.1), len(queue.served)
    asked(queue, meanwhile)
    while queue.serve() is not request:
        pass
    between = [each.callers[0].address for each in queue.served[begun:-1]]
    assert len(between) == len({*between}), "one of each"


@given(others=STEPS)
def test_who_is_known_waits_for_one_request_of_all_new_visitors_at_the_same_address(others):
    queue, mine = Queue(), Visitor("a", "mine")
    queue.ask(mine, 0.01)
    queue.serve()
    queue.ask(Visitor("a", "first"), 1.0)
    queue.serve()
    new = [queue.ask(Visitor("a", f"new{i}"), seconds) for i, (_, _, seconds) in enumerate(others)]
    request = queue.ask(mine, 0.1)
    while queue.serve() is not request:
        pass
    assert sum(each in queue.served for each in new) <= 1


def come_back(queue, address, sessions):
    for session in 2 * [*range(sessions)]:
        queue.ask(Visitor(address, f"{address}{session}"), 0.001)
        queue.serve()


@given(steps=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.1, 1)), min_size=30, max_size=30))
def test_two_addresses_that_ask_all_the_time_get_the_same_seconds(steps):
    """Up to the longest request of each (Goyal, Vin and Cheng, 1996, theorem 1)."""
    queue = Queue()
    for address in "ab":
        come_back(queue, address, 3)
    for i, (address, seconds) in enumerate(steps):
        queue.ask(Visitor(address, f"{address}{i % 3}"), seconds)
    got = dict.fromkeys("ab", 0.0)
    while {each.callers[0].address for each in queue.waiting} == {"a", "b"}:
        got[queue.serve().callers[0].address] += queue.served[-1].seconds
        assert abs(got["a"] - got["b"]) <= 2.0


def test_the_share_of_an_address_grows_with_the_root_of_the_visitors_who_came_back():
    queue = Queue()
    come_back(queue, "hall", 35)
    come_back(queue, "home", 3)
    for i in range(200):
        queue.ask(Visitor("hall", f"hall{i % 35}"), 0.1)
        queue.ask(Visitor("home", f"home{i % 3}"), 0.1)
        queue.ask(Visitor("elsewhere", f"new{i}"), 0.1)
    served = [queue.serve().callers[0].address for _ in range(90)]
    assert {name: served.count(name) for name in ("hall", "home", "elsewhere")} == pytest.approx(
        {"hall": 60, "home": 20, "elsewhere": 10}, abs=2
    )


@given(steps=STEPS.filter(len))
def test_the_order_that_is_told_has_everybody_once_and_begins_with_who_is_next(steps):
    queue = Queue()
    asked(queue, steps)
    order = [*queue.turns.order(queue.waiting)]
    assert sorted(map(id, order)) == sorted(map(id, queue.waiting))
    refused = queue.turns.last(queue.waiting)
    most = max("abc", key=lambda name: sum(each.callers[0].address == name for each in order))
    counts = {name: sum(each.callers[0].address == name for each in order) for name in "abc"}
    assert counts[refused.callers[0].address] == counts[most], "the address that waits for most is refused one"
    assert queue.serve() is order[0]
