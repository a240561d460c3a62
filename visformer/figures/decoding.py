"""Decoding: the candidates of a step as bars, and the hypotheses of beam search as a tree (section 6.1)."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import plotly.graph_objects as go

from visformer.figures.panels import literal, look
from visformer.figures.theme import CURVES, FAINT, TEXT, Theme, visible

_ALL_WRITTEN = 20
"""Steps up to which every token of the tree is written: beyond, they would stand in each other's way."""


class Candidate(Protocol):
    """As :class:`visformer.decoding.Candidate`."""

    token: str
    id: int
    probability: float
    drawn_probability: float


class Beam(Protocol):
    """As :class:`visformer.decoding.Beam`."""

    parent: int
    token: str
    log_probability: float
    finished: bool


def candidate_bars(
    candidates: Sequence[Any],
    chosen: int,
    *,
    names: tuple[str, str, str] = ("model", "drawn from", "all others"),
    theme: Theme = "light",
) -> go.Figure:
    """The likeliest next tokens; under each probability the one that is drawn from. Last, all other tokens together.

    Args:
        candidates: best first.
        chosen: id of the one taken.
        names: of the two bars, and of all other tokens.
        theme: "light" or "dark".
    """
    labels = [f"{literal(visible(c.token))}{' ◂' if c.id == chosen else ''}" for c in candidates]
    labels.append(f"<i>{literal(names[2])}</i>")
    places = list(range(len(labels)))
    figure = go.Figure()
    listed = ([c.probability for c in candidates], [c.drawn_probability for c in candidates])
    values = [[*shares, _rest(shares)] for shares in listed]
    for name, shares, colour in zip(names[:2], values, CURVES[theme][:2], strict=True):
        figure.add_bar(
            y=places,
            x=shares,
            name=name,
            orientation="h",
            marker_color=colour,
            hovertemplate="%{x:.6f}<extra>" + name + "</extra>",
        )
    figure.add_scatter(
        x=[max(pair) for pair in zip(*values, strict=True)],
        y=places,
        text=[_arrow(*pair) for pair in zip(*values, strict=True)],
        mode="text",
        textposition="middle right",
        textfont={"size": 12, "color": TEXT[theme]},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )
    figure.update_layout(**look(theme))
    figure.update_layout(
        margin={"l": 10, "r": 70, "t": 30, "b": 4},
        height=44 + 22 * len(labels),
        bargap=0.25,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
    )
    figure.update_xaxes(range=[0, 1.05], visible=False)
    axis = {"tickmode": "array", "tickvals": places, "ticktext": labels, "autorange": "reversed"}
    figure.update_yaxes(axis, automargin=True)
    return figure


def _rest(shares: Sequence[float]) -> float:
    """What is left of 1; less than single precision can tell is nothing."""
    rest = 1.0 - math.fsum(shares)
    return rest if rest > 1e-6 else 0.0


def _arrow(before: float, after: float) -> str:
    """A probability, and behind an arrow what became of it."""
    texts = _short(before), _short(after)
    return f" {texts[0]}" if texts[0] == texts[1] else f" {texts[0]} → {texts[1]}"


def _short(share: float) -> str:
    return "0" if share == 0 else f"{share:.3f}" if share >= 0.0005 else f"{share:.1e}"


def beam_tree(steps: Sequence[Sequence[Any]], *, theme: Theme = "light") -> go.Figure:
    """Every hypothesis that beam search kept: a column for each step, lines from parent to child.

    The best hypothesis is drawn strong; where there are many steps, its tokens alone are written. Hovering tells the
    token, its hypothesis's log-probability in nats, and the probability.

    Args:
        steps: for each step the hypotheses kept, best first.
        theme: "light" or "dark".
    """
    best = _best_path(steps)
    figure = go.Figure()
    for strong in (False, True):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for step, beams in enumerate(steps):
            for place, beam in enumerate(beams):
                if ((step, place) in best) is strong:
                    xs += [step - 1, step, None]
                    ys += [_height(steps, step - 1, beam.parent), _height(steps, step, place), None]
        line = {"color": CURVES[theme][0] if strong else FAINT[theme], "width": 3 if strong else 1}
        figure.add_scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip")
    spots = [(step, place) for step, beams in enumerate(steps) for place in range(len(beams))]
    beams = [steps[step][place] for step, place in spots]
    tokens, few = [literal(visible(beam.token)) for beam in beams], len(steps) <= _ALL_WRITTEN
    figure.add_scatter(
        x=[step for step, _ in spots],
        y=[_height(steps, *spot) for spot in spots],
        mode="markers+text",
        text=[token if few or spot in best else "" for spot, token in zip(spots, tokens, strict=True)],
        hovertext=tokens,
        textposition="top center",
        textfont={"color": TEXT[theme]},
        customdata=[(beam.log_probability, math.exp(beam.log_probability)) for beam in beams],
        hovertemplate="%{hovertext}: %{customdata[0]:.4f} nats, %{customdata[1]:.4g}<extra></extra>",
        marker={"size": 9, "color": [CURVES[theme][0] if spot in best else FAINT[theme] for spot in spots]},
    )
    figure.update_layout(**look(theme))
    tallest = max((len(beams) for beams in steps), default=1)
    figure.update_layout(showlegend=False, margin={"l": 10, "r": 10, "t": 30, "b": 30}, height=120 + 56 * tallest)
    counted = {"tickvals": list(range(len(steps))), "ticktext": [str(i + 1) for i in range(len(steps))]}
    figure.update_xaxes(counted, showgrid=False, zeroline=False, range=[-1.3, len(steps) - 0.5])
    figure.update_yaxes(visible=False, range=[-0.6, tallest - 0.2])
    return figure


def _height(steps: Sequence[Sequence[Any]], step: int, place: int) -> float:
    tallest = max(len(beams) for beams in steps)
    return tallest / 2 if step < 0 else tallest - 1 - place


def _best_path(steps: Sequence[Sequence[Any]]) -> set[tuple[int, int]]:
    """The places of the likeliest finished hypothesis; without one, of the likeliest at the end."""
    every = [(beam, step, place) for step, beams in enumerate(steps) for place, beam in enumerate(beams)]
    ended = [spot for spot in every if spot[0].finished] or [spot for spot in every if spot[1] == len(steps) - 1]
    ends = [(beam.log_probability / (step + 1), step, place) for beam, step, place in ended]
    path = set()
    if ends:
        _, step, place = max(ends)
        while step >= 0:
            path.add((step, place))
            place = steps[step][place].parent
            step -= 1
    return path
