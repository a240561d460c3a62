"""Activation patching: which values of a clean run, put into a corrupt one, bring the answer back.

Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT", section 2; Zhang and Nanda 2024, "Towards Best Practices of
Activation Patching in Language Models".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.effects.weight_effects import Progress, require_choice, with_progress
from visformer.errors import N_, VisformerError

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Encoded, Text
    from visformer.edits import Patch
    from visformer.trace import Trace


LEAST = 0.5
"""Least difference between clean and corrupt, nats: shares of less are mostly noise."""

By = Literal["layer-token", "head"]


@dataclass(frozen=True)
class PatchingPair:
    """A bundled pair of texts that differ in one thing, and what they let a model predict.

    Args:
        model: the bundled model that it is for.
        about: what differs, such as "measure word".
        clean: after this text the model prefers the first answer.
        corrupt: after this one it does not, or less.
        prefix: of an encoder-decoder's target, before the answer; a text or token ids.
        answers: what follows, once as for ``clean`` and once as for ``corrupt``; both of the kind of ``prefix``.
    """

    model: str
    about: str
    clean: str
    corrupt: str
    prefix: "Text"
    answers: "tuple[Text, Text]"


@dataclass(frozen=True)
class Patched:
    """What each patch brings back.

    Args:
        share: (layer, token) or (layer, head) float64: 0: as in the corrupt run, 1: as in the clean one.
        stack: "encoder" or "decoder" for tokens; for heads with the kind of attention, such as "decoder.cross_attn".
        clean: log p(answer A) - log p(answer B) in the clean run, nats.
        corrupt: the same in the corrupt run.
        tokens: of the clean and of the corrupt text, along the axis of tokens, without the answer; empty for heads.
        row: the row that predicts the answer, from 0.
        answers: the tokens A and B, as displayed.
    """

    share: NDArray[np.float64]
    stack: str
    clean: float
    corrupt: float
    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    row: int
    answers: tuple[str, str]


def patching(
    model: "TracedModel",
    clean: "Text",
    corrupt: "Text",
    *,
    answers: "tuple[Text, Text]",
    by: By = "layer-token",
    stack: str | None = None,
    prefix: "Text" = "",
    progress: Progress | None = None,
    to: str | None = None,
) -> Patched:
    """Put values of the clean run into the corrupt one, one at a time, and measure how much of the answer comes back.

    share = (patched - corrupt) / (clean - corrupt) of log p(A) - log p(B). A share near 1 says that what the two texts
    differ in passes through this place; a share near 0 does not say that the place is unused, only that it carries
    nothing of this difference by itself.

    Args:
        model: a model that predicts next tokens.
        clean: the text for which A is right.
        corrupt: a text of as many tokens.
        answers: A and B, which differ in one token; texts or, like ``prefix``, token ids.
        by: "layer-token": the residual stream that enters a layer, at one token; "head": the output of a head before
            W_O, at all of its positions.
        stack: "encoder" or "decoder"; for heads with the kind of attention: "decoder.cross_attn". None: the encoder,
            of a decoder-only model the decoder, and self-attention.
        prefix: what an encoder-decoder's target begins with.
        progress: as for :func:`weight_effects`.
        to: target language, as for ``model.trace``.

    Returns:
        The shares, with both differences.

    Raises:
        VisformerError: the texts have different numbers of tokens, the answers do not differ in one token or are not of
            the kind of the prefix, clean minus corrupt is below 0.5 nats, or the model predicts no next token.
        EditError: the model does not let these values be changed.
        TraceError: it has no such stack.
    """
    from visformer.edits import Patch

    require_choice("by", by, ("layer-token", "head"))
    model._require_predictions()
    part = stack or ("decoder" if model.info.kind == "decoder" else "encoder")
    names = _names(model, part, by)
    right = _Run.of(model, clean, answers, prefix=prefix, to=to, record=names)
    wrong = _Run.of(model, corrupt, answers, prefix=prefix, to=to, record=())
    _require_same_length(right, wrong)
    of_clean, of_corrupt = right.difference(), wrong.difference()
    if of_clean - of_corrupt < LEAST:
        raise VisformerError(
            N_(
                "log p({a!r}) - log p({b!r}) is {clean:.2f} nats in the clean run and {corrupt:.2f} in the corrupt "
                "one: "
                "the clean one has to be at least {least} above it."
            ),
            a=answers[0],
            b=answers[1],
            clean=of_clean,
            corrupt=of_corrupt,
            least=LEAST,
        )
    side = right.trace[names[0]].axes[-2 if by == "layer-token" else 1].side or "tgt"
    end = right.row + 1 if side == "tgt" else None  # without the answer
    tokens = (right.trace.tokens[side][:end], wrong.trace.tokens[side][:end])
    size = len(tokens[0]) if by == "layer-token" else right.trace[names[0]].shape[0]

    def patches() -> "Iterator[Patch]":
        for name in names:
            for i in range(size):
                yield Patch.of(right.trace, name, **{"token" if by == "layer-token" else "head": i})

    runs = model.log_probabilities(((wrong.text, patch) for patch in patches()), every=True)
    found = np.array([wrong.preference(each) for each in with_progress(runs, len(names) * size, progress)])
    share = (found.reshape(len(names), size) - of_corrupt) / (of_clean - of_corrupt)
    return Patched(
        share,
        _stack_of(names[0], by),
        of_clean,
        of_corrupt,
        tokens if by == "layer-token" else ((), ()),
        right.row,
        right.answers,
    )


def patching_pair(model: "TracedModel", clean: "Text", corrupt: "Text", *, to: str | None = None) -> PatchingPair:
    """Make a pair of two texts of one's own: its answers are the first tokens that the model predicts differently.

    Args:
        model: a model that predicts next tokens.
        clean: a text.
        corrupt: a text of as many tokens.
        to: target language, as for ``model.trace``.

    Returns:
        The pair, with prefix and answers as token ids.

    Raises:
        VisformerError: the texts have different numbers of tokens, the model predicts the same after both, or one of
            the predictions ends where they begin to differ.
    """
    model._require_predictions()
    require_same_number(len(model.tokenize(clean)), len(model.tokenize(corrupt)))
    first, second = (model.trace(text, to=to, record=()).meta["ids"]["next"] for text in (clean, corrupt))
    if model.info.kind == "decoder":  # of a text that goes on, only the last row is an answer
        first, second = first[-1:], second[-1:]
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if at is None or any(model.text.is_special([first[at], second[at]])):
        raise VisformerError(
            N_(
                "After both texts the model predicts the same, {answer!r}, or one answer ends where the other goes on: "
                "there is no token in which they differ, so nothing can come back. Give a text with another answer."
            ),
            answer=model.text.decode(first),
        )
    return PatchingPair(model.info.name, "", clean, corrupt, tuple(first[:at]), ((first[at],), (second[at],)))  # type: ignore[arg-type]


def patching_pairs(model: str | None = None) -> list[PatchingPair]:
    """Return the bundled pairs, each of which the model that it names can be patched with.

    Args:
        model: name of a bundled model; None: the pairs of all.

    Returns:
        Pairs in the order of the file.
    """
    lines = files("visformer.analysis.effects").joinpath("pairs.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    pairs = [PatchingPair(row[0], row[1], row[2], row[3], row[4], (row[5], row[6])) for row in rows]
    return [pair for pair in pairs if model in (None, pair.model)]


@dataclass(frozen=True)
class _Run:
    """One of the two texts, with the row that predicts the answer and the ids of both answers."""

    model: "TracedModel"
    trace: "Trace"
    text: "Encoded"
    row: int
    ids: tuple[int, int]

    @classmethod
    def of(
        cls,
        model: "TracedModel",
        text: "Text",
        answers: "tuple[Text, Text]",
        *,
        prefix: "Text",
        to: str | None,
        record: Sequence[str],
    ) -> "_Run":
        traces = [
            model.trace(text, _joined(prefix, answer), to=to, record=names)
            for answer, names in zip(answers, (record, ()), strict=True)
        ]
        first, second = (model.read_again(trace).predicted for trace in traces)
        if model.info.kind == "decoder":  # its last row goes beyond the answer
            first, second = first[:-1], second[:-1]
        places = [i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
        if len(first) != len(second) or len(places) != 1:
            raise VisformerError(
                N_(
                    "The answers {a!r} and {b!r} have to differ in exactly one token: they are {first} and {second} "
                    "tokens here, {n} of them different."
                ),
                a=answers[0],
                b=answers[1],
                first=len(first),
                second=len(second),
                n=len(places) + abs(len(first) - len(second)),
            )
        row = places[0]
        return cls(model, traces[0], model.read_again(traces[0]), row, (first[row], second[row]))

    @property
    def answers(self) -> tuple[str, str]:
        """Both answers, as displayed."""
        a, b = self.model._row(self.ids)
        return a, b

    def difference(self) -> float:
        """log p(A) - log p(B) as the model is, nats."""
        return self.preference(next(self.model.log_probabilities([(self.text, ())], every=True)))

    def preference(self, logs: NDArray[Any]) -> float:
        """The same of log-probabilities, (row, vocab)."""
        return float(logs[self.row, self.ids[0]]) - float(logs[self.row, self.ids[1]])


def _joined(prefix: "Text", answer: "Text") -> "Text":
    """The beginning of a target and what follows, both texts or both ids."""
    if not len(prefix):
        return answer
    if isinstance(prefix, str) != isinstance(answer, str):
        raise VisformerError(
            N_("prefix={prefix!r} and the answer {answer!r} have to be both texts, or both token ids."),
            prefix=prefix,
            answer=answer,
        )
    return prefix + answer if isinstance(prefix, str) else [*prefix, *answer]  # type: ignore[operator]


def _require_same_length(clean: _Run, corrupt: _Run) -> None:
    require_same_number(*(len(run.text.src or run.text.begin) for run in (clean, corrupt)))
    require_same_number(len(clean.text.tgt), len(corrupt.text.tgt))


def require_same_number(clean: int, corrupt: int) -> None:
    """Require as many tokens in both texts, so that their places correspond.

    Args:
        clean: number of tokens.
        corrupt: number of tokens.

    Raises:
        VisformerError: they differ.
    """
    if clean != corrupt:
        raise VisformerError(
            N_(
                "The clean text has {clean} tokens and the corrupt one {corrupt}: their tokens have to correspond, so "
                "give "
                "texts of equal length."
            ),
            clean=clean,
            corrupt=corrupt,
        )


def _names(model: "TracedModel", stack: str, by: By) -> list[str]:
    """The tensors whose parts are patched, one for each layer."""
    part, _, kind = stack.partition(".")
    ending = "resid_pre" if by == "layer-token" else f"{kind or 'self_attn'}.heads"
    names = [name for name in model._names if name.startswith(f"{part}.") and name.endswith(f".{ending}")]
    if not names:
        raise VisformerError(
            N_("{name} has no {tensor}: nothing can be patched there."),
            name=model.info.name,
            tensor=f"{part}.*.{ending}",
        )
    return names


def _stack_of(name: str, by: By) -> str:
    part, _, rest = name.split(".", 2)
    return part if by == "layer-token" else f"{part}.{rest.removesuffix('.heads')}"
