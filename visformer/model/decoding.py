"""Decode ids token by token: greedily, by sampling or by beam search, with a key-value cache."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Protocol

import torch
from torch import Tensor

from visformer.errors import N_, VisformerError
from visformer.model.gpt import GPT
from visformer.model.transformer import Transformer
from visformer.system import cancellation
from visformer.system.arguments import require_whole

Choose = Callable[[Tensor], Tensor]
"""Maps log-probabilities (row, vocab) of the next token to the chosen ids (row,)."""


@dataclass(frozen=True)
class Candidate:
    """A token that might have come next."""

    token: str  # as displayed
    id: int
    probability: float  # under the model
    drawn_probability: float  # under the sampling distribution (temperature, top-k, top-p applied); 0 if cut off


@dataclass(frozen=True)
class Step:
    """One step of decoding.

    Args:
        candidates: the likeliest tokens, best first.
        chosen: the token that was chosen.
        log_probabilities: (vocab,), nats; -inf for ids that are never generated. All of them are stored, so that
            :meth:`reshaped` can apply another temperature later.
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    log_probabilities: Tensor = field(compare=False, repr=False)

    def reshaped(
        self, *, temperature: float | None = None, top_k: int | None = None, top_p: float | None = None
    ) -> tuple[Candidate, ...]:
        """Return the candidates under other sampling settings; see :func:`reshape`.

        Args:
            temperature: divides the logits; None: 1.
            top_k: keep only this many of the likeliest tokens; None: all.
            top_p: keep only the likeliest tokens that together reach this probability; None: all.

        Returns:
            The same candidates, each with the probability of being sampled.
        """
        (drawn,) = reshape(self.log_probabilities[None], temperature=temperature, top_k=top_k, top_p=top_p)
        return tuple(replace(c, drawn_probability=float(drawn[c.id])) for c in self.candidates)


@dataclass(frozen=True)
class Beam:
    """One hypothesis of one step of beam search.

    Args:
        parent: index, in the previous step, of the hypothesis that it continues.
        token: its last token, as displayed.
        id: the id of that token.
        log_probability: log-probability of the whole hypothesis so far, nats.
        finished: whether the token ends the sentence.
    """

    parent: int
    token: str
    id: int
    log_probability: float
    finished: bool


@dataclass(frozen=True)
class Decoding:
    """A decoded sentence and how it came about.

    Args:
        text: the decoded text, without special tokens.
        tokens: the tokens as displayed, one per id, without specials.
        ids: the ids of the tokens.
        steps: one for each token and one for the end; with beam search, along the best hypothesis. Empty if many texts
            were translated at once.
        confidence: how sure the model was, from 0 to 1: the :func:`confidence` of its steps; of a translator between
            two languages that times a small power of the probability of the source, read back from the translation (Yee
            et al. 2019, "Simple and Effective Noisy Channel Modeling for Neural Machine Translation", section 2).
        beams: the hypotheses kept at each step; empty without beam search.
        finished: False if the limit of tokens cut the sentence off.
    """

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    steps: tuple[Step, ...]
    confidence: float
    beams: tuple[tuple[Beam, ...], ...] = ()
    finished: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays hold."""
        return sum(step.log_probabilities.nbytes for step in self.steps)


def confidence(log_probabilities: Tensor) -> float:
    """Return the geometric mean of the probabilities of the chosen tokens.

    The mean log-probability is TP in Fomicheva et al. 2020 ("Unsupervised Quality Estimation for Neural Machine
    Translation", section 3.1).

    Args:
        log_probabilities: (step,), nats, under the model: of the token chosen at each step, the end included.

    Returns:
        From 0 to 1.
    """
    return float(log_probabilities.mean().exp())


class Predictor(Protocol):
    """A model that predicts the next token of each row."""

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """Map ``prefix`` (row, tgt), longer at each call, to log-probabilities (row, vocab), nats."""
        ...

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; a row may occur more than once."""
        ...


class NextToken:
    """Our own Transformer as a :class:`Predictor`."""

    def __init__(
        self, model: Transformer, src_ids: Tensor, *, cached: bool = True, memory: Tensor | None = None
    ) -> None:
        """``memory``: the encoder's output for these sources, if it has already run."""
        self._model, self._src_ids = model, src_ids
        self._memory = model.encode(src_ids) if memory is None else memory  # (row, src, d_model)
        self._cache = model.new_cache() if cached else None
        self._seen = 0  # tokens in the cache

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """Map ``prefix`` (row, tgt), longer at each call, to log-probabilities (row, vocab), nats."""
        prefix = prefix.to(self._memory.device)
        if self._cache is None:
            logits = self._model.decode(prefix, self._memory, self._src_ids)
        else:
            for at in range(self._seen, prefix.shape[1]):  # the cache takes one token at a time
                column = prefix[:, at : at + 1]
                logits = self._model.decode(column, self._memory, self._src_ids, cache=self._cache, start=at)
            self._seen = prefix.shape[1]
        return logits[:, -1].log_softmax(dim=-1).cpu()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; a row may occur more than once."""
        self._memory, self._src_ids = self._memory[rows], self._src_ids[rows]
        for layer in self._cache or ():
            layer.self_attn.reorder(rows)
            layer.cross_attn.reorder(rows)


class NextOfText:
    """Our own decoder-only model as a :class:`Predictor`."""

    def __init__(self, model: GPT, *, cached: bool = True) -> None:
        self._model = model
        self._cache = model.new_cache() if cached else None

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """Map ``prefix`` (row, tgt), longer at each call, to log-probabilities (row, vocab), nats."""
        seen = len(self._cache[0]) if self._cache else 0
        logits = self._model(prefix[:, seen:].to(self._model.output.weight.device), cache=self._cache)
        return logits[:, -1].log_softmax(dim=-1).cpu()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; a row may occur more than once."""
        for layer in self._cache or ():
            layer.reorder(rows)


def decode(
    next_token: Predictor,
    prefix: Tensor,
    *,
    choose: Choose,
    end_ids: Sequence[int],
    max_new_tokens: int,
    watch: Callable[[Tensor, Tensor], None] = lambda log_probabilities, chosen: None,
) -> list[list[int]]:
    """Extend every row token by token until all have ended.

    Args:
        next_token: the model on the source sentences.
        prefix: int64 (row, tgt), the ids to extend; usually the start token alone.
        choose: picks each row's next id.
        end_ids: ids of the tokens that end a sentence.
        max_new_tokens: maximum number of tokens to add; a sentence that is cut off lacks its end token.
        watch: called at each step with log-probabilities (row, vocab) and chosen ids (row,).

    Returns:
        The new ids of each row, the end token last unless it was cut off.
    """
    start = prefix.shape[1]
    ends = torch.tensor(list(end_ids))
    ended = torch.zeros(len(prefix), dtype=torch.bool)
    for _ in range(max_new_tokens):
        cancellation.check()
        log_probabilities = next_token.log_probabilities(prefix)
        chosen = choose(log_probabilities).masked_fill(ended, 0)  # padding after the end
        watch(log_probabilities, chosen)
        prefix = torch.cat([prefix, chosen[:, None]], dim=1)
        ended = ended | torch.isin(chosen, ends)
        if bool(ended.all()):
            break
    return [_until_end(row, end_ids) for row in prefix[:, start:].tolist()]


def _until_end(ids: list[int], end_ids: Sequence[int]) -> list[int]:
    end = next((at for at, token in enumerate(ids) if token in end_ids), len(ids))
    return ids[: end + 1]


def reshape(
    log_probabilities: Tensor, *, temperature: float | None = None, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return the distribution to sample from.

    Args:
        log_probabilities: (row, vocab), nats.
        temperature: divides the log-probabilities; below 1 sharpens.
        top_k: keep only the k likeliest tokens.
        top_p: keep only the likeliest tokens that together reach this probability (Holtzman et al. 2020).

    Returns:
        probabilities (row, vocab), each row sums to 1.

    Raises:
        VisformerError: a value is out of range.
    """
    check_ranges(temperature, top_k, top_p)
    scaled = log_probabilities / (1.0 if temperature is None else temperature)
    if top_k is not None:
        least = scaled.topk(min(top_k, scaled.shape[-1])).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -torch.inf)
    probabilities = scaled.softmax(dim=-1)
    if top_p is not None:
        ordered, order = probabilities.sort(dim=-1, descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= top_p  # mass before the token
        probabilities = probabilities.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    return probabilities


def check_ranges(temperature: Any, top_k: Any, top_p: Any) -> None:
    """Refuse sampling settings that are out of range; None: not set.

    Raises:
        VisformerError: the message names the setting.
    """
    if temperature is not None and not (_is_number(temperature) and 0 < temperature < math.inf):
        raise VisformerError(
            N_("temperature={value!r} must be above 0, and finite; leave it out to take the most likely token."),
            value=temperature,
        )
    if top_k is not None:
        require_whole("top_k", top_k)
    if top_p is not None and not (_is_number(top_p) and 0 < top_p <= 1):
        raise VisformerError(N_("top_p={value!r} must be above 0 and at most 1."), value=top_p)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass
class BeamResult:
    """The result of :func:`beam_search`."""

    ids: list[int]  # of the best hypothesis
    steps: list[list[tuple[int, int, float]]]  # hypotheses kept at each step: parent, id, total log-probability
    along: list[Tensor]  # log-probabilities (vocab,) of each step along the best hypothesis


def beam_search(
    next_token: Predictor,
    prefix: Tensor,
    *,
    beam_size: int,
    allowed: Tensor,
    end_ids: Sequence[int],
    max_new_tokens: int,
) -> BeamResult:
    """Keep the ``beam_size`` likeliest hypotheses at each step; the best by log-probability per token wins.

    Args:
        next_token: the model on one source sentence.
        prefix: int64 (1, tgt).
        beam_size: number of hypotheses kept.
        allowed: bool (vocab,), ids that may be generated.
        end_ids: ids of the tokens that end a sentence.
        max_new_tokens: maximum number of tokens to add.
    """
    ends = torch.tensor(list(end_ids))
    rows, scores = prefix, torch.zeros(1)
    alive = [0]  # index of each row's hypothesis in the previous step
    steps: list[list[tuple[int, int, float]]] = []
    seen: list[dict[int, Tensor]] = []  # each step's log-probabilities, by index of the previous step's hypothesis
    finished: list[tuple[float, int, int]] = []  # log-probability per token, step, index
    for step in range(max_new_tokens):
        cancellation.check()
        log_probabilities = next_token.log_probabilities(rows)  # (row, vocab)
        seen.append(dict(zip(alive, log_probabilities, strict=True)))
        total = (scores[:, None] + log_probabilities).masked_fill(~allowed, -torch.inf)
        best = total.flatten().topk(min(beam_size, total.numel()))
        parents, ids = best.indices // total.shape[1], best.indices % total.shape[1]
        triples = zip(parents.tolist(), ids.tolist(), best.values.tolist(), strict=True)
        steps.append([(alive[parent], token, score) for parent, token, score in triples])
        ended = torch.isin(ids, ends)
        finished += [(steps[-1][i][2] / (step + 1), step, i) for i in ended.nonzero()[:, 0].tolist()]
        alive = (~ended).nonzero()[:, 0].tolist()
        if not alive or len(finished) >= beam_size:
            break
        rows = torch.cat([rows[parents[~ended]], ids[~ended][:, None]], dim=1)
        scores = best.values[~ended]
        next_token.keep(parents[~ended])
    finished = finished or [(steps[-1][i][2], len(steps) - 1, i) for i in alive]
    return _trace_back(steps, seen, max(finished))


def _trace_back(
    steps: list[list[tuple[int, int, float]]], seen: list[dict[int, Tensor]], winner: tuple[float, int, int]
) -> BeamResult:
    """Follow the parents from the winner back to the first step."""
    _, last, index = winner
    ids, along = [], []
    for step in range(last, -1, -1):
        parent, token, _ = steps[step][index]
        ids.append(token)
        along.append(seen[step][parent])
        index = parent
    return BeamResult(ids[::-1], steps, along[::-1])
