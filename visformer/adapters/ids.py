"""Token ids in place of a text: they are used as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from visformer.errors import N_, TextError

Text = str | Sequence[int] | NDArray[np.integer[Any]] | Tensor
"""A text, or its token ids: whole numbers in a sequence, or in an array or tensor of one dimension."""


def checked_ids(given: Any, known: int, *, least: int = 1) -> list[int]:
    """Return the token ids that stand for a text.

    Args:
        given: a sequence of whole numbers, or an array or tensor of them with one dimension.
        known: number of ids that the model knows.
        least: how many there have to be.

    Raises:
        TextError: there are too few, or one is not a whole number from 0 to ``known`` - 1.
    """
    values = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(values, Sequence) or isinstance(values, str | bytes | bytearray):
        raise TextError(N_("{given!r} is not a text: pass one sentence as a str, or its token ids."), given=given)
    if len(values) < least:
        raise TextError(N_("There are no token ids: pass at least one."))
    return [_checked(value, place, known) for place, value in enumerate(values)]


def _checked(value: Any, place: int, known: int) -> int:
    plain = value.item() if getattr(value, "shape", None) == () else value  # a number of NumPy or torch
    if isinstance(plain, bool) or not isinstance(plain, int) or not 0 <= plain < known:
        raise TextError(
            N_(
                "{value!r} (item {place}, from 0) is not a token id of this model: token ids are whole numbers "
                "from 0 to {last}."
            ),
            value=plain,
            place=place,
            last=known - 1,
        )
    return plain
