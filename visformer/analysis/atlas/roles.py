"""What heads are, by an atlas: the roles whose statistic is high, each with its score and interval."""

from statistics import NormalDist
from typing import TYPE_CHECKING

from visformer.analysis.known_heads import LEAST
from visformer.errors import N_, DataError

if TYPE_CHECKING:
    import pandas as pd

    from visformer.analysis.atlas.tables import Atlas

ROLES = {
    "previous": "previous token",
    "next": "next token",
    "first": "first token",
    "diagonal": "own position",
    "same_token": "duplicate token",
    "separator": "separator",
    "induction": "induction",
    "syntactic_head": "syntactic",
    "dependents": "dependents",
    "alignment": "alignment",
}
"""Statistics that make a role, with its label; other statistics say how sharp or how far a head reads, not what."""

FOUND = N_("mean weight over the texts of an atlas, where the null is the median head of this attention")

_COLUMNS = "stack layer head label statistic offset score low high null null_high n found".split()
_OFFSETS = {"previous": -1, "next": 1}
_TOP = 0.75
_Z = NormalDist().inv_cdf(0.975)


def roles(atlas: "Atlas", *, least: float = LEAST) -> "pd.DataFrame":
    """Find the roles of heads: statistics that are high, and higher than those of most heads beside them.

    A head has a role if the lower end of its interval is at least ``least``, and above the upper quartile of the heads
    of its attention. A head that mostly reads the first token has no other role for the special token that this is. A
    role says where a head looks in these texts, not why, nor what follows from it.

    Args:
        atlas: of a model.
        least: least mean weight.

    Returns:
        One row for each head and role, the highest score first: stack, layer and head (from 0), label (such as
        "previous token"), statistic (its column in ``atlas.heads``), offset (-1 for "previous", 1 for "next", else 0),
        score (mean weight over rows), low and high (95 %: see :func:`interval`), null and null_high (median and upper
        quartile of the heads of the same attention), n (texts), found (the rule in words).
    """
    import pandas as pd

    found, first = [], set()
    for statistic, label in ROLES.items():
        low, high = interval(atlas, statistic)
        for stack, part in atlas.heads.groupby("stack", sort=False):
            if statistic == "diagonal" and stack.endswith("cross_attn"):  # rows and keys are other sentences
                continue
            null, null_high = part[statistic].quantile([0.5, _TOP])
            for i in part.index[(low[part.index] >= least) & (low[part.index] > null_high)]:
                row = part.loc[i]
                place = (stack, int(row["layer"]), int(row["head"]))
                if label == "first token":
                    first.add(place)
                elif label == "separator" and place in first:
                    continue
                numbers = (float(row[statistic]), float(low[i]), float(high[i]), float(null), float(null_high))
                n = int(row[f"{statistic}_texts"])
                found.append((*place, label, statistic, _OFFSETS.get(statistic, 0), *numbers, n, FOUND))
    table = pd.DataFrame(found, columns=_COLUMNS)
    return table.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def interval(atlas: "Atlas", statistic: str) -> "tuple[pd.Series[float], pd.Series[float]]":
    """Return the 95 % interval of a statistic of each head: its mean ± 1.96 standard deviations / √texts.

    The deviation is that of the texts' own means, each counted once, while the mean counts rows: of texts of very
    different lengths the interval is a little too narrow. With one text it is NaN; of effects it is the atlas's own.

    Args:
        atlas: of a model.
        statistic: a column of ``atlas.heads``, or "effect".

    Returns:
        The lower and the upper end, indexed like ``atlas.heads``.

    Raises:
        DataError: there is no such statistic.
    """
    if statistic == "effect":
        return values(atlas, "low"), values(atlas, "high")
    heads = atlas.heads
    _require(heads, statistic, f"{statistic}_sd")
    half = _Z * heads[f"{statistic}_sd"] / heads[f"{statistic}_texts"].clip(lower=1) ** 0.5
    return heads[statistic] - half, heads[statistic] + half


def values(atlas: "Atlas", statistic: str) -> "pd.Series[float]":
    """Return a number of each head, indexed like ``atlas.heads``: a statistic, or a column of ``atlas.effects``.

    NaN where there is none, as of an atlas without effects.

    Raises:
        DataError: there is no such statistic.
    """
    import pandas as pd

    if statistic in atlas.heads:
        return atlas.heads[statistic]
    if atlas.effects is None:
        return pd.Series(float("nan"), index=atlas.heads.index)
    _require(atlas.effects, statistic, statistic)
    keys = ["stack", "layer", "head"]
    column = atlas.heads[keys].merge(atlas.effects[[*keys, statistic]], on=keys, how="left")[statistic]
    return column.set_axis(atlas.heads.index)


def _require(table: "pd.DataFrame", statistic: str, column: str) -> None:
    if column not in table:
        raise DataError(
            N_("The atlas has no statistic {statistic!r}: choose one of {known}."),
            statistic=statistic,
            known=", ".join(name.removesuffix("_sd") for name in table if name.endswith("_sd")) or ", ".join(table),
        )


def with_token(atlas: "Atlas", token: str) -> "pd.Series[bool]":
    """Return which heads have an example whose cell reads from or to this token, in any case.

    Returns:
        Whether they have, indexed like ``atlas.heads``.
    """
    import pandas as pd

    keys, sought = ["stack", "layer", "head"], token.strip().casefold()
    tokens = atlas.examples[["query_token", "key_token"]]
    is_there = tokens.apply(lambda column: column.str.strip().str.casefold() == sought).any(axis=1)
    having = {*atlas.examples.loc[is_there, keys].itertuples(index=False, name=None)}
    places = atlas.heads[keys].itertuples(index=False, name=None)
    return pd.Series([place in having for place in places], index=atlas.heads.index, dtype=bool)
