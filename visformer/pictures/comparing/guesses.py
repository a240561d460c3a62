"""What a room guessed beside what the model does, as one panel."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from visformer.panel import Labels, Panel


def room_beside(
    options: Sequence[str],
    chosen: ArrayLike,
    shares: ArrayLike,
    *,
    title: str,
    names: tuple[str, str],
    note: str = "",
    upright: bool = False,
) -> Panel:
    """Draw the share of people who chose each option, and below it the option's weight or probability.

    Args:
        options: words or tokens, a column each.
        chosen: bool (person, option); nobody may have answered.
        shares: (option,), from 0 to 1.
        title: above the panel.
        names: of the two rows, the room and the model.
        note: below it.
        upright: a row for each option, and two columns, as fits a phone.
    """
    taps = np.asarray(chosen, dtype=np.float64)
    room = taps.mean(axis=0) if len(taps) else np.full(len(options), np.nan)
    values, rows, columns = (
        np.stack([room, np.asarray(shares, dtype=np.float64)]),
        Labels(names),
        Labels(tuple(options)),
    )
    if upright:
        values, rows, columns = values.T, columns, rows
    return Panel(name="guess", title=title, values=values, rows=rows, columns=columns, scale="weight", note=note)
