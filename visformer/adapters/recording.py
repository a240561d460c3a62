"""One recorded pass: which tensors are wanted, what they will cost, and the session that edits and keeps them."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from visformer.edits import Edit, _Edit, _MaskEdit
from visformer.errors import N_, BudgetError, EditError, TraceError
from visformer.names import axes_of
from visformer.trace import TracedTensor

MAX_BYTES = 512 * 2**20
"""A Trace may hold half a gigabyte: all patterns of 24 heads at 512 tokens are 76 MB, everything about 300 MB."""


@lru_cache(maxsize=64)
def matching(names: tuple[str, ...], record: tuple[str, ...]) -> frozenset[str]:
    """The names that the glob patterns in ``record`` choose.

    Raises:
        TraceError: a pattern chooses nothing.
    """
    chosen: set[str] = set()
    for glob in record:
        found = {name for name in names if fnmatchcase(name, glob)}
        if not found:
            raise TraceError(
                N_("record={glob!r} names no tensor of this model; the first of {n} names are {names}."),
                glob=glob,
                n=len(names),
                names=", ".join(names[:8]),
            )
        chosen |= found
    return frozenset(chosen)


def check_budget(names: Iterable[str], sizes: Mapping[tuple[str, str | None], int], *, more: int = 0) -> None:
    """Refuse a recording before it is made, if it would hold too many bytes.

    Args:
        names: tensors to be recorded.
        sizes: (axis name, side) to length.
        more: bytes that the request holds besides (weights).

    Raises:
        BudgetError: says by how much.
    """
    total = more
    for name in names:
        count = 1
        for axis in axes_of(name) or ():
            count *= sizes[axis.name, axis.side]
        total += count * (1 if name.endswith(".mask") else 4)
    if total > MAX_BYTES:
        raise BudgetError(
            N_(
                "This trace would hold {given:,} bytes, {over:,} more than the limit of {limit:,}: "
                "record less or shorten the text."
            ),
            given=total,
            over=total - MAX_BYTES,
            limit=MAX_BYTES,
        )


class Recorder:
    """A session's visitor: applies the edits, then keeps what is wanted."""

    def __init__(self, wanted: frozenset[str], edits: Sequence[Edit], *, growing: bool = False) -> None:
        """``growing``: while a target is decoded, a mask edit waits until its place has been reached."""
        self._wanted = wanted
        self._edits = edits
        self._growing = growing
        self.tensors: dict[str, TracedTensor] = {}

    def wants(self, name: str) -> bool:
        """Whether a tensor has to be built for this session (see :func:`visformer.model.taps.session`)."""
        return name in self._wanted or any(not isinstance(e, _Edit) or e.applies(name) for e in self._edits)

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Edit ``tensor``, keep it if it is wanted, and hand it on."""
        for edit in self._edits:
            if self._growing and isinstance(edit, _MaskEdit) and edit.applies(name) and edit.beyond(tensor.shape):
                continue
            if not isinstance(edit, _Edit) or edit.applies(name):
                tensor = edit(name, tensor)  # type: ignore[operator]
        if name in self._wanted:
            self.tensors[name] = TracedTensor(name, _to_numpy(name, tensor), axes_of(name) or ())
        return tensor


def check_edits(edits: Sequence[Edit], names: Iterable[str]) -> None:
    """An edit that reaches nothing in this model raises; it is never ignored.

    Raises:
        EditError: names the edit.
    """
    everything = tuple(names)
    for edit in edits:
        if isinstance(edit, _Edit) and not any(edit.applies(name) for name in everything):
            raise EditError(N_("{edit} reaches nothing in this model: check the layer and the name."), edit=edit)


def _to_numpy(name: str, tensor: Tensor) -> np.ndarray:
    batched = tensor[0] if not name.endswith(".position") else tensor  # one sentence: the batch axis goes
    array: np.ndarray = (
        batched.detach().to(device="cpu", dtype=tensor.dtype if tensor.dtype == torch.bool else torch.float32).numpy()
    )
    return array
