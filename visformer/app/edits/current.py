"""The visitor's edits of whatever attention, for the page that shows the model before and after.

In its address each is preceded by its attention: "cross_1.3.0" silences head 3 of layer 1 in the cross-attention.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.app.edits import editing, url_edits
from visformer.app.session import address, visit
from visformer.errors import N_, LinkError
from visformer.trace import Trace
from visformer.trace.stacks import SHORT_NAMES, STACKS, shape_of, short_name

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

CELLS, HEADS = "compare_switched", "compare_scales"


def edits(trace: Trace) -> "tuple[Edit, ...]":
    """Return the edits of masks and of heads of this sentence, at first those of a link; ``trace``: with the masks."""
    _take(CELLS, trace, lambda text, where: _take_cells(text, where, trace))
    _take(HEADS, trace, lambda text, where: editing.read_scales(text, where, *_sizes(trace, where)))
    of_masks, of_heads = editing.attentions()
    return (*_cells(trace, of_masks), *_heads(trace, of_heads))


def _cells(trace: Trace, where: str | None) -> "Sequence[Edit]":
    mask = None if where is None else _mask(trace, where)
    if where is None or mask is None:
        address.show(CELLS, None)
        return ()
    switched = editing.flips(where, shape_of(_layers(trace, where)))
    found = editing.mask_edits(editing.Scope(where, tuple(_layers(trace, where))), switched, mask)
    address.show_changes(CELLS, _text(where, url_edits.cells_text(found)))
    return found


def _heads(trace: Trace, where: str | None) -> "Sequence[Edit]":
    if where is None:
        address.show(HEADS, None)
        return ()
    layers, n_heads = _sizes(trace, where)
    scales = editing.scales(where, len(layers), n_heads)
    address.show_changes(HEADS, _text(where, url_edits.heads_text(scales, layers)))
    return editing.head_edits(where, scales, layers=layers)


def _take_cells(text: str, where: str, trace: Trace) -> None:
    mask = _mask(trace, where)
    if mask is None:
        raise LinkError(N_("this model shows no masks."))
    layers, n_heads = _sizes(trace, where)
    editing.read_cells(text, editing.Scope(where, layers), mask, n_heads)


def _take(name: str, trace: Trace, keep: Callable[[str, str], None]) -> None:
    def read(text: str) -> None:
        short, _, rest = text.partition("_")
        where = SHORT_NAMES.get(short)
        if where not in {stack.name for stack in STACKS if stack.in_trace(trace)}:
            raise LinkError(N_("this model has no such attention."))
        keep(rest, str(where))

    visit.take(name, read)


def _text(where: str, text: str) -> str:
    return text and f"{short_name(where)}_{text}"


def _layers(trace: Trace, where: str) -> Any:
    return trace.layers(*where.split("."))  # type: ignore[arg-type]


def _sizes(trace: Trace, where: str) -> tuple[tuple[int, ...], int]:
    layers = _layers(trace, where)
    return tuple(layers), shape_of(layers)[1]


def _mask(trace: Trace, where: str) -> Any:
    """The masks of all layers, (layer, query, key); None: the model shows none."""
    part, kind = where.split(".")
    names = [f"{part}.{layer}.{kind}.mask" for layer in _layers(trace, where)]
    return np.stack([trace[name].value[0] for name in names]) if all(name in trace for name in names) else None
