"""The profile of a head over a corpus: how far it reads, and the shares of its weight; heads with a similar one."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.measures import MEASURES, edges
from visformer.analysis.atlas.parts import COUNTS
from visformer.analysis.atlas.reducer import OFFSETS
from visformer.analysis.atlas.roles import interval, values
from visformer.errors import N_, DataError

if TYPE_CHECKING:
    import pandas as pd

    from visformer.analysis.atlas.tables import Atlas

_PLACE = ["stack", "layer", "head"]
SHARES = tuple(measure.name for measure in MEASURES if measure.name not in ("entropy", "distance"))
"""Statistics that are shares of weight, from 0 to 1."""


def distances(atlas: "Atlas", stack: str, layer: int, head: int) -> "pd.DataFrame":
    """Return how much of its weight a head of self-attention gives to each distance, beside the other heads.

    Args:
        atlas: of a model.
        stack: "encoder.self_attn" or "decoder.self_attn"; of cross-attention there are no rows.
        layer: from 0.
        head: from 0.

    Returns:
        One row for each offset of the key from the row (-16 and 16 with all beyond): offset, share (sums to 1), and
        others, the mean share of all heads of this attention.

    Raises:
        DataError: the atlas has no such head.
    """
    _require(atlas, stack, layer, head)
    table = atlas.offsets[atlas.offsets["stack"] == stack]
    weight = table["weight"] * table["cells"]
    total = weight.groupby([table["layer"], table["head"]]).transform("sum")
    table = table.assign(share=weight / total)
    own = table[(table["layer"] == layer) & (table["head"] == head)][["offset", "share"]]
    others = table.groupby("offset")["share"].mean().rename("others").reset_index()
    return own.merge(others, on="offset").reset_index(drop=True)


def histogram(atlas: "Atlas", statistic: str, stack: str, layer: int, head: int) -> "pd.DataFrame":
    """Return how many texts have which value of a statistic of a head, beside the other heads.

    The value of a text is its mean over rows, in the unit of the statistic; of the entropy it is the share of the
    largest entropy that its rows can have, so that texts of any length compare.

    Args:
        atlas: of a model.
        statistic: a name of :data:`visformer.analysis.atlas.MEASURES`.
        stack: such as "decoder.cross_attn".
        layer: from 0.
        head: from 0.

    Returns:
        One row a bin: begin, end, texts (number of them), and others, the mean share of the texts of all heads of this
        attention. ``attrs`` has the mean of the values. Without rows if no text has the statistic.

    Raises:
        DataError: the atlas has no such head.
    """
    import pandas as pd

    _require(atlas, stack, layer, head)
    table = atlas.histograms
    beside = table[(table["stack"] == stack) & (table["statistic"] == statistic)]
    own = beside[(beside["layer"] == layer) & (beside["head"] == head)]
    if not len(own):
        return pd.DataFrame(columns=["begin", "end", "texts", "others"])
    counts = beside[[*COUNTS]].to_numpy(float)
    others = (counts / counts.sum(axis=1, keepdims=True).clip(min=1)).mean(axis=0)
    bins, texts = edges(statistic), own[[*COUNTS]].to_numpy()[0]
    found = pd.DataFrame({"begin": bins[:-1], "end": bins[1:], "texts": texts, "others": others})
    found.attrs["mean"] = float(own["mean"].iloc[0])
    return found


def similar_heads(
    atlas: "Atlas", stack: str, layer: int, head: int, *, other: "Atlas | None" = None, n: int = 5
) -> "pd.DataFrame":
    """Return the heads whose profile is most like that of a head.

    The profile is its weight by distance (of self-attention) and the statistics that are shares of weight, from 0 to 1.
    Similarity is 1 - the largest difference in any part of it: total variation of the weight by distance, |a - b| of a
    statistic that both have. Heads of the same kind of attention are compared; entropy, and what is not in the tables,
    such as which cells of a text they read, is not.

    Args:
        atlas: of a model.
        stack: such as "decoder.cross_attn".
        layer: from 0.
        head: from 0.
        other: where they are looked for; None: in the same atlas, the head itself left out.
        n: how many.

    Returns:
        stack, layer, head, similarity (from 0 to 1), and differs, the part of the profile that differs most ("offsets"
        or a statistic), the most similar first.

    Raises:
        DataError: the atlas has no such head.
    """
    _require(atlas, stack, layer, head)
    within = atlas if other is None else other
    at = (atlas.heads[_PLACE] == [stack, layer, head]).all(axis=1).to_numpy().argmax()
    among = within.heads["stack"].str.endswith(stack.partition(".")[2]).to_numpy(dtype=bool, copy=True)
    if other is None:
        among[at] = False
    one, many = atlas.heads[[*SHARES]].to_numpy(float)[at], within.heads.loc[among, [*SHARES]].to_numpy(float)
    parts = np.abs(many - one)  # (head, statistic)
    moved = np.abs(_offsets(within)[among] - _offsets(atlas)[at]).sum(axis=1) / 2  # (head,), total variation
    parts = np.nan_to_num(np.column_stack([parts, moved]), nan=0.0)
    found = within.heads.loc[among, _PLACE].reset_index(drop=True)
    names = np.array([*SHARES, "offsets"])
    found = found.assign(similarity=1 - parts.max(axis=1), differs=names[parts.argmax(axis=1)])
    return found.sort_values("similarity", ascending=False, kind="stable", ignore_index=True).head(n)


def difference(atlas: "Atlas", other: "Atlas", statistic: str) -> "pd.DataFrame":
    """Return how much a statistic of each head differs between two atlases, as of two moments of a training.

    Args:
        atlas: A.
        other: B; heads are those with the same attention, layer and number.
        statistic: a column of ``atlas.heads``, or "effect".

    Returns:
        stack, layer, head, a, b, difference (b - a), low and high (95 %, as if the texts of both were drawn apart:
        of the same texts it is wider than it need be). Without rows if no head is in both.

    Raises:
        DataError: there is no such statistic.
    """
    import pandas as pd

    tables = []
    for each, name in ((atlas, "a"), (other, "b")):
        low, high = interval(each, statistic)
        tables.append(each.heads[_PLACE].assign(**{name: values(each, statistic), f"{name}_half": (high - low) / 2}))
    both = pd.merge(*tables, on=_PLACE)
    half = np.hypot(both.pop("a_half"), both.pop("b_half"))
    moved = both["b"] - both["a"]
    return both.assign(difference=moved, low=moved - half, high=moved + half)


def _offsets(atlas: "Atlas") -> NDArray[np.float64]:
    """Return the share of weight by offset, (head, offset); NaN for cross-attention."""
    import pandas as pd

    table = atlas.offsets[atlas.offsets["offset"].abs() <= OFFSETS]  # first: no array is wider, whatever the table has
    heads, rows = (pd.MultiIndex.from_frame(each[_PLACE]) for each in (atlas.heads, table))
    found = np.zeros((len(heads) + 1, 2 * OFFSETS + 1))  # the last row is of heads that are not there
    found[heads.get_indexer(rows), table["offset"] + OFFSETS] = table["weight"] * table["cells"]
    with np.errstate(invalid="ignore"):
        shares: NDArray[np.float64] = found[:-1] / found[:-1].sum(axis=1, keepdims=True)
    return shares


def _require(atlas: "Atlas", stack: str, layer: int, head: int) -> None:
    if not (atlas.heads[_PLACE] == [stack, layer, head]).all(axis=1).any():
        raise DataError(
            N_("The atlas has no head {head} in layer {layer} of {stack}, counted from 0."),
            stack=stack,
            layer=layer,
            head=head,
        )
