"""Muon (Jordan et al. 2024): steps along the orthogonalised momentum of each weight matrix.

On this task it overtook Adam within the first epoch (docs/adr/0008). torch.optim.Muon always computes in bfloat16,
which is many times slower on CPUs without bf16 arithmetic; here the precision is an option.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # the quintic of the reference implementation


def orthogonalised(matrices: Tensor, *, steps: int = 5) -> Tensor:
    """Return the matrices with singular values near 1, by Newton-Schulz iteration.

    Args:
        matrices: (matrix, row, column), with row <= column for speed.
        steps: iterations; five bring singular values to about 0.7 .. 1.2.
    """
    a, b, c = _NEWTON_SCHULZ
    x: Tensor = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Muon for two-dimensional weights, with updates of Adam's size (Liu et al. 2025) and decoupled weight decay.

    Args:
        weights: matrices of any shape.
        lr: step size, relative to updates of Adam's size.
        momentum: decay of the average gradient at each step, in [0, 1).
        weight_decay: times ``lr``, the fraction that each step takes off the weights.
        dtype: precision of the Newton-Schulz iteration.
    """

    def __init__(
        self,
        weights: Iterable[nn.Parameter],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(list(weights), {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the weights once; ``closure`` is not used."""
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[nn.Parameter]] = {}
            for weight in group["params"]:
                by_shape.setdefault((min(weight.shape), max(weight.shape)), []).append(weight)
            for (_, width), weights in by_shape.items():
                momenta = torch.stack([self._nesterov(w, group["momentum"]) for w in weights])  # (matrix, row, column)
                updates = orthogonalised(momenta.to(self.dtype)).to(momenta.dtype)
                for weight, update in zip(weights, updates * (0.2 * width**0.5), strict=True):
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                    weight.add_(_wide(update, weight.shape[0] > weight.shape[1]), alpha=-group["lr"])

    def _nesterov(self, weight: nn.Parameter, momentum: float) -> Tensor:
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        assert weight.grad is not None
        average = state["momentum"].lerp_(weight.grad, 1 - momentum)
        return _wide(weight.grad.lerp(average, momentum), weight.shape[0] > weight.shape[1])


def _wide(matrix: Tensor, transpose: bool) -> Tensor:
    return matrix.mT if transpose else matrix
