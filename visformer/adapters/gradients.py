"""Gradients of what each row predicts, with respect to values inside the model, in one forward pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from visformer.adapters.recording import check_budget
from visformer.errors import N_, VisformerError
from visformer.trace import Trace

Of = Literal["log_probability", "logit"]


@dataclass(frozen=True)
class Gradients:
    """What :meth:`visformer.adapters.base.TracedModel.gradients` returns.

    Args:
        trace: the pass itself, with the tensors that were asked for and the logits.
        values: name to (row, *shape of the tensor), float32: the gradient of what row ``row`` predicts.
    """

    trace: Trace
    values: Mapping[str, NDArray[np.float32]]


class Watch:
    """An edit that changes no value, and keeps the tensors of some names; the graph begins with the embeddings."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.seen: dict[str, Tensor] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Keep the tensor."""
        if name.endswith(".embed"):
            tensor = tensor.detach().requires_grad_()  # also where all weights are frozen
        if name in self._names:
            self.seen[name] = tensor
        return tensor


def gradients_of(trace: Trace, seen: Mapping[str, Tensor], wanted: Sequence[str], of: Of) -> Gradients:
    """Go back once from each row's prediction.

    Raises:
        BudgetError: the gradients would be too large.
        VisformerError: a tensor does not take part in the prediction.
    """
    following = torch.tensor(trace.meta["ids"]["next"])
    check_budget({name: (len(following), *seen[name].shape[1:]) for name in wanted if name in seen})
    for name in wanted:
        if name not in seen or not seen[name].requires_grad:
            raise _severed(name)
    logits = seen["logits"][0].float()  # (row, vocab)
    rows = torch.arange(len(following), device=logits.device)
    predicted = (logits if of == "logit" else logits.log_softmax(dim=-1))[rows, following.to(logits.device)]
    values = {name: np.empty((len(rows), *seen[name].shape[1:]), dtype=np.float32) for name in wanted}
    for row, value in enumerate(predicted):
        found = torch.autograd.grad(value, [seen[name] for name in wanted], retain_graph=True, allow_unused=True)
        for name, gradient in zip(wanted, found, strict=True):
            if gradient is None:
                raise _severed(name)
            values[name][row] = gradient[0].float().cpu().numpy()
    return Gradients(trace, values)


def _severed(name: str) -> VisformerError:
    return VisformerError(
        N_(
            "No gradient reaches {name}: this model shows a copy of it from which it does not continue. Choose a "
            "method without gradients."
        ),
        name=name,
    )
