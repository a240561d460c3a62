"""A result of the lab: computed, and beside it what the notes print."""

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.formulas import Floats
from visformer.panel import Labels, Panel, common_limit, numbered


def beside(
    title: str,
    computed: Floats,
    printed: Floats | None,
    marks: NDArray[np.bool_] | None,
    rows: tuple[str, ...] | None = None,
) -> list[Panel]:
    """The computed matrix, and the printed one if there is one, on one colour scale.

    Args:
        title: of the result.
        computed: what the arithmetic gives.
        printed: what the notes print, NaN where nothing.
        marks: which printed numbers differ; None: not to be compared, since the visitor changed the shape.
        rows: labels of the rows; None: numbers.
    """
    named = Labels(rows) if rows is not None and len(rows) == len(computed) else numbered(len(computed))
    columns = numbered(computed.shape[1])
    limit = common_limit(computed, *([] if printed is None else [printed]))
    panels = [
        Panel(
            name=title,
            title=title,
            values=computed,
            rows=named,
            columns=columns,
            limit=limit,
            digits=4,
            note=N_("computed"),
        )
    ]
    if printed is not None and marks is not None:
        panels.append(
            Panel(
                name=f"{title} printed",
                title=title,
                digits=4,
                values=printed,
                rows=named,
                columns=columns,
                limit=limit,
                note=N_("printed"),
                outlined=marks,
            )
        )
    return panels


def scale(on: bool) -> dict[str, Floats]:
    """The input that switches the scaling of scores."""
    return {"scale": np.array([[1.0 if on else 0.0]])}
