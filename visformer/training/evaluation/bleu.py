"""BLEU and chrF by sacreBLEU, and how much BLEU differs from another model's."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from visformer.adapters.own import Translator
from visformer.analysis.intervals import percentiles, resamples
from visformer.training.data import Pair
from visformer.training.evaluation.judged import translate_all
from visformer.training.refusals import Refusals
from visformer.training.supplement import plain

TOKENIZERS = {"en-zh": "zh", "zh-en": "13a"}


def outputs(model: Translator, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, float]]]:
    """Translate every pair greedily in both directions; by direction, what :func:`translate_all` returns."""
    return {
        "en-zh": translate_all(model, [pair.en for pair in pairs], to="zh"),
        "zh-en": translate_all(model, [pair.zh for pair in pairs], to="en"),
    }


def scores(pairs: Sequence[Pair], ours: dict[str, Any], theirs: dict[str, Any] | None = None) -> dict[str, Any]:
    """Score translations in both directions.

    Args:
        pairs: sentences with their references.
        ours: :func:`outputs` of a translator, of these pairs or of more.
        theirs: those of another one, to compare BLEU with.

    Returns:
        The number of pairs and, by direction, BLEU and chrF (0 to 100) of all of them with sacreBLEU's signatures, and
        the other's BLEU, the difference to it, and the interval of that, by paired bootstrap over the pairs.
    """
    return {"pairs": len(pairs), **{direction: _scores(pairs, direction, ours, theirs) for direction in TOKENIZERS}}


def _scores(
    pairs: Sequence[Pair], direction: str, ours: dict[str, Any], theirs: dict[str, Any] | None
) -> dict[str, Any]:
    source, to = direction.split("-")
    references = [getattr(pair, to) for pair in pairs]

    def translated(by: dict[str, Any]) -> list[str]:
        return [by[direction][getattr(pair, source)][0] for pair in pairs]

    texts, bleu, chrf = translated(ours), BLEU(tokenize=TOKENIZERS[direction]), CHRF()
    result: dict[str, Any] = {
        "bleu": bleu.corpus_score(texts, [references]).score,
        "chrf": chrf.corpus_score(texts, [references]).score,
        "signatures": {"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
    }
    if theirs is not None:
        one, other = (statistics(each, references, direction) for each in (texts, translated(theirs)))
        low, high = percentiles(resampled(one) - resampled(other))
        before = score(other.sum(axis=0))
        result["against"] = {"bleu": before, "difference": result["bleu"] - before, "low": low, "high": high}
    return result


def statistics(texts: Sequence[str], references: Sequence[str], direction: str) -> NDArray[np.int64]:
    """Return what BLEU counts in each sentence: matched and all 1- to 4-grams, both lengths, (sentence, 10)."""
    bleu = BLEU(tokenize=TOKENIZERS[direction], effective_order=True)  # or it warns: these are sentences
    scored = [bleu.sentence_score(text, [one]) for text, one in zip(texts, references, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in scored])


def score(statistics: NDArray[np.int64]) -> float:
    """Return the BLEU of summed statistics, (10,)."""
    *ngrams, length, reference = statistics.tolist()
    return float(BLEU.compute_bleu(ngrams[:4], ngrams[4:], length, reference, smooth_method="exp").score)


def resampled(statistics: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the BLEU of 1,000 resamples of the sentences: Koehn 2004, with sacreBLEU's seed."""
    return np.array([score(statistics[drawn].sum(axis=0)) for drawn in resamples(len(statistics))])


def overlaps(pairs: Sequence[Pair], seen: Iterable[Pair], known: Refusals) -> list[str]:
    """Compare pairs with those trained on.

    Args:
        pairs: to evaluate on.
        seen: trained on.
        known: knows lemmas and function words, as far as the grammar does.

    Returns:
        For each pair "equal", if one of its sides was seen, punctuation and case aside; "content", if one has the
        content words of a side that was seen; else "".
    """
    texts: set[str] = set()
    contents: set[frozenset[str]] = set()
    for text in (text for pair in seen for text in (pair.en, pair.zh)):
        texts.add(plain(text))
        contents.add(known.content(text))
    contents.discard(frozenset())  # sentences of function words alone are compared as a whole

    def overlap(*sides: str) -> str:
        if any(plain(text) in texts for text in sides):
            return "equal"
        return "content" if any(known.content(text) in contents for text in sides) else ""

    return [overlap(pair.en, pair.zh) for pair in pairs]
