"""Deletion and insertion: whether the tokens that a method names matter (Petsiuk et al. 2018, section 3)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.hiding import Hidden
from visformer.analysis.needs import Floats
from visformer.errors import N_, ShapeError

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.adapters.ids import Text


def deletion(
    model: "TracedModel", source: "Text", target: "Text | None" = None, *, values: Any, to: str | None = None
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
    model: "TracedModel", source: "Text", target: "Text | None" = None, *, values: Any, to: str | None = None
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


def _curves(hidden: Hidden, values: Any, *, inserted: bool) -> Floats:
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
