"""Deletion and insertion: whether the tokens that a method names matter (Petsiuk et al. 2018, section 3)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from visformer.analysis.hiding import Hidden
from visformer.analysis.intervals import SEED, counts, percentiles
from visformer.analysis.methods import attribution
from visformer.analysis.needs import Floats
from visformer.errors import N_, ShapeError

if TYPE_CHECKING:  # torch; pandas, which takes long
    import pandas as pd

    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text


def deletion(
    model: "TracedModel", source: "Text", target: "Text | None" = None, *, values: ArrayLike, to: str | None = None
) -> Floats:
    """Log p of each row's word while its source tokens are hidden, the one with the greatest value first.

    "RISE: Randomized Input Sampling for Explanation of Black-box Models", section 3. Tokens are hidden as by
    :func:`masking`, which therefore wins by construction: it has measured the first step of every curve. A curve
    cannot say why a token matters, and sentences with hidden tokens are none that the model was trained on.

    Args:
        model: a traced model that predicts tokens.
        source: as for :func:`masking`.
        target: as for :func:`masking`.
        values: (row, source token), of any method; ties are hidden from left to right.
        to: target language.

    Returns:
        (row, source token + 1), nats: column n with n tokens hidden. The steeper it falls, the better.

    Raises:
        ShapeError: ``values`` has another shape.
        VisformerError: as for :func:`masking`.
        EditError: as for :func:`masking`.
    """
    return _curves(Hidden(model, source, target, to=to), values, inserted=False)


def insertion(
    model: "TracedModel", source: "Text", target: "Text | None" = None, *, values: ArrayLike, to: str | None = None
) -> Floats:
    """Log p of each row's word while its source tokens, all hidden, come back, the one with the greatest value first.

    See :func:`deletion`, also for what it cannot say; :func:`masking`, which hides tokens in the same way, has an
    advantage by construction here, too.

    Args:
        model: as for :func:`deletion`.
        source: as for :func:`deletion`.
        target: as for :func:`deletion`.
        values: as for :func:`deletion`.
        to: as for :func:`deletion`.

    Returns:
        (row, source token + 1), nats: column n with n tokens back. The steeper it rises, the better.

    Raises:
        ShapeError: ``values`` has another shape.
        VisformerError: as for :func:`masking`.
        EditError: as for :func:`masking`.
    """
    return _curves(Hidden(model, source, target, to=to), values, inserted=True)


def _curves(hidden: Hidden, values: ArrayLike, *, inserted: bool) -> Floats:
    given, wanted = np.asarray(values, dtype=np.float64), (len(hidden.none), hidden.n_keys)
    if given.shape != wanted:
        raise ShapeError(
            N_("values has the shape {given}; rows and source tokens are {wanted}."), given=given.shape, wanted=wanted
        )
    orders = np.argsort(-given, axis=1, kind="stable")  # (row, rank)
    curves = np.empty((wanted[0], wanted[1] + 1))
    for row, n in np.ndindex(curves.shape):
        curves[row, n] = hidden(orders[row, n:] if inserted else orders[row, :n])[row]
    return curves


def curve_scores(
    model: "TracedModel", pairs: "Sequence[tuple[Text, Text | None]]", *, method: str, to: str | None = None
) -> "pd.DataFrame":
    """Mean height of both curves over many pairs, for the values of a method.

    Args:
        model: an encoder-decoder that predicts tokens.
        pairs: sources and targets; None: the model's own translation.
        method: a method of :func:`attribution`, of one layer the last and all heads together; or "random", a random
            order of the tokens, the same in each run: the baseline.
        to: target language.

    Returns:
        A row for "deletion", where lower is better, and one for "insertion", where higher is. Columns: "method",
        "curve", "n" (pairs), "height" (nats a word: mean of the curve over its steps, of a pair's rows, of the pairs),
        "low" and "high" (95 %, 1,000 resamples of the pairs).

    Raises:
        VisformerError: as for :func:`deletion` and :func:`attribution`.
    """
    import pandas as pd

    random = np.random.default_rng(SEED)
    heights: dict[str, list[float]] = {"deletion": [], "insertion": []}
    for source, target in pairs:
        hidden = Hidden(model, source, target, to=to)
        if method == "random":
            values = random.random((len(hidden.none), hidden.n_keys))
        else:
            values = attribution(model, source, target, method=method, to=to).value[:, : hidden.n_keys]
        for curve, all_of_it in heights.items():
            all_of_it.append(float(_curves(hidden, values, inserted=curve == "insertion").mean()))
    rows = []
    for curve, each in heights.items():
        drawn = counts(len(each)) @ np.asarray(each) / len(each)
        low, high = percentiles(drawn)
        rows.append(
            {"method": method, "curve": curve, "n": len(each), "height": float(np.mean(each)), "low": low, "high": high}
        )
    return pd.DataFrame(rows)
