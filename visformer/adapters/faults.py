"""The faults: each is put into a loaded model, so that every Trace and every translation is computed with it.

A fault lies in how a module is called, never in :mod:`visformer.model`: a hook gives the module another tap, or another
input.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.names import number_of
from visformer.adapters.own import OwnModel
from visformer.model.attention import MultiHeadAttention
from visformer.model.taps import Tap


def broken(name: str, model: OwnModel) -> OwnModel:
    """Put the fault of this name into a model that nothing else uses, and return it.

    Raises:
        ConfigError: there is no such fault.
    """
    fault = _FAULTS[number_of(name)]
    fault.put_into(model.module)
    model.caches = model.caches and fault.is_causal
    model.unsure_below = None  # the threshold is of the sound model
    model.info = replace(model.info, name=name, source="a model with a fault, to be found in the pictures")
    return model


class _Through:
    """A tap that passes everything on; a fault changes something on the way."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return self.tap(name, tensor)

    def at(self, name: str) -> Tap:
        return self.tap.at(name)

    def wants(self, name: str) -> bool:
        return name == "mask" or self.tap.wants(name)  # faults of masks need it, also where nothing is masked


class _Unscaled(_Through):
    """Scores are not divided by the root of d_k."""

    d_k = 0  # known from the queries

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == "q":
            self.d_k = tensor.shape[-1]
        return super().__call__(name, tensor * math.sqrt(self.d_k) if name == "scores" else tensor)


class _Inverted(_Through):
    """The mask hides what may be read, and shows what may not."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return super().__call__(name, ~tensor if name == "mask" else tensor)


class _WrongAxis(_Through):
    """Softmax runs over the queries: columns sum to 1, not rows."""

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self.seen: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name == "pattern":
            scores, hidden = self.seen["scores"], ~self.seen["mask"]
            tensor = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(dim=-2).masked_fill(hidden, 0.0)
        self.seen[name] = super().__call__(name, tensor)
        return self.seen[name]


class _Unplaced(_Through):
    """Positions are computed, but not added."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        passed = super().__call__(name, tensor)
        return torch.zeros_like(passed) if name == "position" else passed


def _tapped(kind: type[_Through], module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return given, {**named, "tap": kind(named["tap"])}


def _without_memory(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    query, memory, _ = given
    nothing = torch.zeros_like(memory)
    return (query, nothing, nothing), named


def _attentions(model: nn.Module, place: str = "") -> Iterator[MultiHeadAttention]:
    """Every attention whose name contains ``place``."""
    return (each for name, each in model.named_modules() if isinstance(each, MultiHeadAttention) and place in name)


def _hook(hook: Callable[..., Any], modules: Iterator[Any]) -> None:
    for module in modules:
        module.register_forward_pre_hook(hook, with_kwargs=True)


def _withhold_memory(model: Any) -> None:
    _hook(_without_memory, _attentions(model, "cross_attn"))


def _invert_mask(model: Any) -> None:
    _hook(partial(_tapped, _Inverted), _attentions(model.decoder, "self_attn"))


def _forget_root(model: Any) -> None:
    _hook(partial(_tapped, _Unscaled), _attentions(model))


def _turn_softmax(model: Any) -> None:
    _hook(partial(_tapped, _WrongAxis), _attentions(model))


def _leave_out_positions(model: Any) -> None:
    _hook(partial(_tapped, _Unplaced), iter((model.src_embedding, model.tgt_embedding)))


def _leave_out_norm(model: Any) -> None:
    model.encoder.layers[1].norm_ffn = nn.Identity()


def _swap_keys_and_values(model: Any) -> None:
    """The weights of a Trace keep their names: they were looked up before, and it is the call that swaps them."""
    for attention in _attentions(model):
        attention.w_k, attention.w_v = attention.w_v, attention.w_k


@dataclass(frozen=True)
class _Fault:
    """A fault.

    Args:
        put_into: changes a module.
        is_causal: whether what a position computes still depends on it and those before it alone, which decoding with a
            cache takes for granted.
    """

    put_into: Callable[[Any], None]
    is_causal: bool = True


_FAULTS = {
    1: _Fault(_withhold_memory),
    2: _Fault(_invert_mask, is_causal=False),
    3: _Fault(_forget_root),
    4: _Fault(_turn_softmax, is_causal=False),
    5: _Fault(_leave_out_positions),
    6: _Fault(_leave_out_norm),
    7: _Fault(lambda model: None, is_causal=False),  # it was trained without the mask
    8: _Fault(_swap_keys_and_values),
}
