"""Decoding as every adapter offers it: greedy, drawn or searched, each step with its candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from visformer.errors import N_, VisformerError
from visformer.model.decoding import Beam, Candidate, Decoding, Predictor, Step, beam_search, decode, reshape


class Vocabulary(Protocol):
    """What ids mean."""

    def __len__(self) -> int: ...

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """What a reader sees for each id."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without specials."""
        ...

    def is_special(self, ids: Sequence[int]) -> tuple[bool, ...]:
        """Which ids stand for no text."""
        ...

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Which word each id belongs to, counted from 0."""
        ...


@dataclass(frozen=True)
class Choice:
    """How the next token is chosen: greedily, unless anything is set. See :func:`visformer.model.decoding.reshape`.

    Raises:
        VisformerError: a search that also draws.
    """

    beam_size: int = 1
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.beam_size < 1 or (self.beam_size > 1 and self.draws):
            raise VisformerError(
                N_("beam_size={value} must be at least 1, and exactly 1 with temperature, top_k or top_p."),
                value=self.beam_size,
            )

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn."""
        return any(value is not None for value in (self.temperature, self.top_k, self.top_p))


@dataclass(frozen=True)
class Speaker:
    """Turns what a model says comes next into a sentence."""

    text: Vocabulary
    allowed: Tensor  # bool (vocab,), ids that may be generated
    end_ids: tuple[int, ...]  # of the tokens that end a sentence

    def greedy(self, next_token: Predictor, start: Tensor, limit: int) -> list[list[int]]:
        """The likeliest ids of each row, the end last unless it was cut off.

        Without the candidates of each step, which cost as much as a layer.
        """
        return decode(next_token, start, choose=self._likeliest, end_ids=self.end_ids, max_new_tokens=limit)

    def speak(self, next_token: Predictor, start: Tensor, limit: int, *, begun: Sequence[int], how: Choice) -> Decoding:
        """Decode one sentence.

        Args:
            next_token: the model on this sentence.
            start: int64 (1, tgt), what stands already.
            limit: most tokens to add.
            begun: ids at the end of ``start`` that belong to the sentence.
            how: the next token is chosen.
        """
        if how.beam_size > 1:
            return self._search(next_token, start, limit, begun=begun, beam_size=how.beam_size)
        generator = torch.Generator().manual_seed(how.seed)
        steps: list[Step] = []

        def drawn(log_probabilities: Tensor) -> Tensor:
            allowed = log_probabilities.masked_fill(~self.allowed, -torch.inf)
            return reshape(allowed, temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)

        def choose(log_probabilities: Tensor) -> Tensor:
            if how.draws:
                return torch.multinomial(drawn(log_probabilities), 1, generator=generator)[:, 0]
            return self._likeliest(log_probabilities)

        def watch(log_probabilities: Tensor, chosen: Tensor) -> None:
            steps.append(self._step(log_probabilities[0], drawn(log_probabilities)[0], int(chosen)))

        (ids,) = decode(next_token, start, choose=choose, end_ids=self.end_ids, max_new_tokens=limit, watch=watch)
        return self._decoding([*begun, *ids], steps)

    def _search(
        self, next_token: Predictor, start: Tensor, limit: int, *, begun: Sequence[int], beam_size: int
    ) -> Decoding:
        found = beam_search(
            next_token, start, beam_size=beam_size, allowed=self.allowed, end_ids=self.end_ids, max_new_tokens=limit
        )
        steps = [self._step(row, row.exp(), token) for row, token in zip(found.along, found.ids, strict=True)]
        beams = tuple(
            tuple(Beam(parent, self.text.shown([i])[0], i, score, i in self.end_ids) for parent, i, score in step)
            for step in found.steps
        )
        return self._decoding([*begun, *found.ids], steps, beams)

    def _likeliest(self, log_probabilities: Tensor) -> Tensor:
        return log_probabilities.masked_fill(~self.allowed, -torch.inf).argmax(dim=-1)

    def _step(self, log_probabilities: Tensor, drawn: Tensor, chosen: int) -> Step:
        """What a reader can look at, of log-probabilities (vocab,), nats, and of the distribution drawn from (vocab,).

        That is the ten likeliest tokens, and the one taken.
        """
        likeliest = log_probabilities.topk(min(10, len(log_probabilities))).indices.tolist()
        candidates = [
            Candidate(self.text.shown([i])[0], i, float(log_probabilities[i].exp()), float(drawn[i]))
            for i in [*likeliest, chosen]  # each shown alone: they are no text
        ]
        seen = log_probabilities.masked_fill(~self.allowed, -torch.inf)
        return Step(tuple(candidates[:-1]), candidates[-1], seen)

    def _decoding(self, ids: list[int], steps: Sequence[Step], beams: tuple[tuple[Beam, ...], ...] = ()) -> Decoding:
        finished = bool(ids) and ids[-1] in self.end_ids
        plain = ids[:-1] if finished else ids
        return Decoding(
            text=self.text.decode(plain),
            tokens=self.text.shown(plain),
            ids=tuple(plain),
            steps=tuple(steps),
            beams=beams,
            finished=finished,
        )
