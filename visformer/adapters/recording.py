"""One recorded pass: which tensors to record, how large they will be, and the session that edits and stores them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod

import numpy as np
import torch
from torch import Tensor

from visformer.edits import Edit, _Edit, _MaskEdit
from visformer.errors import N_, BudgetError, TraceError
from visformer.system import cancellation, limits
from visformer.trace import TracedTensor
from visformer.trace.names import Axis, axes_of


def globs(record: str | Sequence[str]) -> tuple[str, ...]:
    """Return ``record`` as a tuple of patterns; a single pattern may be a plain string.

    Raises:
        TraceError: it is something else.
    """
    patterns = (record,) if isinstance(record, str) else tuple(record) if isinstance(record, Iterable) else None
    if patterns is None or not all(isinstance(pattern, str) for pattern in patterns):
        raise TraceError(
            N_("record={record!r} names no tensors: pass names or glob patterns, such as ('*.pattern', 'logits')."),
            record=record,
        )
    return patterns


@lru_cache(maxsize=64)
def matching(names: tuple[str, ...], record: tuple[str, ...]) -> frozenset[str]:
    """Return the names that match the glob patterns in ``record``.

    Raises:
        TraceError: a pattern matches nothing.
    """
    chosen: set[str] = set()
    for glob in record:
        matches = {name for name in names if fnmatchcase(name, glob)}
        if not matches:
            raise TraceError(
                N_("record={glob!r} matches no tensor of this model; the first of its {n} names are {names}."),
                glob=glob,
                n=len(names),
                names=", ".join(names[:8]),
            )
        chosen |= matches
    return frozenset(chosen)


@lru_cache(maxsize=64)
def available(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the glob patterns in ``wanted`` that match at least one name."""
    return tuple(glob for glob in wanted if any(fnmatchcase(name, glob) for name in names))


def check_budget(shapes: Mapping[str, tuple[int, ...]], *, more: int = 0) -> None:
    """Refuse a recording in advance if it would take too many bytes, including ``more`` for weights.

    Raises:
        BudgetError: the message says by how much.
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


def check_attention(n_heads: int, tokens: int) -> None:
    """Refuse a text so long that the scores of one layer, which are computed also if nothing is recorded, are too many.

    Raises:
        BudgetError: the message says by how much.
    """
    nbytes = 4 * n_heads * tokens**2
    if nbytes > limits.MAX_TRACE_BYTES:
        raise BudgetError(
            N_(
                "{tokens} tokens: the scores of one layer alone would take {given:,} bytes, and the limit is "
                "{limit:,}: shorten the text."
            ),
            tokens=tokens,
            given=nbytes,
            limit=limits.MAX_TRACE_BYTES,
        )


class Recorder:
    """A session's ``visit``: applies the edits, then records the requested tensors."""

    def __init__(
        self,
        wanted: frozenset[str] | None,
        edits: Sequence[Edit],
        *,
        growing: bool = False,
        copied: bool = False,
        axes: Callable[[str], tuple[Axis, ...] | None] = axes_of,
    ) -> None:
        """Set what to record and what to change.

        Args:
            wanted: names of tensors to record; None: all.
            edits: applied before a tensor is recorded.
            growing: whether a target is being decoded; a mask edit then waits until its position is reached.
            copied: store copies, since the model may write into a tensor after its tap.
            axes: maps a tensor's name to its axes.
        """
        self._wanted = wanted
        self.edits = edits
        self._growing, self._copied, self._axes = growing, copied, axes
        self.tensors: dict[str, TracedTensor] = {}

    def wants(self, name: str) -> bool:
        """Whether a tensor has to be built for this session (see :func:`visformer.model.taps.session`)."""
        return self.records(name) or any(not isinstance(e, _Edit) or e.applies(name) for e in self.edits)

    def records(self, name: str) -> bool:
        """Whether a tensor is to be recorded."""
        return self._wanted is None or name in self._wanted

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Edit ``tensor``, record it if requested, and return it."""
        cancellation.check()
        for edit in self.edits:
            if isinstance(edit, _Edit) and not edit.applies(name):
                continue
            part = edit.within(tensor.shape) if self._growing and isinstance(edit, _MaskEdit) else edit
            if part is not None:
                tensor = part(name, tensor)  # type: ignore[operator]
        if self.records(name):
            value = _to_numpy(name, tensor)
            self.tensors[name] = TracedTensor(name, value.copy() if self._copied else value, self._axes(name) or ())
        return tensor


def _to_numpy(name: str, tensor: Tensor) -> np.ndarray:
    one = tensor if name.endswith(".position") else tensor[0]  # one sentence: drop the batch axis
    array: np.ndarray = (one if one.dtype == torch.bool else one.float()).detach().cpu().numpy()
    return array
