"""The visitor's edits of the model, as texts in a link.

Cells of a mask: "o0.0.3.2-5_b1.4.1.0" opens columns 2 to 5 of row 3 in all layers and heads, and blocks the whole of
row 1 in layer 1, head 4. Heads: "1.3.50_2.1.0" has head 3 of layer 1 pass on 50 %, and silences head 1 of layer 2.
Numbers count from 1, as on screen; 0 stands for all.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, LinkError
from visformer.system import limits

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Block, Open

CELLS, HEADS = "masks_switched", "head_scales"
"""Their names in the address."""

_CELLS = re.compile(r"([ob])" + r"\.".join([r"([0-9]{1,3}(?:-[0-9]{1,3})?)"] * 4))
_HEADS = re.compile(r"\.".join([r"([0-9]{1,3})"] * 3))


def cells_text(edits: "Sequence[Block | Open]") -> str:
    """Write edits of :func:`visformer.app.edits.editing.mask_edits`; "" if there are none."""
    texts = []
    for edit in edits:
        _part, layer, _kind = edit.where.split(".")
        for head in edit.head if isinstance(edit.head, Sequence) else (edit.head,):
            place = (None if layer == "*" else int(layer), head, edit.query, edit.key)
            texts.append(("o" if edit.value else "b") + ".".join(map(_place_text, place)))
    return "_".join(texts)


def cells(text: str, mask: NDArray[np.bool_], n_heads: int, *, layers: Sequence[int]) -> NDArray[np.bool_]:
    """Read the cells, (layer, head, query, key), that a text switches in a mask, (layer, query, key).

    ``layers``: the numbers, from 0, of the layers that the mask has.

    Raises:
        LinkError: it names no cells of this mask.
    """
    before = np.repeat(mask[:, None], n_heads, axis=1)
    after = before.copy()
    for part in text.split("_"):
        match = _CELLS.fullmatch(part)
        spans = [[int(end) for end in span.split("-")] for span in match.groups()[1:]] if match else []
        if spans and spans[0] != [0]:
            spans[0] = [layers.index(end - 1) + 1 if end - 1 in layers else len(layers) + 1 for end in spans[0]]
        if not match or any(max(span) > size for span, size in zip(spans, after.shape, strict=True)):
            raise LinkError(
                N_("expected cells of this mask, such as b0.0.3.2: row 3, column 2 blocked in all layers and heads.")
            )
        after[tuple(slice(span[0] - 1, span[-1]) if span[0] else slice(None) for span in spans)] = match[1] == "o"
    return after ^ before


def _place_text(at: int | tuple[int, int] | None) -> str:
    """A place from 1, or the first and the last of several; 0: all."""
    if at is None:
        return "0"
    first, end = at if isinstance(at, tuple) else (at, at + 1)
    return str(end) if end == first + 1 else f"{first + 1}-{end}"


def heads_text(scales: NDArray[np.float64], layers: Sequence[int]) -> str:
    """Write factors of heads, (layer, head); "" if all are 1.

    ``layers``: their numbers, from 0.
    """
    changed = np.argwhere(scales != 1)
    return "_".join(f"{layers[row] + 1}.{head + 1}.{100 * scales[row, head]:.0f}" for row, head in changed)


def heads(text: str, layers: Sequence[int], n_heads: int) -> NDArray[np.float64]:
    """Read factors of heads, (layer, head); 1 for heads that the text does not name.

    ``layers``: their numbers, from 0.

    Raises:
        LinkError: it names no heads of this attention.
    """
    scales = np.ones((len(layers), n_heads))
    for part in text.split("_"):
        match = _HEADS.fullmatch(part)
        layer, head, percent = map(int, match.groups()) if match else (0, 0, 0)
        if not (layer - 1 in layers and 1 <= head <= n_heads and percent <= limits.HEAD_PERCENT):
            raise LinkError(N_("expected heads of this attention, such as 1.3.50: layer 1, head 3, at 50 %."))
        scales[layers.index(layer - 1), head - 1] = percent / 100
    return scales
