"""Pack a Trace's attention into the two messages that the explorer draws.

The first is small at any sequence length, so that the picture appears at once: a thumbnail of every head and the
weights in focus, as 16-bit codes (:mod:`visformer.web.codes`). The second holds the other weights or, if there are too
many, those that the browser requests (:mod:`visformer.web.chunks`). The numbers of maps are sent as they are, float32.
"""

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isnan
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from visformer.analysis.heads import SCORES, Score, head_scores, of_tokens
from visformer.errors import N_
from visformer.panel import Scale, map_scale, speakers_of, stack_says, stack_title, ticks
from visformer.pictures.style import CURVES, RAMPS, visible
from visformer.system import limits
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import PREFIX
from visformer.trace.overview import SIDE, PatternOnDemand
from visformer.trace.row_totals import Floats
from visformer.trace.stacks import STACKS, Stack, most_heads
from visformer.trace.tokens import sentences_of
from visformer.web import tiles
from visformer.web.chunks import CODE_BYTES, FLOAT_BYTES, FOCUS_BYTES, Chunk, Focus, Plan, Shape
from visformer.web.codes import encode
from visformer.web.message import Numbers, write_message
from visformer.web.words import words

SCORED_WEIGHTS = 2_000_000
"""Up to this many weights, the heads' scores are part of the first message; computing more would delay it."""

SINK = N_("sink")
"""Label of the extra column for weight that goes to no token: the share of an attention sink, a learned score."""

OVERVIEW_BYTES = 180_000
"""Budget for all thumbnails: 50 by 50 cells each for 72 heads, a quarter of a second on a slow connection."""

LONG_BYTES = 3_000_000
"""The same for a text whose heads are computed on demand: 48 by 48 cells each for 1,024 heads."""

SIDES = range(64, 15, -1)
"""In cells: more would be invisible at the size at which thumbnails are drawn, fewer would show nothing."""

LONG_SIDES = [SIDE // n for n in (1, 2, 3)]
"""Sides of thumbnails of heads that are computed on demand: each cell holds whole cells of an overview."""

EFFECT = Score(
    "effect",
    N_("Effect"),
    N_("How much worse the target is predicted without this head, in nats a token, as measured on the page on heads."),
    cross=True,
)
"""What the explorer can order heads by where it was measured."""


@dataclass(frozen=True)
class HeadNotes:
    """What is known of a model's heads apart from this sentence.

    Args:
        effects: stack, layer, head (from 0) and effect; empty: not measured.
        labels: of heads of known kinds: stack, layer, head, label, score and how it was found, in words to show.
    """

    effects: tuple[tuple[str, int, int, float], ...] = ()
    labels: tuple[tuple[str, int, int, str, float, str], ...] = ()

    def add(self, stack: dict[str, Any]) -> None:
        """Add them to a stack of the header."""
        layers, n_heads = list(stack["layers"]), stack["shape"][1]  # known of models whose layers have equally many
        own = [(layers.index(layer), head, effect) for name, layer, head, effect in self.effects
               if name == stack["name"] and layer in layers and head < n_heads]  # fmt: skip
        if own:
            rows: list[list[float | None]] = [[None] * n_heads for _ in layers]
            for row, head, effect in own:
                rows[row][head] = effect
            stack["values"] = {**(stack["values"] or {}), EFFECT.name: rows}
        labels = [
            {"layer": layer, "head": head, "label": label, "score": score, "about": about}
            for name, layer, head, label, score, about in self.labels
            if name == stack["name"] and layer in layers and head < n_heads
        ]
        if labels:
            stack["labels"] = labels


def pack(
    trace: Trace,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    focus: Focus | None = None,
    start: Mapping[str, Any] | None = None,
    file: str = "",
    notes: HeadNotes | None = None,
    parts: str = "",
    to: str = "",
) -> bytes:
    """Pack the first message.

    Args:
        trace: holds attention patterns or maps; stacks without any are left out.
        gettext: translates the words on the picture.
        lang: the language of ``gettext``; cached messages are keyed by it.
        focus: the head to send first if not all fit; by default the first of the first stack.
        start: JSON values for the browser, passed through.
        file: prefix of the PNG's file name, such as the model.
        notes: what is known of the heads.
        parts: where the browser fetches parts of heads that are computed on demand, see :mod:`visformer.web.tiles`.
        to: see :func:`visformer.web.message.write_message`.

    Raises:
        TraceError: a weight is not between 0 and 1, or a map's number not finite.
    """
    feed, notes = _feed(trace), notes or HeadNotes()
    plan = feed.plan(focus)
    scores = [] if feed.is_map else [*SCORES, *([EFFECT] if notes.effects else [])]

    def make() -> bytes:
        numbers = Numbers()
        header = {
            **feed.heads(trace, plan, numbers, gettext),
            "start": start,
            "file": file,
            "parts": parts,
            "scores": [
                {"name": score.name, "label": gettext(score.label), "about": gettext(score.about)} for score in scores
            ],
            **words(trace, gettext, lang),
        }
        for stack in header["stacks"]:
            notes.add(stack)
        return write_message("attention", header, numbers, to=to)

    return feed.cached((lang, json.dumps(start, sort_keys=True), file, parts, to, notes, plan.first), make)


def heads_of(
    trace: Trace,
    numbers: Numbers,
    gettext: Callable[[str], str],
    focus: Focus | None,
    *,
    focus_bytes: int = FOCUS_BYTES,
) -> dict[str, Any]:
    """Return what a header needs to draw all heads: tokens, thumbnails, and the weights that fit into a first message.

    ``focus_bytes``: see :class:`visformer.web.chunks.Plan`.
    """
    feed = _feed(trace)
    return feed.heads(trace, replace(feed.plan(focus), focus_bytes=focus_bytes), numbers, gettext)


def pack_rest(
    trace: Trace,
    *,
    focus: Focus | None = None,
    wanted: Sequence[str] = (),
    ask: tiles.Ask | None = None,
    to: str = "",
) -> bytes | None:
    """Pack the second message; None if the first holds everything.

    Args:
        trace: as in :func:`pack`.
        focus: as in :func:`pack`; what the first message held for it is left out.
        wanted: what to send if not all fit, as "stack/layer/head", with "mean" or "max" for the mean or maximum over
            the layer's heads; or a part of a head, see :func:`visformer.web.tiles.part_of`. What the Trace does not
            have is ignored.
        ask: computes parts, where the Trace does not hold what they are computed from.
        to: as in :func:`pack`.

    Raises:
        TraceError: a weight is not between 0 and 1.
    """
    feed = _feed(trace)
    plan = feed.plan(focus)
    parts = [path for path in wanted if tiles.is_part(path)]
    if not plan.missing and feed.scored_at_once and not parts:
        return None
    chunks = plan.rest(wanted)

    def make() -> bytes:
        numbers = Numbers()
        scores = {} if feed.scored_at_once else {"values": feed.values}
        answers = {path: (ask or partial(tiles.part_of, trace))(path) for path in parts}
        header = {
            "trace": feed.name,
            "chunks": [feed.add(chunk, numbers) for chunk in chunks],
            "parts": [
                {"path": path, "at": numbers.add(np.frombuffer(part, np.uint8)), "n": len(part)}
                for path, part in answers.items()
                if part is not None
            ],
            **scores,
        }
        return write_message("weights", header, numbers, to=to)

    return feed.cached((to, *chunks, *parts), make)


def scores_of(trace: Trace, stack: str) -> Mapping[str, Sequence[Sequence[float | None]]]:
    """Return the scores of a stack's heads as in the first message: score -> layer -> head; {} where it has none."""
    feed = _feed(trace)
    return feed.values.get(stack, {}) if feed.scored_at_once else {}


class _Feed:
    """State shared by the messages of one Trace; it holds the arrays, not the Trace, whose lifetime it follows."""

    def __init__(self, trace: Trace) -> None:
        self.name = secrets.token_hex(8)
        self._meta = trace.meta
        chosen = map_scale(trace)
        kind, limit = chosen["scale"], chosen.get("limit", 1.0)
        self.scale = {"kind": kind, "limit": limit, "decimals": chosen.get("digits", 2), "ticks": ticks(kind, limit)}
        self.is_map = kind != "weight"
        self._weights: dict[str, dict[int, npt.NDArray[np.floating]]] = {}  # (head, query, key), by stack and layer
        self._on_demand: dict[str, Mapping[int, TracedTensor]] = {}  # those of which parts are computed, instead
        self._patterns: dict[str, list[TracedTensor | Floats]] = {}  # the tokens' columns only: for the scores
        self.shapes: dict[str, Shape] = {}
        self._sides: dict[str, tuple[str, str]] = {}  # by stack, the sides whose tokens label rows and columns
        self.labels: dict[str, dict[str, Sequence[Any]]] = {
            "tokens": dict(trace.tokens),
            "special": dict(trace.special),
            "words": dict(trace.words),
            "sentences": {},
            "roles": {
                side: [one and one.name for one in said] for side in trace.roles if (said := speakers_of(trace, side))
            },
        }
        for stack in STACKS:
            if stack.in_trace(trace):
                self._take(trace, stack)
        self.layers: dict[str, dict[int, int]] = {
            name: {number: layer.shape[0] for number, layer in layers.items()}
            for name, layers in (self._weights | self._on_demand).items()
        }
        self._whole = {name: shape for name, shape in self.shapes.items() if name in self._weights}
        self._count = sum(layer.size for layers in self._weights.values() for layer in layers.values())
        self._messages: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._lock = Lock()

    def _take(self, trace: Trace, stack: Stack) -> None:
        """Read the patterns of a stack; the weight of a sink, if there is one, becomes the last column."""
        layers = stack.layers(trace)
        first = next(iter(layers.values()))
        n_layers, n_heads, n_queries, n_keys = len(layers), most_heads(layers), *first.shape[1:]
        rows, columns = (axis.side for axis in first.axes[1:])
        assert rows is not None and columns is not None
        sinks = {layer: sink_of(trace, pattern) for layer, pattern in layers.items()}
        self._sides[stack.name] = (rows, columns)
        self._patterns[stack.name] = [of_tokens(trace, layer) for layer in layers.values()]
        self.shapes[stack.name] = (n_layers, n_heads, n_queries, n_keys)
        if any(isinstance(pattern, PatternOnDemand) for pattern in layers.values()):
            self._on_demand[stack.name] = layers
            for side in (rows, columns):
                self.labels["sentences"][side] = sentences_of(trace.tokens[side], trace.special[side])
            return
        self._weights[stack.name] = {layer: pattern.value for layer, pattern in layers.items()}
        if any(sink is not None for sink in sinks.values()):
            wider = f"{columns}+sink"
            self._sides[stack.name] = (rows, wider)
            self._weights[stack.name] = {layer: with_sink(layers[layer], sink) for layer, sink in sinks.items()}
            n_keys += 1
            own = {"tokens": SINK, "special": True, "words": len(trace.tokens[columns]), "roles": None}
            for label, last in own.items():
                if columns in self.labels[label]:
                    self.labels[label][wider] = (*self.labels[label][columns], last)
        self.shapes[stack.name] = (n_layers, n_heads, n_queries, n_keys)

    def heads(self, trace: Trace, plan: Plan, numbers: Numbers, gettext: Callable[[str], str]) -> dict[str, Any]:
        """Return the header's entries about heads, and append their numbers."""
        return {
            "trace": self.name,
            "tokens": {
                side: [gettext(token) if token is SINK else visible(token) for token in tokens]
                for side, tokens in self.labels["tokens"].items()
            },
            "special": {side: [int(special) for special in flags] for side, flags in self.labels["special"].items()},
            "words": self.labels["words"],
            "sentences": self.labels["sentences"],
            "spoken": self.labels["roles"],
            "scale": self.scale,
            "ramp": RAMPS[self.scale["kind"]],
            "colours": CURVES,
            "resident": plan.resident,
            "stacks": [
                {
                    **self.describe(stack, numbers, gettext),
                    "about": stack_title(trace, stack, gettext),
                    "says": stack_says(trace, stack, gettext),
                }
                for stack in STACKS
                if stack.name in self.layers
            ],
            "chunks": [self.add(chunk, numbers) for chunk in plan.first],
        }

    def plan(self, focus: Focus | None) -> Plan:
        """Return what each message contains if this head is in focus."""
        return Plan(self._whole, self.layers, focus, FLOAT_BYTES if self.is_map else CODE_BYTES)

    def describe(self, stack: Stack, numbers: Numbers, gettext: Callable[[str], str]) -> dict[str, Any]:
        """Return the header's entry for a stack, and append its thumbnails to the numbers."""
        rows, columns = self._sides[stack.name]
        thumbs = self._thumbs[stack.name]
        return {
            "name": stack.name,
            "label": gettext(stack.label),
            "rows": rows,
            "columns": columns,
            "predicts": "next" if rows == "tgt" else None,
            "shape": self.shapes[stack.name],
            "layers": [*self.layers[stack.name]],
            "heads": [*self.layers[stack.name].values()],
            "thumb": thumbs.shape[2:],
            "thumbs": numbers.add(thumbs),
            "values": self.values.get(stack.name) if self.scored_at_once else None,
            **({"tiles": tiles.describe()} if stack.name in self._on_demand else {}),
            **self._kind(stack),
        }

    def _kind(self, stack: Stack) -> dict[str, Any]:
        """Return how many heads share keys and values, and each layer's attention window (None: unlimited)."""
        layers, n_heads = [*self.layers[stack.name]], self.shapes[stack.name][1]
        groups, windows = self._meta.get("n_kv_heads"), self._meta.get("windows")
        own, share = stack.kind == "self_attn", 1
        if own and isinstance(groups, int) and 0 < groups < n_heads and n_heads % groups == 0:
            share = n_heads // groups
        own_windows = None
        if own and isinstance(windows, list) and len(windows) > layers[-1]:
            own_windows = [windows[layer] for layer in layers]
        return {"share": share, "windows": own_windows}

    def add(self, chunk: Chunk, numbers: Numbers) -> dict[str, Any]:
        """Return the header's entry for a chunk, and append its codes to the numbers."""
        layer = self._weights[chunk.stack][chunk.layer]  # (head, query, key)
        if chunk.over == "mean":
            weights = layer.mean(axis=0)  # (query, key)
        elif chunk.over == "max":
            weights = layer.max(axis=0)
        else:
            weights = layer[chunk.head : chunk.head + chunk.n]
        at = numbers.add(weights.astype("<f4") if self.is_map else encode(weights))
        return {"stack": chunk.stack, "layer": chunk.layer, "head": chunk.over or chunk.head, "n": chunk.n, "at": at}

    @property
    def scored_at_once(self) -> bool:
        """Whether the scores are part of the first message; maps have none."""
        return self.is_map or self._count <= SCORED_WEIGHTS

    @cached_property
    def values(self) -> dict[str, dict[str, list[list[float | None]]]]:
        """The scores as stack -> score -> one row per layer with one value per head."""
        return {} if self.is_map else {name: self._scores(name) for name in self.layers}

    def _scores(self, name: str) -> dict[str, list[list[float | None]]]:
        rows, columns = (side.removesuffix("+sink").removeprefix(PREFIX) for side in self._sides[name])
        scores = head_scores(
            self._patterns[name],
            queries=self.labels["tokens"][rows],
            keys=self.labels["tokens"][columns],
            special=self.labels["special"][columns],
            cross=rows != columns,
        )
        return {score: [[_rounded(value) for value in layer] for layer in scores[score].tolist()] for score in scores}

    @cached_property
    def _thumbs(self) -> dict[str, npt.NDArray[np.uint8]]:
        """The thumbnails by stack, each (layer, head, rows, columns)."""
        if self._on_demand:
            side = thumbnail_side(list(self.shapes.values()), LONG_BYTES, LONG_SIDES)
        else:
            side = thumbnail_side(list(self.shapes.values()))
        how: dict[str, Any] = {"side": side, "scale": self.scale["kind"], "limit": self.scale["limit"]}
        small = {name: [*map(_thumbs_of, layers.values())] for name, layers in self._on_demand.items()}
        return {name: thumbnails([*layers], **how) for name, layers in small.items()} | {
            name: thumbnails([*layers.values()], **how) for name, layers in self._weights.items()
        }

    def cached(self, key: tuple[Any, ...], make: Callable[[], bytes]) -> bytes:
        """Return the message for this key from a least-recently-used cache, or make it."""
        with self._lock:
            if key in self._messages:
                self._messages.move_to_end(key)
                return self._messages[key]
        message = make()
        with self._lock:
            self._messages[key] = message
            while sum(map(len, self._messages.values())) > limits.MESSAGE_BYTES:
                self._messages.popitem(last=False)
        return message


def thumbnail_side(
    shapes: Sequence[tuple[int, int, int, int]], budget: int = OVERVIEW_BYTES, sides: Sequence[int] = SIDES
) -> int:
    """Return the first side of thumbnails of stacks (layer, head, query, key) that fit into a budget, or the last."""
    for side in sides:
        if sum(n * h * min(side, q) * min(side, k) for n, h, q, k in shapes) <= budget:
            return side
    return sides[-1]


def _thumbs_of(layer: TracedTensor) -> npt.NDArray[np.float32]:
    """The thumbnails (head, row, column) of a layer; pooled again, they are as large as those of others."""
    return layer.overview.thumbs if isinstance(layer, PatternOnDemand) else _pooled(layer.value, SIDE)


def thumbnails(
    layers: Sequence[npt.NDArray[np.float32]], *, side: int, scale: Scale = "weight", limit: float = 1.0
) -> npt.NDArray[np.uint8]:
    """Return thumbnails as 8-bit steps of their colour ramp, at most ``side`` cells high and wide.

    Cells are pooled by maximum, of signed numbers by the largest magnitude: a mean would wash out a single strong one.

    Args:
        layers: (head, query, key) each, probabilities or maps; they may differ in heads.
        side: maximum height and width, in cells.
        scale: as of :class:`visformer.panel.Panel`; a step of weights is 255 * sqrt(weight).
        limit: the end of another scale.

    Returns:
        (layer, head, rows, columns); 0 for heads that a layer does not have.
    """
    small = _stacked([_pooled(layer, side) for layer in layers])
    shares: npt.NDArray[np.floating]
    if scale == "signed":
        below = -_stacked([_pooled(-layer, side) for layer in layers])
        shares = 0.5 + np.where(small >= -below, small, below) / (2 * limit)
    else:
        shares = np.sqrt(np.clip(small, 0.0, 1.0)) if scale == "weight" else small / limit
    steps: npt.NDArray[np.uint8] = np.rint(255 * shares).astype(np.uint8)
    return steps


def _stacked(layers: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Stack layers (head, row, column), with zeros for the heads that one does not have."""
    most = max(map(len, layers))
    return np.stack([np.pad(layer, ((0, most - len(layer)), (0, 0), (0, 0))) for layer in layers])


def _pooled(layer: npt.NDArray[np.float32], side: int) -> npt.NDArray[np.float32]:
    return _merge(_merge(layer, side, axis=1), side, axis=2)


def _merge(pattern: npt.NDArray[np.float32], side: int, *, axis: int) -> npt.NDArray[np.float32]:
    """Max-pool an axis into ``side`` runs; np.maximum.reduceat takes six times as long."""
    size = pattern.shape[axis]
    if size <= side:
        return pattern
    first = np.arange(side) * size // side
    last = np.append(first[1:], size) - 1
    merged: npt.NDArray[np.float32] = pattern.take(first, axis=axis)
    for step in range(1, int((last - first).max()) + 1):
        np.maximum(merged, pattern.take(np.minimum(first + step, last), axis=axis), out=merged)
    return merged


def with_sink(layer: TracedTensor, sink: TracedTensor | None) -> npt.NDArray[np.floating]:
    """Return a pattern (head, query, key + 1) whose last column is the weight that goes to no token."""
    mass = np.zeros(layer.shape[:2], dtype=layer.value.dtype) if sink is None else sink.value
    return np.concatenate([layer.value, mass[..., None]], axis=-1)


def sink_of(trace: Trace, pattern: TracedTensor) -> TracedTensor | None:
    """Return the sink weights recorded with a pattern, or None if the model has no attention sinks."""
    return trace.tensors.get(f"{pattern.name.removesuffix('pattern')}sink")


_FEEDS: WeakKeyDictionary[Trace, _Feed] = WeakKeyDictionary()
_FEEDS_LOCK = Lock()


def _feed(trace: Trace) -> _Feed:
    with _FEEDS_LOCK:
        if trace not in _FEEDS:
            _FEEDS[trace] = _Feed(trace)
        return _FEEDS[trace]


def _rounded(value: float) -> float | None:
    """Round to four significant digits; NaN, which JSON cannot express, becomes None."""
    return None if isnan(value) else float(f"{value:.4g}")
