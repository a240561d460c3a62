"""What a caller asks of a model: the checked arguments of a call, its texts as ids, and many texts in batches.

A stream of texts is read window by window, and a window is run in batches of texts of similar length.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from visformer.edits.base import CheckedEdit
from visformer.errors import N_, TextError, VisformerError
from visformer.system import limits

Text = (
    str
    | Sequence[int]
    | Sequence[Sequence[int]]
    | NDArray[np.integer[Any]]
    | Tensor
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
)
"""A text, or its token ids: whole numbers in a sequence, an array or a tensor, also as a batch of one, or what a
tokenizer returns (a mapping with "input_ids"); of a model with a chat template also messages, with role and content."""

Picture = Any
"""What NumPy makes an array of: numbers, an image of PIL, a scene; for models of transformers also a path."""


@dataclass(frozen=True)
class TextRequest:
    """The arguments of :meth:`TracedModel.trace`, or of one text of :meth:`TracedModel.translate_many`, checked.

    The source of a captioner is a picture.
    """

    source: Any
    target: str | list[int] | None
    pair: str | list[int] | None
    to: str | None
    record: tuple[str, ...]
    edits: Sequence[CheckedEdit]
    max_new_tokens: int | None = None
    roles: tuple[str | None, ...] = ()  # of each token of a chat


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
        besides: what a decoder of transformers reads with its ids, such as pixels; each with an axis of one text first.
    """

    request: TextRequest
    src: list[int]
    begin: list[int]
    forced: list[int] | None = None
    segments: Sequence[int] = ()
    first: int = 0
    besides: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def tgt(self) -> list[int]:
        """What the decoder reads, one id for each row; needs ``forced`` where there is an encoder."""
        return [self.begin[0], *(self.forced or ())[:-1]] if self.src and self.begin else self.begin

    @property
    def is_open(self) -> bool:
        """Whether an encoder-decoder has yet to write what its rows predict."""
        return bool(self.src and self.begin) and self.forced is None

    @property
    def predicted(self) -> list[int]:
        """What its rows predict; the last row of a text that nothing follows has none."""
        return self.begin[1:] if self.forced is None else self.forced

    @property
    def rows(self) -> range:
        """The rows whose predictions count."""
        return range(self.first, len(self.predicted))


_ONE_TEXT = N_("A list of {n:,} is not one text: pass one of them, or all of them to trace_many.")


def ids_in(given: Any) -> Any:
    """Return the ids of one text: those of a tokenizer's result without what its mask hides, those of a batch of one.

    Raises:
        TextError: there are several texts.
    """
    mask = given.get("attention_mask") if isinstance(given, Mapping) else None
    given = given["input_ids"] if isinstance(given, Mapping) and "input_ids" in given else given
    values, seen = _row(given), _row(mask)
    if isinstance(values, list | tuple) and values and all(isinstance(each, str) for each in values):
        raise TextError(_ONE_TEXT, n=len(values))
    return values if seen is None else [value for value, is_seen in zip(values, seen, strict=True) if is_seen]


def _row(values: Any) -> Any:
    """A list of what is not one yet; of a batch of one its row."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, list | tuple) or not values or not isinstance(values[0], list | tuple):
        return values
    if len(values) > 1:
        raise TextError(_ONE_TEXT, n=len(values))
    return values[0]


def checked_ids(given: Any, known: int, *, least: int = 1) -> list[int]:
    """Return the token ids that stand for a text.

    Args:
        given: a sequence of whole numbers, or an array or tensor of them with one dimension.
        known: number of ids that the model knows.
        least: how many there have to be.

    Raises:
        TextError: there are too few, or one is not a whole number from 0 to ``known`` - 1.
    """
    values = ids_in(given)
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


_Text = TypeVar("_Text")
_Ready = TypeVar("_Ready")
_Result = TypeVar("_Result")

_MISSING: Any = object()


@dataclass(frozen=True)
class Batches(Generic[_Ready]):
    """Which texts are run together.

    Args:
        lengths: number of tokens of a text on each side.
        nbytes: bytes that a text of these lengths takes.
        size: number of consecutive texts to run together; None: as many of similar length as the limits allow.
        padded: whether texts of different lengths may be run together.
    """

    lengths: Callable[[_Ready], tuple[int, int]]
    nbytes: Callable[[int, int], int]
    size: int | None = None
    padded: bool = True

    def __post_init__(self) -> None:
        if self.size is not None and (not isinstance(self.size, int) or self.size < 1):
            raise VisformerError(
                N_("batch={value!r} must be a number of texts, at least 1, or None to let visformer choose."),
                value=self.size,
            )

    def full(self, n: int, nbytes: int) -> bool:
        """Whether no more texts are to be read before the ``n`` that are ready, of ``nbytes`` together, are run."""
        if self.size is not None:
            return n >= self.size
        return n >= limits.WINDOW or nbytes >= limits.BATCH_BYTES

    def grouped(self, ready: Sequence[_Ready]) -> list[list[int]]:
        """Return indices of the texts of each batch."""
        lengths = [self.lengths(one) for one in ready]
        groups: list[list[int]] = []
        for i in sorted(range(len(ready)), key=lengths.__getitem__):
            if groups and self._fits([lengths[j] for j in (*groups[-1], i)]):
                groups[-1].append(i)
            else:
                groups.append([i])
        return groups

    def _fits(self, lengths: Sequence[tuple[int, int]]) -> bool:
        if not self.padded and len(set(lengths)) > 1:
            return False
        longest = (max(side) for side in zip(*lengths, strict=True))
        allowed = len(lengths) <= limits.BATCH and len(lengths) * self.nbytes(*longest) <= limits.BATCH_BYTES
        return self.size is not None or allowed


def run_all(
    texts: Iterable[_Text],
    prepare: Callable[[_Text], _Ready],
    run: Callable[[Sequence[_Ready]], Sequence[_Result]],
    batches: Batches[_Ready],
) -> Iterator[_Result]:
    """Yield the result of each text, in order; an error waits until the results before it have been taken.

    Args:
        texts: read a bounded number ahead.
        prepare: makes a text ready to run.
        run: returns the results of one batch.
        batches: which texts are run together.

    Raises:
        VisformerError: a text cannot be used; of the class that it has alone, and the message names its index.
    """
    source = enumerate(texts)
    while True:
        window, error = _read(source, prepare, batches)
        yield from _results(window, run, batches)
        if error is not None:
            raise error
        if not window:
            return


def side_by_side(texts: Iterable[Any], **others: Iterable[Any] | None) -> Iterator[tuple[Any, ...]]:
    """Yield each text with its entry of each of ``others``, None where that is None.

    Raises:
        TextError: ``texts`` is a single text.
        VisformerError: when one of them ends before the texts, or goes on after them.
    """
    if isinstance(texts, str):
        raise TextError(N_("{given!r} is a single text: pass a list of texts, or any other iterable."), given=texts)
    return _rows(texts, {name: other for name, other in others.items() if other is not None}, tuple(others))


def _rows(texts: Iterable[Any], given: dict[str, Iterable[Any]], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for text, *values in zip_longest(texts, *given.values(), fillvalue=_MISSING):
        for name, value in zip(given, values, strict=True):
            if text is _MISSING or value is _MISSING:
                raise VisformerError(N_("{name} must have one entry for each of texts."), name=name)
        entries = dict(zip(given, map(_line, values), strict=True))
        yield (_line(text), *(entries.get(name) for name in names))


def _line(value: Any) -> Any:
    """A text without the line break at its end: lines of a file have one."""
    return value.rstrip("\r\n") if isinstance(value, str) else value


def _read(
    source: Iterator[tuple[int, _Text]], prepare: Callable[[_Text], _Ready], batches: Batches[_Ready]
) -> tuple[list[tuple[int, _Ready]], Exception | None]:
    """Read the texts to run next, with their indices, and the error that ended this."""
    window: list[tuple[int, _Ready]] = []
    nbytes = 0
    while not window or not batches.full(len(window), nbytes):
        try:
            index, text = next(source)
        except StopIteration:
            break
        except Exception as error:
            return window, error
        try:
            window.append((index, prepare(text)))
        except VisformerError as error:
            return window, _located(index, error)
        nbytes += batches.nbytes(*batches.lengths(window[-1][1]))
    return window, None


def _results(
    window: Sequence[tuple[int, _Ready]],
    run: Callable[[Sequence[_Ready]], Sequence[_Result]],
    batches: Batches[_Ready],
) -> Iterator[_Result]:
    """Yield the result of each text in order; a batch is run when the first of its texts is asked for."""
    group_of = {i: group for group in batches.grouped([ready for _, ready in window]) for i in group}
    results: dict[int, _Result] = {}
    for i, (index, _) in enumerate(window):
        while i not in results:
            group = group_of[i]
            try:
                results |= zip(group, run([window[j][1] for j in group]), strict=True)
            except VisformerError as error:
                if len(group) == 1:
                    raise _located(index, error) from error
                group_of |= {j: [j] for j in group}  # one by one: the texts before the bad one have a result
        yield results.pop(i)


def _located(index: int, error: VisformerError) -> VisformerError:
    """Say which text an error is about."""
    return type(error)(N_("Text {index}, counted from 0: {reason}"), index=index, reason=error)
