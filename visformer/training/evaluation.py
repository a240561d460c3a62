"""Evaluate a translator: BLEU, exact match on held-out names, and word alignment by its cross-attention."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.load import load
from visformer.adapters.own import Translator
from visformer.analysis.heads import row_entropy, same_place
from visformer.errors import N_, DataError, VisformerError
from visformer.training.data import SPLIT_SEED, Pair, read_pairs, split_pairs

Links = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Bleu:
    """Corpus BLEU (0 to 100) of both directions, by sacreBLEU with its tokenizers "zh" and "13a"."""

    en_zh: float
    zh_en: float
    pairs: int


def bleu(model: Translator, pairs: Sequence[Pair]) -> Bleu:
    """Translate every pair greedily in both directions and score against the other side."""
    zh = _translate_all(model, [pair.en for pair in pairs], to="zh")
    en = _translate_all(model, [pair.zh for pair in pairs], to="en")
    return Bleu(
        en_zh=_score(zh, [pair.zh for pair in pairs], tokenize="zh"),
        zh_en=_score(en, [pair.en for pair in pairs], tokenize="13a"),
        pairs=len(pairs),
    )


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

    source: str  # sentence to translate
    expected: str  # its only correct translation
    to: str  # "en" or "zh"
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
    rows = _rows(folder / "held_out.tsv", columns=5)
    frames = [(en, zh) for en, zh, _ in _rows(folder / "held_out_frames.tsv", columns=3)]
    results = []
    for source, expected, direction, _, kind in rows:
        to = direction.split("-")[1]
        name = _name_in(expected, [frame[0 if to == "en" else 1] for frame in frames])
        output = model.translate(source, to=to).text
        results.append(HeldOut(source, expected, to, name, kind, output))
    return results


def _name_in(expected: str, frames: Iterable[str]) -> str:
    """The name that fills the placeholder of the frame that ``expected`` was made from."""
    for frame in frames:
        before, after = re.split(r"\{\w+\}", frame, maxsplit=1)
        if re.fullmatch(rf"{re.escape(before)}.+{re.escape(after)}", expected, re.IGNORECASE):
            return expected[len(before) : len(expected) - len(after)]
    raise DataError(N_("No held-out frame fits {expected!r}."), expected=expected)


@dataclass(frozen=True)
class Aligned:
    """A hand-aligned pair; links are (English word, Chinese word), counted from 0."""

    en: tuple[str, ...]  # words
    zh: tuple[str, ...]
    en_text: str
    zh_text: str
    sure: Links  # links that an alignment must have (Och & Ney 2003)
    possible: Links  # links that it may have, including the sure ones


def read_aligned(path: Path) -> list[Aligned]:
    """Read ``alignment.tsv``: English, segmented Chinese, sure links, further possible links."""
    result = []
    for en, zh, sure, possible in _rows(path, columns=4):
        words = tuple(re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z]+)?|[^\sA-Za-z0-9]", en))
        sure_links = _links(sure)
        result.append(
            Aligned(words, tuple(zh.split()), en, zh.replace(" ", ""), sure_links, sure_links | _links(possible))
        )
    return result


def _links(text: str) -> Links:
    return frozenset((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def alignment_error_rate(links: Sequence[Links], gold: Sequence[Aligned]) -> float:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|) over all pairs (Och & Ney 2003, equation 21); 0 is perfect."""
    hits = sum(len(a & g.sure) + len(a & g.possible) for a, g in zip(links, gold, strict=True))
    total = sum(len(a) + len(g.sure) for a, g in zip(links, gold, strict=True))
    return 1 - hits / total


@dataclass(frozen=True)
class HeadAlignment:
    """How well one cross-attention head aligns words (layer and head count from 0)."""

    layer: int  # in the decoder
    head: int
    aer: float  # alignment error rate, 0 is perfect
    entropy: float  # mean over rows, nats


@dataclass(frozen=True)
class AlignmentReport:
    """All heads, best first, and the AER of two baselines."""

    heads: tuple[HeadAlignment, ...]
    uniform: float
    diagonal: float


def align(model: Translator, gold: Sequence[Aligned], *, to: str) -> AlignmentReport:
    """Link each target word to the source word with the most weight in its row; the gold target is forced.

    A row belongs to the word that it *predicts*. Weights are summed over the sub-words of a source word and averaged
    over those of a target word. The uniform baseline links each target word to a random source word (its expected
    AER), the diagonal one to the word at the same relative position.
    """
    patterns, spans = [], []
    for pair in gold:
        source, target = (pair.en_text, pair.zh_text) if to == "zh" else (pair.zh_text, pair.en_text)
        trace = model.trace(source, target, to=to, record=("decoder.*.cross_attn.pattern",))
        patterns.append(trace.stack("decoder", "cross_attn").value)  # (layer, head, tgt, src)
        words = (pair.en, pair.zh) if to == "zh" else (pair.zh, pair.en)
        spans.append(tuple(_word_matrix(model, text, w) for text, w in zip((source, target), words, strict=True)))
    layers, heads = patterns[0].shape[:2]
    alignments = []
    for layer, head in np.ndindex(layers, heads):
        tables = [_pool(p[layer, head], *span) for p, span in zip(patterns, spans, strict=True)]
        aer = alignment_error_rate([_argmax_links(table, to) for table in tables], gold)
        entropy = float(np.mean(np.concatenate([row_entropy(p[layer, head]) for p in patterns])))
        alignments.append(HeadAlignment(layer, head, aer, entropy))
    return AlignmentReport(
        heads=tuple(sorted(alignments, key=lambda h: h.aer)),
        uniform=_expected_random_aer(gold, to),
        diagonal=alignment_error_rate([_diagonal(pair, to) for pair in gold], gold),
    )


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


def _pool(
    pattern: NDArray[np.float32], source: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Pool (tgt token, src token) to (tgt word, src word): sum over keys, mean over queries, without specials."""
    rows = pattern[: target.shape[1], : source.shape[1]] @ source.T  # (tgt token, src word)
    shares = target / np.maximum(target.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(shares @ rows)


def _argmax_links(table: NDArray[np.float64], to: str) -> Links:
    best = table.argmax(axis=1)
    return frozenset((int(s), t) if to == "zh" else (t, int(s)) for t, s in enumerate(best))


def _diagonal(pair: Aligned, to: str) -> Links:
    n_tgt, n_src = (len(pair.zh), len(pair.en)) if to == "zh" else (len(pair.en), len(pair.zh))
    links = enumerate(same_place(n_tgt, n_src).tolist())
    return frozenset((s, t) if to == "zh" else (t, s) for t, s in links)


def _expected_random_aer(gold: Sequence[Aligned], to: str) -> float:
    """Expected AER of linking each target word to a random source word."""
    hits = total = 0.0
    for pair in gold:
        n_tgt, n_src = (len(pair.zh), len(pair.en)) if to == "zh" else (len(pair.en), len(pair.zh))
        hits += (len(pair.sure) + len(pair.possible)) / n_src
        total += n_tgt + len(pair.sure)
    return 1 - hits / total


def report(
    name: str, *, pairs_file: Path | None, half: bool, names: bool, alignment: bool, folder: Path
) -> dict[str, Any]:
    """Return what ``visformer evaluate`` prints, as JSON values.

    Raises:
        VisformerError: the model is not one of visformer's own Transformers.
    """
    model = load(name)
    if not isinstance(model, Translator):
        raise VisformerError(N_("{name} is no Transformer of visformer's own: only those are measured."), name=name)
    result: dict[str, Any] = {}
    if pairs_file is not None:
        pairs = read_pairs(pairs_file)
        result["bleu"] = asdict(bleu(model, split_pairs(pairs, seed=SPLIT_SEED)[1] if half else pairs))
    if names:
        result["names"] = _names_report(held_out_names(model, folder))
    if alignment:
        gold = read_aligned(folder / "alignment.tsv")
        result["alignment"] = {
            direction: _alignment_report(align(model, gold, to=to))
            for direction, to in (("en-zh", "zh"), ("zh-en", "en"))
        }
    return result


def _names_report(results: Sequence[HeldOut]) -> dict[str, Any]:
    kinds = ["all", *dict.fromkeys(row.kind for row in results)]
    table = {}
    for kind in kinds:
        rows = [row for row in results if kind in ("all", row.kind)]
        exact, right = sum(row.exact for row in rows), sum(row.name_right for row in rows)
        table[kind] = {"sentences": len(rows), "exact": exact, "name_right": right}
    return table


def _alignment_report(report: AlignmentReport) -> dict[str, Any]:
    best = {f"layer {h.layer + 1} head {h.head + 1}": {"aer": h.aer, "entropy": h.entropy} for h in report.heads[:3]}
    return {"best heads": best, "aer of uniform": report.uniform, "aer of diagonal": report.diagonal}


def _rows(path: Path, *, columns: int) -> list[list[str]]:
    """Read the rows of a TSV with a header line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
    except OSError as error:
        raise DataError(N_("{path} cannot be read: {reason}"), path=path, reason=error) from error
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=2):
        if len(row) != columns:
            raise DataError(
                N_("{path}, line {number}: {given} columns instead of {wanted}."),
                path=path,
                number=number,
                given=len(row),
                wanted=columns,
            )
    return rows
