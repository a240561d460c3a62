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
        margin={"l": 10, "r": 70, "t": 26, "b": 2},
        height=26 + 17 * len(labels),
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
    texts = short(before), short(after)
    return f" {texts[0]}" if texts[0] == texts[1] else f" {texts[0]} → {texts[1]}"


def short(share: float) -> str:
    """A probability as the bars write it."""
    return "0" if share == 0 else f"{share:.3f}" if share >= 0.0005 else f"{share:.1e}"


def beam_tree(steps: Sequence[Sequence[Any]], *, theme: Theme = "light") -> go.Figure:
    """Every hypothesis that beam search kept: a column for each step, lines from parent to child.

    Under each token stands the log-probability of its hypothesis in nats, by which hypotheses are kept; where it ends,
    also divided by the number of tokens, by which they are ranked in the end. The best is drawn strong and marked;
    where there are many steps, its tokens alone are written. Hovering tells the numbers of every one.

    Args:
        steps: for each step the hypotheses kept, best first.
        theme: "light" or "dark".
    """
    best = set(enumerate(best_path(steps)))
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
    end = max(best, default=None)
    labels = [
        f"{token}{' ◂' if spot == end else ''}<br>{_scored(steps, *spot)}"
        for spot, token in zip(spots, tokens, strict=True)
    ]
    figure.add_scatter(
        x=[step for step, _ in spots],
        y=[_height(steps, *spot) for spot in spots],
        mode="markers+text",
        text=[label if few or spot in best else "" for spot, label in zip(spots, labels, strict=True)],
        hovertext=tokens,
        textposition="top center",
        textfont={"size": 12, "color": TEXT[theme]},
        customdata=[(beam.log_probability, math.exp(beam.log_probability)) for beam in beams],
        hovertemplate="%{hovertext}: %{customdata[0]:.4f} nats, %{customdata[1]:.4g}<extra></extra>",
        marker={"size": 9, "color": [CURVES[theme][0] if spot in best else FAINT[theme] for spot in spots]},
    )
    figure.update_layout(**look(theme))
    tallest = max((len(beams) for beams in steps), default=1)
    figure.update_layout(showlegend=False, margin={"l": 10, "r": 40, "t": 10, "b": 30}, height=70 + 66 * tallest)
    counted = {"tickvals": list(range(len(steps))), "ticktext": [str(i + 1) for i in range(len(steps))]}
    figure.update_xaxes(counted, showgrid=False, zeroline=False, range=[-1.3, len(steps) - 0.5])
    figure.update_yaxes(visible=False, range=[-0.6, tallest - 0.2])
    return figure


def _height(steps: Sequence[Sequence[Any]], step: int, place: int) -> float:
    tallest = max(len(beams) for beams in steps)
    return tallest / 2 if step < 0 else tallest - 1 - place


def _scored(steps: Sequence[Sequence[Any]], step: int, place: int) -> str:
    beam = steps[step][place]
    text = _number(beam.log_probability)
    return f"{text} / {step + 1} = <b>{_number(per_token(steps, step, place), 3)}</b>" if beam.finished else text


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def per_token(steps: Sequence[Sequence[Any]], step: int, place: int) -> float:
    """The score of a hypothesis that ends here: its log-probability divided by its tokens, in nats."""
    return float(steps[step][place].log_probability) / (step + 1)


def best_path(steps: Sequence[Sequence[Any]]) -> list[int]:
    """The winner's place at each step: the likeliest of the finished hypotheses; without one, of those at the end."""
    every = [(beam, step, place) for step, beams in enumerate(steps) for place, beam in enumerate(beams)]
    ended = [spot for spot in every if spot[0].finished] or [spot for spot in every if spot[1] == len(steps) - 1]
    if not ended:
        return []
    _, step, place = max((per_token(steps, step, place), step, place) for _, step, place in ended)
    path = [place]
    for at in range(step, 0, -1):
        path.append(steps[at][path[-1]].parent)
    return path[::-1]
