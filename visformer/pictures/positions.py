"""Positional encodings as panels (section 3.5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from visformer import formulas
from visformer.errors import N_, Message
from visformer.panel import Labels, Panel, numbered, telling_limit, traced
from visformer.trace import Trace

_POSITION, _DIMENSION, _PAIR = N_("pos, from 0"), N_("dimension"), N_("pair i")


def _places(n: int, tokens: Sequence[str] = ()) -> Labels:
    """n positions from 0; the first ones with the tokens that stand there."""
    known = tuple(f"{pos}: {token}" for pos, token in enumerate(tokens[:n]))
    return Labels((*known, *(str(pos) for pos in range(len(known), n))), _POSITION)


def encoding(n: int, d_model: int, base: float = 10000.0, *, tokens: Sequence[str] = ()) -> Panel:
    """PE: a row for each position, a column for each dimension; ``tokens``: what stands at the first positions."""
    return Panel(
        name="position",
        title="PE",
        values=formulas.sinusoidal_encoding(n, d_model, base),
        rows=_places(n, tokens),
        columns=numbered(d_model, _DIMENSION),
        limit=1.0,
        note=f"({n}, {d_model})",
    )


def outer_product(n: int, d_model: int, base: float = 10000.0) -> list[Panel]:
    """Position times frequency gives the angle: a column (n, 1) by a row (1, d/2), broadcast to (n, d/2)."""
    places, rates = np.arange(n, dtype=np.float64), formulas.frequencies(d_model, base)
    rows, columns = numbered(n, _POSITION), numbered(len(rates), _PAIR)
    one = Labels(("",))
    shapes = (f"({n}, 1)", f"(1, {len(rates)})", f"({n}, {len(rates)})")
    return [
        Panel(name="k", title=N_("position"), values=places[:, None], rows=rows, columns=one, note=shapes[0]),
        Panel(
            name="q",
            title=N_("frequency"),
            values=rates[None],
            rows=one,
            columns=columns,
            limit=1.0,
            note=shapes[1],
            before="×",
        ),
        Panel(
            name="scores",
            title=N_("angle in radians"),
            values=np.outer(places, rates),
            rows=rows,
            columns=columns,
            note=shapes[2],
            before="=",
        ),
    ]


def of_model(trace: Trace, side: str) -> list[Panel]:
    """What a model adds for each place, and the cosine of every two: how alike two places are."""
    added = traced(trace, f"{side}.position", title="P")
    rows = np.asarray(added.values, dtype=np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    added = replace(added, limit=telling_limit(rows))
    added = replace(added, rows=_places(len(rows), trace.tokens[side]), note=f"({', '.join(map(str, rows.shape))})")
    return [
        added,
        Panel(
            name="scores",
            title="cos(P, P)",
            values=unit @ unit.T,
            rows=added.rows,
            columns=numbered(len(rows), _POSITION),
        ),
    ]


def similarity(n: int, d_model: int, base: float = 10000.0, *, tokens: Sequence[str] = ()) -> Panel:
    """PE PE^T: depends on the distance of two positions only, hence the bands; ``tokens`` as for :func:`encoding`."""
    table = formulas.sinusoidal_encoding(n, d_model, base)
    return Panel(
        name="scores",
        title="PE · PEᵀ",
        values=table @ table.T,
        rows=_places(n, tokens),
        columns=numbered(n, _POSITION),
        note=f"({n}, {n})",
    )


def rotation(position: int, offset: int, *, pair: int, d_model: int, base: float = 10000.0) -> list[Panel]:
    """The rotation by ``offset`` times a pair's frequency takes PE(position) to PE(position + offset).

    Args:
        position: where it starts.
        offset: how many positions further; may be negative.
        pair: i, the dimensions 2i and 2i + 1.
        d_model: even, or the last dimension has no partner.
        base: of the frequencies.
    """
    rate = formulas.frequencies(d_model, base)[pair]
    angle = rate * offset
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    start, end = (np.array([[np.sin(p * rate)], [np.cos(p * rate)]]) for p in (position, position + offset))
    both = Labels(("sin", "cos"))  # dimensions 2i and 2i + 1
    blank = Labels(("", ""))

    def column(name: str, title: str, values: formulas.Floats, before: str) -> Panel:
        one = Labels((str(position if name == "position" else position + offset),))
        return Panel(name=name, title=title, values=values, rows=both, columns=one, limit=1.0, before=before)

    return [
        Panel(name="q", title=f"R({offset})", values=turn, rows=blank, columns=blank, limit=1.0),
        column("position", f"PE({position})", start, "×"),
        column("out", f"R({offset}) · PE({position})", turn @ start, "="),
        column("mask", f"PE({position + offset})", end, "≈"),
    ]


def learned(n: int, d_model: int, *, max_len: int, seed: int = 0) -> Panel:
    """A lookup table as it stands before training: max_len rows of random numbers, and nothing beyond them."""
    table = np.full((n, d_model), np.nan)
    known = min(n, max_len)
    table[:known] = np.random.default_rng(seed).normal(size=(known, d_model))
    return Panel(
        name="embed",
        title=N_("learned (untrained)"),
        values=table,
        rows=numbered(n, _POSITION),
        columns=numbered(d_model, _DIMENSION),
        limit=3.0,
        note=f"({max_len}, {d_model})",
    )


@dataclass(frozen=True)
class Kind:
    """One of the two kinds of encoding, side by side with the other.

    Args:
        name: a message id.
        how: where a row comes from; a message id.
        parameters: how many numbers are trained.
        reach: for which positions there is a row; a message id.
        missing: of the positions asked for, how many have none.
    """

    name: Message
    how: Message
    parameters: int
    reach: Message
    missing: int


def two_kinds(n: int, d_model: int, *, max_len: int) -> list[Kind]:
    """The sinusoidal and the learned encoding of n positions; what is missing is counted in their tables."""
    tables = encoding(n, d_model).values, learned(n, d_model, max_len=max_len).values
    lacks = [int((~np.isfinite(values)).any(axis=1).sum()) for values in tables]
    return [
        Kind(N_("sinusoidal"), N_("computed"), 0, N_("any position"), lacks[0]),
        Kind(N_("learned"), N_("looked up"), max_len * d_model, N_("those below max_len"), lacks[1]),
    ]
