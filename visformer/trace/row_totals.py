"""Sums over the rows of attention patterns, from which the scores of heads are means. NumPy only.

They are a few numbers for each row, key and head, so that a pass can add them up block by block and never hold a
pattern as a whole (:mod:`visformer.adapters.by_rows`).
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Tokens = Sequence[str]

ROWS = "rows"
"""The number of rows that are not fully masked, beside the totals of the scores."""

COUNTED = {"previous": "rows after another", "next": "rows before another"}
"""Score to the number of rows that can have it, where these are not all: the first row has no position before it."""

BY_ROW, ATTENDING, RECEIVED = "entropy by row", "rows by row", "weight by key"
"""What belongs to single rows and keys, which a text of another length has no counterpart of, beside the totals: the
entropy of each row, 1 for one that is not fully masked, and the weight that all rows together give to each key."""


def row_entropy(pattern: Floats) -> npt.NDArray[np.floating]:
    """H = -sum_k p_k ln p_k of each row, in nats.

    Args:
        pattern: (..., query, key), probabilities.

    Returns:
        (..., query), of the same dtype; 0 for a row that is fully masked.
    """
    terms = np.maximum(pattern, np.finfo(pattern.dtype).tiny)  # 0 ln 0 = 0
    np.log(terms, out=terms)
    terms *= pattern
    entropy: npt.NDArray[np.floating] = np.maximum(-terms.sum(axis=-1), 0.0)
    return entropy


def same_place(n_queries: int, n_keys: int) -> npt.NDArray[np.intp]:
    """Return for each query the key at the same fraction of its sentence: round(q (n_keys - 1) / (n_queries - 1)).

    Maps first to first and last to last; ties go to the even key. For equal lengths this is the diagonal.
    """
    return np.rint(np.arange(n_queries) * (n_keys - 1) / max(1, n_queries - 1)).astype(np.intp)


def separators(tokens: Sequence[str], special: Sequence[bool]) -> npt.NDArray[np.bool_]:
    """Return which tokens are separators: special tokens, and those of punctuation only (Unicode category P)."""
    return np.array([flag or _is_punctuation(token) for token, flag in zip(tokens, special, strict=True)], dtype=bool)


@lru_cache(maxsize=1 << 16)  # a corpus has the same tokens again and again
def _is_punctuation(token: str) -> bool:
    text = token.strip()
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def kinds_of(tokens: Tokens) -> npt.NDArray[np.intp]:
    """Number tokens, equal ones alike."""
    number = {token: i for i, token in enumerate(tokens)}
    return np.array([number[token] for token in tokens])


@dataclass(frozen=True)
class Marks:
    """Properties of the tokens of texts of the same lengths.

    Args:
        separator: float64 (text, key), 1 for a separator.
        kinds: (text, key), equal tokens numbered alike; None: no token occurs twice, or these are two sentences.
        n_queries: number of rows.
        cross: whether rows and columns are different sentences.
    """

    separator: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.intp] | None
    n_queries: int
    cross: bool

    @classmethod
    def of(
        cls, queries: Sequence[Tokens], keys: Sequence[Tokens], special: Sequence[Sequence[bool]], cross: bool
    ) -> "Marks":
        """Read them off the tokens of the rows and of the columns."""
        marks = np.stack([separators(*each) for each in zip(keys, special, strict=True)]).astype(np.float64)
        repeats = not cross and any(len(set(each)) < len(each) for each in keys)
        kinds = np.stack([kinds_of(each) for each in keys]) if repeats else None
        return cls(marks, kinds, len(queries[0]), cross)

    @property
    def own_place(self) -> npt.NDArray[np.intp]:
        """(query,): the key at the row's own position."""
        return same_place(self.n_queries, self.separator.shape[1])


@dataclass(frozen=True, eq=False)
class Sums:
    """What is added up of patterns (..., head, query, key).

    Args:
        mass: (..., head, query), the sum of a row.
        entropy: (..., head, query), nats.
        received: (..., head, key), the sum of a column.
        own: (..., head, query), the weight on the row's own position, :attr:`Marks.own_place`.
        previous: (..., head), the weight on the position just before the row's own, of all rows.
        next: (..., head), on the position just after it.
        same: (..., head), on other positions with the same token.
    """

    mass: Floats
    entropy: Floats
    received: Floats
    own: Floats
    previous: Floats
    next: Floats
    same: Floats

    @classmethod
    def of(cls, block: Floats, marks: Marks) -> "Sums":
        """Add up patterns (text, head, query, key), in float64."""
        weights = block.astype(np.float64)
        n_texts, n_heads, n_queries, _ = weights.shape
        own = weights[..., np.arange(n_queries), marks.own_place]
        same = np.zeros((n_texts, n_heads))
        if marks.kinds is not None:
            alike = (marks.kinds[:, :, None] == marks.kinds[:, None]).astype(np.float64)  # once for all heads
            cells = weights.reshape(n_texts, n_heads, -1) @ alike.reshape(n_texts, -1, 1)
            same = cells[..., 0] - own.sum(axis=-1)
        return cls(
            mass=weights.sum(axis=-1),
            entropy=row_entropy(block).astype(np.float64),
            received=weights.sum(axis=-2),
            own=own,
            previous=np.trace(weights, offset=-1, axis1=-2, axis2=-1),
            next=np.trace(weights, offset=1, axis1=-2, axis2=-1),
            same=same,
        )

    def of_one_text(self) -> "Sums":
        """Return the same with an axis of texts, of which there is one."""
        return Sums(*(np.asarray(getattr(self, each.name))[None] for each in fields(self)))

    def totals(self, marks: Marks) -> dict[str, npt.NDArray[np.float64]]:
        """Return each score summed over rows, (text, head), and what belongs to single rows and keys.

        Fully masked rows contribute nothing to these sums.
        """
        mass, entropy, received, own, *shifted = (
            np.asarray(getattr(self, each.name), dtype=np.float64) for each in fields(self)
        )
        attending = (mass > 0).astype(np.float64)
        totals = {
            ROWS: attending.sum(axis=-1),
            "entropy": entropy.sum(axis=-1),
            BY_ROW: entropy,
            ATTENDING: attending,
            RECEIVED: received,
            "first": received[..., 0],
            "diagonal": own.sum(axis=-1),
            "separator": (received * marks.separator[:, None]).sum(axis=-1),
        }
        if not marks.cross:
            rows, columns = np.arange(mass.shape[-1]), np.arange(received.shape[-1])
            totals |= {
                "distance": (rows * mass).sum(axis=-1) - (columns * received).sum(axis=-1),
                COUNTED["previous"]: attending[..., 1:].sum(axis=-1),
                COUNTED["next"]: attending[..., :-1].sum(axis=-1),
                **dict(zip(("previous", "next", "same_token"), shifted, strict=True)),
            }
        return totals
