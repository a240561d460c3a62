"""Whose turn it is: each address has a share of the computing time, and at an address all visitors have equal ones.

Start-time fair queueing (Goyal, Vin and Cheng, 1996): each share has a clock, the seconds that were computed for it,
and the one whose clock is furthest behind goes first. Whoever comes, for the first time or after a pause, starts at the
clock of whoever was served last: nobody is better off for being new, or for having saved up.

Visitors for whom nothing was computed yet have one share together at their address: a browser that opens a page again
and again is new each time. The share of an address grows with the square root of the number of visitors who came back:
a lecture hall behind one address is not one visitor, and a thousand tabs of one visitor are not a thousand.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from visformer.system import limits

TYPICAL = 0.3
"""Seconds that a computation counts for until it is over."""

_NEW = ""


@dataclass(frozen=True)
class Visitor:
    """Whom computing time is charged to; "" is work that no session asked for, and what has no address."""

    address: str = ""
    session: str = ""


class Waiting(Protocol):
    """What waits for its turn."""

    requested: float
    """When, in seconds."""

    @property
    def callers(self) -> list[Visitor]:
        """Who wants it, at least one."""


_Waiting = TypeVar("_Waiting", bound=Waiting)


class _Share:
    """A share of the computing time, and those that it is divided into."""

    def __init__(self) -> None:
        self.clock = 0.0  # seconds
        self.parts: OrderedDict[str, _Share] = OrderedDict()  # who was served last stands last
        self.has_come_back = False
        self._served = 0.0  # the clock of the part that was served last

    @property
    def weight(self) -> float:
        return math.sqrt(1 + sum(part.has_come_back for part in self.parts.values()))

    def charge(self, seconds: float) -> None:
        self.clock += seconds / self.weight

    def clock_of(self, name: str) -> float:
        return max(self._served, self.parts[name].clock if name in self.parts else 0.0)

    def part(self, name: str) -> "_Share":
        part = self.parts.setdefault(name, _Share())
        part.clock = self.clock_of(name)
        self.parts.move_to_end(name)
        if len(self.parts) > limits.SESSIONS:
            self.parts.popitem(last=False)
        return part

    def serve(self, name: str) -> "_Share":
        part = self.part(name)
        self._served = part.clock
        part.charge(TYPICAL)
        return part


class Turns:
    """The shares of one queue. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._all = _Share()

    def order(self, waiting: Iterable[_Waiting]) -> Iterator[_Waiting]:
        """Yield these requests, the next one first, as if each took TYPICAL seconds."""
        left = sorted(waiting, key=lambda request: request.requested)
        taken: Counter[tuple[str, ...]] = Counter()
        while left:
            first: dict[str, float] = {}  # request of each address
            for request in left:
                for caller in request.callers:
                    first.setdefault(caller.address, request.requested)
            turns = [min(self._turn(caller, taken, first) for caller in request.callers) for request in left]
            request = left.pop(turns.index(min(turns)))
            yield request
            taken.update(name for caller in request.callers for name in ((caller.address,), self._names(caller)))

    def last(self, waiting: Iterable[_Waiting]) -> _Waiting:
        """Return the request to refuse where too many wait: the latest of whoever waits for most (McKenney, 1990)."""
        by_arrival = sorted(waiting, key=lambda request: request.requested)
        for length in (1, 2):
            names = [{self._names(caller)[:length] for caller in request.callers} for request in by_arrival]
            (most, _), *_ = Counter(name for each in names for name in each).most_common(1)
            by_arrival = [request for request, each in zip(by_arrival, names, strict=True) if most in each]
        return by_arrival[-1]

    def is_new(self, visitor: Visitor) -> bool:
        """Return whether nothing was computed for this visitor yet."""
        at = self._all.parts.get(visitor.address)
        return visitor.session != _NEW and (at is None or visitor.session not in at.parts)

    def begin(self, visitors: Iterable[Visitor]) -> list[_Share]:
        """Note that something is computed for these visitors from now on; returns the shares that it is charged to."""
        charged: dict[tuple[str, ...], _Share] = {}
        for visitor in visitors:
            names = self._names(visitor)
            at = charged.get(names[:1]) or self._all.serve(visitor.address)
            charged[names[:1]] = at
            charged[names] = charged.get(names) or at.serve(names[1])
            charged[names].has_come_back = names[1] != _NEW
        return [*charged.values()]

    def end(self, charged: Iterable[_Share], visitors: Iterable[Visitor], seconds: float) -> None:
        """Charge these shares with what was computed for the visitors, who are not new from now on."""
        for share in charged:
            share.charge(seconds - TYPICAL)
        for visitor in visitors:
            self._all.part(visitor.address).part(visitor.session)

    def _names(self, visitor: Visitor) -> tuple[str, str]:
        """Return the address, and at it the visitor or all that are new."""
        return visitor.address, _NEW if self.is_new(visitor) else visitor.session

    def _turn(
        self, visitor: Visitor, taken: Counter[tuple[str, ...]], first: dict[str, float]
    ) -> tuple[float, float, float]:
        address, name = self._names(visitor)
        at = self._all.parts.get(address, _Share())
        return (
            self._all.clock_of(address) + TYPICAL / at.weight * taken[address,],
            first[address],
            at.clock_of(name) + TYPICAL * taken[address, name],
        )
