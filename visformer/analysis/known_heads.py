"""Heads of known kinds, found by what they attend to on random tokens, where no meaning helps; when they appear.

Induction heads: Elhage et al. 2021 and Olsson et al. 2022 ("In-context Learning and Induction Heads"); duplicate token
and previous token heads: Wang et al. 2023 (section 3); positional heads: Voita et al. 2019 (section 5.1).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from visformer.analysis.needs import Floats
from visformer.analysis.word_alignment import Aligned, candidates, error_rate
from visformer.errors import N_, VisformerError
from visformer.system.arguments import require_whole

if TYPE_CHECKING:
    import pandas as pd

    from visformer.adapters.base import TracedModel
    from visformer.adapters.own import Translator
    from visformer.trace import Trace

PERIODS = (7, 11, 15, 19)
"""Tokens after which a random sequence recurs."""

EACH = 8
"""Sequences of each period."""

LEAST = 0.3
"""Least mean weight of a head with a label."""

LABELS = {
    "induction": N_("Induction head"),
    "duplicate token": N_("Duplicate token head"),
    "previous token": N_("Previous token head"),
    "positional": N_("Positional head"),
    "alignment": N_("Alignment head"),
    "syntactic": N_("Syntactic head"),
    "next token": N_("Next token head"),
    "first token": N_("First token head"),
    "own position": N_("Own position head"),
    "separator": N_("Separator head"),
    "dependents": N_("Dependents head"),
}
"""Labels of heads, also of those that an atlas finds, with what they are called on screen."""

_BEFORE = 9  # up to so many random tokens come before, so that no position tells the place
_OFFSETS = (-3, -2, 1, 2, 3)

Ids = list[int]


@dataclass(frozen=True)
class _Sequence:
    """Random tokens that recur, or, for the null, others in place of those that would be repeated."""

    ids: Ids
    period: int
    begin: int  # index in ``ids`` of the first token of the second time


def known_heads(
    model: "TracedModel",
    *,
    periods: Sequence[int] | None = None,
    each: int = EACH,
    least: float | None = LEAST,
    seed: int = 0,
) -> "pd.DataFrame":
    """Find previous token, induction, duplicate token and positional heads in self-attention.

    A label says what a head attends to on random tokens; on real text it may do something else, and a head of that name
    need not cause what the name suggests.

    Args:
        model: any model that takes token ids.
        periods: after how many tokens the random sequences recur; None: those of PERIODS for which the model has room.
        each: sequences of each period.
        least: least mean weight; None: every head, also those that are not above the null.
        seed: of the tokens.

    Returns:
        One row for each head and label, the highest score first: stack, layer and head (from 0), label ("previous
        token", "induction", "duplicate token", "positional"), offset (keys from the row, of "previous token" and
        "positional", else 0), score (mean weight), first (mean weight of the same rows on the first token), null (the
        same score where nothing recurs; for offsets the mean weight of the row's keys, as if they were shuffled),
        null_high (the largest null of a sequence), n (sequences), found (the rule in words). Only those with a score of
        at least ``least`` and above ``null_high``.

    Raises:
        VisformerError: a period is below 2, or there are no sequences.
    """
    import pandas as pd

    if periods is None:
        room = model.info.max_tokens
        periods = [period for period in PERIODS if room is None or _BEFORE + 2 * period < room]
    require_whole("seed", seed, least=0)
    if not periods or min(periods) < 2 or each < 1:
        raise VisformerError(N_("Known heads need periods of at least 2 tokens, and at least one sequence of each."))
    measured = _measured(model, periods, each, np.random.default_rng(seed), recurs=True)
    null = _measured(model, periods, each, np.random.default_rng(seed), recurs=False)
    rows = []
    for (stack, layer, label, offset), (scores, first, shuffled) in measured.items():
        without = null[stack, layer, label, offset][0] if label in ("induction", "duplicate token") else shuffled
        for head in range(scores.shape[1]):
            rows.append(
                (stack, layer, head, label, offset, scores[:, head].mean(), first[:, head].mean(),
                 without[:, head].mean(), without[:, head].max(), len(scores), _FOUND[label])
            )  # fmt: skip
    columns = ["stack", "layer", "head", "label", "offset", "score", "first", "null", "null_high", "n", "found"]
    table = pd.DataFrame(rows, columns=columns)
    if least is not None:
        table = table[_has_label(table, least)]
    return table.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def head_history(
    models: Iterable["TracedModel"],
    *,
    pairs: Sequence[Aligned] = (),
    to: str | None = None,
    each: int = EACH,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> "pd.DataFrame":
    """Score every head at each moment of a training, as :func:`known_heads` does, on the same tokens each time.

    Args:
        models: the model at its moments, the first one first, such as ``(vf.load("mini-gpt", moment=k) for k in
            range(10))``: of a generator only one is in memory at a time.
        pairs: pairs with gold links, in the direction of translation, that the cross-attention heads of a translator of
            visformer are scored on, too; see :func:`visformer.analysis.alignment_error`.
        to: target language of the pairs.
        each: sequences of each period, as for :func:`known_heads`.
        seed: of the tokens.
        progress: called with the moments that are done.

    Returns:
        One row for each moment, head and label: moment (from 0), stack, layer and head (from 0), label, offset, score,
        null, null_high and n as from :func:`known_heads`, whatever the score; of a positional head the offset with the
        highest score at that moment. With pairs also the label "alignment": score is 1 - alignment error rate of the
        source word that a row whose input is the word reads most, null and null_high are that of the word at the same
        relative position, n counts pairs.

    Raises:
        VisformerError: as for :func:`known_heads`, or the pairs are not for this model.
    """
    import pandas as pd

    head = ["stack", "layer", "head", "label"]
    tables = []
    for moment, model in enumerate(models):
        table = known_heads(model, each=each, least=None, seed=seed).drop_duplicates(head).sort_values(head)
        if pairs:
            table = pd.concat([table, _aligning(model, pairs, to)])  # type: ignore[arg-type]
        tables.append(table.assign(moment=moment))
        if progress is not None:
            progress(moment + 1)
    columns = ["moment", *head, "offset", "score", "null", "null_high", "n"]
    return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def appears(history: "pd.DataFrame", *, least: float = LEAST) -> "pd.DataFrame":
    """Find when heads appear: the first moment from which on a head has its label at every moment that was kept.

    It has its label by the rule of :func:`known_heads`: a score of at least ``least`` and above ``null_high``. What it
    was between two moments is not known: it may have appeared at any step since the moment before.

    Args:
        history: from :func:`head_history`.
        least: least score.

    Returns:
        The rows of ``history`` at that moment, for each head and label that appears; the earliest first, of the same
        moment the highest score first.
    """
    head, last = ["stack", "layer", "head", "label"], history["moment"].max()
    rows = history.sort_values("moment", kind="stable").assign(has=lambda table: _has_label(table, least))
    lacks = rows[~rows["has"]].groupby(head)["moment"].max().rename("lacks")  # the last moment without the label
    since = rows.join(lacks, on=head).fillna({"lacks": -1})
    found = since[(since["moment"] > since["lacks"]) & (since["lacks"] < last)].drop_duplicates(head)
    return found[[*history]].sort_values(["moment", "score"], ascending=[True, False], ignore_index=True)


def _has_label(table: "pd.DataFrame", least: float) -> "pd.Series[bool]":
    return (table["score"] >= least) & (table["score"] > table["null_high"])


def _aligning(model: "Translator", pairs: Sequence[Aligned], to: str | None) -> "pd.DataFrame":
    import pandas as pd

    errors = candidates(model, pairs, method="raw", row="input", to=to)["head"].error_rates
    layers, heads = np.divmod(np.arange(len(errors)), model.info.n_heads)
    null = 1 - error_rate(sum(pair.diagonal for pair in pairs), sum(pair.size for pair in pairs))
    return pd.DataFrame(
        {"stack": "decoder.cross_attn", "layer": layers, "head": heads, "label": "alignment", "offset": 0,
         "score": 1 - errors, "null": null, "null_high": null, "n": len(pairs)}
    )  # fmt: skip


_FOUND = {
    "induction": N_(
        "weight on the token after the previous occurrence of the row's token, in random tokens that recur"
    ),
    "duplicate token": N_("weight on the previous occurrence of the row's token, in random tokens that recur"),
    "previous token": N_("weight on the token before the row's, in random tokens"),
    "positional": N_("weight at this offset from the row, in random tokens"),
}


def _measured(
    model: "TracedModel", periods: Sequence[int], each: int, rng: np.random.Generator, *, recurs: bool
) -> dict[tuple[str, int, str, int], tuple[Floats, Floats, Floats]]:
    """Map (stack, layer, label, offset) to score, weight on the first token, shuffled score, (sequence, head) each."""
    found: dict[tuple[str, int, str, int], list[tuple[Floats, Floats, Floats]]] = {}
    sequences = [sequence for period in periods for sequence in _drawn(model, period, each, rng, recurs=recurs)]
    for sequence, trace in zip(sequences, _traces(model, sequences), strict=True):
        for name, tensor in trace.tensors.items():
            part, layer, *_ = name.split(".")
            stack = f"{part}.self_attn"
            pattern = tensor.value.astype(np.float64)  # (head, query, key)
            start = _start(trace, "src" if part == "encoder" else "tgt", sequence.ids)
            for (label, offset), scores in _scores(pattern, start, sequence, causal=part == "decoder").items():
                found.setdefault((stack, int(layer), label, offset), []).append(scores)
    return {key: tuple(map(np.stack, zip(*rows, strict=True))) for key, rows in found.items()}  # type: ignore[misc]


def _scores(
    pattern: Floats, start: int, sequence: _Sequence, *, causal: bool
) -> dict[tuple[str, int], tuple[Floats, Floats, Floats]]:
    """Score the heads of one pattern, (head, query, key), whose sequence begins at ``start``."""
    again = np.arange(start + sequence.begin, start + sequence.begin + sequence.period)
    every = np.arange(start, start + len(sequence.ids))
    cells = {("duplicate token", 0): (again, again - sequence.period)}
    if causal:
        cells["induction", 0] = (again, again - sequence.period + 1)
    for offset in (-1, *_OFFSETS):
        if not causal or offset < 0:
            rows = every[(every + offset >= start) & (every + offset < start + len(sequence.ids))]
            cells["previous token" if offset == -1 else "positional", offset] = (rows, rows + offset)
    n_keys = np.arange(1, pattern.shape[1] + 1) if causal else np.full(pattern.shape[1], pattern.shape[2])
    even = pattern.sum(axis=2) / n_keys  # (head, query): the mean weight of the keys that a row may attend to
    return {
        key: (pattern[:, rows, keys].mean(axis=1), pattern[:, rows, 0].mean(axis=1), even[:, rows].mean(axis=1))
        for key, (rows, keys) in cells.items()
    }


def _drawn(
    model: "TracedModel", period: int, each: int, rng: np.random.Generator, *, recurs: bool
) -> Iterator[_Sequence]:
    known = min(*model._known, len(model.tokenizer))
    pool = np.flatnonzero(~np.array(model.text.is_special(range(known))))
    for _ in range(each):
        before = int(rng.integers(_BEFORE))
        ids = rng.choice(pool, before + 2 * period, replace=len(pool) < before + 2 * period).tolist()
        again = ids[before : before + period] if recurs else ids[before + period :]
        yield _Sequence([*ids[: before + period], *again], period, before + period)


def _traces(model: "TracedModel", sequences: Sequence[_Sequence]) -> "Iterator[Trace]":
    """Trace the sequences, each between the special tokens that a text has, as source and as target."""
    side = "tgt" if model.info.kind == "decoder" else "src"
    first = next(i for i, special in enumerate(model.text.is_special(range(len(model.tokenizer)))) if not special)
    probe = model.trace(model.text.shown([first])[0], record=())  # any text: a small vocabulary has no word in common
    ids, plain = probe.meta["ids"][side], [i for i, special in enumerate(probe.special[side]) if not special]
    lead, trail = ids[: plain[0]], ids[plain[-1] + 1 :] if side == "src" else []
    texts = [[*lead, *sequence.ids, *trail] for sequence in sequences]
    targets = [sequence.ids for sequence in sequences] if model.info.kind == "encoder-decoder" else None
    return model.trace_many(texts, targets, record=("*.self_attn.pattern",))


def _start(trace: "Trace", side: str, ids: Ids) -> int:
    """Where the sequence begins among the tokens."""
    row = trace.meta["ids"][side]
    return next(i for i in range(len(row)) if row[i : i + len(ids)] == ids)
