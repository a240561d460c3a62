"""Reference implementation of derive.js in NumPy, float64."""

from dataclasses import dataclass
from itertools import compress, groupby

import numpy as np


@dataclass(frozen=True)
class Options:
    """The explorer's options: how heads are combined, and what is hidden."""

    how: str = "one"
    merging: bool = False
    hiding: bool = False
    renormalising: bool = False
    kind: str = "none"
    value: float = 0.0

    def as_json(self):
        names = ("how", "merging", "hiding", "renormalising")
        return {name: getattr(self, name) for name in names} | {"limit": {"kind": self.kind, "value": self.value}}


@dataclass(frozen=True)
class Derived:
    """values: float64 (row, column); kept: the same shape; hidden: (row,); rows, columns: the tokens of each."""

    values: np.ndarray
    kept: np.ndarray
    hidden: np.ndarray
    rows: list[list[int]]
    columns: list[list[int]]


def groups(words, merging):
    """Group adjacent tokens of the same word."""
    if not merging:
        return [[i] for i in range(len(words))]
    return [[i for i, _ in group] for _, group in groupby(enumerate(words), key=lambda pair: pair[1])]


def combined(heads, how):
    heads = np.asarray(heads, dtype=float)
    return {"one": heads[0], "mean": heads.mean(0), "max": heads.max(0)}[how]


def merged(values, rows, columns):
    """Sum over keys, mean over queries."""
    return np.array([[values[np.ix_(row, column)].sum(axis=1).mean() for column in columns] for row in rows])


def kept_by_mass(row, share):
    """Return the fewest cells that hold this share of the row, including ties with the smallest of them."""
    total = row.sum()
    descending = np.sort(row)[::-1]
    enough = np.flatnonzero(np.cumsum(descending) >= share * total * (1 - 1e-6))
    smallest = descending[enough[0]] if enough.size else descending[-1]
    return (row >= smallest) & (row > 0)


def derived(heads, words, special, options):
    """Apply all steps in order.

    Args:
        heads: (head, query, key).
        words: for rows and for columns, the word index of each token.
        special: for rows and for columns, which tokens are special.
    """
    rows, columns = groups(words[0], options.merging), groups(words[1], options.merging)
    values = merged(combined(heads, options.how), rows, columns)
    mass = values.sum(axis=1)
    if options.hiding:
        hidden = [[all(flags[i] for i in g) for g in gs] for flags, gs in zip(special, (rows, columns), strict=True)]
        visible = [[not flag for flag in flags] if not all(flags) else [True] * len(flags) for flags in hidden]
        values, mass = values[np.ix_(*visible)], mass[visible[0]]
        rows, columns = (list(compress(gs, flags)) for gs, flags in zip((rows, columns), visible, strict=True))
        if options.renormalising:
            total = values.sum(axis=1, keepdims=True)
            mass = np.where(total[:, 0] > 0, mass / np.where(total[:, 0] > 0, total[:, 0], 1), mass)
            values = np.divide(values, total, out=values.copy(), where=total > 0)
    if options.kind == "none":
        kept = np.ones(values.shape, dtype=bool)
    elif options.kind == "weight":
        kept = (values >= options.value) & (values > 0)
    else:
        kept = np.array([kept_by_mass(row, options.value) for row in values])
    kept_mass = (values * kept).sum(axis=1)
    hidden = 1 - np.divide(kept_mass, mass, out=np.ones_like(kept_mass), where=mass > 0)
    return Derived(values, kept, hidden, rows, columns)
