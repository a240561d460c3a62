"""What is asked of a prediction: the logit of a token or a label, or by how much one of two is ahead.

Every analysis that explains a prediction takes the same ``answer`` and ``row``. The difference of two logits is that of
their log-probabilities, and does not move when all logits do (Zhang and Nanda 2024, "Towards Best Practices of
Activation Patching in Language Models", section 2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from visformer.errors import N_, VisformerError
from visformer.trace.tokens import likeliest

if TYPE_CHECKING:  # a model is above an analysis
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Encoded, Text
    from visformer.trace import Trace


Token = int | str
"""A token by its id or its text, or a label by its number or its name."""

Answer = Token | tuple[Token, Token]
"""A token or a label, whose logit is asked for; or a pair: the logit of the first minus that of the second.

A text is a label's name, one of the row's likeliest tokens as displayed, or what is one token of the model.
"""


@dataclass(frozen=True)
class Asked:
    """One number of a model's logits.

    Args:
        ids: of the token or label; of a pair, of both.
        names: the same, as displayed.
        row: of the logits; None: they have no rows, as of a classifier of whole texts.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]
    row: int | None

    def __call__(self, logits: Any) -> Any:
        """Read it of logits, (row, vocab), (row, label) or (label,), arrays of NumPy or torch."""
        return self.each(logits if self.row is None else logits[self.row])

    def each(self, logits: Any) -> Any:
        """Read it of logits of any shape, (..., vocab) or (..., label), at all rows; also of what is linear in them."""
        return logits[..., self.ids[0]] - sum(logits[..., second] for second in self.ids[1:])

    @property
    def answer(self) -> Answer:
        """The same by its ids, which any function takes without the model."""
        return self.ids[0] if len(self.ids) == 1 else (self.ids[0], self.ids[1])

    @property
    def name(self) -> str:
        """Its name on screen, such as "is − are"."""
        return " − ".join(self.names)


def asked(trace: "Trace", answer: Answer | None, row: int = -1, *, model: "TracedModel | None" = None) -> Asked:
    """Find what is asked for in the logits of a Trace.

    Args:
        trace: with "logits".
        answer: see :data:`Answer`; None: the token that the row predicts, of a classifier its likeliest label.
        row: of the logits, from 0 or, below 0, from the end; of a classifier of whole texts there is only one.
        model: the model, which knows tokens by their text.

    Returns:
        The number, in a row counted from 0.

    Raises:
        MissingTensor: the Trace has no logits.
        VisformerError: there is no such row, token or label.
    """
    logits = trace["logits"]
    n_rows = 1 if logits.value.ndim == 1 else len(logits.value)
    if not -n_rows <= row < n_rows:
        raise VisformerError(N_("row={row} is not in 0 to {last}."), row=row, last=n_rows - 1)
    row %= n_rows
    of_row = logits.value if logits.value.ndim == 1 else logits.value[row]
    labels, following = trace.meta.get("labels"), trace.meta.get("ids", {}).get("next")
    if answer is None:
        answer = int(following[row] if following and not labels else of_row.argmax())
    names: dict[int, str] = dict(enumerate(labels)) if labels else _likeliest(trace, row, of_row)
    each = answer if isinstance(answer, tuple) else (answer,)
    ids = tuple(_found(one, names, labels, len(of_row), model) for one in each)
    if isinstance(answer, tuple) and not len(ids) == len({*ids}) == 2:
        raise VisformerError(
            N_("answer={answer!r}: give one token or label, or a pair of two that differ."), answer=answer
        )
    missing = [i for i in ids if i not in names]
    names |= dict(zip(missing, model._row(missing) if model else [f"#{i}" for i in missing], strict=True))
    return Asked(ids, tuple(names[i] for i in ids), None if logits.value.ndim == 1 else row)


def _likeliest(trace: "Trace", row: int, of_row: Any) -> dict[int, str]:
    """The likeliest tokens of a row, as displayed, by their ids."""
    shown: Sequence[Sequence[str]] = trace.meta.get("likeliest") or ()
    return dict(zip(likeliest(of_row), shown[row], strict=False)) if row < len(shown) else {}


def _found(
    one: Token, names: dict[int, str], labels: Sequence[str] | None, size: int, model: "TracedModel | None"
) -> int:
    """Return the id of a token or the number of a label."""
    if not isinstance(one, str):
        if not isinstance(one, Integral) or isinstance(one, bool) or not 0 <= one < size:
            raise VisformerError(N_("answer={answer!r} is not in 0 to {last}."), answer=one, last=size - 1)
        return int(one)
    found = [i for i, name in names.items() if name == one]
    if found:
        return found[0]
    if labels:
        raise VisformerError(
            N_("answer={answer!r} is none of the labels {labels}."), answer=one, labels=", ".join(labels)
        )
    if model is None:
        raise VisformerError(
            N_("A Trace does not know which token {answer!r} is: give its id, model.token_id({answer!r})."), answer=one
        )
    return model.token_id(one)


def spoken(text: Answer) -> Answer | None:
    """Parse what a person writes: "is", or a pair "is − are"; a minus between spaces, also "-" or "–".

    Args:
        text: what is written; an id or a pair stays as it is.

    Returns:
        The answer; None: nothing is written.
    """
    if not isinstance(text, str):
        return text
    for minus in (" − ", " - ", " – "):
        first, between, second = text.partition(minus)
        if between and first.strip() and second.strip():
            return first.strip(), second.strip()
    return text.strip() or None


def predicted(text: "Encoded", rows: Sequence[int]) -> Callable[[Any], Any]:
    """Return the function of logits, (row, vocab), that sums the log-probabilities of what these rows predict, nats."""
    ids = [text.predicted[row] for row in rows]
    return lambda logits: logits.log_softmax(dim=-1)[[*rows], ids].sum()


def traced(
    model: "TracedModel", source: "Text", target: "Text | None", *, to: str | None = None, **how: Any
) -> "Trace":
    """Trace a text with its second one: a target, or of an encoder its second sentence."""
    second: dict[str, Any] = {"pair" if model.info.kind == "encoder" else "target": target}
    return model.trace(source, to=to, **second, **how)


def ask(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    answer: Answer | None,
    row: int,
    to: str | None = None,
    record: Sequence[str] = (),
) -> "tuple[Trace, Asked | None]":
    """Trace a text, and find what is asked for in its logits.

    Returns:
        The Trace, and the number; None: of a model that predicts next tokens nothing else than these is asked.

    Raises:
        VisformerError: as for :func:`asked`, or the model has no logits.
    """
    model._require_logits()
    if answer is None and model._predicts_next:
        return traced(model, source, target, to=to, record=record), None
    trace = traced(model, source, target, to=to, record=(*record, "logits"))
    return trace, asked(trace, answer, row, model=model)
