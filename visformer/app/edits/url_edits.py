"""The visitor's edits of the model, as texts in a link.

Cells of a mask: "o0.0.3.2_b1.4.1.0" opens row 3, column 2 in all layers and heads, and blocks the whole of row 1 in
layer 1, head 4. Heads: "1.3.50_2.1.0" has head 3 of layer 1 pass on 50 %, and silences head 1 of layer 2. Numbers count
from 1, as on screen; 0 stands for all.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, LinkError
from visformer.system import limits

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

CELLS, HEADS = "masks_switched", "head_scales"
"""Their names in the address."""

_CELLS = re.compile(r"([ob])" + r"\.".join([r"([0-9]{1,3})"] * 4))
_HEADS = re.compile(r"\.".join([r"([0-9]{1,3})"] * 3))


def cells_text(edits: "Sequence[Edit]") -> str | None:
    """Write edits of :func:`visformer.app.edits.editing.mask_edits`; None if there are none, or too many for a link."""
    from visformer.edits import Block, Open

    texts = []
    for edit in edits:
        if not isinstance(edit, Block | Open):
            return None
        _part, layer, _kind = edit.where.split(".")
        place = (None if layer == "*" else int(layer), edit.head, edit.query, edit.key)
        texts.append(("o" if edit.value else "b") + ".".join(str(0 if at is None else at + 1) for at in place))
    return _joined(texts)


def cells(text: str, mask: NDArray[np.bool_], n_heads: int) -> NDArray[np.bool_]:
    """Read the cells, (layer, head, query, key), that a text switches in a mask, (layer, query, key).

    Raises:
        LinkError: it names no cells of this mask.
    """
    before = np.repeat(mask[:, None], n_heads, axis=1)
    after = before.copy()
    for part in text.split("_"):
        match = _CELLS.fullmatch(part)
        numbers = [int(number) for number in match.groups()[1:]] if match else []
        if not match or any(number > size for number, size in zip(numbers, after.shape, strict=True)):
            raise LinkError(
                N_("cells of this mask are needed, such as b0.0.3.2: row 3, column 2 blocked in all layers and heads.")
            )
        after[tuple(number - 1 if number else slice(None) for number in numbers)] = match[1] == "o"
    return after ^ before


def heads_text(scales: NDArray[np.float64]) -> str | None:
    """Write factors of heads, (layer, head); None if all are 1, or too many are not for a link."""
    return _joined(
        [f"{layer + 1}.{head + 1}.{100 * scales[layer, head]:.0f}" for layer, head in np.argwhere(scales != 1)]
    )


def heads(text: str, n_layers: int, n_heads: int) -> NDArray[np.float64]:
    """Read factors of heads, (layer, head); 1 for heads that the text does not name.

    Raises:
        LinkError: it names no heads of this attention.
    """
    scales = np.ones((n_layers, n_heads))
    for part in text.split("_"):
        match = _HEADS.fullmatch(part)
        layer, head, percent = map(int, match.groups()) if match else (0, 0, 0)
        if not (1 <= layer <= n_layers and 1 <= head <= n_heads and percent <= limits.HEAD_PERCENT):
            raise LinkError(N_("heads of this attention are needed, such as 1.3.50: layer 1, head 3, at 50 %."))
        scales[layer - 1, head - 1] = percent / 100
    return scales


def _joined(texts: list[str]) -> str | None:
    text = "_".join(texts)
    return text if 0 < len(text) <= limits.CHOICE_CHARACTERS else None
