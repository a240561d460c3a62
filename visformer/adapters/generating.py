"""Decoding shared by all adapters: greedy, sampled or beam search, each step with its candidates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from visformer.edits.base import CheckedEdit
from visformer.errors import N_, VisformerError
from visformer.model.decoding import (
    Beam,
    Candidate,
    Decoding,
    Predictor,
    Step,
    beam_search,
    check_ranges,
    confidence,
    decode,
    reshape,
)
from visformer.system.arguments import require_whole
from visformer.system.progress import report
from visformer.trace.tokens import distinguished, likeliest


class Vocabulary(Protocol):
    """Maps ids to text."""

    def __len__(self) -> int: ...

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id."""
        ...

    def spelled(self, i: int) -> str:
        """An id as the vocabulary spells it, with "␣" for a space."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without specials."""
        ...

    def is_special(self, ids: Sequence[int]) -> tuple[bool, ...]:
        """Whether each id is special, that is, stands for no text."""
        ...

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The word that each id belongs to, counted from 0."""
        ...


def displayed(text: Vocabulary, rows: Iterable[Sequence[int]]) -> list[tuple[str, ...]]:
    """The text displayed for each id of each row; different ids that look alike, in any row, keep their marks."""
    ids = [[*row] for row in rows]
    shown = [text.shown(row) for row in ids]
    each = iter(distinguished([token for row in shown for token in row], [i for row in ids for i in row], text.spelled))
    return [tuple(next(each) for _ in row) for row in ids]


def alternatives(text: Vocabulary, logits: NDArray[np.floating]) -> tuple[str, ...]:
    """The likeliest next tokens by the logits of a row, (vocab,): each by itself, marked where two look alike."""
    ids = likeliest(logits)
    return distinguished([text.shown([i])[0] for i in ids], ids, text.spelled)


@dataclass(frozen=True)
class Settings:
    """How a sentence is decoded; greedily by default. See :meth:`visformer.adapters.base.TracedModel.translate`.

    Raises:
        VisformerError: a value is out of range, or beam search is combined with sampling.
    """

    prefix: tuple[int, ...] = ()  # ids that the sentence begins with
    beam_size: int = 1
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0
    edits: Sequence[CheckedEdit] = ()
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        check_ranges(self.temperature, self.top_k, self.top_p)
        require_whole("beam_size", self.beam_size)
        require_whole("seed", self.seed, least=0)
        if self.max_new_tokens is not None:
            require_whole("max_new_tokens", self.max_new_tokens)
        if self.beam_size > 1 and self.samples:
            raise VisformerError(
                N_("beam_size={value} must be 1 with temperature, top_k or top_p: beam search does not sample."),
                value=self.beam_size,
            )

    @property
    def samples(self) -> bool:
        """Whether tokens are sampled."""
        return any(value is not None for value in (self.temperature, self.top_k, self.top_p))


@dataclass(frozen=True)
class Generator:
    """Decodes sentences from a model's next-token predictions."""

    text: Vocabulary
    allowed: Tensor  # bool (vocab,), ids that may be generated
    end_ids: tuple[int, ...]  # ids of the tokens that end a sentence

    def greedy(self, next_token: Predictor, start: Tensor, limits: Sequence[int]) -> list[tuple[list[int], float]]:
        """Decode each row greedily; returns its ids, the end token last unless it was cut off, and its confidence.

        Candidates are not collected: for each step they cost as much time as a layer. ``limits``: how many ids each
        row may get.
        """
        taken: list[Tensor] = []  # (row,) for each step

        def watch(log_probabilities: Tensor, chosen: Tensor) -> None:
            taken.append(log_probabilities.gather(1, chosen[:, None])[:, 0])

        rows = decode(
            next_token, start, choose=self.likeliest, end_ids=self.end_ids, max_new_tokens=max(limits), watch=watch
        )
        cut = [ids[:limit] for ids, limit in zip(rows, limits, strict=True)]
        by_row = torch.stack(taken, dim=1)  # (row, step)
        return [(ids, confidence(steps[: len(ids)])) for ids, steps in zip(cut, by_row, strict=True)]

    def generate(self, next_token: Predictor, start: Tensor, limit: int, how: Settings) -> Decoding:
        """Decode one sentence: add at most ``limit`` ids to ``start``, int64 (1, tgt), which ends with the prefix."""
        if how.beam_size > 1:
            return self._search(next_token, start, limit, how)
        generator = torch.Generator().manual_seed(int(how.seed) % 2**64)
        steps: list[Step] = []

        def distribution(log_probabilities: Tensor) -> Tensor:
            allowed = log_probabilities.masked_fill(~self.allowed, -torch.inf)
            return reshape(allowed, temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)

        def choose(log_probabilities: Tensor) -> Tensor:
            if how.samples:
                return torch.multinomial(distribution(log_probabilities), 1, generator=generator)[:, 0]
            return self.likeliest(log_probabilities)

        def watch(log_probabilities: Tensor, chosen: Tensor) -> None:
            steps.append(self._step(log_probabilities[0], distribution(log_probabilities)[0], int(chosen)))
            report(len(steps), limit)

        (ids,) = decode(next_token, start, choose=choose, end_ids=self.end_ids, max_new_tokens=limit, watch=watch)
        return self.decoding([*how.prefix, *ids], _confidence(steps), steps=steps)

    def _search(self, next_token: Predictor, start: Tensor, limit: int, how: Settings) -> Decoding:
        result = beam_search(
            next_token, start, beam_size=how.beam_size, allowed=self.allowed, end_ids=self.end_ids, max_new_tokens=limit
        )
        steps = [self._step(row, row.exp(), token) for row, token in zip(result.along, result.ids, strict=True)]
        beams = tuple(
            tuple(
                Beam(parent, token, i, score, i in self.end_ids)
                for (parent, i, score), token in zip(step, self._apart([i for _, i, _ in step]), strict=True)
            )
            for step in result.steps
        )
        return self.decoding([*how.prefix, *result.ids], _confidence(steps), steps=steps, beams=beams)

    def likeliest(self, log_probabilities: Tensor) -> Tensor:
        """Map log-probabilities, or logits, (row, vocab) to the likeliest of the ids that may be generated, (row,)."""
        return log_probabilities.masked_fill(~self.allowed, -torch.inf).argmax(dim=-1)

    def _step(self, log_probabilities: Tensor, sampling: Tensor, chosen: int) -> Step:
        """Collect the ten likeliest tokens and the chosen one; ``sampling`` (vocab,): the probabilities drawn from."""
        ids = [*log_probabilities.topk(min(10, len(log_probabilities))).indices.tolist(), chosen]
        candidates = [
            Candidate(token, i, float(log_probabilities[i].exp()), float(sampling[i]))
            for i, token in zip(ids, self._apart(ids), strict=True)
        ]
        seen = log_probabilities.masked_fill(~self.allowed, -torch.inf)
        return Step(tuple(candidates[:-1]), candidates[-1], seen)

    def _apart(self, ids: Sequence[int]) -> list[str]:
        """Alternatives as displayed, each alone: together they are no text."""
        return [token for (token,) in displayed(self.text, [[i] for i in ids])]

    def decoding(
        self,
        ids: list[int],
        sure: float,
        *,
        steps: Sequence[Step] = (),
        beams: tuple[tuple[Beam, ...], ...] = (),
    ) -> Decoding:
        """Label decoded ids, the end token last unless they were cut off; ``sure``: their confidence."""
        finished = bool(ids) and ids[-1] in self.end_ids
        plain = ids[:-1] if finished else ids
        return Decoding(
            text=self.text.decode(plain),
            tokens=displayed(self.text, [plain])[0],
            ids=tuple(plain),
            steps=tuple(steps),
            confidence=sure,
            beams=beams,
            finished=finished,
        )


def _confidence(steps: Sequence[Step]) -> float:
    return confidence(torch.stack([step.log_probabilities[step.chosen.id] for step in steps]))
