"""Taps inside a transformers model: one attention function, and what a hook does at a place.

``AttentionInterface`` lets a model call an attention function by name. Ours computes what the family's own eager one
does, and passes every value through the taps, so that the model continues with an edited value. Hooks do the same for
the outputs of modules. Neither stores a value: outside a session a tap returns its input.
:mod:`visformer.adapters.huggingface.wiring` puts both into a model, for the time of a pass.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.utils.generic import ModelOutput

from visformer.adapters.recording import Recorder, check_attention
from visformer.errors import N_, EditError
from visformer.model import taps
from visformer.model.taps import AttentionInputs, Tap

NAME = "visformer"
"""Name of our attention function, beside "eager", "sdpa" and others."""

Callers = Mapping[nn.Module, tuple[str, ...]]
"""Module that calls the attention function to its path in tensor names; a shared module has one for each layer."""

_INSIDE = ("bias", "scores", "mask", "sink", "pattern")
"""What is computed only where one of them is wanted; else torch's fused attention does all of it at once."""


@dataclass
class _Pass:
    """Which part is running, and how often each shared module has been called."""

    part: str
    rows: int  # sentences in the batch
    callers: Callers  # of the model that runs: hooks of another one leave its values alone
    is_fused: bool  # whether torch's fused attention computes it
    by_rows: bool  # whether masks are boolean since attention is computed by rows
    turns: dict[int, int] = field(default_factory=dict)
    # By id: additive masks, which are held so that their ids stay theirs, their finite parts, and what they allow.
    masks: dict[int, tuple[Tensor, Tensor | None, Tensor]] = field(default_factory=dict)

    def turn(self, place: object, layers: int) -> int:
        """The index, among its layers, that a shared module is being called for."""
        n = self.turns.get(id(place), 0)
        self.turns[id(place)] = n + 1
        return n % layers


_pass: ContextVar[_Pass | None] = ContextVar("visformer_pass", default=None)


@contextmanager
def watching(recorder: Recorder, part: str, callers: Callers, *, may_fuse: bool) -> Iterator[None]:
    """Let ``recorder`` visit what ``part`` computes, which also names embeddings that both parts share.

    ``may_fuse``: whether the model computes the same with torch's fused attention, where nothing inside is wanted.
    """
    inside = (f"{path}.{name}" for paths in callers.values() for path in paths for name in _INSIDE)
    is_fused = may_fuse and not any(map(recorder.wants, inside))
    by_rows = may_fuse and any(recorder.wants(f"{path}.overview") for paths in callers.values() for path in paths)
    token = _pass.set(_Pass(part, len(recorder.rows), callers, is_fused, by_rows))
    try:
        with taps.session(recorder, wanted=recorder.wants, by_rows=recorder.by_rows):
            yield
    finally:
        _pass.reset(token)


class NotFusedError(Exception):
    """Torch's fused attention does not compute what a model asks for."""


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **more: Any
) -> tuple[Tensor, Tensor | None]:
    """Call :func:`attention`, and tell :func:`noting` of it; or raise :class:`NotFusedError`."""
    is_fused = (running := _pass.get()) is not None and running.is_fused
    if is_fused and any(more.get(name) is not None for name in ("softcap", "position_bias")):
        raise NotFusedError  # its mask may be left out, since fused attention knows what is causal
    heads, pattern = attention(module, query, key, value, *args, **more)
    if (note := _note.get()) is not None:
        note(module, query, key, value, heads)
    return heads, pattern


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | Callable[[Tensor, Tensor], Tensor] | None = None,
    softcap: float | None = None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """Compute what the families' eager attention functions do, with taps: softmax(Q K^T scaling + bias) V.

    As many values as the scores have are written over where nobody sees them: three times faster at a thousand tokens.

    Args:
        module: the calling attention module.
        query: (batch, head, query, d_k), after rotary.
        key: (batch, kv_head, key, d_k); head / kv_head heads share each one (grouped-query attention).
        value: (batch, kv_head, key, d_v).
        attention_mask: added to the scores; its lowest number forbids.
        scaling: factor of the scores; None: 1 / sqrt(d_k).
        dropout: probability, applied only in training.
        position_bias: added to the scores (T5); a function computes it from query and key (DeBERTa).
        softcap: c in c tanh(scores / c) (Gemma 2).
        more: what torch's fused attention is told besides.

    Returns:
        heads (batch, query, head, d_v) and pattern (batch, head, query, key), None in a fused pass. With a sink, a
        learned score that belongs to no key (GPT-OSS), a row of the pattern sums to 1 minus the sink's mass.

    Raises:
        BudgetError: the scores would take too many bytes.
    """
    tap, crosses = _tap_of(module)
    query, key, value = tap("q", query), tap("k", key), tap("v", value)
    if (running := _pass.get()) is not None and running.is_fused:
        fused, _ = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **more)
        return tap("heads", fused.transpose(1, 2)).transpose(1, 2).contiguous(), None
    if tap.wants("overview") and not callable(position_bias):
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        bias, mask = _split(attention_mask, key.shape[2])
        if position_bias is not None and not crosses:
            bias = position_bias if bias is None else position_bias + bias
        sinks = getattr(module, "sinks", None)
        heads = tap("heads", tap.by_rows(AttentionInputs(query, key, value, scale, mask, bias, softcap, sinks)))
        return heads.transpose(1, 2).contiguous(), None
    check_attention(query.shape[1], query.shape[2], key.shape[2])
    group = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(group, dim=1) if group > 1 else each for each in (key, value))
    scores = query @ key.transpose(-2, -1)  # (batch, head, query, key)
    scores.mul_(query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if callable(position_bias):
        position_bias = position_bias(query, key)
    if position_bias is not None and not crosses:  # T5's cross-attention has zeros
        scores = scores + tap("bias", position_bias.expand(scores.shape))  # (batch, head, query, key)
    added, mask = _split(attention_mask, scores.shape[-1])
    if added is not None:
        scores = scores + added
    scores = tap("scores", scores)
    if tap.wants("mask"):
        seen = torch.ones((), dtype=torch.bool, device=scores.device) if mask is None else mask
        mask = tap("mask", seen.expand(scores.shape))
    sinks = getattr(module, "sinks", None)
    pattern, sink = _softmax(scores, mask, sinks, may_write=not tap.wants("scores"))
    if sink is not None:
        read_only(tap, "sink", sink)
    pattern = tap("pattern", pattern.to(value.dtype))
    kept = nn.functional.dropout(pattern, p=dropout, training=module.training)
    heads = tap("heads", kept @ value)  # (batch, head, query, d_v)
    return heads.transpose(1, 2).contiguous(), pattern


def _split(attention_mask: Tensor | None, n_keys: int) -> tuple[Tensor | None, Tensor | None]:
    """Split an additive mask, once for all layers that share it: its finite part, and where it allows to attend."""
    if attention_mask is None:
        return None, None
    running = _pass.get()
    known = {} if running is None else running.masks
    if id(attention_mask) not in known:
        mask, added = attention_mask[..., :n_keys], None
        if mask.dtype != torch.bool:
            allowed = mask > torch.finfo(mask.dtype).min / 2
            rest = mask.masked_fill(~allowed, 0.0)
            mask, added = allowed, rest if bool(rest.any()) else None
        known[id(attention_mask)] = attention_mask, added, mask
    _, added, allowed = known[id(attention_mask)]
    return added, allowed


def _softmax(
    scores: Tensor, mask: Tensor | None, sinks: Tensor | None, *, may_write: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the pattern and the sink's mass (batch, head, query); a row that may attend to nothing is zeros."""
    if mask is not None:
        lowest = torch.zeros(mask.shape, dtype=scores.dtype, device=mask.device)
        lowest.masked_fill_(~mask, torch.finfo(scores.dtype).min)  # next to it, a score is lost in rounding
        scores = scores.add_(lowest) if may_write else scores + lowest
    if sinks is not None:
        column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    precise = torch.promote_types(scores.dtype, torch.float32)
    pattern = scores.softmax(dim=-1, dtype=precise)
    sink = None
    if sinks is not None:
        pattern, sink = pattern[..., :-1], pattern[..., -1]
    if mask is not None and bool((blind := ~mask.any(dim=-1, keepdim=True)).any()):
        pattern = pattern.masked_fill(blind, 0.0)
    return pattern, sink


def _mask_of(*args: Any, **kwargs: Any) -> Tensor | None:
    """Make the mask that the pass's attention takes: a causal one is none where torch's fused attention knows it."""
    running = _pass.get()
    if running is None or not (running.is_fused or running.by_rows):
        return eager_mask(*args, **kwargs)
    skips = running.is_fused and kwargs.pop("allow_is_causal_skip", True)
    return sdpa_mask(*args, **{**kwargs, "allow_is_causal_skip": skips})


Note = Callable[[nn.Module, Tensor, Tensor, Tensor, Tensor], None]
_note: ContextVar[Note | None] = ContextVar("visformer_note", default=None)


@contextmanager
def noting(note: Note) -> Iterator[None]:
    """Tell ``note`` of each call of our function: its module, query, key, value and heads (batch, query, head, d_v)."""
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


AttentionInterface.register(NAME, attend)
# Without a mask function of the same name, a model assumes that our function masks by itself, and passes no mask.
AttentionMaskInterface.register(NAME, _mask_of)


def _tap_of(module: nn.Module) -> tuple[Tap, bool]:
    """Return the tap of an attention, and whether it is cross-attention."""
    running = _pass.get()
    paths = () if running is None else running.callers.get(module, ())
    if running is None or taps.current() is taps.CLOSED or not paths:
        return taps.CLOSED, False
    path = paths[0] if len(paths) == 1 else paths[running.turn(module, len(paths))]
    return taps.current().at(path), path.endswith(".cross_attn")


def read_only(tap: Tap, name: str, tensor: Tensor) -> None:
    """Pass a tensor to the tap from which the model does not continue.

    Raises:
        EditError: an edit changes it.
    """
    if tap.wants(name) and tap(name, tensor) is not tensor:
        raise EditError(
            N_(
                "An edit changes {name}, which this model shows but does not use further on: edit the values it is "
                "computed from."
            ),
            name=name,
        )


# Hooks ------------------------------------------------------------------------------------------------------------


class Hook:
    """One value of the model, with all of its names.

    Args:
        names: one list for each layer.
        callers: of the model.
        fixed: whether it can be read but not changed.
        scale: of the model's value, to what is shown.
    """

    def __init__(self, names: list[list[str]], callers: Callers, *, fixed: bool, scale: float = 1.0) -> None:
        self._names, self._callers, self._fixed, self._scale = names, callers, fixed, scale

    def visit(self, tensor: Tensor) -> Tensor:
        """Tap the value under its names in the part that runs."""
        tap, running = taps.current(), _pass.get()
        if tap is taps.CLOSED or running is None or running.callers is not self._callers:
            return tensor
        turn = running.turn(self, len(self._names)) if len(self._names) > 1 else 0
        for name in self._names[turn]:
            if (name == "logits" or part_of(name) == running.part) and tap.wants(name):
                tensor = self._tap(tap, name, tensor, rows=running.rows)
        return tensor

    def _tap(self, tap: Tap, name: str, tensor: Tensor, *, rows: int) -> Tensor:
        """Tap it in the shape that a recorder expects: (batch, ...), or no batch for positions that all share."""
        scaled = tensor if self._scale == 1.0 else tensor * self._scale
        is_position = name.endswith(".position")
        batched = scaled
        # OPT flattens batch and tokens into one axis; a classifier's logits have no token axis.
        if scaled.dim() != 3 and name != "logits":
            batched = scaled[None] if is_position else scaled.reshape(rows, -1, scaled.shape[-1])
        value = batched[0] if is_position and len(batched) == 1 else batched
        if self._fixed:
            read_only(tap, name, value)
            return tensor
        changed = tap(name, value)
        return tensor if changed is value else changed.expand_as(batched).reshape(tensor.shape) / self._scale

    def after(self, module: nn.Module, args: Any, output: Any) -> Any:
        """A forward hook."""
        value = value_of(output)
        assert value is not None
        changed = self.visit(value)
        return None if changed is value else _with_value(output, changed)

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A forward pre-hook: the first argument, or the one called hidden_states."""
        given = given_of(args, kwargs)
        assert given is not None
        changed = self.visit(given)
        if changed is given:
            return None
        return ((changed, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": changed})


def part_of(name: str) -> str:
    """The part that a tensor belongs to: "encoder" or "decoder"."""
    return "encoder" if name.startswith(("src.", "encoder.")) else "decoder"


def given_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor | None:
    """What a module reads: its first argument, or the one called hidden_states; None: that is no tensor."""
    given = args[0] if args else kwargs.get("hidden_states")
    return given if isinstance(given, Tensor) else None


_FIELDS = ("logits", "last_hidden_state")
_SPAN = ("start_logits", "end_logits")


def value_of(output: Any) -> Tensor | None:
    """What a module returns, or the first of it; a span's two rows of logits as (..., 2). None: that is no tensor."""
    if isinstance(output, ModelOutput):
        if _SPAN[0] in output:
            return torch.stack([output[name] for name in _SPAN], dim=-1)
        output = next((output[name] for name in _FIELDS if name in output), None)
    value = output[0] if isinstance(output, tuple) and output else output
    return value if isinstance(value, Tensor) else None


def _with_value(output: Any, value: Tensor) -> Any:
    if isinstance(output, ModelOutput):
        if _SPAN[0] in output:
            changed = dict(zip(_SPAN, value.unbind(dim=-1), strict=True))
        else:
            changed = {next(name for name in _FIELDS if name in output): value}
        return type(output)(**{**output, **changed})
    return (value, *output[1:]) if isinstance(output, tuple) else value
