"""One recorded pass: which tensors are wanted, what they will cost, and the session that edits and keeps them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod

import numpy as np
import torch
from torch import Tensor

from visformer.edits import Edit, _Edit, _MaskEdit
from visformer.errors import N_, BudgetError, EditError, TraceError
from visformer.system import limits
from visformer.trace import TracedTensor
from visformer.trace.names import Axis, axes_of


def globs(record: str | Sequence[str]) -> tuple[str, ...]:
    """What ``record`` names; one pattern may be given as it is."""
    return (record,) if isinstance(record, str) else tuple(record)


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
                N_("record={glob!r} matches no tensor of this model; the first of its {n} names are {names}."),
                glob=glob,
                n=len(names),
                names=", ".join(names[:8]),
            )
        chosen |= found
    return frozenset(chosen)


@lru_cache(maxsize=64)
def available(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Of the glob patterns in ``wanted`` those that choose something: what can be recorded of any model."""
    return tuple(glob for glob in wanted if any(fnmatchcase(name, glob) for name in names))


def check_budget(shapes: Mapping[str, tuple[int, ...]], *, more: int = 0) -> None:
    """Refuse a recording before it is made, if it would hold too many bytes, with ``more`` for weights.

    Raises:
        BudgetError: says by how much.
    """
    total = more + sum(prod(shape) * (1 if name.endswith(".mask") else 4) for name, shape in shapes.items())
    if total > limits.MAX_TRACE_BYTES:
        raise BudgetError(
            N_(
                "This trace would take {given:,} bytes, {over:,} over the limit of {limit:,}: record less or "
                "shorten the text."
            ),
            given=total,
            over=total - limits.MAX_TRACE_BYTES,
            limit=limits.MAX_TRACE_BYTES,
        )


class Recorder:
    """A session's visitor: applies the edits, then keeps what is wanted."""

    def __init__(
        self,
        wanted: frozenset[str] | None,
        edits: Sequence[Edit],
        *,
        growing: bool = False,
        copied: bool = False,
        axes: Callable[[str], tuple[Axis, ...] | None] = axes_of,
    ) -> None:
        """What to keep, and what to change.

        Args:
            wanted: names of tensors to keep; None: all that come.
            edits: applied before a tensor is kept.
            growing: while a target is decoded, a mask edit waits until its place has been reached.
            copied: keep copies: the model may write into a tensor after its tap.
            axes: of the tensor of a name.
        """
        self._wanted = wanted
        self.edits = edits
        self._growing, self._copied, self._axes = growing, copied, axes
        self.tensors: dict[str, TracedTensor] = {}

    def wants(self, name: str) -> bool:
        """Whether a tensor has to be built for this session (see :func:`visformer.model.taps.session`)."""
        return self._keeps(name) or any(not isinstance(e, _Edit) or e.applies(name) for e in self.edits)

    def _keeps(self, name: str) -> bool:
        return self._wanted is None or name in self._wanted

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Edit ``tensor``, keep it if it is wanted, and hand it on."""
        for edit in self.edits:
            if self._growing and isinstance(edit, _MaskEdit) and edit.applies(name) and edit.beyond(tensor.shape):
                continue
            if not isinstance(edit, _Edit) or edit.applies(name):
                tensor = edit(name, tensor)  # type: ignore[operator]
        if self._keeps(name):
            value = _to_numpy(name, tensor)
            self.tensors[name] = TracedTensor(name, value.copy() if self._copied else value, self._axes(name) or ())
        return tensor


def check_edits(edits: Sequence[Edit], names: Iterable[str], *, fixed: frozenset[str] = frozenset()) -> None:
    """An edit that reaches none of ``names``, or a ``fixed`` one, raises; it is never ignored.

    Plain functions are checked when they run.

    Raises:
        EditError: names the edit.
    """
    everything = tuple(names)
    for edit in edits:
        if not isinstance(edit, _Edit):
            continue
        reached = [name for name in everything if edit.applies(name)]
        if not reached:
            raise EditError(N_("{edit} matches nothing in this model: check the layer and the name."), edit=edit)
        for name in fixed.intersection(reached):
            raise EditError(
                N_("{edit} cannot be applied: this model shows {name}, but does not let it be changed."),
                edit=edit,
                name=name,
            )


def _to_numpy(name: str, tensor: Tensor) -> np.ndarray:
    batched = tensor[0] if not name.endswith(".position") else tensor  # one sentence: the batch axis goes
    array: np.ndarray = (
        batched.detach().to(device="cpu", dtype=tensor.dtype if tensor.dtype == torch.bool else torch.float32).numpy()
    )
    return array
