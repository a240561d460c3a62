"""Word alignment: which source word each target word takes most from, compared with gold links."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.analysis.intervals import counts, percentiles
from visformer.analysis.methods import METHODS, Row, needed
from visformer.analysis.needs import Floats
from visformer.errors import N_, ShapeError, VisformerError
from visformer.trace import Trace
from visformer.trace.row_totals import same_place

if TYPE_CHECKING:  # torch; pandas, which takes long
    import pandas as pd

    from visformer.adapters.own import Translator

Links = frozenset[tuple[int, int]]

READINGS: dict[Row, int] = {"prediction": 0, "input": 1}
"""The row that is read for a token: the one that predicts it, or the next one, whose input it is."""

HALVINGS = 50


@dataclass(frozen=True)
class Aligned:
    """A pair with gold links; links are (source word, target word), counted from 0."""

    source: tuple[str, ...]  # words
    target: tuple[str, ...]
    source_text: str
    target_text: str
    sure: Links  # links that an alignment must have (Och & Ney 2003)
    possible: Links  # links that it may have, including the sure ones

    def reversed(self) -> "Aligned":
        """Turn the pair round, for the other direction of translation.

        Returns:
            The pair whose source is this one's target.
        """
        sure, possible = (frozenset((j, i) for i, j in links) for links in (self.sure, self.possible))
        return Aligned(self.target, self.source, self.target_text, self.source_text, sure, possible)

    @property
    def hits(self) -> NDArray[np.intp]:
        """(target word, source word): in how many of the sure and the possible links a link between them is."""
        hits = np.zeros((len(self.target), len(self.source)), dtype=np.intp)
        for links in (self.sure, self.possible):
            for i, j in links:
                hits[j, i] += 1
        return hits

    @property
    def diagonal(self) -> int:
        """|A and S| + |A and P| of linking each target word to the source word at the same relative position."""
        n = len(self.target)
        return int(self.hits[np.arange(n), same_place(n, len(self.source))].sum())

    @property
    def size(self) -> int:
        """|A| + |S| of an alignment A with one link for each target word."""
        return len(self.target) + len(self.sure)


def error_rate(hits: Any, size: Any) -> Any:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|) (Och & Ney 2003, equation 21); 0 is perfect."""
    return 1 - hits / size


@dataclass(frozen=True)
class Chosen:
    """The error rate of what was chosen among several, with its interval; see :meth:`Candidates.chosen`."""

    error: float
    low: float
    high: float
    best: int  # the one chosen most often
    share: float  # of the halvings that chose it


@dataclass(frozen=True)
class Candidates:
    """What each of several heads, or layers, aligns, by one reading.

    Args:
        names: of the candidates.
        hits: (candidate, pair), |A and S| + |A and P|.
        sizes: (pair,), |A| + |S|.
    """

    names: tuple[str, ...]
    hits: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @property
    def error_rates(self) -> NDArray[np.float64]:
        """(candidate,): AER of each on all pairs."""
        return self._error_rates(np.ones(len(self.sizes)))

    def chosen(self) -> Chosen:
        """Choose the candidate with the lowest AER on one half of the pairs, score it on the other.

        Mean over 50 random halvings, with the interval of this mean by the bootstrap over pairs. A single candidate is
        scored on all pairs.
        """
        n, rng = len(self.sizes), np.random.default_rng(0)
        if len(self.names) == 1:
            low, high = percentiles(np.array([self._error_rates(weights)[0] for weights in counts(n).astype(float)]))
            return Chosen(float(self.error_rates[0]), low, high, 0, 1.0)
        half = np.stack([rng.permutation(n) < n // 2 for _ in range(HALVINGS)])  # (halving, pair)
        rates, chosen = self._halved(half, np.ones(n))
        best = int(np.bincount(chosen).argmax())
        low, high = percentiles(np.array([self._halved(half, weights)[0].mean() for weights in counts(n)]))
        return Chosen(float(rates.mean()), low, high, best, float(np.mean(chosen == best)))

    def _halved(self, half: NDArray[np.bool_], weights: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """For each halving the AER of the candidate chosen on ``half``, on the other; and its number.

        ``weights`` (pair,): how often a pair counts. A resampled pair is in the same half each time.
        """
        one, other = (self._error_rates(side * weights.astype(float)) for side in (half, ~half))  # (halving, candidate)
        chosen = one.argmin(axis=1)
        return other[np.arange(len(half)), chosen], chosen

    def _error_rates(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """AER of each candidate, with each row of weights (…, pair)."""
        return np.asarray(error_rate(weights @ self.hits.T, np.maximum(weights @ self.sizes, 1)[..., None]))


def alignment(values: ArrayLike, trace: Trace, *, row: Row) -> Links:
    """Link each target word to the source word from which it takes most.

    Sub-words are summed over keys and averaged over queries; special tokens are left out.

    Args:
        values: (row, source token), of any method.
        trace: of the same pass.
        row: "prediction": row q is of the word that it predicts; "input": of the word that it is given. Only weights
            and shares of a row may be read as "input".

    Returns:
        (source word, target word), counted from 0 without special tokens, one for each target word.

    Raises:
        ShapeError: ``values`` has another shape.
        MissingTensor: the Trace has no source or no target.
        VisformerError: ``row`` is neither.
    """
    _require_row(row)
    side = "next" if row == "prediction" else "tgt"
    wanted = (len(trace.tokens[side]), len(trace.tokens["src"]))
    given = np.asarray(values, dtype=np.float64)
    if given.shape != wanted:
        raise ShapeError(
            N_("values has the shape {given}; rows and source tokens are {wanted}."), given=given.shape, wanted=wanted
        )
    source, target = (_words(trace, each) for each in ("src", side))
    if not len(source):
        return frozenset()
    table = target / target.sum(axis=1, keepdims=True) @ given @ source.T  # (target word, source word)
    return frozenset((int(i), j) for j, i in enumerate(table.argmax(axis=1)))


def _words(trace: Trace, side: str) -> Floats:
    """(word, token): 1 where a token belongs to a word; special tokens belong to none."""
    words, special = np.array(trace.words[side]), np.array(trace.special[side], dtype=bool)
    return np.array([(words == word) & ~special for word in dict.fromkeys(words[~special])], dtype=np.float64)


def alignment_error(
    model: "Translator", pairs: Sequence[Aligned], *, method: str, row: Row = "prediction", to: str | None = None
) -> "pd.DataFrame":
    """Alignment error rate of a method, on pairs with gold links; the gold target is forced (Och & Ney 2003).

    Each target word takes the source word with the greatest value: sub-words are summed over keys and averaged over
    queries, special tokens left out. A low error cannot say that a method explains the model, only that what it shows
    agrees with a person's links between words.

    Args:
        model: a translator of visformer.
        pairs: pairs in the direction of translation, such as
            :func:`visformer.training.evaluation.alignment.read_aligned` reads; with fewer than a dozen, halves and
            intervals mean nothing.
        method: a method of :func:`attribution`.
        row: "prediction": a word's row is the one that predicts it; "input": the next one, whose input it is.
            Gradients and masking explain the prediction only.
        to: target language; None: as for :meth:`visformer.adapters.base.TracedModel.trace`.

    Returns:
        One row for each way to choose: "head" (raw, norm), "layer" (raw, norm, alti; all heads together), or "-"
        (methods of the whole model). Columns: "method", "row", "choice", "chosen" (the one chosen most often, counted
        from 1), "share" (of halvings that chose it), "n" (pairs), "error" (AER; 0 is perfect), "low" and "high" (95 %,
        1,000 resamples of the pairs). What is chosen is chosen on one half and scored on the other, mean over 50 random
        halvings.

    Raises:
        VisformerError: there is no such method, it cannot be read so, or the model is no translator of visformer.
    """
    import pandas as pd

    rows = []
    for choice, among in candidates(model, pairs, method=method, row=row, to=to).items():
        chosen = among.chosen()
        rows.append(
            {
                "method": method,
                "row": row,
                "choice": choice,
                "chosen": among.names[chosen.best],
                "share": chosen.share,
                "n": len(pairs),
                "error": chosen.error,
                "low": chosen.low,
                "high": chosen.high,
            }
        )
    return pd.DataFrame(rows)


def candidates(
    model: "Translator", pairs: Sequence[Aligned], *, method: str, row: Row, to: str | None
) -> dict[str, Candidates]:
    """Map each way to choose to what its candidates align; arguments and errors as for :func:`alignment_error`.

    Heads are in the order of layer, then head.
    """
    _require_row(row)
    if method not in METHODS or (METHODS[method].of == "model" and row == "input"):
        raise VisformerError(N_("{method} has no rows that are read as {row!r}."), method=method, row=row)
    if not pairs or not hasattr(model.tokenizer, "spans"):
        raise VisformerError(N_("An alignment error needs pairs with gold links, and a translator of visformer."))
    sizes = np.array([pair.size for pair in pairs], dtype=float)
    hits: dict[str, list[NDArray[Any]]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        for choice, named, values in _candidates(model, pair, method, to):
            reads = by_words(model, values, pair)[row].argmax(axis=-1)  # (candidate, target word)
            hits.setdefault(choice, []).append(pair.hits[np.arange(len(pair.target)), reads].sum(axis=-1))
            names[choice] = named
    return {
        choice: Candidates(names[choice], np.stack(each, axis=-1).astype(float), sizes) for choice, each in hits.items()
    }


def _candidates(
    model: "Translator", pair: Aligned, method: str, to: str | None
) -> Iterator[tuple[str, tuple[str, ...], Floats]]:
    """Yield ways to choose, the names of candidates, and their values, (candidate, row, source token)."""
    texts, one = (pair.source_text, pair.target_text), METHODS[method]
    if one.of == "model":
        yield "-", ("-",), one.compute(model, *texts, to=to)[None]
        return
    path = "*" if one.of == "shares" else "decoder.*.cross_attn"
    trace = model.trace(*texts, to=to, record=needed(model, method, path))
    if one.of == "shares":
        yield "-", ("-",), one.compute(trace)[0][None]
        return
    paths = [f"decoder.{layer}.cross_attn" for layer in range(model.info.n_decoder_layers)]
    if one.of == "heads":
        n_heads = len(trace[f"{paths[0]}.pattern"].value)
        heads = [one.compute(trace, path, head=head) for path in paths for head in range(n_heads)]
        yield "head", tuple(head_names((len(paths), n_heads))), np.stack(heads)
    layers = [one.compute(trace, path)[:, : len(trace.tokens["src"])] for path in paths]
    yield "layer", tuple(f"layer {layer + 1}" for layer in range(len(paths))), np.stack(layers)


def head_names(shape: tuple[int, ...]) -> Iterator[str]:
    """Yield the names of heads, (layer, head), counted from 1."""
    yield from (f"layer {layer + 1} head {head + 1}" for layer, head in np.ndindex(shape))


def by_words(model: "Translator", values: NDArray[Any], pair: Aligned) -> dict[Row, Floats]:
    """Pool values of a forced pass, (…, row, source token), by both :data:`READINGS`: (…, target word, source word)."""
    source = word_shares(model, pair.source_text, pair.source)
    target = word_shares(model, pair.target_text, pair.target)
    return {
        reading: _pool(values[..., first : first + target.shape[1], :], source, target)
        for reading, first in READINGS.items()
    }


def word_shares(model: "Translator", text: str, words: Sequence[str]) -> Floats:
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


def _pool(rows: NDArray[Any], source: Floats, target: Floats) -> Floats:
    """Pool (…, tgt token, src token) to (…, tgt word, src word): sum over keys, mean over queries, without specials."""
    shares = target / np.maximum(target.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(shares @ (rows[..., : source.shape[1]] @ source.T))


def _require_row(row: str) -> None:
    if row not in READINGS:
        raise VisformerError(N_("row={row!r} must be one of {known}."), row=row, known=", ".join(READINGS))
