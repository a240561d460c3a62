"""What a room guessed beside what the model does, as one panel: a row for each word, the room beside the model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from visformer.panel import Labels, Panel


def room_beside(
    options: Sequence[str], chosen: ArrayLike, shares: ArrayLike, *, title: str, columns: tuple[str, str], note: str = ""
) -> Panel:
    """Draw the share of people who chose each option beside its weight or probability.

    Args:
        options: words or tokens.
        chosen: bool (person, option); nobody may have answered.
        shares: (option,), from 0 to 1.
        title: above the panel.
        columns: names of the two columns, the room and the model.
        note: below it.
    """
    taps = np.asarray(chosen, dtype=np.float64)
    room = taps.mean(axis=0) if len(taps) else np.full(len(options), np.nan)
    values = np.column_stack([room, np.asarray(shares, dtype=np.float64)])
    rows, names = Labels(tuple(options)), Labels(columns)
    return Panel(name="guess", title=title, values=values, rows=rows, columns=names, scale="weight", note=note)
