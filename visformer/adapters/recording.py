"""One pass of a model: the edits it runs with, and the tensors and weights that are recorded, with their sizes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from math import prod
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from visformer.adapters.by_rows import CELLS, Shared, attend_by_rows
from visformer.edits import EachRow
from visformer.edits.base import CheckedEdit, _Edit, chosen
from visformer.errors import N_, BudgetError, EditError, Message, TraceError, VisformerError
from visformer.model.taps import AttentionInputs
from visformer.system import cancellation, settings
from visformer.system.progress import report
from visformer.trace import TracedTensor
from visformer.trace.names import Axis, axes_of
from visformer.trace.overview import SIDE

_SHOWN = 8  # names in a message

OVERVIEW = "overview"
"""What ``record`` asks for to have patterns of which heads are computed on demand."""


def checked_edits(
    edits: Any, names: Sequence[str], *, fixed: frozenset[str] = frozenset(), reason: str | None = None
) -> tuple[CheckedEdit, ...]:
    """Check edits before a call of the model; :func:`require_changes` checks plain functions after it.

    Args:
        edits: one edit, or a sequence of them; a mapping of names, or globs, to functions of the tensor stands for
            as many.
        names: names of the model's tensors.
        fixed: those that can be read but not changed.
        reason: why the model lacks names that others have.

    Returns:
        The edits to pass on.

    Raises:
        EditError: an edit reaches nothing, or a fixed tensor: edits are never silently ignored.
    """
    given = (edits,) if isinstance(edits, _Edit | Mapping) or callable(edits) else edits
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise EditError(_NO_EDIT, edit=given)
    each = (part for edit in given for part in (_named(edit) if isinstance(edit, Mapping) else (edit,)))
    return tuple(_checked(edit, names, fixed, reason) for edit in each)


def _named(functions: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield the functions of a mapping of names, or globs, to functions of the tensor."""
    for where, function in functions.items():
        if not isinstance(where, str) or not callable(function) or isinstance(function, _Edit):
            raise EditError(_NO_EDIT, edit={where: function})
        yield _Function(function, where)


def may_cache(edits: Sequence[CheckedEdit]) -> bool:
    """Whether a decoder may keep what it has computed of earlier positions: each edit changes a row by itself."""
    return all(edit.by_row for edit in edits)


def require_changes(edits: Sequence[CheckedEdit]) -> None:
    """Check after a call that each plain function has changed something.

    Args:
        edits: what :func:`checked_edits` returned.

    Raises:
        EditError: a function has returned every tensor as it was.
    """
    for edit in edits:
        if isinstance(edit, _Function):
            edit.require_change()


def renewed(edits: Sequence[CheckedEdit]) -> tuple[CheckedEdit, ...]:
    """Return checked edits for another call, in which no function has been called yet."""
    return tuple(_Function(edit.function, edit.where) if isinstance(edit, _Function) else edit for edit in edits)


_NO_EDIT = N_(
    "{edit!r} is not an edit: pass one of visformer.edits, a function (name, tensor) -> tensor, or a dict of names to "
    "functions tensor -> tensor."
)


def _checked(edit: Any, names: Sequence[str], fixed: frozenset[str], reason: str | None) -> CheckedEdit:
    if not isinstance(edit, _Edit | _Function):
        if not callable(edit):
            raise EditError(_NO_EDIT, edit=edit)
        return _Function(edit)
    reached = _reached(edit, tuple(names))
    if not reached and reason is not None:
        raise EditError(N_("{edit} cannot be applied: {reason}."), edit=edit, reason=Message(reason))
    if not reached:
        raise EditError(N_("{edit} matches nothing in this model: check the layer and the name."), edit=edit)
    for name in fixed.intersection(reached):
        raise EditError(
            N_("{edit} cannot be applied: this model shows {name}, but does not let it be changed."),
            edit=edit,
            name=name,
        )
    return edit


@lru_cache(maxsize=64)  # the same edit often comes with many texts, one after another
def _reached(edit: CheckedEdit, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if edit.applies(name))


class _Function:
    """A function as an edit of one call: of every tensor, with its name, or of those that ``where`` names."""

    by_head = False

    def __init__(self, function: Callable[..., Any], where: str | None = None) -> None:
        self.function, self.where = function, where
        self.by_row = isinstance(function, EachRow)
        inner = function.function if isinstance(function, EachRow) else function
        self._label = getattr(inner, "__name__", type(inner).__name__)
        self._called: dict[str, None] = {}
        self._changed = False

    def __repr__(self) -> str:
        return f"{{{self.where!r}: {self._label}}}" if self.where is not None else self._label

    def applies(self, name: str) -> bool:
        """Whether the function is called with the tensor of this name."""
        return self.where is None or fnmatchcase(name, self.where)

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Call the function with a copy, which it may change in place; return ``tensor`` itself if it is unchanged."""
        self._called[name] = None
        copy = tensor.clone()
        is_told = self.where is None or isinstance(self.function, EachRow)
        result = self.function(name, copy) if is_told else self.function(copy)
        if not isinstance(result, Tensor):
            raise EditError(
                N_("The edit {label} returned {kind} for {name}: return the tensor, also where it changes nothing."),
                label=self._label,
                kind=type(result).__name__,
                name=name,
            )
        if _kind(result) != _kind(tensor):
            raise EditError(
                N_("The edit {label} returned {given} for {name}: return a tensor of the same kind, {wanted}."),
                label=self._label,
                given=_kind(result),
                name=name,
                wanted=_kind(tensor),
            )
        if result is copy and torch.equal(copy, tensor):
            return tensor
        self._changed = True
        return result

    def require_change(self) -> None:
        """Refuse a function that has returned every tensor as it was."""
        if not self._changed:
            raise EditError(
                N_(
                    "The edit {label} reached nothing: it returned each of {n} tensors as it was. The first of their "
                    "names are {names}."
                ),
                label=self._label,
                n=len(self._called),
                names=", ".join([*self._called][:_SHOWN]),
            )


def _kind(tensor: Tensor) -> str:
    """A tensor's dtype, shape and device, for a message."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)} ({tensor.device.type})"


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
        matches = {name for name in names if fnmatchcase(name, "*.pattern" if glob == OVERVIEW else glob)}
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


def overview_shapes(
    patterns: Mapping[str, tuple[int, ...]], vectors: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what is held in place of patterns (head, query, key); ``vectors``: those of q and k."""
    held = dict(vectors)
    for name, (n_heads, n_queries, n_keys) in patterns.items():
        held[f"{name}.{OVERVIEW}"] = (n_heads, min(SIDE, n_queries) * min(SIDE, n_keys) + 4 * n_queries + n_keys)
    return held


def nbytes_of(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return the bytes of tensors of these names and shapes in a Trace."""
    return sum(prod(shape) * (1 if name.endswith(".mask") else 4) for name, shape in shapes.items())


_GIVEN: ContextVar[int | None] = ContextVar("visformer_trace_bytes", default=None)


@contextmanager
def budget(nbytes: int | None) -> Iterator[None]:
    """Let a Trace take so many bytes inside the block; None: as many as the operator says.

    Raises:
        VisformerError: it is no number of bytes.
    """
    if nbytes is not None and (isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes < 1):
        raise VisformerError(
            N_("max_bytes={value!r} must be a number of bytes, at least 1, or None for the usual limit."), value=nbytes
        )
    token = _GIVEN.set(nbytes)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def most_bytes() -> int:
    """The number of bytes that a Trace may take."""
    return _GIVEN.get() or settings.trace_bytes()


def check_budget(shapes: Mapping[str, tuple[int, ...]], *, more: int = 0) -> None:
    """Refuse a recording in advance if it would take too many bytes, including ``more`` for weights.

    Raises:
        BudgetError: the message says by how much.
    """
    total, most = more + nbytes_of(shapes), most_bytes()
    if total > most:
        raise BudgetError(
            N_(
                "This trace would take {given:,} bytes, {over:,} over the limit of {limit:,}: record less, shorten the "
                "text, or raise the limit with {setting} or, in Python, max_bytes."
            ),
            given=total,
            over=total - most,
            limit=most,
            setting=settings.TRACE_BYTES.name,
        )


def check_attention(n_heads: int, queries: int, keys: int) -> None:
    """Refuse a text so long that the scores of one layer, which are computed also if nothing is recorded, are too many.

    Raises:
        BudgetError: the message says by how much.
    """
    nbytes, most = 4 * n_heads * queries * keys, most_bytes()
    if nbytes > most:
        raise BudgetError(
            N_(
                "{tokens} tokens: the scores of one layer alone would take {given:,} bytes, and the limit is "
                "{limit:,}: shorten the text, or raise the limit with {setting} or, in Python, max_bytes."
            ),
            tokens=max(queries, keys),
            given=nbytes,
            limit=most,
            setting=settings.TRACE_BYTES.name,
        )


@dataclass(frozen=True)
class Weight:
    """Where a weight is stored."""

    module: Any  # the module that holds it
    part: str  # the name of its parameter, such as "weight" or "bias"
    axes: tuple[Axis, ...]  # as in a Trace: nn.Linear stores the transpose
    columns: Tensor | None = None  # indices of the module's outputs; None: all
    plus: float = 0.0  # added to what is stored: a norm may store its factor minus 1

    @property
    def nbytes(self) -> int:
        """Bytes of what :meth:`read` returns."""
        full = self._full()
        return 4 * int(full.numel() if self.columns is None else full.numel() // full.shape[-1] * len(self.columns))

    def _full(self) -> Any:
        """All columns, (in, out) or (out,)."""
        weight = getattr(self.module, self.part)
        if self.part.endswith("logits_bias"):
            return weight[0]  # BART's is (1, vocab)
        return weight.T if isinstance(self.module, nn.Linear) and self.part == "weight" else weight

    def read(self, name: str, ids: Mapping[str, Sequence[int]] | None = None) -> TracedTensor:
        """Return it as float32; for embeddings only the rows of ``ids``, before the factor sqrt(d_model)."""
        value = self._full()
        if self.columns is not None:
            value = value[..., self.columns.to(value.device)]
        if ids is not None and self.axes[0].side is not None:
            value = value[list(ids[self.axes[0].side])]  # (token, d_model)
        value = value.detach().float()
        value = value + self.plus if self.plus else value
        array: np.ndarray = value.cpu().numpy().copy()  # a trace outlives changes to the model
        return TracedTensor(name, array, self.axes)


class Recorder:
    """A session's ``visit``: applies the edits, then records the requested tensors, of each sentence of a batch."""

    def __init__(
        self,
        wanted: frozenset[str] | None,
        edits: Sequence[CheckedEdit],
        *,
        sides: Sequence[Mapping[str, Sequence[int]]] = ({},),
        growing: bool = False,
        copied: bool = False,
        axes: Callable[[str], tuple[Axis, ...] | None] = axes_of,
        show: Callable[[str, Sequence[int]], Sequence[str]] | None = None,
    ) -> None:
        """Set what to record and what to change.

        Args:
            wanted: names of tensors to record; None: all.
            edits: applied before a tensor is recorded, to each sentence alone: they see no padding.
            sides: for each sentence of the batch, its ids on each side; what is longer is padding. A side may be added
                before its part runs; one that is not there is not padded.
            growing: whether a target is being decoded; a mask edit then waits until its position is reached.
            copied: store copies, since the model may write into a tensor after its tap; not of what attention made, in
                which it never writes.
            axes: maps a tensor's name to its axes.
            show: returns the tokens that the ids of a side are displayed as, to record patterns of which heads are
                computed on demand, of a single sentence; None: patterns are recorded whole.
        """
        self._wanted = wanted
        self._attended, self._expected = 0, sum(name.endswith(".pattern") for name in wanted or ())
        self._shared = None if show is None else Shared(cache(lambda side: tuple(show(side, sides[0][side]))))
        self.edits = edits
        self._sides, self._growing, self._axes = sides, growing, axes
        self._copied, self._is_batch = copied, len(sides) > 1  # of which one sentence would keep all in memory
        self.rows: list[dict[str, TracedTensor]] = [{} for _ in sides]  # of each sentence
        self.visited: set[str] = set()  # names of the tensors that came by

    def wants(self, name: str) -> bool:
        """Whether a tensor has to be built for this session (see :func:`visformer.model.taps.session`)."""
        path, _, tensor = name.rpartition(".")
        if tensor == OVERVIEW:
            return self._summarises(path)
        return self.records(name) or any(edit.applies(name) for edit in self.edits)

    def _summarises(self, path: str) -> bool:
        """Whether an attention's pattern is recorded on demand: nothing asks for all of its cells at once."""
        cells = {f"{path}.{name}" for name in CELLS}
        return self._shared is not None and all(self.records(name) == name.endswith(".pattern") for name in cells)

    def by_rows(self, path: str, inputs: AttentionInputs) -> Tensor:
        """Compute an attention by rows, under the edits, and record its pattern; see :func:`attend_by_rows`."""
        assert self._shared is not None
        name, sink = f"{path}.pattern", f"{path}.sink"
        cells = {f"{path}.{each}" for each in CELLS}
        edits = [edit for edit in self.edits if isinstance(edit, _Edit) and any(map(edit.applies, cells))]
        for edit in edits:
            if (heads := edit.head) is not None:  # type: ignore[attr-defined]
                chosen(name, heads, inputs.query.shape[1])
        self.visited |= {*cells, sink}
        self._attended += 1
        report(self._attended, self._expected)
        found, mass, pattern = attend_by_rows(name, self._axes(name) or (), inputs, edits, self._shared)
        (tensors,) = self.rows
        if mass is not None and self.records(sink):
            tensors[sink] = TracedTensor(sink, _to_numpy(mass[0]), self._axes(sink) or ())
        tensors[name] = pattern
        return found

    def records(self, name: str) -> bool:
        """Whether a tensor is to be recorded."""
        return self._wanted is None or name in self._wanted

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Edit ``tensor``, record it if requested, and return it."""
        cancellation.check()
        self.visited.add(name)
        for edit in self.edits:
            if edit.applies(name):
                tensor = self._edited(edit, name, tensor)
        if self.records(name):
            axes = self._axes(name) or ()
            array = _to_numpy(tensor)
            copies = self._is_batch or (self._copied and not name.endswith((".scores", ".pattern")))
            for row, tensors in enumerate(self.rows):
                # Positions that all sentences share have no batch axis.
                value = (array[row] if array.ndim > len(axes) else array)[self._own(row, axes)]
                tensors[name] = TracedTensor(name, value.copy() if copies else value, axes)
        return tensor

    def _edited(self, edit: CheckedEdit, name: str, tensor: Tensor) -> Tensor:
        """Apply an edit, in a batch to each sentence alone."""
        if len(self.rows) == 1:
            return self._applied(edit, name, tensor)
        result = tensor
        for row in range(len(self.rows)):
            own = (slice(row, row + 1), *self._own(row, self._axes(name) or ()))
            given = tensor[own]
            changed = self._applied(edit, name, given)
            if changed is not given:
                result = tensor.clone() if result is tensor else result
                result[own] = changed
        return result

    def _applied(self, edit: CheckedEdit, name: str, tensor: Tensor) -> Tensor:
        part = edit.within(tensor.shape) if self._growing and isinstance(edit, _Edit) else edit
        return tensor if part is None else part(name, tensor)

    def own(self, name: str, values: Tensor) -> list[Tensor]:
        """Return what each text of a batch has of a tensor, without padding."""
        axes = self._axes(name) or ()
        return [each[self._own(row, axes)] for row, each in enumerate(values)]

    def _own(self, row: int, axes: Sequence[Axis]) -> tuple[slice, ...]:
        """Where a sentence's own values are along these axes, without padding."""
        lengths = {side: len(ids) for side, ids in self._sides[row].items()}
        return tuple(slice(None if axis.side is None else lengths.get(axis.side)) for axis in axes)


def _to_numpy(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = (tensor if tensor.dtype == torch.bool else tensor.float()).detach().cpu().numpy()
    return array


class Passes:
    """The passes of all threads through one module, which is in evaluation mode while any of them runs."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._running, self._undo, self._lock = 0, ExitStack(), Lock()
        self._is_closed = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the model ready inside the block; what was there before is there again after the last one.

        Raises:
            VisformerError: the model was closed.
        """
        with self._lock:
            if self._is_closed:
                raise VisformerError(N_("This model was closed: wrap or load it again."))
            if not self._running:
                with ExitStack() as undo:
                    self._begin(undo, [*self._module.modules()])
                    self._undo = undo.pop_all()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._undo.close()

    def close(self) -> None:
        """Let no further pass begin."""
        self._is_closed = True

    def _begin(self, undo: ExitStack, modules: Sequence[nn.Module]) -> None:
        for module in modules:
            if module.training:
                module.training = False
                undo.callback(setattr, module, "training", True)
