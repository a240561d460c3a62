"""What a caller asks of a model: the checked arguments of a call, and its texts as ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from visformer.edits import Edit
from visformer.errors import N_, TextError

Text = str | Sequence[int] | NDArray[np.integer[Any]] | Tensor
"""A text, or its token ids: whole numbers in a sequence, or in an array or tensor of one dimension."""


@dataclass(frozen=True)
class Request:
    """The arguments of :meth:`TracedModel.trace`, or of one text of :meth:`TracedModel.translate_many`, checked."""

    source: str | list[int]
    target: str | list[int] | None
    pair: str | list[int] | None
    to: str | None
    record: tuple[str, ...]
    edits: Sequence[Edit]
    max_new_tokens: int | None = None


@dataclass(frozen=True)
class Encoded:
    """A request, its texts as ids.

    Args:
        request: what was asked for.
        src: what the encoder reads; empty without one.
        begin: what the decoder begins with; of a decoder-only model the whole text.
        forced: what the rows of the decoder predict, the end last; None: an encoder-decoder's own greedy output, or
            the text itself, whose last row predicts nothing.
        segments: the segment of each of ``src``, 0 or 1, for models that have them.
        first: the first row whose prediction counts; rows before it belong to a text that is continued.
    """

    request: Request
    src: list[int]
    begin: list[int]
    forced: list[int] | None = None
    segments: Sequence[int] = ()
    first: int = 0

    @property
    def tgt(self) -> list[int]:
        """What the decoder reads, one id for each row; needs ``forced`` where there is an encoder."""
        return [self.begin[0], *(self.forced or ())[:-1]] if self.src else self.begin

    @property
    def predicted(self) -> list[int]:
        """What its rows predict; the last row of a text that nothing follows has none."""
        return self.begin[1:] if self.forced is None else self.forced

    @property
    def rows(self) -> range:
        """The rows whose predictions count."""
        return range(self.first, len(self.predicted))


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
