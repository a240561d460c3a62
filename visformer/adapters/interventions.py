"""Many runs of texts, each with edits of its own in one pass, and gradients of what rows predict.

This is what the analyses are made of: a text under a hundred edits is a few passes, and only what rows predict leaves
a pass: log-probabilities, or gradients of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from visformer.adapters.recording import Recorder, check_budget
from visformer.adapters.requests import Encoded
from visformer.edits.base import CheckedEdit
from visformer.errors import N_, VisformerError
from visformer.model.masks import pad
from visformer.system import cancellation
from visformer.trace import Trace

Floats = NDArray[np.float32]
Of = Literal["log_probability", "logit"]
Scalar = Callable[[Tensor], Tensor]
"""A number of the logits, (row, vocab) float32, or (label,) of a classifier."""


@dataclass(frozen=True)
class Gradients:
    """What :meth:`visformer.adapters.base.TracedModel.gradients` returns.

    Args:
        trace: the pass itself, with the tensors that were asked for and the logits.
        values: name to (row, *shape of the tensor), float32: the gradient of what row ``row`` predicts; of a number of
            one's own there is one row.
    """

    trace: Trace
    values: Mapping[str, NDArray[np.float32]]


class TensorCollector:
    """An edit that changes no value, and keeps the tensors of some names; the graph begins with embedding or pixels."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.seen: dict[str, Tensor] = {}
        self._begun: set[str] = set()  # sides

    by_row = by_head = False

    def applies(self, name: str) -> bool:
        """Every tensor is looked at."""
        return True

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Keep the tensor."""
        side, _, part = name.partition(".")
        if part in ("pixels", "embed") and side not in self._begun:
            self._begun.add(side)
            tensor = tensor.detach().requires_grad_()  # also where all weights are frozen
        if name in self._names:
            self.seen[name] = tensor
        return tensor


def gradients_of(trace: Trace, seen: Mapping[str, Tensor], wanted: Sequence[str], of: Of | Scalar) -> Gradients:
    """Go back once from each row's prediction, or from a number of one's own.

    Raises:
        BudgetError: the gradients would be too large.
        VisformerError: a tensor does not take part in the prediction, or ``of`` returns no number.
    """
    numbers = _numbers(trace, seen["logits"][0].float(), of)
    check_budget({name: (len(numbers), *seen[name].shape[1:]) for name in wanted if name in seen})
    for name in wanted:
        if name not in seen or not seen[name].requires_grad:
            raise _severed(name)
    values = {name: np.empty((len(numbers), *seen[name].shape[1:]), dtype=np.float32) for name in wanted}
    for row, value in enumerate(numbers):
        found = torch.autograd.grad(value, [seen[name] for name in wanted], retain_graph=True, allow_unused=True)
        for name, gradient in zip(wanted, found, strict=True):
            if gradient is None:
                raise _severed(name)
            values[name][row] = gradient[0].float().cpu().numpy()
    return Gradients(trace, values)


def _numbers(trace: Trace, logits: Tensor, of: Of | Scalar) -> Tensor:
    """Return what is differentiated: (row,), of what the rows predict, or a single number."""
    if callable(of):
        number = of(logits)
        if not isinstance(number, Tensor) or number.numel() != 1 or not number.requires_grad:
            shape = tuple(number.shape) if isinstance(number, Tensor) else type(number).__name__
            raise VisformerError(
                N_("of= returned {given}: return a single number that is computed from the logits, a torch tensor."),
                given=shape,
            )
        return number.reshape(1)
    following = torch.tensor(trace.meta["ids"]["next"], device=logits.device)
    rows = torch.arange(len(following), device=logits.device)
    return (logits if of == "logit" else logits.log_softmax(dim=-1))[rows, following]


def _severed(name: str) -> VisformerError:
    return VisformerError(
        N_(
            "No gradient reaches {name}: this model shows a copy of it from which it does not continue. Choose a "
            "method without gradients."
        ),
        name=name,
    )


class RowRecorder(Recorder):
    """A session's ``visit`` that applies to each text of a batch edits of its own, and records nothing."""

    def __init__(self, edits: Sequence[Sequence[CheckedEdit]], **about: Any) -> None:
        """``edits``: those of each text; the other arguments are the :class:`Recorder`'s."""
        super().__init__(frozenset(), list(dict.fromkeys(chain.from_iterable(edits))), **about)
        self._of_row = edits

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Return ``tensor`` with the edits of each text."""
        cancellation.check()
        self.visited.add(name)
        reaching = {edit for edit in self.edits if edit.applies(name)}
        if not reaching:
            return tensor
        axes = self._axes(name) or ()
        result = each = tensor
        if tensor.ndim == len(axes) or tensor.shape[0] != len(self.rows):  # positions, which all texts share
            result = each = tensor.expand(len(self.rows), *tensor.shape[-len(axes) :])
        for row, edits in enumerate(self._of_row):
            own = (slice(row, row + 1), *self._own(row, axes))
            for edit in filter(reaching.__contains__, edits):
                given = result[own]
                changed = self._applied(edit, name, given)
                if changed is not given:
                    result = each.clone() if result is each else result
                    result[own] = changed
        return tensor if result is each else result  # the same one where a function has changed nothing


class GateRecorder(Recorder):
    """A session's ``visit`` that multiplies every value of some tensors by a gate of 1."""

    def __init__(self, names: Sequence[str], **about: Any) -> None:
        super().__init__(frozenset(), (), **about)
        self._gated = frozenset(names)
        self.gates: dict[str, Tensor] = {}

    def wants(self, name: str) -> bool:
        """See :class:`Recorder`."""
        return name in self._gated

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Return ``tensor`` times its gate."""
        cancellation.check()
        self.visited.add(name)
        if name not in self._gated:
            return tensor
        self.gates[name] = torch.ones_like(tensor, requires_grad=True)
        return tensor * self.gates[name]


def sides_of(texts: Sequence[Encoded]) -> list[dict[str, list[int]]]:
    """Return the ids of each text by side, for a :class:`Recorder`."""
    return [{side: ids for side, ids in (("src", each.src), ("tgt", each.tgt)) if ids} for each in texts]


def of_predicted(logits: Tensor, texts: Sequence[Encoded]) -> list[Tensor]:
    """Return for each text the log-probabilities of what its rows predict, (row,), of logits (batch, row, vocab)."""
    ids = pad([each.predicted for each in texts]).to(logits.device)  # (batch, row)
    own = logits[:, : ids.shape[1]].float()
    found = own.gather(2, ids[..., None])[..., 0] - own.logsumexp(dim=2)
    return [each[: len(text.predicted)] for each, text in zip(found, texts, strict=True)]
