"""The attention weights of a transformers model, named and oriented as those of our own: y = x W + b.

A family stores W_Q, W_K and W_V in three modules or fused into one, as three blocks or head by head: which columns
they are is found from what the module made (:mod:`visformer.adapters.huggingface.inspection`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.recording import Weight, check_budget
from visformer.errors import N_, Message, MissingTensor
from visformer.trace.names import D_MODEL

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


def columns_in(made: Tensor, letter: str, wanted: Mapping[str, Tensor], bias: Tensor | float = 0.0) -> Tensor | None:
    """Return the columns of what a matrix made, (1, token, out), that are all heads of ``letter``; None: none are.

    Args:
        made: the output of the module.
        letter: "q", "k" or "v".
        wanted: each letter to what attention was called with, (1, head, token, d). Queries and keys may have been
            rotated by their position since, but not the first one.
        bias: added to it since, (head * d,).
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
        own = (made[0][:, columns] + bias).reshape(n, n_heads, width).transpose(0, 1)  # (head, token, d)
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
