"""A Trace's attention as the bytes that the canvas draws.

Thumbnails are 8-bit weights on a square-root scale and of bounded size, so that an overview costs the same for a
sentence of 60 tokens as for one of 250. Exact float32 weights come for every head while they are small, else for
the head in focus only.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from visformer.canvas.frame import Numbers, digest, frame
from visformer.canvas.words import STACKS, Stack, words
from visformer.figures.theme import SEQUENTIAL, visible
from visformer.trace import Trace, TracedTensor

EXACT_BYTES = 1_000_000
"""All heads travel exactly up to here: about 50 tokens with the bundled model, 10 ms on a slow line."""

THUMB_SIDE = 64
"""Thumbnails are at most this wide and high: more could not be seen at the size they are drawn."""


@dataclass(frozen=True)
class Focus:
    """A head of a stack, counted from 0."""

    stack: str
    layer: int
    head: int


def pack(trace: Trace, *, gettext: Callable[[str], str] = str, lang: str = "en", focus: Focus | None = None) -> bytes:
    """The bytes for ``mountAttention(element, bytes)``.

    Args:
        trace: holds attention patterns; stacks without any are left out.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks, for fonts and screen readers.
        focus: the head whose exact weights are wanted where not all fit; by default each stack's first.
    """
    patterns = [(stack, trace.stack(stack.part, stack.kind)) for stack in STACKS if stack.in_trace(trace)]
    all_exact = sum(pattern.value.nbytes for _, pattern in patterns) <= EXACT_BYTES
    numbers = Numbers()
    stacks = [_stack(stack, pattern, numbers, gettext, all_exact, focus) for stack, pattern in patterns]
    header: dict[str, Any] = {
        "stacks": stacks,
        "tokens": {side: [visible(token) for token in tokens] for side, tokens in trace.tokens.items()},
        "special": {side: [int(special) for special in flags] for side, flags in trace.special.items()},
        "ramp": SEQUENTIAL,
        **words(trace, gettext, lang),
    }
    header["trace"] = digest(
        json.dumps(header["tokens"]).encode(), *(pattern.value.tobytes() for _, pattern in patterns)
    )
    return frame(header, numbers)


def _stack(
    stack: Stack,
    pattern: TracedTensor,
    numbers: Numbers,
    gettext: Callable[[str], str],
    all_exact: bool,
    focus: Focus | None,
) -> dict[str, Any]:
    weights = pattern.value.astype("<f4", copy=False)  # (layer, head, query, key)
    thumbs = thumbnails(weights)
    rows, columns = (axis.side for axis in pattern.axes[2:])
    packed: dict[str, Any] = {
        "name": stack.name,
        "label": gettext(stack.label),
        "about": gettext(stack.about),
        "rows": rows,
        "columns": columns,
        "predicts": "next" if rows == "tgt" else None,
        "shape": weights.shape,
        "thumb": thumbs.shape[2:],
        "thumbs": numbers.add(thumbs),
        "exact": numbers.add(weights) if all_exact else None,
    }
    if not all_exact:
        layer, head = _in_range(focus, stack, weights)
        packed["focus"] = {"layer": layer, "head": head, "at": numbers.add(weights[layer, head])}
    return packed


def _in_range(focus: Focus | None, stack: Stack, pattern: npt.NDArray[np.float32]) -> tuple[int, int]:
    """The head in focus; the first, where the focus is on another stack or, sent by a browser, on no head at all."""
    if focus is None or focus.stack != stack.name:
        return 0, 0
    n_layers, n_heads = pattern.shape[:2]
    return min(max(focus.layer, 0), n_layers - 1), min(max(focus.head, 0), n_heads - 1)


def thumbnails(pattern: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """8-bit weights, 255 * sqrt(weight), at most THUMB_SIDE high and wide.

    Where cells are merged the largest counts: a mean would wash a single strong weight out.

    Args:
        pattern: (layer, head, query, key), probabilities.

    Returns:
        (layer, head, rows, columns) uint8.
    """
    small = _merge(_merge(pattern, axis=2), axis=3)  # (layer, head, rows, columns)
    steps: npt.NDArray[np.uint8] = np.rint(255 * np.sqrt(np.clip(small, 0.0, 1.0))).astype(np.uint8)
    return steps


def _merge(pattern: npt.NDArray[np.float32], axis: int) -> npt.NDArray[np.float32]:
    size = pattern.shape[axis]
    if size <= THUMB_SIDE:
        return pattern
    starts = np.arange(THUMB_SIDE) * size // THUMB_SIDE
    merged: npt.NDArray[np.float32] = np.maximum.reduceat(pattern, starts, axis=axis)
    return merged


def focus_from(state: Mapping[str, Any]) -> Focus | None:
    """The head that the browser asked for; None for anything that is not such a request."""
    asked = state.get("focus")
    if not isinstance(asked, Mapping):
        return None
    stack, layer, head = asked.get("stack"), asked.get("layer"), asked.get("head")
    if isinstance(stack, str) and isinstance(layer, int) and isinstance(head, int):
        return Focus(stack, layer, head)
    return None
