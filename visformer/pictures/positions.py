"""Positional encodings as panels (section 3.5)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from visformer import formulas
from visformer.errors import N_
from visformer.formulas import Floats
from visformer.model.positions import POSITIONS, Alibi, Position, Rotary
from visformer.panel import Labels, Panel, numbered, telling_limit, traced
from visformer.pictures.registry.options import Number, PlaceOption, Several
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.registry.setting import Setting
from visformer.system import limits
from visformer.trace import Trace

_POSITION, _DIMENSION, _PAIR = N_("pos, from 0"), N_("dimension"), N_("pair i")


def _places(n: int, tokens: Sequence[str] = ()) -> Labels:
    """Return labels of n positions from 0, the first ones with their tokens."""
    known = tuple(f"{pos}: {token}" for pos, token in enumerate(tokens[:n]))
    return Labels((*known, *(str(pos) for pos in range(len(known), n))), _POSITION)


def _by_position(name: str, title: str, values: Floats, across: str = "", **more: Any) -> Panel:
    """Draw a row for each position, and the shape; ``across``: title of the columns, ``more``: arguments of Panel."""
    n, width = values.shape
    usual: dict[str, Any] = {
        "rows": numbered(n, _POSITION),
        "columns": numbered(width, across),
        "note": f"({n}, {width})",
    }
    return Panel(name=name, title=title, values=values, **usual | more)


def encoding(n: int, d_model: int, base: float = 10000.0, *, tokens: Sequence[str] = ()) -> Panel:
    """Draw PE: a row for each position, a column for each dimension; ``tokens``: those at the first positions."""
    table = formulas.sinusoidal_encoding(n, d_model, base)
    return _by_position("position", "PE", table, _DIMENSION, rows=_places(n, tokens), limit=1.0)


def of_model(trace: Trace, side: str) -> list[Panel]:
    """Draw the encoding that a model adds at each position, and the cosine similarity of all pairs of positions."""
    added = traced(trace, f"{side}.position", title="P")
    rows = np.asarray(added.values, dtype=np.float64)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    places, note = _places(len(rows), trace.tokens[side]), f"({', '.join(map(str, rows.shape))})"
    return [
        replace(added, limit=telling_limit(rows), rows=places, note=note),
        _by_position("scores", "cos(P, P)", unit @ unit.T, _POSITION, rows=places, note=""),
    ]


def similarity(n: int, d_model: int, base: float = 10000.0, *, tokens: Sequence[str] = ()) -> Panel:
    """Draw PE PE^T, which has bands because it depends only on the distance; ``tokens`` as for :func:`encoding`."""
    table = formulas.sinusoidal_encoding(n, d_model, base)
    return _by_position("scores", "PE · PEᵀ", table @ table.T, _POSITION, rows=_places(n, tokens))


def rotation(position: int, offset: int, *, pair: int, d_model: int, base: float = 10000.0) -> list[Panel]:
    """Draw the rotation by ``offset`` times a pair's frequency, which maps PE(position) to PE(position + offset).

    Args:
        position: start.
        offset: number of positions further; may be negative.
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
    """Draw an untrained lookup table: max_len rows of random numbers, and nothing beyond them."""
    table = np.full((n, d_model), np.nan)
    known = min(n, max_len)
    table[:known] = np.random.default_rng(seed).normal(size=(known, d_model))
    note = f"({max_len}, {d_model})"
    return _by_position("embed", N_("learned (untrained)"), table, _DIMENSION, limit=3.0, note=note)


def rotary(n: int, d_k: int, base: float = 10000.0) -> Panel:
    """Draw the cosine of the angle by which queries and keys are rotated: a row for each position, a column for a pair.

    The angles themselves grow without end, and all but the first pairs would look the same.
    """
    return _by_position(
        "scores", N_("cosine of the angle of each pair"), np.cos(Rotary(base).angles(n, d_k)), _PAIR, limit=1.0
    )


def rotary_scores(n: int, d_k: int, base: float = 10000.0) -> Floats:
    """Return the score of two equal vectors at each distance, relative to distance 0: (distance,)."""
    scores: Floats = np.cos(Rotary(base).angles(n, d_k)).mean(axis=1)
    return scores


def alibi(n: int, n_heads: int) -> Panel:
    """Draw the factor that the bias leaves of a weight: a row for each head and slope, a column for a distance."""
    slopes = (f"{head}: {slope:.4g}" for head, slope in enumerate(formulas.alibi_slopes(n_heads), start=1))
    return Panel(
        name="pattern",
        title=N_("what is left of a weight"),
        values=np.exp(Alibi().bias(n_heads, n)[:, 0]),  # of the first query, whose keys are at the distances 0 to n - 1
        rows=Labels(tuple(slopes), N_("head: slope")),
        columns=numbered(n, N_("distance of the two positions")),
        scale="unsigned",
        limit=1.0,
    )


class Kind(NamedTuple):
    """A positional encoding, its number of trained parameters, and how many of n positions it does not cover."""

    position: Position
    parameters: int
    missing: int


def kinds(n: int, d_model: int, *, max_len: int, base: float = 10000.0) -> dict[str, Kind]:
    """Every way to know n positions, by name, for a model of this width."""
    every = {name: (made := kind(base), made.rows(max_len)) for name, kind in POSITIONS.items()}
    return {
        name: Kind(made, (rows or 0) * d_model, 0 if rows is None else max(0, n - rows))
        for name, (made, rows) in every.items()
    }


def some_dimensions(d_model: int) -> list[int]:
    """Return the dimensions of a fast, a medium and a slow pair of waves."""
    some = {i + j for i in (0, d_model // 16 * 2, d_model // 8 * 2) for j in (0, 1)}
    return sorted(i for i in some if i < d_model)


def _pairs(setting: Setting) -> int:
    return int(setting["d_model"]) // 2


def _waves(setting: Setting) -> Any:
    from visformer.pictures.charts.positions import position_waves

    n, d_model, dimensions = setting["positions"], setting["d_model"], setting["dimensions"]
    axes = setting.gettext(N_("pos, from 0")), setting.gettext(N_("PE(pos, dimension)"))
    title = setting.gettext(N_("positional encoding, d_model {d_model}"))
    look = {"axes": axes, "title": title, "theme": setting.source.theme}
    return position_waves(n, d_model, dimensions, base=setting["base"], **look)


def _turn(setting: Setting) -> dict[str, Any]:
    return {"pair": setting["i"], "d_model": setting["d_model"], "base": setting["base"]}


def _rotary_scores(setting: Setting) -> Any:
    from visformer.pictures.charts.positions import curves_over

    n, d_k, base = setting["positions"], setting["d_k"], setting["base"]
    axes = setting.gettext(N_("distance of the two positions")), setting.gettext(N_("score, 1 at distance 0"))
    title = setting.gettext(N_("score of two equal vectors, d_k {d_k}")).format(d_k=d_k)
    curves = {"q · k": rotary_scores(n, d_k, base)}
    return curves_over(curves, np.arange(n), axes=axes, title=title, theme=setting.source.theme)


def _circle(setting: Setting) -> Any:
    from visformer.pictures.charts.positions import rotation_circle

    return rotation_circle(setting["pos"], setting["offset"], **_turn(setting), theme=setting.source.theme)


def _table(setting: Setting) -> tuple[int, int, float]:
    return setting["positions"], setting["d_model"], setting["base"]


def _of_model(setting: Setting) -> list[Panel]:
    trace = setting.trace
    return of_model(trace, "src" if "src" in trace.tokens else "tgt")


def _two_tables(setting: Setting) -> list[Panel]:
    n, d_model, base = _table(setting)
    return [encoding(n, d_model, base), learned(n, d_model, max_len=setting["max_len"])]


# fmt: off
N = Number(
    name="positions", link="n", label=N_("Number of positions"), help="Number to show.", default=24, least=2, most=1024,
    valid=1,
)
D_MODEL = Number(
    name="d_model", link="d", label="d_model", help="Number of dimensions; by default the model's.",
    tooltip=N_("This model's: {own}"), default=lambda setting: setting.source.d_model, least=1,
    most=lambda setting: max(512, setting.source.d_model), valid=1, per=lambda setting: setting.source.d_model,
)
BASE = Number(
    name="base", label=N_("Base"), help="Base of the wavelengths.", default=10_000.0, least=1.1, most=1e6, whole=False,
    step=100.0, widget="number_input",
)
DIMENSIONS = Several(
    name="dimensions", label=N_("Dimensions"), help="Dimensions to draw, from 0, separated by dots.",
    default=lambda setting: some_dimensions(setting["d_model"]), count=lambda setting: setting["d_model"],
    most=limits.WAVES, per=lambda setting: setting["d_model"],
)
MAX_LEN = Number(
    name="max_len", label="max_len", help="Rows of the learned table.",
    default=lambda setting: min(setting["positions"], 16), least=1, most=lambda setting: setting["positions"],
    valid=1, per=lambda setting: setting["positions"],
)
FROM = Number(
    name="pos", link="from", label=N_("From position"), help="Where a rotation starts, from 0.",
    default=lambda setting: min(3, setting["positions"] - 1), least=0, most=lambda setting: setting["positions"] - 1,
    valid=0, per=lambda setting: setting["positions"],
)
OFFSET = Number(
    name="offset", label=N_("Offset (k)"), help="By how many positions it rotates.",
    default=lambda setting: min(5, setting["positions"]), least=lambda setting: -setting["positions"],
    most=lambda setting: setting["positions"], per=lambda setting: setting["positions"],
)
PAIR = PlaceOption(
    name="i", link="pair", label=N_("Pair i"), help="The pair of dimensions 2i and 2i + 1, from 0.", first=0,
    default=lambda setting: min(1, max(0, _pairs(setting) - 1)), among=lambda setting: range(_pairs(setting)),
    per=lambda setting: max(1, _pairs(setting) - 1),
)
_SIZES = (N, D_MODEL, BASE)
WAVES = Picture(
    name="waves", view="waves", title=N_("Waves"), formula=True,
    look_for=N_("Each pair of dimensions is a sine and a cosine of one wavelength. Which pairs change fast?"),
    options=(*_SIZES, DIMENSIONS), draw=_waves,
)
MATRIX = Picture(
    name="positions", view="matrix", title=N_("Matrix"), formula=True,
    look_for=N_(
        "Each row is what a position adds to its word; the second token has pos = 1. Where do rows differ most?"
    ),
    options=_SIZES, draw=lambda setting: [encoding(*_table(setting), tokens=setting.source.tokens)],
)
SIMILARITY = Picture(
    name="position-similarity", view="similarity", title=N_("Similarity"), formula=True,
    look_for=N_("The bands run along the diagonal: what counts is how far apart two positions are, not where."),
    options=_SIZES, draw=lambda setting: [similarity(*_table(setting), tokens=setting.source.tokens)],
)
ROTATION = Picture(
    name="position-rotation", view="rotation", title=N_("Rotation"), formula=True, in_handouts=False,
    look_for=N_("From one position to another is a rotation by a fixed angle, the same wherever it starts."),
    options=(replace(N, page_only=True), D_MODEL, BASE, FROM, OFFSET, PAIR),
    draw=lambda setting: rotation(setting["pos"], setting["offset"], **_turn(setting)),
)
CIRCLE = Picture(
    name="position-circle", view="rotation", formula=True, in_handouts=False, options=ROTATION.options, draw=_circle,
)
LEARNED = Picture(
    name="position-learned", view="learned", title=N_("Learned"), formula=True, in_handouts=False,
    look_for=N_("A learned encoding is a table: beyond its last row there is nothing. The sinusoid continues."),
    options=(*_SIZES, MAX_LEN), draw=_two_tables,
)
D_K = Number(
    name="d_k", label="d_k", help="Width of one head.", default=64, least=2, most=256, valid=1, step=2,
)
HEADS = Number(
    name="n_heads", link="heads", label=N_("Heads: n_heads"), help="How many.", default=8, least=1, most=16, valid=1,
)
FEW = replace(N, default=32, most=64, per=lambda setting: 64)
ROTARY = Picture(
    name="position-rotary", view="rotary", title=N_("Rotary"), formula=True, in_handouts=False,
    look_for=N_("Each position turns the pairs of a vector, the first fast. Only the distance matters to a score."),
    options=(N, D_K, BASE), draw=lambda setting: [rotary(setting["positions"], setting["d_k"], setting["base"])],
)
ROTARY_SCORE = Picture(
    name="position-rotary-score", view="rotary", formula=True, in_handouts=False, options=ROTARY.options,
    draw=_rotary_scores,
)
ALIBI = Picture(
    name="position-alibi", view="alibi", title=N_("ALiBi"), formula=True, in_handouts=False,
    look_for=N_("Each head subtracts its slope times the distance from its scores. Which heads still see far?"),
    options=(FEW, HEADS), draw=lambda setting: [alibi(setting["positions"], setting["n_heads"])],
)
KINDS = View(
    view="kinds", title=N_("Side by side"),
    look_for=N_("Where each encoding enters, what it has to learn, and what it does beyond the trained length."),
    options=(N, D_MODEL, MAX_LEN),
)
OWN = Picture(
    name="position-model", view="model", title=N_("This model's"), in_handouts=False,
    look_for=N_("What the model adds at each position, and how alike positions are. Are there bands here too?"),
    needs=("src.*", "tgt.*"), draw=_of_model,
)
PAGE = Page(
    name="positions", section="see", order=30, title=N_("Positions"),
    about=N_("How a model is told the order of words: waves, learned, rotary, ALiBi."),
    views=(WAVES, MATRIX, SIMILARITY, ROTATION, CIRCLE, LEARNED, ROTARY, ROTARY_SCORE, ALIBI, KINDS,
           OWN),
    where="position",
)
# fmt: on
