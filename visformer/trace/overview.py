"""Attention of long texts: an overview of every head, and its weights computed from q and k where they are asked for.

A thousand heads of four thousand tokens have 17 billion weights. Their rows need not be held: with q, k and the
logarithm of each row's sum, softmax is an exponential of a product, cell by cell (Rabe & Staats 2021, "Self-attention
Does Not Need O(n^2) Memory", section 2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, BudgetError, MissingTensor, TraceError
from visformer.system import settings
from visformer.trace.names import Axis
from visformer.trace.row_totals import Floats, Sums
from visformer.trace.tensor import TracedTensor

SIDE = 48
"""Height and width of a thumbnail, in cells, at most: those of 1,024 heads take 2.4 MB."""

_ROWS = 128
"""Rows computed at a time: their weights stay in the CPU's cache."""


def bins(size: int, side: int = SIDE) -> NDArray[np.intp]:
    """Return where the runs begin that an axis of this size is pooled into, and where the last one ends."""
    side = min(size, side)
    return np.arange(side + 1) * size // side


@dataclass(frozen=True, eq=False)
class Rule:
    """How the scores of a layer follow from q and k: softcap(q kᵀ scale) + bias, where the mask allows.

    Args:
        scale: factor of the products.
        softcap: c in c tanh(scores / c) (Gemma 2); 0: none.
        bias: float32 (1 or head, 1 or query, key), added to the scores; None: none.
        diagonals: float32 (1 or head, query + key - 1), a bias that depends on the distance alone (T5): the one of
            query i and key j is number query - 1 - i + j.
        mask: uint8 (1 or head, query, key / 8), the bits of np.packbits, 1 where the query may attend; None: anywhere.
    """

    scale: float
    softcap: float = 0.0
    bias: NDArray[np.float32] | None = None
    diagonals: NDArray[np.float32] | None = None
    mask: NDArray[np.uint8] | None = None

    def log_weights(
        self, q: NDArray[np.float32], k: NDArray[np.float32], head: int, rows: slice, columns: slice, n_queries: int
    ) -> NDArray[np.float32]:
        """The scores of q (query, d_k) with k (key, d_k) of a head: of these rows and columns; -inf where masked."""
        scores: NDArray[np.float32] = np.multiply(q, self.scale, dtype=np.float32) @ k.T  # rounded as in the pass
        if self.softcap:
            scores /= np.float32(self.softcap)
            np.tanh(scores, out=scores)
            scores *= np.float32(self.softcap)
        if self.bias is not None:
            bias = self.bias[head % len(self.bias)]
            scores += bias[rows if len(bias) > 1 else slice(None), columns]
        if self.diagonals is not None:
            line = self.diagonals[head % len(self.diagonals)]
            places = np.arange(rows.start, rows.stop)[:, None]
            scores += line[n_queries - 1 - places + np.arange(columns.start, columns.stop)]
        if self.mask is not None:
            first = columns.start // 8
            bits = self.mask[head % len(self.mask)][rows, first : -(-columns.stop // 8)]
            seen = np.unpackbits(bits, axis=-1)[:, columns.start - 8 * first : columns.stop - 8 * first]
            scores[seen == 0] = -np.inf
        return scores


@dataclass(frozen=True, eq=False)
class Overview:
    """What is known of all heads of a layer without their weights.

    Args:
        thumbs: float32 (head, rows, columns), the largest weight of each cell of :func:`bins`.
        tops: float32 (head, query), the largest score of each row; inf for a masked row.
        log_sums: float32 (head, query), the logarithm of what softmax divides a row by once its top is subtracted;
            apart, since their sum would be rounded to the digits of the larger one.
        sums: what the scores of heads are computed from, without a leading axis.
        kept: heads to their pattern (query, key), where an edit has changed it.
    """

    thumbs: NDArray[np.float32]
    tops: NDArray[np.float32]
    log_sums: NDArray[np.float32]
    sums: Sums
    kept: Mapping[int, NDArray[np.float32]]


class PatternOnDemand(TracedTensor):
    """The pattern of a layer, of which an overview is held: heads, rows and blocks are computed where asked for.

    Args:
        name: its name, such as "decoder.3.self_attn.pattern".
        axes: head, query and key.
        overview: what is held of all heads.
        rule: how the scores follow from q and k; None: these are not held.
        q: float32 (head, query, d_k); None: not held, as in a file that was saved without.
        k: float32 (kv_head, key, d_k); head / kv_head heads share each one.
    """

    overview: Overview
    rule: Rule | None
    q: NDArray[np.float32] | None
    k: NDArray[np.float32] | None

    def __init__(
        self,
        name: str,
        axes: tuple[Axis, ...],
        overview: Overview,
        rule: Rule | None = None,
        q: NDArray[np.float32] | None = None,
        k: NDArray[np.float32] | None = None,
    ) -> None:
        held = {"name": name, "axes": axes, "overview": overview, "rule": rule, "q": q, "k": k}
        for attribute, value in held.items():
            object.__setattr__(self, attribute, value)  # a TracedTensor is frozen

    @property
    def shape(self) -> tuple[int, int, int]:
        """(head, query, key)."""
        sums = self.overview.sums
        return (*sums.mass.shape, sums.received.shape[-1])

    @property
    def nbytes(self) -> int:
        """The bytes that it holds, q and k included; a mask that layers share counts for each."""
        return sum(each.nbytes for each in self.arrays(heads=True).values())

    def arrays(self, *, heads: bool) -> dict[str, NDArray[Any]]:
        """Return what it holds by name, for a file.

        Args:
            heads: whether to include what heads are computed from.

        Returns:
            Arrays of any type.
        """
        overview = {name: getattr(self.overview, name) for name in ("thumbs", "tops", "log_sums")}
        overview |= {each.name: getattr(self.overview.sums, each.name) for each in fields(Sums)}
        overview |= {f"head.{head}": pattern for head, pattern in self.overview.kept.items()}
        if not heads or self.rule is None:
            return overview
        rule = {f"rule.{each.name}": getattr(self.rule, each.name) for each in fields(Rule)}
        held = {"q": self.q, "k": self.k, **rule}
        return overview | {name: np.asarray(each) for name, each in held.items() if each is not None}

    @classmethod
    def of_arrays(cls, name: str, axes: tuple[Axis, ...], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return what :meth:`arrays` were taken from.

        Args:
            name: as for the class.
            axes: as for the class.
            arrays: by name.

        Returns:
            The pattern.
        """
        kept = {int(part.removeprefix("head.")): each for part, each in arrays.items() if part.startswith("head.")}
        sums = Sums(**{each.name: arrays[each.name] for each in fields(Sums)})
        overview = Overview(arrays["thumbs"], arrays["tops"], arrays["log_sums"], sums, kept)
        if "q" not in arrays:
            return cls(name, axes, overview)
        parts: dict[str, Any] = {part[5:]: each for part, each in arrays.items() if part.startswith("rule.")}
        rule = Rule(parts.pop("scale").item(), parts.pop("softcap").item(), **parts)
        return cls(name, axes, overview, rule, arrays["q"], arrays["k"])

    @property
    def value(self) -> NDArray[np.float32]:
        """All weights of the layer, (head, query, key) float32, computed anew each time.

        Raises:
            BudgetError: they would take too many bytes; the message says how to get parts of them.
        """
        n_heads, n_queries, n_keys = self.shape
        nbytes, most = 4 * n_heads * n_queries * n_keys, settings.trace_bytes()
        if nbytes > most:
            raise BudgetError(
                N_(
                    "{name} would take {given:,} bytes, and the limit is {limit:,}: take .head(i), .rows(first, end) "
                    "or .block(...) of it, or raise the limit with {setting}."
                ),
                name=self.name,
                given=nbytes,
                limit=most,
                setting=settings.TRACE_BYTES.name,
            )
        return self.rows(0, n_queries)

    def __getitem__(self, index: Any) -> Any:
        """A head by its number, without computing others; else index into :attr:`value`."""
        return self.head(int(index)) if isinstance(index, int | np.integer) else self.value[index]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.name} {size}" for axis, size in zip(self.axes, self.shape, strict=True))
        return f"PatternOnDemand({self.name}: {axes}; .head(i), .rows(first, end), .block(...))"

    def head(self, head: int) -> NDArray[np.float32]:
        """Compute the weights of one head.

        Args:
            head: its number, from 0; negative ones count from the last.

        Returns:
            (query, key) float32.

        Raises:
            MissingTensor: q and k are not held.
            TraceError: there is no such head.
        """
        return self.block(0, self.shape[1], 0, self.shape[2], head=head)

    def rows(self, first: int, end: int) -> NDArray[np.float32]:
        """Compute some rows of all heads.

        Args:
            first: the first row, from 0.
            end: the row behind the last one.

        Returns:
            (head, query, key) float32.

        Raises:
            MissingTensor: q and k are not held.
            TraceError: there are no such rows.
        """
        return self.block(first, end, 0, self.shape[2])

    def block(self, q0: int, q1: int, k0: int, k1: int, *, head: int | None = None) -> NDArray[np.float32]:
        """Compute a rectangle of weights: queries ``q0`` to ``q1`` - 1 and keys ``k0`` to ``k1`` - 1.

        Args:
            q0: the first query, from 0.
            q1: the query behind the last one.
            k0: the first key.
            k1: the key behind the last one.
            head: of this head alone; None: of all.

        Returns:
            (query, key) float32 of one head, (head, query, key) of all.

        Raises:
            MissingTensor: q and k are not held: the file was saved without them.
            TraceError: it does not lie in the pattern.
        """
        n_heads, n_queries, n_keys = self.shape
        if not (0 <= q0 <= q1 <= n_queries and 0 <= k0 <= k1 <= n_keys):
            raise TraceError(
                N_("{name} has {queries} queries and {keys} keys: there is no block {given}."),
                name=self.name,
                queries=n_queries,
                keys=n_keys,
                given=(q0, q1, k0, k1),
            )
        if head is None:
            return np.stack([self.block(q0, q1, k0, k1, head=each) for each in range(n_heads)])
        if not -n_heads <= head < n_heads:
            raise TraceError(
                N_("{name} has {n} heads, from 0 to {last}; there is no head {head}."),
                name=self.name,
                n=n_heads,
                last=n_heads - 1,
                head=head,
            )
        head %= n_heads
        if head in self.overview.kept:
            return self.overview.kept[head][q0:q1, k0:k1]
        weights = np.empty((q1 - q0, k1 - k0), dtype=np.float32)
        for row in range(q0, q1, _ROWS):
            end = min(row + _ROWS, q1)
            self._compute(head, slice(row, end), slice(k0, k1), weights[row - q0 : end - q0])
        return weights

    def _compute(self, head: int, rows: slice, columns: slice, out: NDArray[np.float32]) -> None:
        if self.rule is None or self.q is None or self.k is None:
            raise MissingTensor(
                N_(
                    "The weights of {name} cannot be computed: q and k were not saved with this trace. Save it with "
                    "trace.save(path, heads=True), or trace the text again."
                ),
                name=self.name,
            )
        shared = head * len(self.k) // len(self.q)
        scores = self.rule.log_weights(
            self.q[head, rows], self.k[shared, columns], head, rows, columns, self.shape[1]
        )  # (row, column)
        scores -= self.overview.tops[head, rows, None]
        scores -= self.overview.log_sums[head, rows, None]
        np.exp(scores, out=out)

    def without_heads(self) -> "PatternOnDemand":
        """Return the overview alone, from which no weights can be computed."""
        return PatternOnDemand(self.name, self.axes, self.overview)

    @property
    def gives(self) -> Floats:
        """The weight that each token gives to other tokens: (head, query); in cross-attention, to all."""
        sums = self.overview.sums
        return sums.mass if self._crosses else sums.mass - sums.own

    @property
    def gets(self) -> Floats:
        """The weight that each token gets from other tokens: (head, key); in cross-attention, from all."""
        sums = self.overview.sums
        return sums.received if self._crosses else sums.received - sums.own

    @property
    def _crosses(self) -> bool:
        return self.axes[1].side != self.axes[2].side
