"""What the visitor has changed in the model: cells of a mask, heads. Kept for one sentence; another starts afresh."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from visformer.canvas.panels import Click
from visformer.ui import state

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

_CELLS, _SCALES = "edited_cells", "edited_heads"
Cell = tuple[int, int]


def cells(where: str) -> frozenset[Cell]:
    """The (query, key) cells of the mask that were switched, at this place for this sentence."""
    kept: frozenset[Cell] = _kept(_CELLS, where, frozenset())
    return kept


def switch(where: str, click: Click, shape: tuple[int, ...]) -> None:
    """Switch the clicked cell; by a label, its whole row or column: all to the other state, or all back."""
    rows = range(shape[0]) if click.row is None else (click.row,)
    columns = range(shape[1]) if click.column is None else (click.column,)
    chosen = frozenset((q, k) for q in rows for k in columns)
    before = cells(where)
    _keep(_CELLS, where, before - chosen if chosen <= before else before | chosen)


def switch_all(where: str, chosen: NDArray[np.bool_]) -> None:
    """Switch these cells and no others."""
    _keep(_CELLS, where, frozenset((int(q), int(k)) for q, k in np.argwhere(chosen)))


def mask_edits(where: str, mask: NDArray[np.bool_]) -> "Sequence[Edit]":
    """The edits that switch the cells: open what was masked, block what was not."""
    from visformer.edits import Block, Open

    edits: list[Edit] = []
    for q, k in sorted(cells(where)):
        if q < mask.shape[0] and k < mask.shape[1]:
            kind = Block if mask[q, k] else Open
            edits.append(kind(where, query=q, key=k))
    return edits


def scales(where: str, n_layers: int, n_heads: int) -> NDArray[np.float64]:
    """(layer, head): what each head's output is multiplied by; 1 everywhere at first."""
    table = np.ones((n_layers, n_heads))
    kept: dict[tuple[int, int], float] = _kept(_SCALES, where, {})
    for (layer, head), scale in kept.items():
        table[layer, head] = scale
    return table


def scale_all(where: str, click: Click, shape: tuple[int, ...], value: float) -> None:
    """Multiply the clicked head's output by ``value``, or a whole layer's; heads that have it already go back to 1."""
    kept: dict[tuple[int, int], float] = dict(_kept(_SCALES, where, {}))
    layers = range(shape[0]) if click.row is None else (click.row,)
    heads = range(shape[1]) if click.column is None else (click.column,)
    chosen = [(layer, head) for layer in layers for head in heads]
    again = all(kept.get(place) == value for place in chosen)
    for place in chosen:
        kept.pop(place, None)
        if not again and value != 1:
            kept[place] = value
    _keep(_SCALES, where, kept)


def head_edits(where: str) -> "Sequence[Edit]":
    """The edits that scale the heads; ``where`` as in tensor names without the layer: "decoder.cross_attn"."""
    from visformer.edits import Silence

    stack, kind = where.split(".")
    kept: dict[tuple[int, int], float] = _kept(_SCALES, where, {})
    return [Silence(f"{stack}.{layer}.{kind}", head=head, scale=value) for (layer, head), value in sorted(kept.items())]


def reset() -> None:
    """Undo everything."""
    for name in (_CELLS, _SCALES):
        st.session_state.pop(name, None)


def _kept(name: str, where: str, empty: Any) -> Any:
    place, value = st.session_state.get(name, (None, empty))
    return value if place == (where, state.source(), state.target()) else empty


def _keep(name: str, where: str, value: object) -> None:
    st.session_state[name] = ((where, state.source(), state.target()), value)
