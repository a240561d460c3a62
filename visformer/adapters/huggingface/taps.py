"""Taps inside a transformers model: one attention function, and hooks at the places listed in the table of families.

``AttentionInterface`` lets a model call an attention function by name. Ours computes what the family's own eager one
does, and passes every value through the taps, so that the model continues with an edited value. Hooks do the same for
the outputs of modules. Neither stores a value: outside a session a tap returns its input.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask
from transformers.utils.generic import ModelOutput

from visformer.adapters.huggingface.families import Stack, layout_of, places
from visformer.adapters.recording import Recorder
from visformer.errors import N_, EditError
from visformer.model import taps
from visformer.model.taps import Tap

NAME = "visformer"
"""Name of our attention function, beside "eager", "sdpa" and others."""

CALLERS: WeakKeyDictionary[nn.Module, tuple[str, ...]] = WeakKeyDictionary()
"""Module that calls the attention function to its path in tensor names; a shared module has one for each layer."""

_HOOKED = "visformer_places"
"""Attribute of a module with hooks: their modes. A copy of the module has the hooks, too, and thus the attribute."""


@dataclass
class _Pass:
    """Which part is running, and how often each shared module has been called."""

    part: str
    rows: int  # sentences in the batch
    turns: dict[int, int] = field(default_factory=dict)

    def turn(self, place: object, layers: int) -> int:
        """The index, among its layers, that a shared module is being called for."""
        n = self.turns.get(id(place), 0)
        self.turns[id(place)] = n + 1
        return n % layers


_pass: ContextVar[_Pass | None] = ContextVar("visformer_pass", default=None)


@contextmanager
def watching(recorder: Recorder, part: str) -> Iterator[None]:
    """Let ``recorder`` visit what ``part`` computes, which also names embeddings that both parts share."""
    token = _pass.set(_Pass(part, len(recorder.rows)))
    try:
        with taps.session(recorder, wanted=recorder.wants):
            yield
    finally:
        _pass.reset(token)


def attend(
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
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Compute what the families' eager attention functions do, with taps: softmax(Q K^T scaling + bias) V.

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

    Returns:
        heads (batch, query, head, d_v) and pattern (batch, head, query, key). With a sink, a learned score that
        belongs to no key (GPT-OSS), a row of the pattern sums to 1 minus the sink's mass.
    """
    tap, crosses = _tap_of(module), CALLERS.get(module, ("",))[0].endswith(".cross_attn")
    query, key, value = tap("q", query), tap("k", key), tap("v", value)
    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, dim=1).transpose(-2, -1)  # (batch, head, query, key)
    scores = scores * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if callable(position_bias):
        position_bias = position_bias(query, key)
    if position_bias is not None and not crosses:  # T5's cross-attention has zeros
        scores = scores + tap("bias", position_bias.expand(scores.shape))  # (batch, head, query, key)
    scores, mask = _unmasked(scores, attention_mask)
    scores = tap("scores", scores)
    if tap.wants("mask"):
        seen = torch.ones((), dtype=torch.bool, device=scores.device) if mask is None else mask
        mask = tap("mask", seen.expand(scores.shape))
    pattern, sink = _softmax(scores, mask, getattr(module, "sinks", None))
    if sink is not None:
        read_only(tap, "sink", sink)
    pattern = tap("pattern", pattern.to(value.dtype))
    kept = nn.functional.dropout(pattern, p=dropout, training=module.training)
    heads = tap("heads", kept @ value.repeat_interleave(group, dim=1))  # (batch, head, query, d_v)
    return heads.transpose(1, 2).contiguous(), pattern


def _unmasked(scores: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Split an additive mask: returns scores plus its finite part, and a boolean mask (True = may attend)."""
    if attention_mask is None:
        return scores, None
    mask = attention_mask[..., : scores.shape[-1]]
    if mask.dtype == torch.bool:
        return scores, mask
    allowed = mask > torch.finfo(mask.dtype).min / 2
    added = mask.masked_fill(~allowed, 0.0)
    return (scores + added if bool(added.any()) else scores), allowed


def _softmax(scores: Tensor, mask: Tensor | None, sinks: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return the pattern and the sink's mass (batch, head, query); a row that may attend to nothing is zeros."""
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    if sinks is not None:
        column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], dim=-1)
    precise = torch.promote_types(scores.dtype, torch.float32)
    pattern = scores.softmax(dim=-1, dtype=precise)
    sink = None
    if sinks is not None:
        pattern, sink = pattern[..., :-1], pattern[..., -1]
    if mask is not None:
        pattern = pattern.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return pattern, sink


AttentionInterface.register(NAME, attend)
# Without a mask function of the same name, a model assumes that our function masks by itself, and passes no mask.
AttentionMaskInterface.register(NAME, eager_mask)


def _tap_of(module: nn.Module) -> Tap:
    tap, running = taps.current(), _pass.get()
    paths = CALLERS.get(module)
    if tap is taps.CLOSED or running is None or paths is None:
        return taps.CLOSED
    return tap.at(paths[0] if len(paths) == 1 else paths[running.turn(module, len(paths))])


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


class _Place:
    """One value of the model, with all of its names."""

    def __init__(self, names: list[list[str]], *, fixed: bool, scale: float = 1.0) -> None:
        self._names, self._fixed, self._scale = names, fixed, scale  # names: one list for each layer

    def visit(self, tensor: Tensor) -> Tensor:
        tap, running = taps.current(), _pass.get()
        if tap is taps.CLOSED or running is None:
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
        value = _value_of(output)
        changed = self.visit(value)
        return None if changed is value else _with_value(output, changed)

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A forward pre-hook: the first argument, or the one called hidden_states."""
        given = args[0] if args else kwargs["hidden_states"]
        changed = self.visit(given)
        if changed is given:
            return None
        return ((changed, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": changed})


def part_of(name: str) -> str:
    """The part that a tensor belongs to: "encoder" or "decoder"."""
    return "encoder" if name.startswith(("src.", "encoder.")) else "decoder"


def _value_of(output: Any) -> Tensor:
    if isinstance(output, ModelOutput):
        value = output["logits"] if "logits" in output else output["last_hidden_state"]
    else:
        value = output[0] if isinstance(output, tuple) else output
    assert isinstance(value, Tensor)
    return value


def _with_value(output: Any, value: Tensor) -> Any:
    if isinstance(output, ModelOutput):
        return type(output)(**{**output, "logits" if "logits" in output else "last_hidden_state": value})
    return (value, *output[1:]) if isinstance(output, tuple) else value


def install(
    model: nn.Module, base: nn.Module, stacks: Mapping[str, Stack], config: object, *, has_logits: bool
) -> frozenset[str]:
    """Install taps in a model, each once, however often the model, a part of it or a copy of it is wrapped.

    Args:
        model: the outermost module, which returns the logits if there are any.
        base: the module that the table's paths are relative to.
        stacks: "encoder", "decoder" or both.
        config: the model's config.
        has_logits: whether the model returns logits.

    Returns:
        Names that can be read but not changed.
    """
    wanted: dict[tuple[nn.Module, str], list[list[str]]] = {}
    for name, stack in stacks.items():
        _collect(wanted, base, name, stack, config)
    if has_logits:
        wanted[model, ""] = [["logits"]]
    fixed = {name for (_, mode), names in wanted.items() if mode == "seen" for row in names for name in row}
    fixed |= {f"{path}.sink" for module, paths in CALLERS.items() if getattr(module, "sinks", None) is not None
              for path in paths}  # fmt: skip
    for (module, mode), names in wanted.items():
        hooked = vars(module).setdefault(_HOOKED, set())
        if mode not in hooked:
            hooked.add(mode)
            _hook(base, module, mode, names)
    return frozenset(fixed)


def _hook(base: nn.Module, module: nn.Module, mode: str, names: list[list[str]]) -> None:
    owner = base.get_submodule(part_of(names[0][0])) if mode == "scaled" else None
    scale = 1.0 if owner is None else float(owner.embed_scale)  # type: ignore[arg-type]
    place = _Place(names, fixed=mode == "seen", scale=scale)
    if mode in ("in", "seen"):
        module.register_forward_pre_hook(place.before, with_kwargs=True)
    else:
        module.register_forward_hook(place.after)


def _collect(
    wanted: dict[tuple[nn.Module, str], list[list[str]]], base: nn.Module, part: str, stack: Stack, config: object
) -> None:
    """Add the places of one stack, in the order of computation."""
    side = "src" if part == "encoder" else "tgt"
    blocks = blocks_of(base, stack, config)
    ends = {f"{side}.embed": stack.embed, f"{side}.segment": stack.segment, f"{side}.position": stack.position}
    for name, place in ends.items():
        if place is not None:
            _add(wanted, base, place, name)
    _add(wanted, blocks[0], ":in", f"{side}.input")
    inner = places(stack, layout_of(stack, config))
    attentions = {"self_attn": stack.self_attn, "cross_attn": stack.cross_attn}
    for layer, block in enumerate(blocks):
        turn = blocks[:layer].count(block)
        for name, place in inner.items():
            _add(wanted, block, place, f"{part}.{layer}.{name}", turn=turn)
        for kind, path in attentions.items():
            if path is not None:
                caller, name = block.get_submodule(path), f"{part}.{layer}.{kind}"
                known = CALLERS.get(caller, ())
                CALLERS[caller] = known if name in known else (*known, name)
    last = blocks[-1] if stack.out is None else base
    _add(wanted, last, stack.out or "", f"{part}.out", turn=0 if stack.out else turn)


def _add(
    wanted: dict[tuple[nn.Module, str], list[list[str]]], root: nn.Module, place: str, name: str, *, turn: int = 0
) -> None:
    """Add a name of the value at a place; ``turn``: how many earlier layers use the same block."""
    paths, _, mode = place.partition(":")
    present = [path for path in paths.split("|") if _has(root, path)]
    if not present:
        return  # some variants of a family lack it
    module = root.get_submodule(present[0])
    rows = wanted.setdefault((module, mode), [[]])
    while len(rows) <= turn:
        rows.append([])
    rows[turn].append(name)


def _has(root: nn.Module, path: str) -> bool:
    try:
        root.get_submodule(path)
    except AttributeError:
        return False
    return True


def blocks_of(base: nn.Module, stack: Stack, config: object) -> list[nn.Module]:
    """The block of each layer; ALBERT reuses its blocks."""
    children: Iterable[nn.Module] = base.get_submodule(stack.blocks).children()
    blocks = list(children)
    if not stack.repeated:
        return blocks
    depth = int(config.num_hidden_layers)  # type: ignore[attr-defined]
    return [blocks[layer * len(blocks) // depth] for layer in range(depth)]
