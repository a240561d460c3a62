"""Judged translations: the words that one has to hold, names never trained on, and whether confidence tells right ones.

For the confidence, the judged rows are split into two halves, each with its share of every kind. The threshold is
chosen on one half; all that is said of it is measured on the other. The geometric mean was taken, before the model was
trained, because it did better than the least probable step on an earlier model; the weight of reading back is chosen on
the first half, too.
"""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.own import Translator
from visformer.analysis.intervals import counts, percentiles, share
from visformer.errors import N_, DataError
from visformer.training.first_sentences import FOLDER
from visformer.training.supplement import read_rows


def translate_all(
    model: Translator, sources: Sequence[str], *, to: str, batch: int = 64
) -> dict[str, tuple[str, float]]:
    """Translate greedily, in batches of similar length.

    Returns:
        Each source's translation and the model's confidence in it.
    """
    ordered = sorted(dict.fromkeys(sources), key=len)
    decodings = model.translate_many(ordered, to=to, batch=batch)
    return {source: (each.text, each.confidence) for source, each in zip(ordered, decodings, strict=True)}


@dataclass(frozen=True)
class Judgement:
    """A translation, and whether it is right."""

    source: str
    output: str
    confidence: float
    right: bool


@dataclass(frozen=True)
class Judged:
    """One judged sentence, or a pair of sentences that differ in one thing."""

    kind: str  # "ordinary", "hard" or "pairs"; of first sentences the name of their list
    sentences: tuple[Judgement, ...]

    @property
    def right(self) -> bool:
        """Whether all of its sentences are translated rightly."""
        return all(sentence.right for sentence in self.sentences)


def judged(model: Translator, folder: Path) -> list[Judged]:
    """Translate the judged sentences of the supplement; its README says when a translation is right."""
    sentences = read_rows(folder / "judged" / "everyday.tsv", columns=5)
    pairs = read_rows(folder / "judged" / "minimal_pairs.tsv", columns=8)
    directed = [(row[0], row[1]) for row in sentences] + [(row[i], row[1]) for row in pairs for i in (2, 5)]
    translated = _translated(model, directed)

    def judge(source: str, must: Iterable[str], must_not: Iterable[str]) -> Judgement:
        output, confidence = translated[source]
        return Judgement(source, output, confidence, _right(output, must, must_not))

    singles = [
        Judged(half, (judge(source, _patterns(must), _patterns(must_not)),))
        for source, _, half, must, must_not in sentences
    ]
    doubles = [
        Judged("pairs", tuple(judge(source, [must], [must_not]) for source, must, must_not in (row[2:5], row[5:8])))
        for row in pairs
    ]
    return singles + doubles


def first_judged(model: Translator, folder: Path) -> list[Judged]:
    """Translate the first sentences of the supplement: held out, taught, and texts to be copied."""
    folder /= FOLDER
    lists = [
        (f"{part} {name}", row)
        for part, name, columns in (
            ("held_out", "first", 6), ("held_out", "phrases", 5), ("taught", "first", 6), ("taught", "phrases", 5)
        )
        for row in read_rows(folder / part / f"{name}.tsv", columns=columns)
    ]  # fmt: skip
    copies = read_rows(folder / "held_out" / "copies.tsv", columns=3)
    translated = _translated(model, [(row[0], row[1]) for row in (*copies, *(row for _, row in lists))])
    results = []
    for kind, row in lists:
        output, confidence = translated[row[0]]
        right = _right(output, _patterns(row[-2]), _patterns(row[-1]))
        results.append(Judged(kind, (Judgement(row[0], output, confidence, right),)))
    for source, _, copied in copies:
        output, confidence = translated[source]
        results.append(Judged("held_out copies", (Judgement(source, output, confidence, copied in output),)))
    return results


def _translated(model: Translator, directed: Sequence[tuple[str, str]]) -> dict[str, tuple[str, float]]:
    """Translate sources, each with its direction; returns translation and confidence by source."""
    translated: dict[str, tuple[str, float]] = {}
    for to in ("zh", "en"):
        translated |= translate_all(model, [source for source, direction in directed if direction.endswith(to)], to=to)
    return translated


def _right(text: str, must: Iterable[str], must_not: Iterable[str]) -> bool:
    found = partial(re.search, string=text, flags=re.IGNORECASE | re.ASCII)
    return all(map(found, must)) and not any(map(found, must_not))


def _patterns(words: str) -> list[str]:
    """One pattern for each word, or "several|words": an English word has to be whole, a Chinese one need not."""
    one = [[rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in word.split("|")] for word in words.split()]
    return ["|".join(alternatives) for alternatives in one]


def judged_report(results: Sequence[Judged]) -> dict[str, Any]:
    """Count what is right, by kind."""
    kinds = dict.fromkeys(row.kind for row in results)
    rows = {kind: [row.right for row in results if row.kind == kind] for kind in kinds}
    return {kind: share(sum(right), len(right)) for kind, right in rows.items()}


KEPT = 0.97
"""Share of the right translations that the threshold leaves unmarked: who greets the model should not see a doubt."""

BINS = 10
HALVING_SEED = 0


def calibration(results: Sequence[Judged]) -> dict[str, Any] | None:
    """Choose the threshold, and measure how well confidence and threshold do.

    Args:
        results: of the judged lists. A sentence counts alone; the two of a minimal pair are drawn together.

    Returns:
        "threshold"; "auroc" with its interval (bootstrap over rows): the probability that a wrong translation has a
        lower confidence than a right one; of the marked translations, below the threshold: "precision", the share that
        is wrong, "recall", the share of the wrong that is marked, and "kept", the share of the right that is not, each
        with its interval; "kinds": recall, kept and auroc (a number) of each list alone; "reliability": the share that
        is right among all judged sentences, by confidence. None if a half has no right translation or no wrong one.
    """
    choosing, scoring = halves(results)
    if not all({True, False} <= {s.right for row in half for s in row.sentences} for half in (choosing, scoring)):
        return None
    fitted, is_right, _ = _arrays(choosing)
    threshold = float(np.quantile(fitted[is_right], 1 - KEPT))
    confidence, right, rows = _arrays(scoring)
    marked = confidence < threshold
    low, high = percentiles(_resampled_auroc(confidence, right, rows))
    everything, all_right, _ = _arrays(results)
    return {
        "threshold": threshold,
        "auroc": {"n": len(right), "value": auroc(confidence, right), "low": low, "high": high},
        "precision": share(int((marked & ~right).sum()), int(marked.sum())),
        "recall": share(int((marked & ~right).sum()), int((~right).sum())),
        "kept": share(int((~marked & right).sum()), int(right.sum())),
        "kinds": {
            kind: _of_kind([row for row in scoring if row.kind == kind], threshold)
            for kind in dict.fromkeys(row.kind for row in scoring)
        },
        "reliability": reliability(everything, all_right),
    }


def _of_kind(results: Sequence[Judged], threshold: float) -> dict[str, Any]:
    confidence, right, _ = _arrays(results)
    marked = confidence < threshold
    return {
        "recall": share(int((marked & ~right).sum()), int((~right).sum())) if not right.all() else None,
        "kept": share(int((~marked & right).sum()), int(right.sum())) if right.any() else None,
        "auroc": auroc(confidence, right) if right.any() and not right.all() else None,
    }


def halves(results: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Split at random into two halves, each kind alike, the same ones for every model."""
    rng, first, second = random.Random(HALVING_SEED), [], []
    for kind in dict.fromkeys(row.kind for row in results):
        rows = [row for row in results if row.kind == kind]
        rng.shuffle(rows)
        first += rows[: len(rows) // 2]
        second += rows[len(rows) // 2 :]
    return first, second


def _arrays(results: Sequence[Judged]) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Return confidence, whether right, and row of each sentence."""
    sentences = [(s.confidence, s.right, i) for i, row in enumerate(results) for s in row.sentences]
    confidence, right, rows = zip(*sentences, strict=True)
    return np.array(confidence), np.array(right), np.array(rows)


def auroc(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: P(a wrong one is below a right one), ties by half (Hanley & McNeil 1982)."""
    return float(_below(confidence, right).mean())


def _below(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(wrong, right): 1 where the wrong one has the lower confidence, 1/2 where both have the same."""
    wrong, rights = confidence[~right, None], confidence[right]
    return np.asarray((wrong < rights) + (wrong == rights) / 2)


def _resampled_auroc(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The AUROC of resampled rows, of those that hold right and wrong ones."""
    below, weights = _below(confidence, right), counts(int(rows.max()) + 1)[:, rows]  # (resample, sentence)
    wrong, rights = weights[:, ~right], weights[:, right]
    both = wrong.sum(axis=1) * rights.sum(axis=1)
    areas = np.einsum("iw,wr,ir->i", wrong, below, rights, optimize=True)
    return np.asarray(areas[both > 0] / both[both > 0])


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return, for each tenth of the confidence that occurs, its ends, the mean in it and the share that is right."""
    places = np.minimum((confidence * BINS).astype(int), BINS - 1)
    table = []
    for place, (start, end) in enumerate(pairwise(np.linspace(0, 1, BINS + 1).round(1).tolist())):
        here = places == place
        if here.any():
            row = {"from": start, "to": end, "confidence": float(confidence[here].mean())}
            table.append(row | share(int(right[here].sum()), int(here.sum())))
    return table


@dataclass(frozen=True)
class HeldOut:
    """One sentence with a name that the model was never trained on."""

    expected: str  # its only correct translation
    name: str  # name that has to be in the output, as it is in ``expected``
    kind: str  # "copy" (a Latin name), "pinyin" (a Chinese name to be spelled) or "composed" (known place + University)
    output: str  # the model's translation

    @property
    def exact(self) -> bool:
        """Whether the whole sentence is as expected."""
        return self.output == self.expected

    @property
    def name_right(self) -> bool:
        """Whether the output contains the name, whatever the rest of the sentence is."""
        return self.name in self.output


def held_out_names(model: Translator, folder: Path) -> list[HeldOut]:
    """Translate the held-out sentences of the supplement."""
    frames = read_rows(folder / "held_out_frames.tsv", columns=3)
    rows = read_rows(folder / "held_out.tsv", columns=5)
    outputs: dict[str, tuple[str, float]] = {}
    for to in ("zh", "en"):
        outputs |= translate_all(model, [row[0] for row in rows if row[2].endswith(to)], to=to)
    results = []
    for source, expected, direction, _, kind in rows:
        name = _name_in(expected, [frame[0 if direction.endswith("en") else 1] for frame in frames])
        results.append(HeldOut(expected, name, kind, outputs[source][0]))
    return results


def _name_in(expected: str, frames: Iterable[str]) -> str:
    """The name that fills the placeholder of the frame that ``expected`` was made from."""
    for frame in frames:
        before, after = re.split(r"\{\w+\}", frame, maxsplit=1)
        if re.fullmatch(rf"{re.escape(before)}.+{re.escape(after)}", expected, re.IGNORECASE):
            return expected[len(before) : len(expected) - len(after)]
    raise DataError(N_("No held-out frame fits {expected!r}."), expected=expected)


def names_report(results: Sequence[HeldOut]) -> dict[str, Any]:
    """Count whole sentences and names, by kind."""
    table = {}
    for kind in ["all", *dict.fromkeys(row.kind for row in results)]:
        rows = [row for row in results if kind in ("all", row.kind)]
        exact, right = sum(row.exact for row in rows), sum(row.name_right for row in rows)
        table[kind] = {"sentences": len(rows), "exact": exact, "name_right": right}
    return table
