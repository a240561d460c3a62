"""The visitor's edits of the model: cells of a mask, heads. They apply to one sentence; another starts unedited."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.app.edits import url_edits
from visformer.app.session import boxes, visit
from visformer.app.session.slots import Slot
from visformer.errors import N_, LinkError
from visformer.system import limits

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Block, Open, Silence
    from visformer.web.panels import Click

_NONE: tuple[tuple[str | None, ...], Any] = ((), None)
_FLIPS, _SCALES = (Slot(name, _NONE, resets=True) for name in ("edited_cells", "edited_heads"))
Flips = NDArray[np.bool_]
"""(layer, head, query, key): the cells of an attention's masks that were switched."""
Scales = NDArray[np.float64]
"""(layer, head): what the output of an attention's heads is multiplied by."""


@dataclass(frozen=True)
class Scope:
    """The heads that an edit applies to.

    Args:
        attention: as in tensor names without the layer, such as "decoder.self_attn".
        layers: the numbers of all its layers, which tables have in this order.
        layer: one of them; None: every layer.
        head: from 0; None: every head.
    """

    attention: str
    layers: tuple[int, ...]
    layer: int | None = None
    head: int | None = None

    @property
    def path(self) -> str:
        """The attention as in tensor names, "decoder.0.self_attn", with a wildcard for every layer."""
        part, kind = self.attention.split(".")
        return f"{part}.{'*' if self.layer is None else self.layer}.{kind}"

    def of(self, flips: Flips) -> Flips:
        """Return these heads' part of a table, as a view: (layer, head, query, key)."""
        row = None if self.layer is None else self.layers.index(self.layer)
        layers, heads = (slice(None) if i is None else slice(i, i + 1) for i in (row, self.head))
        return flips[layers, heads]


def flips(attention: str, shape: tuple[int, ...]) -> Flips:
    """Return the cells of this attention that were switched for this sentence; shape as in :data:`Flips`."""
    return _stored(_FLIPS, attention, np.zeros(shape, dtype=np.bool_))


def take_cells(scope: Scope, mask: NDArray[np.bool_], n_heads: int) -> None:
    """Switch the cells that a link names; arguments as for :func:`visformer.app.edits.url_edits.cells`."""
    visit.take(url_edits.CELLS, lambda text: read_cells(text, scope, mask, n_heads))


def read_cells(text: str, scope: Scope, mask: NDArray[np.bool_], n_heads: int) -> None:
    """Switch the cells that a text names.

    Raises:
        LinkError: it names no cells of this mask, or too many.
    """
    switched = url_edits.cells(text, mask, n_heads, layers=scope.layers)
    if len(mask_edits(scope, switched, mask)) > limits.EDITS:
        raise LinkError(N_("these cells are more than {most} rectangles."), most=limits.EDITS)
    _store(_FLIPS, scope.attention, switched)


def switch(scope: Scope, click: "Click", before: Flips) -> None:
    """Switch the clicked cell, or with a label its whole row or column: all to the other state, or all back."""
    after = before.copy()
    cells, clicked = scope.of(after), (..., *_clicked(click))
    cells[clicked] = not cells[clicked].all()
    _store(_FLIPS, scope.attention, after)


def switch_all(scope: Scope, chosen: NDArray[np.bool_], before: Flips) -> None:
    """Switch exactly these cells (query, key) of the scope's heads."""
    after = before.copy()
    scope.of(after)[:] = chosen
    _store(_FLIPS, scope.attention, after)


def mask_edits(scope: Scope, switched: Flips, mask: NDArray[np.bool_]) -> "list[Block | Open]":
    """Return the edits that switch the cells: open those that are masked, block the others.

    Args:
        scope: names the attention and its layers.
        switched: from :func:`flips`.
        mask: the model's own, the same in all heads, True = may attend: (query, key), or (layer, query, key) where
            layers differ.
    """
    part, kind = scope.attention.split(".")
    masks = np.broadcast_to(mask, (len(switched), *switched.shape[2:]))
    everywhere = bool((switched == switched[0, 0]).all() and (masks == masks[0]).all())
    edits: list[Block | Open] = []
    for row, heads in enumerate(switched[:1] if everywhere else switched):
        where = f"{part}.{'*' if everywhere else scope.layers[row]}.{kind}"
        alike = bool((heads == heads[0]).all())
        for head, cells in enumerate(heads[:1] if alike else heads):
            edits += _edits_of(where, None if alike else head, cells, masks[row])
    return edits


def _edits_of(where: str, head: int | None, cells: NDArray[np.bool_], mask: NDArray[np.bool_]) -> "list[Block | Open]":
    """Make one edit for a mask that ends up uniform: it then covers tokens decoded later, too; else rectangles."""
    from visformer.edits import Block, Open

    after = mask ^ cells
    if cells.any() and (after == after[0, 0]).all():
        return [(Open if after[0, 0] else Block)(where, head=head)]
    return [
        kind(where, head=head, query=rows, key=None if columns == (0, cells.shape[1]) else columns)
        for kind in (Block, Open)
        for rows, columns in _rectangles(cells, after == kind.value)
    ]


_Span = tuple[int, int]


def _rectangles(wanted: NDArray[np.bool_], alike: NDArray[np.bool_]) -> list[tuple[_Span, _Span]]:
    """Rows and columns (first, end) of rectangles that hold the wanted cells among those that end up alike.

    Each row is cut into runs, or is one where all of it ends up alike, which reaches what is decoded beyond, too. Runs
    of the same columns in rows one below the other are one rectangle.
    """
    found: list[tuple[_Span, _Span]] = []
    growing: dict[_Span, int] = {}  # columns to the first row
    for row, (cells, same) in enumerate(zip(wanted & alike, alike, strict=True)):
        run = same if same.all() and cells.sum() > 1 else cells
        edges = np.flatnonzero(np.diff(run, prepend=False, append=False)).tolist()
        runs = [*zip(edges[::2], edges[1::2], strict=True)]
        for columns in [columns for columns in growing if columns not in runs]:
            found.append(((growing.pop(columns), row), columns))
        for columns in runs:
            growing.setdefault(columns, row)
    return found + [((first, len(wanted)), columns) for columns, first in growing.items()]


def take_scales(where: str, layers: Sequence[int], n_heads: int) -> None:
    """Scale the heads that a link names; arguments as for :func:`visformer.app.edits.url_edits.heads`."""
    visit.take(url_edits.HEADS, lambda text: read_scales(text, where, layers, n_heads))


def read_scales(text: str, where: str, layers: Sequence[int], n_heads: int) -> None:
    """Scale the heads that a text names.

    Raises:
        LinkError: it names no heads of this attention.
    """
    _store(_SCALES, where, url_edits.heads(text, layers, n_heads))


def scales(where: str, n_layers: int, n_heads: int) -> Scales:
    """Return the factor of each head's output; 1 by default."""
    return _stored(_SCALES, where, np.ones((n_layers, n_heads)))


def scale_all(where: str, click: "Click", before: Scales, value: float) -> None:
    """Multiply the output of the clicked head or layer by ``value``; if it already is, reset it to 1."""
    after, clicked = before.copy(), _clicked(click)
    after[clicked] = 1 if (before[clicked] == value).all() else value
    _store(_SCALES, where, after)


def head_edits(where: str, scales: Scales, *, layers: Sequence[int]) -> "list[Silence]":
    """Return the edits that scale the heads.

    Args:
        where: the attention as in tensor names without the layer, "decoder.cross_attn".
        scales: from :func:`scales`.
        layers: the numbers of its layers.
    """
    from visformer.edits import Silence

    stack, kind = where.split(".")
    changed = np.argwhere(scales != 1).tolist()
    return [
        Silence(f"{stack}.{layers[row]}.{kind}", head=head, scale=float(scales[row, head])) for row, head in changed
    ]


def reset() -> None:
    """Undo all edits."""
    for slot in (_FLIPS, _SCALES):
        slot.clear()


def is_edited() -> bool:
    """Return whether the visitor has edited the model."""
    return _FLIPS.is_set or _SCALES.is_set


def attentions() -> tuple[str | None, str | None]:
    """Return the attention whose masks, and the one whose heads, were edited for this sentence; None: of none."""
    masks, heads = (owner[0] if owner[1:] == _input() else None for owner in (_FLIPS.get()[0], _SCALES.get()[0]))
    return masks, heads


def _clicked(click: "Click") -> tuple[int | slice, int | slice]:
    """Return the index of the clicked cell (row, column), or of the whole row or column of a clicked label."""
    row, column = (slice(None) if i is None else i for i in (click.row, click.column))
    return row, column


def _stored(slot: Slot[Any], where: str, default: NDArray[Any]) -> NDArray[Any]:
    """Return the table stored for this sentence, or else the default."""
    owner, value = slot.get()
    return value if owner == (where, *_input()) and value.shape == default.shape else default


def _store(slot: Slot[Any], where: str, value: object) -> None:
    slot.set(((where, *_input()), value))


def _input() -> tuple[str | None, ...]:
    """Return what an edit belongs to; another sentence or model starts unedited."""
    return boxes.source(), boxes.target(), boxes.model()
