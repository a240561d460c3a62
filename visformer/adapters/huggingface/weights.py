"""The weights of a transformers model's attention, under the names and in the convention of our own: y = x W + b.

A family keeps them as three modules or as one, and the one either as three blocks or head by head. Which, its modules'
names tell; where they are, the table of :mod:`visformer.adapters.huggingface.families`.
"""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.huggingface.families import Stack
from visformer.adapters.huggingface.taps import blocks_of
from visformer.adapters.params import D_MODEL, Weight
from visformer.adapters.recording import check_budget
from visformer.errors import N_, Message, MissingTensor
from visformer.trace.names import Axis

THREE = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
)
"""Modules inside the one that computes attention."""

BLOCKS = ("c_attn", "qkv_proj", "Wqkv")
"""One module: all of q, then all of k, then all of v."""

BY_HEAD = ("query_key_value",)
"""One module: q, k and v of the first head, then of the second."""

_HEADS = Axis("d_heads")
_WEIGHT = re.compile(r"\b[wb]_[qkvo*?\[\]12]+$")


def weights_of(
    base: nn.Module, stacks: Mapping[str, Stack], config: object, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Weight]:
    """Name, such as ``decoder.0.self_attn.w_q``, to where it is; empty for a family whose attention is its own.

    ``shapes`` of the tensors that a pass shows tell how many heads there are, and how wide.
    """
    found: dict[str, Weight] = {}
    for part, stack in stacks.items():
        for layer, block in enumerate(blocks_of(base, stack, config)):
            for kind, path, out in (
                ("self_attn", stack.self_attn, stack.self_out),
                ("cross_attn", stack.cross_attn, stack.cross_out),
            ):
                name = f"{part}.{layer}.{kind}"
                if path is None or out is None or f"{name}.k" not in shapes:
                    continue
                inner = _inside(block.get_submodule(path), name, shapes)
                if inner:
                    for letter, (module, columns) in {**inner, "o": (block.get_submodule(out), None)}.items():
                        axes = (_HEADS, D_MODEL) if letter == "o" else (D_MODEL, _HEADS)
                        found[f"{name}.w_{letter}"] = Weight(module, "weight", axes, columns)
                        if getattr(module, "bias", None) is not None:
                            found[f"{name}.b_{letter}"] = Weight(module, "bias", axes[1:], columns)
    return found


def _inside(
    attention: nn.Module, name: str, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[Any, Tensor | None]]:
    """q, k and v to their module, and to their columns where they share it."""
    modules = dict(attention.named_children())
    for names in THREE:
        if all(one in modules for one in names):
            return {letter: (modules[one], None) for letter, one in zip("qkv", names, strict=True)}
    sizes = [shapes[f"{name}.{letter}"] for letter in "qkv"]  # (head, token, d_k) each
    widths = [heads * width for heads, _, width in sizes]
    columns = torch.arange(sum(widths))
    for one in BLOCKS:
        if one in modules:
            return {
                letter: (modules[one], part) for letter, part in zip("qkv", torch.split(columns, widths), strict=True)
            }
    for one in BY_HEAD:
        if one in modules and len(set(sizes)) == 1:
            each = columns.reshape(sizes[0][0], 3, sizes[0][2])  # (head, letter, d_k)
            return {letter: (modules[one], each[:, i].reshape(-1)) for i, letter in enumerate("qkv")}
    return {}


def chosen(weights: Mapping[str, Weight], record: Sequence[str], *, reason: str) -> frozenset[str]:
    """The weights that globs name as such; ``*`` alone is no such glob: a model's weights outweigh every text.

    Raises:
        MissingTensor: a glob names weights that there are none of; ``reason`` says why.
        BudgetError: they are too many bytes.
    """
    found: set[str] = set()
    for glob in filter(_WEIGHT.search, record):
        named = {name for name in weights if fnmatchcase(name, glob)}
        if not named:
            raise MissingTensor(N_("This model has no {name!r}: {reason}."), name=glob, reason=Message(reason))
        found |= named
    check_budget({}, more=sum(weights[name].nbytes for name in found))
    return frozenset(found)


def but_weights(record: Sequence[str]) -> tuple[str, ...]:
    """The globs that name tensors."""
    return tuple(glob for glob in record if not _WEIGHT.search(glob))
