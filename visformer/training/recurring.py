"""Sequences of random tokens that recur: they teach and measure induction heads (Olsson et al. 2022).

An induction head reads the token after the previous occurrence of its row's token, and so predicts what comes next in
a sequence that recurs. Neither pairs of tokens nor distances can be remembered in place of that: heads are scored at
periods longer than any that is trained, and on pairs of tokens that no context of the training has twice.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from visformer.model import taps
from visformer.model.masks import pad
from visformer.model.tokenizer import EOS, SPECIALS, Tokenizer

Ids = NDArray[np.int64]

PERIODS, SCORED_PERIODS = range(5, 13), range(13, 21)
"""Tokens after which a sequence recurs, in training and in scoring."""

COPIES = range(2, 5)
"""How often a sequence of a training context occurs."""

EACH = 32
"""Scored sequences of each period."""

_FIRST = len(SPECIALS) + 256  # before it come the bytes


def pool_of(tokenizer: Tokenizer) -> range:
    """The ids that random sequences are drawn from: all tokens but specials and bytes."""
    return range(_FIRST, len(tokenizer))


def held_out(first: Ids | int, second: Ids) -> NDArray[np.bool_]:
    """Whether pairs of ids are held out: one in ten of the pool's, by a hash."""
    hashed = (first * 4099 + second) * 2654435761 >> 16
    held: NDArray[np.bool_] = (hashed % 10 == 0) & (first >= _FIRST) & (second >= _FIRST)
    return held


def held_out_pairs(ids: Sequence[int]) -> list[tuple[int, int]]:
    """The pairs of neighbours that are held out, in their order."""
    row = np.asarray(ids, dtype=np.int64)
    places = np.flatnonzero(held_out(row[:-1], row[1:])).tolist()
    return [(ids[i], ids[i + 1]) for i in places]


def random_context(rng: random.Random, pool: range, *, start: int, length: int) -> tuple[list[int], list[int]]:
    """Draw random sequences without held-out pairs, one after another, each two to four times.

    Args:
        rng: draws tokens, periods and numbers of copies.
        pool: the ids to draw from.
        start: the id that comes before.
        length: of the context.

    Returns:
        ids, ``length`` of them, and for each the id that follows, 0 where nothing before tells it.
    """
    ids, targets = [start], [0]
    while len(ids) < length:
        period = rng.choice(PERIODS)
        sequence = rng.sample(pool, period)
        if held_out_pairs([*sequence, sequence[0]]):
            continue
        again = sequence * (rng.choice(COPIES) - 1)
        ids += sequence + again
        targets += [0] * period + again[1:] + [0]
    return ids[:length], targets[:length]


def scored_context(rng: np.random.Generator, pool: Ids, *, start: int, period: int) -> tuple[list[int], int]:
    """Draw a sequence of held-out pairs and have it twice, at any place.

    Returns:
        ids, and the place at which the sequence begins for the second time.
    """
    while True:
        sequence = [int(rng.choice(pool))]
        while len(sequence) < period:
            sequence.append(int(rng.choice(pool[held_out(sequence[-1], pool)])))
        if len(set(sequence)) == period and len(held_out_pairs([*sequence, sequence[0]])) == period:
            break
    before = [start, *rng.choice(pool, rng.integers(0, 32)).tolist()]
    return [*before, *sequence, *sequence], len(before) + period


def induction(model: nn.Module, contexts: Sequence[tuple[list[int], int]], period: int) -> tuple[Tensor, Tensor]:
    """Score every head: the weight on the token after the previous occurrence of the row's token.

    Args:
        model: a decoder-only model, in evaluation mode.
        contexts: from :func:`scored_context`, all with this period.
        period: how far back the previous occurrence is.

    Returns:
        Two tensors (context, layer, head), float32, means over the rows from the second time on: that weight, and the
        weight on the first token, to which a head without anything to read attends.
    """
    found: list[Tensor] = []

    def visit(name: str, tensor: Tensor) -> Tensor:
        if name.endswith(".pattern"):
            found.append(tensor)  # (context, head, query, key)
        return tensor

    with torch.inference_mode(), taps.session(visit):
        model(pad([ids for ids, _ in contexts]))
    patterns = torch.stack(found, dim=1)  # (context, layer, head, query, key)
    rows = torch.tensor([place for _, place in contexts])[:, None] + torch.arange(period)  # (context, row)
    each = torch.arange(len(contexts))[:, None]
    after = patterns[each, :, :, rows, rows - period + 1].mean(dim=1)  # (context, layer, head)
    return after, patterns[each, :, :, rows, 0].mean(dim=1)


def induction_scores(model: nn.Module, tokenizer: Tokenizer, *, each: int = EACH) -> tuple[Tensor, Tensor]:
    """Score every head on ``each`` contexts of every period, see :func:`induction`; always the same contexts."""
    rng, pool = np.random.default_rng(0), np.array(pool_of(tokenizer))
    results = []
    for period in SCORED_PERIODS:
        contexts = [scored_context(rng, pool, start=tokenizer.token_id(EOS), period=period) for _ in range(each)]
        results.append(induction(model, contexts, period))
    after, first = zip(*results, strict=True)
    return torch.cat(after), torch.cat(first)


def best_score(model: nn.Module, tokenizer: Tokenizer) -> float:
    """The highest score of a head on a quarter of the contexts, to follow a training."""
    return float(induction_scores(model, tokenizer, each=EACH // 4)[0].mean(dim=0).max())


def induction_report(model: nn.Module, tokenizer: Tokenizer) -> dict[str, Any]:
    """The best head, chosen on one half of the contexts and scored on the other.

    Returns:
        Its layer and head from 0, its score with a 95 % interval over contexts (normal approximation), its weight on
        the first token, and what it was scored on.
    """
    after, first = induction_scores(model, tokenizer)
    layer, head = divmod(int(after[::2].mean(dim=0).argmax()), after.shape[2])
    scores = after[1::2, layer, head]
    margin = 1.96 * float(scores.std()) / len(scores) ** 0.5
    score = float(scores.mean())
    return {
        "layer": layer,
        "head": head,
        "score": score,
        "low": score - margin,
        "high": score + margin,
        "first": float(first[1::2, layer, head].mean()),
        "contexts": len(scores),
        "periods": [SCORED_PERIODS[0], SCORED_PERIODS[-1]],
        "trained_periods": [PERIODS[0], PERIODS[-1]],
        "pool": len(pool_of(tokenizer)),
    }
