"""Heads ranked by what the model loses without them, over many sentences, and the lists of these sentences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from visformer.analysis.answers import Answer, Asked, ask, predicted
from visformer.analysis.effects.weight_effects import require_choice
from visformer.analysis.needs import Floats
from visformer.errors import N_, TextError, VisformerError
from visformer.system.arguments import require_whole

if TYPE_CHECKING:
    import pandas as pd

    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Encoded, Text
    from visformer.edits import Edit


Progress = Callable[[int, int], None]
Method = Literal["zero", "mean", "gradient"]

RESAMPLES = 1_000
"""Bootstrap samples of an interval."""


class _Head(NamedTuple):
    """One head: ``stack`` such as "decoder.cross_attn", layer and head from 0."""

    stack: str
    layer: int
    head: int

    @property
    def path(self) -> str:
        part, kind = self.stack.split(".")
        return f"{part}.{self.layer}.{kind}"


def head_effects(
    model: "TracedModel",
    sentences: "Iterable[Text | tuple[Text, Text]]",
    *,
    method: Method = "zero",
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> "pd.DataFrame":
    """Rank the heads by how much worse the target is predicted without each of them.

    An effect is that of one head alone, with all others there: heads that can stand in for each other all seem to do
    little.

    Args:
        model: a model that predicts next tokens; with ``answer`` also a classifier.
        sentences: any iterable of texts, or of pairs (source, target), of an encoder of two sentences. Without a
            target, an encoder-decoder is judged on its own greedy output, a decoder-only model on the text after its
            first token.
        method: "zero": the head's output before W_O becomes 0; "mean": it becomes its mean over all positions of all
            sentences; "gradient": mean over sentences of the absolute value of d loss / d gate at a gate of 1, which
            takes one pass and its gradient in place of a pass for each head, and is always above 0.
        answer: an :data:`visformer.analysis.Answer`, whose logit a head is judged on; None: the whole target.
        row: of the answer, in each sentence.
        to: target language, as for ``model.trace``.
        level: of the intervals.
        seed: of the bootstrap.
        progress: called with runs done and all runs; an exception that it raises ends the computation.

    Returns:
        One row a head, the largest effect first: stack ("decoder.cross_attn"), layer and head (from 0), effect (rise of
        the negative log-likelihood, nats a target token; with ``answer`` the fall of its logit, mean of the sentences),
        low and high (bootstrap over sentences), n (sentences). ``attrs`` has the method, the level, the number of
        target tokens, or of answers, and the answer, if one was asked for.

    Raises:
        VisformerError: the model predicts no next token, there is no sentence, or a setting is out of range.
        EditError: the model does not let its heads be changed.
    """
    require_choice("method", method, ("zero", "mean", "gradient"))
    require_whole("seed", seed, least=0)
    if not 0 < level < 1:
        raise VisformerError(N_("level={value!r} must be above 0 and below 1."), value=level)
    how: dict[str, Any] = {"answer": answer, "row": row, "to": to, "progress": progress}
    heads, rises, tokens = rises_by_head(model, sentences, method=method, **how)
    weights = np.ones(len(tokens)) if method == "gradient" else tokens
    table = tabulated(heads, rises, weights, level=level, seed=seed)
    table.attrs |= {"method": method, "level": level, "tokens": int(tokens.sum())}
    table.attrs |= {} if answer is None else {"answer": answer}
    return table


def rises_by_head(
    model: "TracedModel",
    sentences: "Iterable[Text | tuple[Text, Text]]",
    *,
    method: Method = "zero",
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
    progress: Progress | None = None,
) -> tuple[list[_Head], Floats, Floats]:
    """Measure each head on each sentence alone; see :func:`head_effects`.

    Returns:
        The heads; by how much the negative log-likelihood of each sentence rises without each of them, or the answer's
        logit falls, (text, head), in nats; and the target tokens of each sentence, or 1 for its answer, (text,).
    """
    pairs = _pairs(sentences)
    of = _of_each(model, pairs[0], answer, row, to)
    texts = _texts(model, pairs, to, of)
    heads = _heads(model)
    if method == "gradient":
        rises = _gradients(model, texts, heads, of, progress)
    else:
        edits = [*(_zeros(heads) if method == "zero" else _means(model, texts, heads))]
        rises = _rises(model, texts, edits, of, progress)
    return heads, rises, _tokens(texts, of)


def tabulated(
    heads: Sequence[tuple[str, int, int]], rises: Floats, tokens: Floats, *, level: float = 0.95, seed: int = 0
) -> "pd.DataFrame":
    """Return the table of :func:`head_effects` of what :func:`rises_by_head` measured."""
    import pandas as pd

    low, high = _interval(rises, tokens, level=level, seed=seed)
    table = pd.DataFrame(heads, columns=["stack", "layer", "head"])
    table = table.assign(effect=rises.sum(axis=0) / tokens.sum(), low=low, high=high, n=len(tokens))
    return table.sort_values("effect", ascending=False, kind="stable", ignore_index=True)


def told_from_zero(table: "pd.DataFrame") -> int:
    """Count the heads whose effect can be told from zero: those whose interval does not contain it.

    Each interval is of one head: of 100 heads without any effect, about 5 are counted at a level of 0.95.

    Args:
        table: from :func:`head_effects`, with method "zero" or "mean".

    Returns:
        The number of heads.

    Raises:
        VisformerError: the effects are absolute values, which are always above 0.
    """
    if table.attrs.get("method") == "gradient":
        raise VisformerError(N_('Estimates by the gradient are always above 0: use method="zero" or "mean".'))
    return int(((table["low"] > 0) | (table["high"] < 0)).sum())


def rank_correlation(first: "pd.DataFrame", second: "pd.DataFrame") -> float:
    """Compare the order of the heads in two tables: Spearman's rank correlation of their effects.

    It says whether two methods agree on the order, not whether either is right.

    Args:
        first: from :func:`head_effects`.
        second: another, of the same heads.

    Returns:
        From -1 to 1; ties share the mean of their ranks.

    Raises:
        VisformerError: the tables do not have the same heads.
    """
    keys = ["stack", "layer", "head"]
    both = first.merge(second, on=keys, suffixes=("_1", "_2"))
    if not len(first) == len(second) == len(both):
        raise VisformerError(
            N_("The tables hold {first} and {second} heads, {both} of them in both: compare those of one model."),
            first=len(first),
            second=len(second),
            both=len(both),
        )
    ranks = both[["effect_1", "effect_2"]].rank().to_numpy()
    return float(np.corrcoef(ranks.T)[0, 1])


def pruning(
    model: "TracedModel",
    sentences: "Iterable[Text | tuple[Text, Text]]",
    *,
    method: Method = "gradient",
    counts: Sequence[int] | None = None,
    draws: int = 5,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> "pd.DataFrame":
    """Silence more and more heads, the least important first, and beside it in random orders.

    Heads are ranked on one half of the sentences and silenced on the other. Nothing is trained afterwards: a model that
    may adapt loses less.

    Args:
        model: as for :func:`head_effects`.
        sentences: as for :func:`head_effects`; at least two.
        method: by which the heads are ranked.
        counts: numbers of heads to silence; None: up to eleven, from none to all.
        draws: number of random orders.
        answer: as for :func:`head_effects`.
        row: as for :func:`head_effects`.
        to: target language, as for ``model.trace``.
        seed: of the halves and of the random orders.
        progress: as for :func:`head_effects`, of the second half.

    Returns:
        One row for each order and number: order ("ranked" or "random"), draw (from 0), pruned (heads), rise (of the
        negative log-likelihood, nats a target token; with ``answer`` the fall of its logit, mean of the sentences), n
        (sentences of the second half). ``attrs`` has the answer, if one was asked for.

    Raises:
        VisformerError: see :func:`head_effects`.
    """
    import pandas as pd

    require_whole("draws", draws, least=0)
    require_whole("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    every = list(sentences)
    if len(every) < 2:
        raise VisformerError(
            N_("Pruning needs at least two sentences: heads are ranked on one half, silenced on the other.")
        )
    mixed = [every[i] for i in rng.permutation(len(every))]
    of = _of_each(model, _pair(mixed[0]), answer, row, to)
    asks: dict[str, Any] = {"answer": of and of.answer, "row": row}  # by ids, so that both halves ask for the same
    ranked = head_effects(model, mixed[: len(mixed) // 2], method=method, to=to, seed=seed, **asks)
    order = [_Head(*row) for row in ranked[["stack", "layer", "head"]].itertuples(index=False)][::-1]
    texts = _texts(model, _pairs(mixed[len(mixed) // 2 :]), to, of)
    steps = sorted({*counts}) if counts is not None else np.unique(np.linspace(0, len(order), 11).round()).astype(int)
    orders = [("ranked", 0, order)]
    orders += [("random", draw, [order[i] for i in rng.permutation(len(order))]) for draw in range(draws)]
    plans = [(name, draw, int(n), heads[:n]) for name, draw, heads in orders for n in steps]
    rises = _rises(model, texts, [_silences(heads) for *_, heads in plans], of, progress).sum(axis=0)
    rows = [(*plan[:3], rise) for plan, rise in zip(plans, rises / _tokens(texts, of).sum(), strict=True)]
    table = pd.DataFrame(rows, columns=["order", "draw", "pruned", "rise"]).assign(n=len(texts))
    table.attrs |= {} if answer is None else {"answer": answer}
    return table


def _of_each(
    model: "TracedModel", first: tuple[Any, Any], answer: Answer | None, row: int, to: str | None
) -> Asked | None:
    """What is asked of each sentence, found in the first one; None: its whole target."""
    if answer is not None:
        _, of = ask(model, *first, answer=answer, row=row, to=to)
        return of and replace(of, row=None if of.row is None else row)
    if model._reads_labels:  # each sentence would be judged on another label
        raise VisformerError(
            N_("{name} predicts labels, no next token: say which label with answer=, by its name."),
            name=model.info.name,
        )
    model._require_predictions()
    return None


def _pairs(sentences: "Iterable[Text | tuple[Text, Text]]") -> list[tuple[Any, Any]]:
    """Sentences with their targets, if they have any."""
    pairs = [_pair(each) for each in sentences]
    if not pairs:
        raise VisformerError(N_("There are no sentences: pass a list of texts, or any other iterable."))
    return pairs


def _texts(model: "TracedModel", pairs: list[tuple[Any, Any]], to: str | None, of: Asked | None) -> "list[Encoded]":
    """Encode sentences and pairs; those in which nothing is predicted, or not what is asked for, are refused."""
    texts = list(model.forced([source for source, _ in pairs], [target for _, target in pairs], to=to))
    for i, text in enumerate(texts):
        n_rows = len(text.tgt or text.src)
        if of is not None and of.row is not None and not -n_rows <= of.row < n_rows:
            raise VisformerError(
                N_("Text {index}, counted from 0, has no row {row}: it has {n}."), index=i, row=of.row, n=n_rows
            )
        if of is None and not text.rows:
            raise VisformerError(
                N_("Text {index}, counted from 0, has nothing to predict: give a longer one."), index=i
            )
    return texts


def _pair(given: Any) -> tuple[Any, Any]:
    """A text and its target; two token ids are a text."""
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(each, int) for each in given):
        return given
    return given, None


def _heads(model: "TracedModel") -> list[_Head]:
    """All heads that the model computes, in the order of computation."""
    heads = []
    for name in model._names:
        if name.endswith(".heads"):
            part, layer, kind, _ = name.split(".")
            n_heads = model._shapes([name], 1, 1)[name][0]
            heads += [_Head(f"{part}.{kind}", int(layer), head) for head in range(n_heads)]
    if not heads:
        raise VisformerError(
            N_("{name} does not show the outputs of its heads, so they cannot be silenced."), name=model.info.name
        )
    return heads


def _tokens(texts: "Sequence[Encoded]", of: Asked | None) -> Floats:
    """The number of target tokens of each text, or 1 for what is asked for."""
    return np.array([len(text.rows) if of is None else 1 for text in texts], dtype=np.float64)


def _zeros(heads: Sequence[_Head]) -> "Iterator[Sequence[Edit]]":
    for each in heads:
        yield _silences([each])


def _silences(heads: Sequence[_Head]) -> "Sequence[Edit]":
    from visformer.edits import Silence

    of_path: dict[str, list[int]] = {}
    for each in heads:
        of_path.setdefault(each.path, []).append(each.head)
    return [Silence(path, sorted(indices)) for path, indices in of_path.items()]


def _means(model: "TracedModel", texts: "Sequence[Encoded]", heads: Sequence[_Head]) -> "Iterator[Sequence[Edit]]":
    """Set each head to its mean over all positions of all texts."""
    from visformer.edits import SetHeads

    names = list(dict.fromkeys(f"{each.path}.heads" for each in heads))
    sums: dict[str, Floats] = {}
    positions = dict.fromkeys(names, 0)
    for found in model.recorded(texts, names):
        for name, values in found.items():  # (head, query, d_v)
            sums[name] = sums.get(name, np.zeros(1)) + values.sum(axis=1, dtype=np.float64)
            positions[name] += values.shape[1]
    for each in heads:
        name = f"{each.path}.heads"
        yield [SetHeads(each.path, each.head, (sums[name][each.head] / positions[name]).tolist())]


def _rises(
    model: "TracedModel",
    texts: "Sequence[Encoded]",
    edits: "Sequence[Sequence[Edit]]",
    of: Asked | None,
    progress: Progress | None,
) -> Floats:
    """Return by how much each text's log-likelihood, or what is asked for, falls under each edit, (text, edit)."""
    runs = ((text, edit) for edit in ((), *edits) for text in texts)
    found, total = np.zeros((len(edits) + 1, len(texts))), (len(edits) + 1) * len(texts)
    for i, each in enumerate(model.log_probabilities(runs) if of is None else model.logits(runs)):
        row, place = divmod(i, len(texts))
        found[row, place] = each[list(texts[place].rows)].sum(dtype=np.float64) if of is None else of(each)
        if progress is not None:
            progress(i + 1, total)
    rises: Floats = (found[0] - found[1:]).T
    return rises


def _gradients(
    model: "TracedModel",
    texts: "Sequence[Encoded]",
    heads: Sequence[_Head],
    of: Asked | None,
    progress: Progress | None,
) -> Floats:
    """Return abs(d loss / d gate) of each text and head, (text, head).

    The loss is the mean over the text's tokens, or what is asked for.
    """
    names = list(dict.fromkeys(f"{each.path}.heads" for each in heads))
    rows = []
    numbers = (of or predicted(text, text.rows) for text in texts)
    for i, found in enumerate(model.gate_gradients(zip(texts, numbers, strict=True), names)):
        gates = np.concatenate([found[name].sum(axis=(1, 2), dtype=np.float64) for name in names])
        rows.append(abs(gates) / (1 if of else len(texts[i].rows)))
        if progress is not None:
            progress(i + 1, len(texts))
    return np.stack(rows)


def _interval(sums: Floats, tokens: Floats, *, level: float, seed: int) -> tuple[Floats, Floats]:
    """Bootstrap over sentences: percentiles of sum / tokens for each column of ``sums``, (text, head)."""
    n = len(tokens)
    times = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # (resample, text)
    means = (times @ sums) / (times @ tokens)[:, None]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


Sentences = Sequence[str | tuple[str, str]]
"""Texts, or pairs (source, target)."""

_PAIRS = "en-zh"


def effect_sentences(model: str = _PAIRS) -> Sentences:
    """Return the bundled list: 50 everyday sentences, which the bundled models were not trained on.

    Args:
        model: the name of a model. "en-zh" gets pairs with a Chinese translation by hand; any other the English alone,
            of which an encoder-decoder is judged on its own output.

    Returns:
        Texts, or pairs (source, target), for :func:`visformer.analysis.head_effects`.
    """
    pairs = _bundled()
    return pairs if model == _PAIRS else tuple(source for source, _ in pairs)


def parse_sentences(text: str) -> Sentences:
    """Parse a list: a sentence a line, or a source and its target separated by a tab; empty lines are left out.

    Args:
        text: the whole list, such as the content of a file.

    Returns:
        Texts, and pairs (source, target), for :func:`visformer.analysis.head_effects`.

    Raises:
        TextError: a line has an empty side or a third column; the message has its number, from 1. Or there is no line.
    """
    return tuple(sentence for _, sentence in numbered_sentences(text))


def numbered_sentences(text: str) -> list[tuple[int, str | tuple[str, str]]]:
    """Parse a list as :func:`parse_sentences` does, and return each sentence behind the number of its line, from 1.

    Raises:
        TextError: as for :func:`parse_sentences`.
    """
    found: list[tuple[int, str | tuple[str, str]]] = []
    for line, row in enumerate(text.splitlines(), 1):
        source, *target = (part.strip() for part in row.removeprefix("\ufeff").split("\t"))
        if not source and not any(target):
            continue
        if len(target) > 1:
            raise TextError(
                N_("Line {line} has {n} columns: write a sentence, or a source, a tab and its target."),
                line=line,
                n=len(target) + 1,
            )
        if not source or (target and not target[0]):
            raise TextError(N_("Line {line}: nothing is written on one side of the tab."), line=line)
        found.append((line, (source, target[0]) if target else source))
    if not found:
        raise TextError(N_("The list is empty: write a sentence a line."))
    return found


@cache
def _bundled() -> tuple[tuple[str, str], ...]:
    text = (files("visformer.analysis.effects") / "sentences.tsv").read_text(encoding="utf-8")
    return tuple(pair for pair in parse_sentences(text) if isinstance(pair, tuple))
