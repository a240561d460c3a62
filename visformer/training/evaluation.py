"""Evaluate a translator: BLEU, judged sentences, held-out names, and word alignment by its cross-attention."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.load import load
from visformer.adapters.own import Translator
from visformer.analysis.heads import row_entropy, same_place
from visformer.errors import N_, DataError, VisformerError
from visformer.training.data import SPLIT_SEED, Pair, read_pairs, split_pairs
from visformer.training.supplement import read_rows

Links = frozenset[tuple[int, int]]


def bleu(model: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """Translate every pair greedily in both directions; corpus BLEU (0 to 100) by sacreBLEU, tokenizers "zh", "13a"."""
    zh = _translate_all(model, [pair.en for pair in pairs], to="zh")
    en = _translate_all(model, [pair.zh for pair in pairs], to="en")
    return {
        "en_zh": _score(zh, [pair.zh for pair in pairs], tokenize="zh"),
        "zh_en": _score(en, [pair.en for pair in pairs], tokenize="13a"),
        "pairs": len(pairs),
    }


def _score(translations: list[str], references: list[str], *, tokenize: str) -> float:
    import sacrebleu

    score = sacrebleu.corpus_bleu(translations, [references], tokenize=tokenize).score
    return min(float(score), 100.0)  # rounding may exceed 100


def _translate_all(model: Translator, sources: Sequence[str], *, to: str, batch: int = 64) -> list[str]:
    """Translate in batches of similar length; the result is in the order of ``sources``."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    result = [""] * len(sources)
    for start in range(0, len(order), batch):
        indices = order[start : start + batch]
        translations = model.translate_batch([sources[i] for i in indices], to=to)
        for i, text in zip(indices, translations, strict=True):
            result[i] = text
    return result


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
    results = []
    for source, expected, direction, _, kind in read_rows(folder / "held_out.tsv", columns=5):
        to = direction.split("-")[1]
        name = _name_in(expected, [frame[0 if to == "en" else 1] for frame in frames])
        results.append(HeldOut(expected, name, kind, model.translate(source, to=to).text))
    return results


def _name_in(expected: str, frames: Iterable[str]) -> str:
    """The name that fills the placeholder of the frame that ``expected`` was made from."""
    for frame in frames:
        before, after = re.split(r"\{\w+\}", frame, maxsplit=1)
        if re.fullmatch(rf"{re.escape(before)}.+{re.escape(after)}", expected, re.IGNORECASE):
            return expected[len(before) : len(expected) - len(after)]
    raise DataError(N_("No held-out frame fits {expected!r}."), expected=expected)


@dataclass(frozen=True)
class Judged:
    """One judged sentence, or a pair of sentences that differ in one thing, and whether it is translated rightly."""

    kind: str  # "ordinary", "hard" or "pairs"
    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    right: bool


def judged(model: Translator, folder: Path) -> list[Judged]:
    """Translate the judged sentences of the supplement; its README says when a translation is right."""
    sentences = read_rows(folder / "judged" / "everyday.tsv", columns=5)
    pairs = read_rows(folder / "judged" / "minimal_pairs.tsv", columns=8)
    directed = [(row[0], row[1]) for row in sentences] + [(row[i], row[1]) for row in pairs for i in (2, 5)]
    outputs: dict[str, str] = {}
    for to in ("zh", "en"):
        sources = [source for source, direction in directed if direction.endswith(to)]
        outputs |= zip(sources, _translate_all(model, sources, to=to), strict=True)
    results = []
    for source, _, half, must, must_not in sentences:
        right = _right(outputs[source], _patterns(must), _patterns(must_not))
        results.append(Judged(half, (source,), (outputs[source],), right))
    for _, _, one, must, must_not, other, other_must, other_must_not in pairs:
        both = _right(outputs[one], [must], [must_not]) and _right(outputs[other], [other_must], [other_must_not])
        results.append(Judged("pairs", (one, other), (outputs[one], outputs[other]), both))
    return results


def _right(text: str, must: Iterable[str], must_not: Iterable[str]) -> bool:
    found = partial(re.search, string=text, flags=re.IGNORECASE | re.ASCII)
    return all(map(found, must)) and not any(map(found, must_not))


def _patterns(words: str) -> list[str]:
    """One pattern for each word, or "several|words": an English word has to be whole, a Chinese one need not."""
    one = [[rf"\b{re.escape(w)}\b" if w.isascii() else re.escape(w) for w in word.split("|")] for word in words.split()]
    return ["|".join(alternatives) for alternatives in one]


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by its score (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.975)
    middle, half = right + z * z / 2, z * (right * (n - right) / n + z * z / 4) ** 0.5
    return (middle - half) / (n + z * z), (middle + half) / (n + z * z)


@dataclass(frozen=True)
class Aligned:
    """A hand-aligned pair; links are (source word, target word), counted from 0."""

    source: tuple[str, ...]  # words
    target: tuple[str, ...]
    source_text: str
    target_text: str
    sure: Links  # links that an alignment must have (Och & Ney 2003)
    possible: Links  # links that it may have, including the sure ones

    def reversed(self) -> "Aligned":
        """Return the pair for the other direction of translation."""
        sure, possible = (frozenset((j, i) for i, j in links) for links in (self.sure, self.possible))
        return Aligned(self.target, self.source, self.target_text, self.source_text, sure, possible)


def read_aligned(path: Path) -> list[Aligned]:
    """Read ``alignment.tsv``: English, the source, segmented Chinese, sure links, further possible links."""
    result = []
    for en, zh, *links in read_rows(path, columns=4):
        words = tuple(re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z]+)?|[^\sA-Za-z0-9]", en))
        sure, further = map(_links, links)
        result.append(Aligned(words, tuple(zh.split()), en, zh.replace(" ", ""), sure, sure | further))
    return result


def _links(text: str) -> Links:
    return frozenset((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def alignment_error_rate(links: Sequence[Links], gold: Sequence[Aligned]) -> float:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|) over all pairs (Och & Ney 2003, equation 21); 0 is perfect."""
    hits = sum(len(a & g.sure) + len(a & g.possible) for a, g in zip(links, gold, strict=True))
    total = sum(len(a) + len(g.sure) for a, g in zip(links, gold, strict=True))
    return 1 - hits / total


@dataclass(frozen=True)
class Forced:
    """The cross-attention of a hand-aligned pair whose target was forced."""

    pattern: NDArray[np.float32]  # (layer, head, tgt, src)
    source: NDArray[np.float64]  # (word, token), see _word_matrix
    target: NDArray[np.float64]

    def words(self, *, own: bool = False) -> NDArray[np.float64]:
        """Pool the pattern to words: (layer, head, target word, source word), without special tokens.

        A row belongs to the word that it predicts; ``own``: to the word that it stands for, one row later. Weights are
        summed over the tokens of a source word and averaged over those of a target word.
        """
        n_target, n_source = self.target.shape[1], self.source.shape[1]
        rows = self.pattern[:, :, int(own) :][:, :, :n_target, :n_source] @ self.source.T  # (..., tgt token, src word)
        shares = self.target / np.maximum(self.target.sum(axis=1, keepdims=True), 1e-9)
        return np.asarray(shares @ rows)


def forced(model: Translator, gold: Sequence[Aligned], *, to: str) -> list[Forced]:
    """Trace every pair with its gold target."""
    result = []
    for pair in gold:
        trace = model.trace(pair.source_text, pair.target_text, to=to, record=("decoder.*.cross_attn.pattern",))
        spans = (_word_matrix(model, pair.source_text, pair.source), _word_matrix(model, pair.target_text, pair.target))
        result.append(Forced(trace.stack("decoder", "cross_attn").value, *spans))
    return result


def error_rates(rows: Sequence[Forced], gold: Sequence[Aligned], *, own: bool = False) -> NDArray[np.float64]:
    """Return the AER of each head, (layer, head), if it links each target word to the source word with most weight.

    ``own``: see :meth:`Forced.words`.
    """
    tables = [row.words(own=own).argmax(axis=-1) for row in rows]  # each (layer, head, target word)
    errors = np.empty(tables[0].shape[:2])
    for place in np.ndindex(errors.shape):
        errors[place] = alignment_error_rate([_links_of(table[place]) for table in tables], gold)
    return errors


def align(model: Translator, gold: Sequence[Aligned], *, to: str) -> dict[str, Any]:
    """Link each target word to the source word with the most weight in the row that predicts it.

    The uniform baseline links each target word to a random source word (its expected AER), the diagonal one to the
    word at the same relative position.

    Returns:
        AER and mean entropy of a row, in nats, of the three best heads, the best first; the AER of both baselines.
    """
    rows = forced(model, gold, to=to)
    errors = error_rates(rows, gold)
    best = sorted(np.ndindex(errors.shape), key=lambda place: errors[place])[:3]
    diagonal = [_links_of(same_place(len(pair.target), len(pair.source))) for pair in gold]
    return {
        "best heads": {
            f"layer {layer + 1} head {head + 1}": {
                "aer": float(errors[layer, head]),
                "entropy": float(np.mean(np.concatenate([row_entropy(row.pattern[layer, head]) for row in rows]))),
            }
            for layer, head in best
        },
        "aer of uniform": _expected_random_aer(gold),
        "aer of diagonal": alignment_error_rate(diagonal, gold),
    }


def _word_matrix(model: Translator, text: str, words: Sequence[str]) -> NDArray[np.float64]:
    """(word, token): the share of a token's characters that belongs to each word; the end token belongs to none."""
    tokens = model.tokenizer.spans(text)
    matrix = np.zeros((len(words), len(tokens)))
    start = 0
    for i, word in enumerate(words):
        start = text.index(word, start)
        for j, (a, b) in enumerate(tokens):
            matrix[i, j] = max(0, min(b, start + len(word)) - max(a, start)) / max(1, b - a)
        start += len(word)
    return matrix


def _links_of(sources: NDArray[np.intp]) -> Links:
    """Return the links of the target words, each to its source word."""
    return frozenset((s, t) for t, s in enumerate(sources.tolist()))


def _expected_random_aer(gold: Sequence[Aligned]) -> float:
    """Expected AER of linking each target word to a random source word."""
    hits = sum((len(pair.sure) + len(pair.possible)) / len(pair.source) for pair in gold)
    total = sum(len(pair.target) + len(pair.sure) for pair in gold)
    return 1 - hits / total


def report(
    name: str, *, pairs_file: Path | None, half: bool, names: bool, judgement: bool, alignment: bool, folder: Path
) -> dict[str, Any]:
    """Return what ``visformer evaluate`` prints, as JSON values.

    Raises:
        VisformerError: the model is not one of visformer's own Transformers.
    """
    model = load(name)
    if not isinstance(model, Translator):
        raise VisformerError(
            N_("{name} is not one of visformer's own Transformers: only those can be evaluated."), name=name
        )
    result: dict[str, Any] = {}
    if pairs_file is not None:
        pairs = read_pairs(pairs_file)
        result["bleu"] = bleu(model, split_pairs(pairs, seed=SPLIT_SEED)[1] if half else pairs)
    if names:
        result["names"] = _names_report(held_out_names(model, folder))
    if judgement:
        result["judged"] = _judged_report(judged(model, folder))
    if alignment:
        gold = read_aligned(folder / "alignment.tsv")
        result["alignment"] = {
            "en-zh": align(model, gold, to="zh"),
            "zh-en": align(model, [pair.reversed() for pair in gold], to="en"),
        }
    return result


def _names_report(results: Sequence[HeldOut]) -> dict[str, Any]:
    table = {}
    for kind in ["all", *dict.fromkeys(row.kind for row in results)]:
        rows = [row for row in results if kind in ("all", row.kind)]
        exact, right = sum(row.exact for row in rows), sum(row.name_right for row in rows)
        table[kind] = {"sentences": len(rows), "exact": exact, "name_right": right}
    return table


def _judged_report(results: Sequence[Judged]) -> dict[str, Any]:
    table = {}
    for kind in dict.fromkeys(row.kind for row in results):
        rows = [row for row in results if row.kind == kind]
        right = sum(row.right for row in rows)
        low, high = wilson(right, len(rows))
        table[kind] = {"n": len(rows), "right": right, "share": right / len(rows), "low": low, "high": high}
    return table
