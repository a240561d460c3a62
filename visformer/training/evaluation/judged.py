"""Everyday sentences, minimal pairs and first sentences, judged by the words that a translation has to hold."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from visformer.adapters.own import Translator
from visformer.analysis.intervals import share
from visformer.training.evaluation.translations import translate_all
from visformer.training.first_sentences import FOLDER
from visformer.training.supplement import read_rows


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
    told = _translated(model, directed)

    def judge(source: str, must: Iterable[str], must_not: Iterable[str]) -> Judgement:
        output, confidence = told[source]
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
    told = _translated(model, [(row[0], row[1]) for row in (*copies, *(row for _, row in lists))])
    results = []
    for kind, row in lists:
        output, confidence = told[row[0]]
        right = _right(output, _patterns(row[-2]), _patterns(row[-1]))
        results.append(Judged(kind, (Judgement(row[0], output, confidence, right),)))
    for source, _, copied in copies:
        output, confidence = told[source]
        results.append(Judged("held_out copies", (Judgement(source, output, confidence, copied in output),)))
    return results


def _translated(model: Translator, directed: Sequence[tuple[str, str]]) -> dict[str, tuple[str, float]]:
    """Translate sources, each with its direction; returns translation and confidence by source."""
    told: dict[str, tuple[str, float]] = {}
    for to in ("zh", "en"):
        told |= translate_all(model, [source for source, direction in directed if direction.endswith(to)], to=to)
    return told


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
