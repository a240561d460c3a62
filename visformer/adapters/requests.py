"""What a caller asks of a model: the checked arguments of a call, and its texts as ids."""

from collections.abc import Sequence
from dataclasses import dataclass

from visformer.edits import Edit


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
