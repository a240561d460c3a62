"""What the visitor has changed in the model: cells of a mask, heads. Kept for one sentence; another starts afresh."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.app.edits import url_edits
from visformer.app.session import boxes, visit
from visformer.app.session.slots import Slot

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit
    from visformer.web.panels import Click

_NONE: tuple[tuple[str | None, ...], Any] = ((), None)
_FLIPS, _SCALES = (Slot(name, _NONE, resets=True) for name in ("edited_cells", "edited_heads"))
Flips = NDArray[np.bool_]
"""(layer, head, query, key): which cells of an attention's masks were switched."""
Scales = NDArray[np.float64]
"""(layer, head): what the output of an attention's heads is multiplied by."""


@dataclass(frozen=True)
class Scope:
    """The heads that an edit goes to.

    Args:
        attention: as in tensor names without the layer, such as "decoder.self_attn".
        layer: from 0; None: every layer.
        head: from 0; None: every head.
    """

    attention: str
    layer: int | None = None
    head: int | None = None

    @property
    def path(self) -> str:
        """As in tensor names: "decoder.0.self_attn", with a wildcard for every layer."""
        part, kind = self.attention.split(".")
        return f"{part}.{'*' if self.layer is None else self.layer}.{kind}"

    def of(self, flips: Flips) -> Flips:
        """The part of the table that these heads have, as a view: (layer, head, query, key)."""
        layers, heads = (slice(None) if i is None else slice(i, i + 1) for i in (self.layer, self.head))
        return flips[layers, heads]


def flips(attention: str, shape: tuple[int, ...]) -> Flips:
    """What was switched in this attention, for this sentence; shape as of :data:`Flips`."""
    return _kept(_FLIPS, attention, np.zeros(shape, dtype=np.bool_))


def take_cells(attention: str, mask: NDArray[np.bool_], n_heads: int) -> None:
    """Switch what a link asks for; arguments as of :func:`visformer.app.edits.url_edits.cells`."""
    visit.take(url_edits.CELLS, lambda asked: _keep(_FLIPS, attention, url_edits.cells(asked, mask, n_heads)))


def switch(scope: Scope, click: "Click", before: Flips) -> None:
    """Switch the clicked cell; by a label, its whole row or column: all to the other state, or all back."""
    after = before.copy()
    cells, chosen = scope.of(after), (..., *_clicked(click))
    cells[chosen] = not cells[chosen].all()
    _keep(_FLIPS, scope.attention, after)


def switch_all(scope: Scope, chosen: NDArray[np.bool_], before: Flips) -> None:
    """Switch these cells (query, key) of the scope's heads and no others of theirs."""
    after = before.copy()
    scope.of(after)[:] = chosen
    _keep(_FLIPS, scope.attention, after)


def mask_edits(attention: str, switched: Flips, mask: NDArray[np.bool_]) -> "Sequence[Edit]":
    """The edits that switch the cells: open what was masked, block what was not.

    Args:
        attention: see :class:`Scope`.
        switched: from :func:`flips`.
        mask: (query, key), or (layer, query, key) where layers differ, as the model has it, True = may attend; the
            same in all heads.
    """
    part, kind = attention.split(".")
    masks = np.broadcast_to(mask, (len(switched), *switched.shape[2:]))
    everywhere = bool((switched == switched[0, 0]).all() and (masks == masks[0]).all())
    edits: list[Edit] = []
    for layer, heads in enumerate(switched[:1] if everywhere else switched):
        where = f"{part}.{'*' if everywhere else layer}.{kind}"
        alike = bool((heads == heads[0]).all())
        for head, cells in enumerate(heads[:1] if alike else heads):
            edits += _edits_of(where, None if alike else head, cells, masks[layer])
    return edits


def _edits_of(where: str, head: int | None, cells: NDArray[np.bool_], mask: NDArray[np.bool_]) -> "list[Edit]":
    """One edit for the whole mask or a row where they end up alike; that holds for what is decoded beyond, too."""
    from visformer.edits import Block, Open

    after = mask ^ cells

    def kind(value: np.bool_) -> type[Open] | type[Block]:
        return Open if value else Block

    if cells.any() and (after == after[0, 0]).all():
        return [kind(after[0, 0])(where, head=head)]
    edits: list[Edit] = []
    for q in np.flatnonzero(cells.any(axis=1)).tolist():
        if (after[q] == after[q, 0]).all() and cells[q].sum() > 1:
            edits.append(kind(after[q, 0])(where, head=head, query=q))
        else:
            edits += [kind(after[q, k])(where, head=head, query=q, key=k) for k in np.flatnonzero(cells[q]).tolist()]
    return edits


def take_scales(where: str, n_layers: int, n_heads: int) -> None:
    """Scale what a link asks for; arguments as of :func:`scales`."""
    visit.take(url_edits.HEADS, lambda asked: _keep(_SCALES, where, url_edits.heads(asked, n_layers, n_heads)))


def scales(where: str, n_layers: int, n_heads: int) -> Scales:
    """What each head's output is multiplied by; 1 everywhere at first."""
    return _kept(_SCALES, where, np.ones((n_layers, n_heads)))


def scale_all(where: str, click: "Click", before: Scales, value: float) -> None:
    """Multiply the clicked head's output by ``value``, or a whole layer's; heads that have it already go back to 1."""
    after, chosen = before.copy(), _clicked(click)
    after[chosen] = 1 if (before[chosen] == value).all() else value
    _keep(_SCALES, where, after)


def head_edits(where: str, scales: Scales) -> "Sequence[Edit]":
    """The edits that scale the heads; ``where`` as in tensor names without the layer: "decoder.cross_attn"."""
    from visformer.edits import Silence

    stack, kind = where.split(".")
    changed = np.argwhere(scales != 1).tolist()
    return [Silence(f"{stack}.{layer}.{kind}", head=head, scale=float(scales[layer, head])) for layer, head in changed]


def reset() -> None:
    """Undo everything."""
    for edited in (_FLIPS, _SCALES):
        edited.clear()


def is_edited() -> bool:
    """Whether the visitor has changed something in the model."""
    return _FLIPS.is_set or _SCALES.is_set


def _clicked(click: "Click") -> tuple[int | slice, int | slice]:
    """The cell in a table (row, column), or by a label its whole row or column."""
    row, column = (slice(None) if i is None else i for i in (click.row, click.column))
    return row, column


def _kept(edited: Slot[Any], where: str, first: NDArray[Any]) -> NDArray[Any]:
    """The table that is kept for this sentence; else the first."""
    place, value = edited.get()
    return value if place == (where, *_place()) and value.shape == first.shape else first


def _keep(edited: Slot[Any], where: str, value: object) -> None:
    edited.set(((where, *_place()), value))


def _place() -> tuple[str | None, ...]:
    """What an edit belongs to; another sentence or model starts afresh."""
    return boxes.source(), boxes.target(), boxes.model()
