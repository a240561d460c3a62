"""AdamW (Loshchilov and Hutter 2019) without ``torch.optim``, which imports torch's compiler.

That takes a second, and makes a folder for the code that it compiles wherever temporary files are, or fails if it
cannot.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn

_BETAS = (0.9, 0.98)
_EPSILON = 1e-8
_DECAY = 0.01


class AdamW:
    """Steps of Adam with decoupled weight decay, for all weights alike."""

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        """Begin with averages of zero."""
        self._weights = [*weights]
        self._means = [torch.zeros_like(weight) for weight in self._weights]
        self._squares = [torch.zeros_like(weight) for weight in self._weights]
        self._steps = 0

    def step(self, rate: float) -> None:
        """Take one step along the gradients, and drop them; ``rate``: the learning rate."""
        self._steps += 1
        (of_mean, of_square), t = _BETAS, self._steps
        size, spread = rate / (1 - of_mean**t), math.sqrt(1 - of_square**t)  # the averages began with zero
        with torch.no_grad():
            for weight, mean, square in zip(self._weights, self._means, self._squares, strict=True):
                assert weight.grad is not None
                mean.lerp_(weight.grad, 1 - of_mean)
                square.mul_(of_square).addcmul_(weight.grad, weight.grad, value=1 - of_square)
                weight.mul_(1 - rate * _DECAY)
                weight.addcdiv_(mean, square.sqrt().div_(spread).add_(_EPSILON), value=-size)
                weight.grad = None
