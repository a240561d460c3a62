"""Decide, from shapes alone, when each head's weights are sent: in the first message, the second, or on request."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from visformer.system import limits
from visformer.trace.stacks import nearest
from visformer.web.tiles import is_part

SMALL_BYTES = 400_000
"""Up to this size all codes are sent in the first message: 52 tokens with the bundled model."""

FOCUS_BYTES = 1_000_000
"""Up to this size the explorer's first message holds a whole layer."""

RESIDENT_BYTES = 2_400_000
"""Up to this size all codes are sent without a request from the browser: 128 tokens with the bundled model."""

CODE_BYTES, FLOAT_BYTES = 2, 4
"""Bytes of a number: of a weight, and of a map's."""

Shape = tuple[int, int, int, int]
"""(layer, head, query, key), with as many heads as the layer with most has."""

_WANTED = re.compile(r"([a-z_.]+)/([0-9]{1,4})/([0-9]{1,4}|mean|max)")


@dataclass(frozen=True)
class Focus:
    """A head of a stack; layer and head count from 0."""

    stack: str
    layer: int
    head: int


@dataclass(frozen=True)
class Chunk:
    """Weights of consecutive heads that are sent in one piece.

    Args:
        stack: name of the stack.
        layer: the number of the layer in the model, from 0.
        head: the first head.
        n: number of heads.
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
    """The contents of each message.

    Args:
        shapes: the shape of each stack, by name.
        layers: the number of each stack's layers in the model, from 0 and ascending, to how many heads they have.
        requested: the head in focus, from a browser; clipped to the stack's range, by default the first head of all.
        each: bytes of each number.
        focus_bytes: up to this size the first message holds a whole layer, above it a single head.
    """

    shapes: Mapping[str, Shape]
    layers: Mapping[str, Mapping[int, int]]
    requested: Focus | None = None
    each: int = CODE_BYTES
    focus_bytes: int = FOCUS_BYTES

    @property
    def n_bytes(self) -> int:
        """The size of all numbers, in bytes."""
        return sum(self._n_bytes(chunk) for chunk in self._layers())

    @cached_property
    def focus(self) -> Focus:
        """The head in focus, within range; requires at least one stack."""
        if self.requested is None or self.requested.stack not in self.shapes:
            first = next(iter(self.shapes))
            return Focus(first, next(iter(self.layers[first])), 0)
        stack = self.requested.stack
        layer = nearest(self.layers[stack], self.requested.layer)
        return Focus(stack, layer, min(max(self.requested.head, 0), self.layers[stack][layer] - 1))

    @cached_property
    def first(self) -> tuple[Chunk, ...]:
        """The chunks of the first message: everything, the layer in focus, or the head in focus."""
        if self.n_bytes <= SMALL_BYTES:
            return tuple(self._layers())
        stack, layer = self.focus.stack, self.focus.layer
        whole = Chunk(stack, layer, 0, self.layers[stack][layer])
        return (whole if self._n_bytes(whole) <= self.focus_bytes else Chunk(stack, layer, self.focus.head, 1),)

    @cached_property
    def missing(self) -> tuple[Chunk, ...]:
        """The chunks that are not in the first message."""
        sent = {(chunk.stack, chunk.layer): chunk for chunk in self.first}
        chunks = []
        for layer in self._layers():
            first = sent.get((layer.stack, layer.layer), Chunk(layer.stack, layer.layer, 0, 0))
            after = first.head + first.n
            chunks.append(Chunk(layer.stack, layer.layer, 0, first.head))
            chunks.append(Chunk(layer.stack, layer.layer, after, layer.n - after))
        return tuple(chunk for chunk in chunks if chunk.n > 0)

    @property
    def resident(self) -> bool:
        """Whether everything is sent without a request from the browser."""
        return self.n_bytes <= RESIDENT_BYTES or not self.missing

    def rest(self, wanted: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks of the second message: all that are missing or, if that is too much, those in ``wanted``."""
        if self.resident:
            return self.missing
        chunks = (self._chunk(text) for text in wanted)
        return tuple(dict.fromkeys(c for c in chunks if c is not None and not any(c in sent for sent in self.first)))

    def _layers(self) -> Iterator[Chunk]:
        for stack in self.shapes:
            yield from (Chunk(stack, layer, 0, n_heads) for layer, n_heads in self.layers[stack].items())

    def _n_bytes(self, chunk: Chunk) -> int:
        _, _, n_queries, n_keys = self.shapes[chunk.stack]
        return self.each * chunk.n * n_queries * n_keys

    def _chunk(self, text: str) -> Chunk | None:
        """Parse "stack/layer/head"; None if there is no such head."""
        match = _WANTED.fullmatch(text)
        if match is None or match[1] not in self.shapes:
            return None
        stack, layer = match[1], int(match[2])
        n_heads = self.layers[stack].get(layer, 0)
        over = match[3] if match[3] in ("mean", "max") else None
        head = 0 if over else int(match[3])
        return Chunk(stack, layer, head, 1, over) if head < n_heads else None


def focus_from(start: Any) -> Focus | None:
    """Return the head that an initial selection names, or None."""
    if not isinstance(start, Mapping):
        return None
    stack, layer, head = start.get("stack"), start.get("layer"), start.get("head")
    if isinstance(stack, str) and isinstance(layer, int) and isinstance(head, int):
        return Focus(stack, layer, head)
    return None


def wanted_from(state: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the heads that the browser requested, at most limits.MAX_WANTED; malformed requests are dropped.

    Whether the heads exist is checked by :meth:`Plan.rest`: a request may be older than the Trace.
    """
    wanted = state.get("wanted")
    if not isinstance(wanted, (list, tuple)):
        return ()
    texts = (text for text in wanted if isinstance(text, str))
    return tuple(text for text in texts if _WANTED.fullmatch(text) or is_part(text))[: limits.MAX_WANTED]
