"""Which heads' weights travel when: in the first message, in the second, or when the browser asks. Shapes only."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from visformer.system import limits

SMALL_BYTES = 400_000
"""All codes travel in the first message up to here: 52 tokens with the bundled model."""

FOCUS_BYTES = 1_000_000
"""A whole layer travels in the first message up to here, else one head."""

RESIDENT_BYTES = 2_400_000
"""All codes travel up to here, and the browser asks for nothing: 128 tokens with the bundled model."""

CODE_BYTES = 2

Shape = tuple[int, int, int, int]
"""(layer, head, query, key)."""

_WANTED = re.compile(r"([a-z_.]+)/([0-9]{1,4})/([0-9]{1,4}|mean|max)")


@dataclass(frozen=True)
class Focus:
    """A head of a stack, counted from 0."""

    stack: str
    layer: int
    head: int


@dataclass(frozen=True)
class Chunk:
    """Weights that travel in one piece.

    Args:
        stack: its name.
        layer: in it.
        head: the first.
        n: how many heads, one after another.
        over: "mean" or "max" over all heads of the layer, instead of a head.
    """

    stack: str
    layer: int
    head: int
    n: int
    over: str | None = None

    def __contains__(self, other: "Chunk") -> bool:
        same_layer = (self.stack, self.layer, self.over) == (other.stack, other.layer, other.over)
        return same_layer and self.head <= other.head and other.head + other.n <= self.head + self.n


@dataclass(frozen=True)
class Plan:
    """What each message holds.

    Args:
        shapes: of each stack, by its name.
        asked: the head in focus, from a browser; out of range, the nearest that is not, else the first of all.
    """

    shapes: Mapping[str, Shape]
    asked: Focus | None = None

    @property
    def n_bytes(self) -> int:
        """The size of all codes."""
        return CODE_BYTES * sum(prod(shape) for shape in self.shapes.values())

    @cached_property
    def focus(self) -> Focus:
        """The head in focus; there must be a stack."""
        if self.asked is None or self.asked.stack not in self.shapes:
            return Focus(next(iter(self.shapes)), 0, 0)
        n_layers, n_heads = self.shapes[self.asked.stack][:2]
        layer, head = min(max(self.asked.layer, 0), n_layers - 1), min(max(self.asked.head, 0), n_heads - 1)
        return Focus(self.asked.stack, layer, head)

    @cached_property
    def first(self) -> tuple[Chunk, ...]:
        """The first message's: everything, or the layer in focus, or the head in focus."""
        if self.n_bytes <= SMALL_BYTES:
            return tuple(self._layers())
        _, n_heads, n_queries, n_keys = self.shapes[self.focus.stack]
        whole_layer = CODE_BYTES * n_heads * n_queries * n_keys <= FOCUS_BYTES
        first, n = (0, n_heads) if whole_layer else (self.focus.head, 1)
        return (Chunk(self.focus.stack, self.focus.layer, first, n),)

    @cached_property
    def missing(self) -> tuple[Chunk, ...]:
        """What the first message does not hold."""
        held = {(chunk.stack, chunk.layer): chunk for chunk in self.first}
        found = []
        for layer in self._layers():
            first = held.get((layer.stack, layer.layer), Chunk(layer.stack, layer.layer, 0, 0))
            after = first.head + first.n
            found.append(Chunk(layer.stack, layer.layer, 0, first.head))
            found.append(Chunk(layer.stack, layer.layer, after, layer.n - after))
        return tuple(chunk for chunk in found if chunk.n > 0)

    @property
    def resident(self) -> bool:
        """Whether everything is sent without being asked for."""
        return self.n_bytes <= RESIDENT_BYTES or not self.missing

    def rest(self, wanted: Sequence[str]) -> tuple[Chunk, ...]:
        """The second message's: what is missing, or where that is too much, what of it is wanted, each once."""
        if self.resident:
            return self.missing
        found = (self._chunk(text) for text in wanted)
        return tuple(dict.fromkeys(c for c in found if c is not None and not any(c in held for held in self.first)))

    def _layers(self) -> Iterator[Chunk]:
        for stack, (n_layers, n_heads, *_) in self.shapes.items():
            yield from (Chunk(stack, layer, 0, n_heads) for layer in range(n_layers))

    def _chunk(self, text: str) -> Chunk | None:
        """What "stack/layer/head" stands for; None where there is no such head."""
        match = _WANTED.fullmatch(text)
        if match is None or match[1] not in self.shapes:
            return None
        stack, layer, (n_layers, n_heads, *_) = match[1], int(match[2]), self.shapes[match[1]]
        over = match[3] if match[3] in ("mean", "max") else None
        head = 0 if over else int(match[3])
        return Chunk(stack, layer, head, 1, over) if layer < n_layers and head < n_heads else None


def focus_from(start: Any) -> Focus | None:
    """The head of what is chosen at first; None where that names none."""
    if not isinstance(start, Mapping):
        return None
    stack, layer, head = start.get("stack"), start.get("layer"), start.get("head")
    if isinstance(stack, str) and isinstance(layer, int) and isinstance(head, int):
        return Focus(stack, layer, head)
    return None


def wanted_from(state: Mapping[str, Any]) -> tuple[str, ...]:
    """What the browser asked for, at most limits.MAX_WANTED of it; anything that is not such a request is left out.

    Whether there are such heads is for :meth:`Plan.rest` to see: a request may be older than the Trace.
    """
    asked = state.get("wanted")
    if not isinstance(asked, (list, tuple)):
        return ()
    return tuple(text for text in asked if isinstance(text, str) and _WANTED.fullmatch(text))[: limits.MAX_WANTED]
