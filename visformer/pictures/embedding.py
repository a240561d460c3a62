"""What enters the first layer: embedding, encoding and their sum (sections 3.4 and 3.5)."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.panel import Panel, common_limit, traced
from visformer.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

Side = Literal["src", "tgt"]
RECORD = ("src.*", "tgt.*")
"""What these pictures need of a trace."""


def sums(trace: Trace, side: Side, *, scaled: bool = True) -> list[Panel]:
    """Embedding, encoding and sum, one colour scale over all three.

    Args:
        trace: with :data:`RECORD`.
        side: "src" or "tgt".
        scaled: with the factor sqrt(d_model), as the model has it; else without, which it never computes.
    """
    embed = traced(trace, f"{side}.embed" if scaled else f"{side}.embedding", title=N_("embedding × √d_model"))
    if not scaled:
        embed = replace(embed, name="embed", title=N_("embedding"))
    position = traced(trace, f"{side}.position", title=N_("positional encoding"), before="+")
    position = replace(position, rows=embed.rows)
    total = replace(
        embed,
        name="input",
        title=N_("their sum"),
        values=embed.values + position.values,
        before="=",
        note=_shape(embed),
    )
    panels = [embed, position, total]
    limit = common_limit(*(panel.values for panel in panels))
    below = replace(embed.columns, written=False)
    return [replace(embed, limit=limit), *(replace(panel, limit=limit, columns=below) for panel in panels[1:])]


def table(trace: Trace, side: Side) -> "DataFrame":
    """For each token the norms of embedding, encoding and sum, and the angle between embedding and sum in degrees.

    Both with the factor sqrt(d_model) and without: the factor keeps the encoding from drowning the word.
    """
    from pandas import DataFrame

    raw, scaled = trace.params[f"{side}.embedding"].value, trace[f"{side}.embed"].value
    position = trace[f"{side}.position"].value
    return DataFrame(
        {
            "token": trace.tokens[side],
            "place": range(1, len(raw) + 1),
            "pos": range(len(raw)),
            "|embedding|": _norm(raw),
            "|embedding · √d|": _norm(scaled),
            "|PE|": _norm(position),
            "|sum|": _norm(scaled + position),
            "∠ embedding · √d, sum (°)": _angle(scaled, scaled + position),
            "∠ embedding, embedding + PE (°)": _angle(raw, raw + position),
        }
    )


def compare(trace: Trace, side: Side, first: int, second: int) -> dict[str, tuple[float, float]]:
    """Distance and cosine of two tokens (places from 0): as embeddings, as encodings, and as inputs."""
    parts = {"embedding": "embed", "PE": "position", "sum": "input"}
    result = {}
    for label, part in parts.items():
        a, b = trace[f"{side}.{part}"].value[[first, second]]
        result[label] = (float(np.linalg.norm(a - b)), float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))
    return result


def repeated(trace: Trace, side: Side) -> tuple[int, int] | None:
    """The first two places of a token that stands twice, or None."""
    seen: dict[str, int] = {}
    for place, token in enumerate(trace.tokens[side]):
        if token in seen:
            return seen[token], place
        seen[token] = place
    return None


def _norm(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms: NDArray[np.float32] = np.linalg.norm(rows, axis=-1)
    return norms


def _angle(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    cosine = (a * b).sum(axis=-1) / (_norm(a) * _norm(b))
    angle: NDArray[np.float32] = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angle


def _shape(panel: Panel) -> str:
    return f"({', '.join(map(str, panel.values.shape))})"
