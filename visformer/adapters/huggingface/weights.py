"""The attention weights of a transformers model, named and oriented as those of our own: y = x W + b.

A family stores W_Q, W_K and W_V in three modules or fused into one, as three blocks or head by head; the modules' names
tell which. Their paths are in the table of :mod:`visformer.adapters.huggingface.families`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.huggingface.families import StackPlaces
from visformer.adapters.huggingface.wiring import blocks_of
from visformer.adapters.recording import Weight, check_budget
from visformer.errors import N_, Message, MissingTensor
from visformer.trace.names import D_MODEL, VOCAB, Axis

THREE = (
    ("q_proj", "k_proj", "v_proj"),
    ("query_proj", "key_proj", "value_proj"),
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
)
"""Names of three separate modules inside the attention module."""

BLOCKS = ("c_attn", "qkv_proj", "Wqkv")
"""One module: all of q, then all of k, then all of v."""

BY_HEAD = ("query_key_value", "in_proj")
"""One module: q of the heads that share the first k and v, then these, then the same of the second k and v."""

_HEADS = Axis("d_heads")
_TRIED = 8
"""Rows that a map is tried on."""
_WEIGHT = re.compile(r"\b[wb]_[qkvo*?\[\]12]+$|\.(w|b|gamma|beta)$|^output\.|\bnorm\.[^.]+$")


@dataclass(frozen=True)
class Map(Weight):
    """W or b of a module, as it computes y = x W + b: with an adapter, or if it stores codes, not what it stores."""

    @property
    def nbytes(self) -> int:
        """See :class:`Weight`."""
        d_in, d_out = _sizes(self.module)
        return 4 * (d_in if self.part == "weight" else 1) * (d_out if self.columns is None else len(self.columns))

    def _full(self) -> Any:
        return affine(self.module)[self.part != "weight"]


@dataclass(frozen=True)
class StoredWeight(Weight):
    """A weight as it is stored, also of a module whose weights accelerate keeps elsewhere."""

    def _full(self) -> Any:
        with _at_hand(self.module):
            return super()._full()


@contextmanager
def _at_hand(module: nn.Module) -> Iterator[None]:
    """Have the weights of a module that accelerate has offloaded."""
    if any(weight.is_meta for weight in module.parameters(recurse=False)):
        from accelerate.utils import align_module_device  # it has offloaded them

        with align_module_device(module):
            yield
    else:
        yield


@torch.no_grad()
def affine(module: Any) -> tuple[Tensor, Tensor]:
    """Return W (in, out) and b (out,) by which a module computes y = x W + b.

    They are what it stores, if that gives what the module returns; else what it returns for unit vectors.

    Raises:
        MissingTensor: it computes something else.
    """
    d_in, d_out = _sizes(module)
    stored, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    dtype = next((one.dtype for one in module.parameters() if one.is_floating_point()), torch.get_default_dtype())
    device = next((one.device for one in (*module.parameters(), *module.buffers())), torch.device("cpu"))
    if device.type == "meta":  # its weights come when it is called
        stored, device = None, torch.device("cpu")
    drawn = torch.randn(_TRIED, d_in, generator=torch.Generator().manual_seed(0))
    x = drawn.to(device, dtype)
    y = module(x).float()
    zero = torch.zeros(d_out, device=device, dtype=dtype)
    tolerance = (2e-2 if torch.finfo(dtype).bits < 32 else 1e-4) * float(y.abs().max())

    def holds(w: Tensor, b: Tensor) -> bool:
        return torch.allclose(x.float() @ w.float() + b.float(), y, rtol=0, atol=tolerance)

    if isinstance(stored, Tensor) and stored.is_floating_point() and stored.numel() == d_in * d_out:
        b = zero if bias is None else bias
        for w in (stored.T, stored):
            if w.shape == (d_in, d_out) and holds(w, b):
                return w, b
    b = module(x[:1] * 0)[0]
    w = module(torch.eye(d_in, device=device, dtype=dtype)) - b
    if not holds(w, b) or (bias is None and float(b.float().abs().max()) > tolerance):
        raise MissingTensor(
            N_("{module} computes no product with one matrix, so that there are no weights of it to show."),
            module=type(module).__name__,
        )
    return w, b


def is_linear(module: Any) -> bool:
    """Whether a module is like an nn.Linear, or GPT-2's Conv1D."""
    return hasattr(module, "nx") or (hasattr(module, "in_features") and hasattr(module, "out_features"))


def columns_in(made: Tensor, letter: str, wanted: Mapping[str, Tensor]) -> Tensor | None:
    """Return the columns of what a matrix made, (1, token, out), that are all heads of ``letter``; None: none are.

    Args:
        made: the output of the module.
        letter: "q", "k" or "v".
        wanted: each letter to what attention was called with, (1, head, token, d). Queries and keys may have been
            rotated by their position since, but not the first one.
    """
    tensor = wanted[letter]
    _, n_heads, n, width = tensor.shape
    if made.shape[:2] != (1, n):
        return None
    sizes = {one: each.shape[1] * each.shape[3] for one, each in wanted.items()}
    every = torch.arange(made.shape[-1])
    tried = [every] if len(every) == sizes[letter] else []
    if len(every) == sum(sizes.values()):
        tried.append(torch.split(every, [*sizes.values()])["qkv".index(letter)])
        if len({each.shape[3] for each in wanted.values()}) == 1:
            each = every.reshape(wanted["k"].shape[1], -1, width)  # (kv_head, q... k v, d_k)
            tried.append((each[:, :-2], each[:, -2], each[:, -1])["qkv".index(letter)].reshape(-1))
    for columns in tried:
        own = made[0][:, columns].reshape(n, n_heads, width).transpose(0, 1)  # (head, token, d)
        if torch.equal(own, tensor[0]) or (letter != "v" and is_rotated(own.float(), tensor[0].float())):
            return columns
    return None


def is_rotated(before: Tensor, after: Tensor) -> bool:
    """Whether vectors (head, token, d) are those before, rotated by their position, the first not; times one number."""
    lengths = before.norm(dim=-1), after.norm(dim=-1)  # (head, token)
    factor = lengths[1].sum() / lengths[0].sum().clamp(min=1e-30)
    first = torch.allclose(before[:, 0] * factor, after[:, 0], rtol=1e-2, atol=1e-3 * float(after.abs().max()))
    return first and torch.allclose(lengths[0] * factor, lengths[1], rtol=1e-2)


def _sizes(module: Any) -> tuple[int, int]:
    """Width of the inputs and of the outputs of an nn.Linear, of what stands in for one, or of GPT-2's Conv1D."""
    if hasattr(module, "nx"):
        return int(module.nx), int(module.nf)
    return int(module.in_features), int(module.out_features)


def weights_of(
    base: nn.Module, stacks: Mapping[str, StackPlaces], config: object, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Weight]:
    """Map names such as ``decoder.0.self_attn.w_q`` to weights; empty if no module holds them separately.

    The number and width of heads follow from ``shapes``, those of the tensors of a pass.
    """
    result: dict[str, Weight] = {}
    for part, stack in stacks.items():
        for layer, block in enumerate(blocks_of(base, stack, config)):
            for kind, path, out in (
                ("self_attn", stack.self_attn, stack.self_out),
                ("cross_attn", stack.cross_attn, stack.cross_out),
            ):
                name = f"{part}.{layer}.{kind}"
                if path is None or out is None or f"{name}.k" not in shapes:
                    continue
                attention = block.get_submodule(path)
                inner = _inside(attention, name, shapes)
                if inner:
                    for letter, (module, columns) in {**inner, "o": (block.get_submodule(out), None)}.items():
                        axes = (_HEADS, D_MODEL) if letter == "o" else (D_MODEL, _HEADS)
                        result[f"{name}.w_{letter}"] = Map(module, "weight", axes, columns)
                        if getattr(module, "bias", None) is not None:
                            result[f"{name}.b_{letter}"] = Map(module, "bias", axes[1:], columns)
                        elif hasattr(attention, f"{letter}_bias"):  # DeBERTa
                            result[f"{name}.b_{letter}"] = StoredWeight(attention, f"{letter}_bias", axes[1:])
            for norm in ("norm_self", "norm_cross", "norm_ffn"):
                result |= gamma_beta(f"{part}.{layer}.{norm}", _module(block, getattr(stack, norm)))
    return result


def ends_of(model: Any, base: nn.Module, stacks: Mapping[str, StackPlaces]) -> dict[str, Weight]:
    """Map ``decoder.norm.gamma``, ``output.w`` and so on to the last norm of a stack and to what makes the logits.

    ``decoder.out`` W + b are the logits, up to a factor or a cap of some families. An encoder's head is not one matrix.
    """
    result: dict[str, Weight] = {}
    for part, stack in stacks.items():
        result |= gamma_beta(f"{part}.norm", final_norm_of(base, stack))
    output = model.get_output_embeddings() if "decoder" in stacks else None
    if output is not None:
        result["output.w"] = Map(output, "weight", (D_MODEL, VOCAB))
        if getattr(output, "bias", None) is not None:
            result["output.b"] = Map(output, "bias", (VOCAB,))
        if getattr(model, "final_logits_bias", None) is not None:
            result["output.b"] = StoredWeight(model, "final_logits_bias", (VOCAB,))
    return result


def final_norm_of(base: nn.Module, stack: StackPlaces) -> nn.Module | None:
    """The norm after the last block, if there is one."""
    return _module(base, stack.final_norm or stack.out)


def _module(root: nn.Module, place: str | None) -> nn.Module | None:
    """The module at one of the paths of a place, None: some variants of a family lack it."""
    for path in () if place is None else place.split("|"):
        try:
            return root.get_submodule(path)
        except AttributeError:
            continue
    return None


def gamma_beta(name: str, norm: nn.Module | None) -> dict[str, Weight]:
    """Map ``name.gamma`` and ``name.beta`` to the weights of a norm, as far as it has any."""
    result: dict[str, Weight] = {}
    if norm is not None and getattr(norm, "weight", None) is not None:
        result[f"{name}.gamma"] = StoredWeight(norm, "weight", (D_MODEL,), plus=_stored_below(norm))
        if getattr(norm, "bias", None) is not None:
            result[f"{name}.beta"] = StoredWeight(norm, "bias", (D_MODEL,))
    return result


def _stored_below(norm: Any) -> float:
    """1 if the norm multiplies by 1 + its weight (Gemma), else 0: found from a vector of mean 0 and variance 1."""
    with _at_hand(norm):
        weight = norm.weight.detach()
    signs = torch.ones_like(weight)
    signs[1::2] = -1
    with torch.inference_mode():
        factor = (norm(signs[None, None]) - norm(-signs[None, None]))[0, 0] / 2 * signs
    return float((factor - weight).float().mean().round())


def _inside(
    attention: nn.Module, name: str, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[Any, Tensor | None]]:
    """Map q, k and v to their module, and to their columns in it if they share it."""
    modules = dict(attention.named_children())
    for names in THREE:
        if all(one in modules for one in names):
            return {letter: (modules[one], None) for letter, one in zip("qkv", names, strict=True)}
    sizes = [shapes[f"{name}.{letter}"] for letter in "qkv"]  # (head, token, d_k) each
    widths = [heads * width for heads, _, width in sizes]
    columns = torch.arange(sum(widths))
    for one in (*BLOCKS, *BY_HEAD):
        if one not in modules:
            continue
        if one in BY_HEAD or hasattr(attention, "multi_query"):  # GPT-BigCode's c_attn
            each = columns.reshape(sizes[1][0], -1, sizes[1][2])  # (kv_head, q... k v, d_k)
            parts: Sequence[Tensor] = (each[:, :-2], each[:, -2], each[:, -1])
        else:
            parts = torch.split(columns, widths)
        return {letter: (modules[one], part.reshape(-1)) for letter, part in zip("qkv", parts, strict=True)}
    return {}


def chosen(weights: Mapping[str, Weight], record: Sequence[str], *, reason: Callable[[str], str]) -> frozenset[str]:
    """The weights that globs name explicitly; ``*`` alone does not count: all weights would exceed the budget.

    Raises:
        MissingTensor: a glob names weights that the model lacks; ``reason`` maps it to why.
        BudgetError: they take too many bytes.
    """
    names: set[str] = set()
    for glob in filter(_WEIGHT.search, record):
        matches = {name for name in weights if fnmatchcase(name, glob)}
        if not matches:
            raise MissingTensor(N_("This model has no {name!r}: {reason}."), name=glob, reason=Message(reason(glob)))
        names |= matches
    check_budget({}, more=sum(weights[name].nbytes for name in names))
    return frozenset(names)


def but_weights(record: Sequence[str]) -> tuple[str, ...]:
    """The globs that do not name weights."""
    return tuple(glob for glob in record if not _WEIGHT.search(glob))
