"""Charts of decoding: the candidates of a step as bars, and beam search as a tree (section 6.1)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, TEXT, Theme, probability, visible

if TYPE_CHECKING:  # torch
    from visformer.model.decoding import Beam, Candidate

_LEVEL = 0.27
"""Of the way from a parent to its child, the part at each end that is level, so that no line crosses a label."""

_ALL_WRITTEN = 20
"""Up to this many steps all tokens of the tree are labelled; more labels would overlap."""

_LEAST, _FEWEST = 0.001, 3
"""A candidate below this probability, which would read <0.001, is among all others, except for so many."""

_TELLING = 0.1
"""If no candidate reaches this probability, bars on a scale up to 1 would be too short."""


def candidate_bars(
    candidates: Sequence["Candidate"],
    chosen: int,
    *,
    step: int = 0,
    names: tuple[str, str, str] = ("model", "sampling distribution", "all others"),
    title: str = "step {step}: candidates for the next token",
    theme: Theme = "light",
) -> go.Figure:
    """Draw the likeliest next tokens: the model's probability, where it differs the sampling one, and last all others.

    The axis ends at 1 or, if no candidate reaches a tenth, at the likeliest; ▸ marks bars that are cut off.

    Args:
        candidates: of type :class:`visformer.model.decoding.Candidate`, best first.
        chosen: id of the selected token.
        step: decoding step, from 0.
        names: labels of the two bars, and of all other tokens.
        title: title in a file; ``{step}`` counts from 1.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    shown = [
        c
        for place, c in enumerate(candidates)
        if place < _FEWEST or c.id == chosen or max(c.probability, c.drawn_probability) >= _LEAST
    ]
    labels = [f"{literal(visible(c.token))}{' ◂' if c.id == chosen else ''}" for c in shown]
    labels.append(f"<i>{literal(names[2])}</i>")
    places = list(range(len(labels)))
    figure = go.Figure()
    listed = [c.probability for c in shown], [c.drawn_probability for c in shown]
    largest = max([*listed[0], *listed[1]], default=1.0)
    end = 1.0 if largest >= _TELLING else largest
    values = [[*shares, _rest(shares)] for shares in listed]
    alike = all(probability(a) == probability(b) for a, b in zip(*values, strict=True))
    drawn = values[: 1 if alike else 2]
    for name, shares, colour in zip(names, drawn, CURVES[theme], strict=False):
        figure.add_bar(
            y=places,
            x=shares,
            name=name,
            orientation="h",
            marker_color=colour,
            hovertemplate="%{x:.6f}<extra>" + name + "</extra>",
        )
    figure.add_scatter(
        x=[min(end, max(pair)) for pair in zip(*values, strict=True)],
        y=places,
        text=[("▸" if max(pair) > end else "") + _arrow(*pair) for pair in zip(*values, strict=True)],
        mode="text",
        textposition="middle right",
        textfont={"size": 12, "color": TEXT[theme]},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )
    figure.update_layout(**look(theme), **metadata(title.format(step=step + 1), _candidates(candidates, chosen, step)))
    figure.update_layout(
        margin={"l": 10, "r": 70, "t": 26, "b": 2},
        height=26 + 22 * len(labels),
        bargap=0.25,
        legend=legend(),
    )
    figure.update_xaxes(range=[0, 1.05 * end], visible=False)
    axis = {"tickmode": "array", "tickvals": places, "ticktext": labels, "autorange": "reversed"}
    figure.update_yaxes(axis, automargin=True)
    return figure


def _candidates(candidates: Sequence[Any], chosen: int, step: int) -> dict[str, list[Any]]:
    """Return a table with one row per candidate, without the sum over all other tokens."""
    names = ("token", "id", "probability", "drawn_probability")
    columns = {name: [getattr(candidate, name) for candidate in candidates] for name in names}
    return {"step": [step] * len(candidates), **columns, "chosen": [c.id == chosen for c in candidates]}


def _rest(shares: Sequence[float]) -> float:
    """Return the remainder to 1; anything within single precision counts as 0."""
    rest = 1.0 - math.fsum(shares)
    return rest if rest > 1e-6 else 0.0


def _arrow(before: float, after: float) -> str:
    """Format two probabilities as "before → after", or as one if they look the same."""
    texts = probability(before), probability(after)
    return f" {texts[0]}" if texts[0] == texts[1] else f" {texts[0]} → {texts[1]}"


def beam_tree(
    steps: Sequence[Sequence["Beam"]],
    *,
    unit: str = "nats",
    title: str = "beam search: beam width {size}",
    theme: Theme = "light",
) -> go.Figure:
    """Draw all hypotheses in the beam as a tree: a column for each step, lines from parent to child.

    Below each token is the log-probability of its hypothesis in nats, by which the beam is pruned; at its end also the
    log-probability per token, by which finished hypotheses are ranked. The best one is highlighted; with many steps
    only its tokens are labelled. Hovering shows the numbers of each hypothesis.

    Args:
        steps: for each step the hypotheses in the beam, of type :class:`visformer.model.decoding.Beam`, best first.
        unit: of log-probabilities, in the reader's language.
        title: title in a file; ``{size}`` is the beam width.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    best = set(enumerate(best_path(steps)))
    table = _hypotheses(steps, best)
    spots = list(zip(table["step"], table["beam"], strict=True))
    tallest = max(map(len, steps), default=1)
    heights = [tallest - 1 - place for place in table["beam"]]
    figure = go.Figure()
    for strong in (False, True):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for spot, height, parent in zip(spots, heights, table["parent"], strict=True):
            if (spot in best) is strong:
                start = tallest / 2 if parent is None else tallest - 1 - parent
                xs += [spot[0] - 1, spot[0] - 1 + _LEVEL, spot[0] - _LEVEL, spot[0], None]
                ys += [start, start, height, height, None]
        line = {"color": CURVES[theme][0] if strong else FAINT[theme], "width": 3 if strong else 1}
        figure.add_scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip")
    tokens, few = [literal(visible(token)) for token in table["token"]], len(steps) <= _ALL_WRITTEN
    end = max(best, default=None)
    labels = [
        f"{token}{' ◂' if spot == end else ''}<br>{_scored(steps, *spot)}"
        for spot, token in zip(spots, tokens, strict=True)
    ]
    figure.add_scatter(
        x=table["step"],
        y=heights,
        mode="markers+text",
        text=[label if few or spot in best else "" for spot, label in zip(spots, labels, strict=True)],
        hovertext=tokens,
        textposition="top center",
        textfont={"size": 12, "color": TEXT[theme], "shadow": _halo(BACKGROUND[theme])},
        customdata=[(score, math.exp(score)) for score in table["score"]],
        hovertemplate="%{hovertext}: %{customdata[0]:.4f} " + unit + ", %{customdata[1]:.6f}<extra></extra>",
        marker={"size": 9, "color": [CURVES[theme][0] if spot in best else FAINT[theme] for spot in spots]},
    )
    figure.update_layout(**look(theme), **metadata(title.format(size=tallest), table))
    figure.update_layout(showlegend=False, margin={"l": 10, "r": 40, "t": 28, "b": 30}, height=88 + 72 * tallest)
    figure.update_layout(dragmode=False)  # a finger scrolls a wide tree
    counted = {"tickvals": list(range(len(steps))), "ticktext": [str(i + 1) for i in range(len(steps))]}
    figure.update_xaxes(counted, showgrid=False, zeroline=False, range=[-1.3, len(steps) - 0.5])
    figure.update_yaxes(visible=False, range=[-0.6, tallest - 0.2])
    return figure


def _hypotheses(steps: Sequence[Sequence[Any]], best: set[tuple[int, int]]) -> dict[str, list[Any]]:
    """Return a table with one row per hypothesis: its rank in its step, and its parent's rank in the previous step.

    At the first step there is no parent.
    """
    every = [(step, place, beam) for step, beams in enumerate(steps) for place, beam in enumerate(beams)]
    return {
        "step": [step for step, _, _ in every],
        "beam": [place for _, place, _ in every],
        "token": [beam.token for _, _, beam in every],
        "id": [beam.id for _, _, beam in every],
        "score": [beam.log_probability for _, _, beam in every],
        "parent": [beam.parent if step else None for step, _, beam in every],
        "finished": [beam.finished for _, _, beam in every],
        "best": [(step, place) in best for step, place, _ in every],
    }


def _halo(colour: str) -> str:
    """Return a text shadow that keeps lines from touching the labels."""
    return ", ".join(f"{x}px {y}px 1px {colour}" for x in (-2, 0, 2) for y in (-2, 0, 2))


def _scored(steps: Sequence[Sequence[Any]], step: int, place: int) -> str:
    beam = steps[step][place]
    text = _number(beam.log_probability)
    return f"{text} / {step + 1}<br>= <b>{_number(per_token(steps, step, place), 3)}</b>" if beam.finished else text


def _number(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def per_token(steps: Sequence[Sequence[Any]], step: int, place: int) -> float:
    """Return the score of a finished hypothesis: its log-probability per token, in nats."""
    return float(steps[step][place].log_probability) / (step + 1)


def best_path(steps: Sequence[Sequence[Any]]) -> list[int]:
    """Return the best hypothesis's rank at each step; if none is finished, that of the best one at the last step."""
    every = [(beam, step, place) for step, beams in enumerate(steps) for place, beam in enumerate(beams)]
    ended = [spot for spot in every if spot[0].finished] or [spot for spot in every if spot[1] == len(steps) - 1]
    if not ended:
        return []
    _, step, place = max((per_token(steps, step, place), step, place) for _, step, place in ended)
    path = [place]
    for at in range(step, 0, -1):
        path.append(steps[at][path[-1]].parent)
    return path[::-1]
