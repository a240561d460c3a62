"""The same texts again and again, each time with other edits, or with gradients: what the analyses are made of.

Each run of a batch has edits of its own, so that a text under a hundred edits is a few passes. Only what rows predict
leaves a run: log-probabilities, or gradients of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from visformer.adapters.batching import Batches, run_all, side_by_side
from visformer.adapters.editing import require_changes
from visformer.adapters.info import ModelInfo
from visformer.adapters.recording import Passes, Recorder, matching
from visformer.adapters.requests import Encoded, Request, Text, checked_ids
from visformer.edits import Edit
from visformer.edits.base import _Edit
from visformer.errors import N_, EditError, TraceError, VisformerError
from visformer.model.masks import pad
from visformer.system import cancellation
from visformer.trace import Trace
from visformer.trace.names import Axis, axes_of

Floats = NDArray[np.float32]


class Reruns(ABC):
    """Methods of a model for the analyses: they read what rows predict under edits, many runs in one pass."""

    info: ModelInfo
    _names: tuple[str, ...]
    _known: tuple[int, int]
    _fixed: frozenset[str]
    _passes: Passes

    def forced(
        self, texts: Iterable[Text], targets: Iterable[Text | None] | None = None, *, to: str | None = None
    ) -> Iterator[Encoded]:
        """Encode texts with what their rows have to predict, for :meth:`log_probabilities` and :meth:`gate_gradients`.

        Args:
            texts: any iterable, as for ``trace_many``.
            targets: one for each text, or None: of an encoder-decoder its own greedy output.
            to: target language of all, as for ``translate``.

        Yields:
            Each text as ids. Of a decoder-only model that is given a target, only the target's tokens count.

        Raises:
            VisformerError: a text cannot be used, its index is in the message; or the model predicts no next token.
        """
        self._require_predictions()
        self._require_language(to)

        def prepare(row: tuple[Any, ...]) -> Encoded:
            text, target = row
            encoded = self._encode(self._request(text, target, to=to, record=(), edits=()))
            if self.info.kind == "decoder" and target is not None:
                alone = self._encode(self._request(text, to=to, record=(), edits=()))
                return replace(encoded, first=len(alone.begin) - 1)
            return encoded

        def run(batch: Sequence[Encoded]) -> list[Encoded]:
            open_ends = [each for each in batch if each.src and each.forced is None]
            if not open_ends:
                return list(batch)
            with self._passes.open(), torch.inference_mode():
                own = iter(self._greedy(open_ends))
            return [
                replace(each, begin=each.begin[:1], forced=[*each.begin[1:], *next(own)[0]])
                if each.src and each.forced is None
                else each
                for each in batch
            ]

        return run_all(side_by_side(texts, targets=targets), prepare, run, self._batches(frozenset(), (), batch=None))

    def read_again(self, trace: Trace) -> Encoded:
        """Return the texts of a Trace of this model, for :meth:`log_probabilities` and :meth:`gate_gradients`.

        Args:
            trace: as :meth:`trace` returned it.

        Returns:
            Its ids, with what every row predicts.

        Raises:
            TextError: an id is out of range: the Trace is another model's.
            TraceError: it has no ids, or not of both sides: it is not of a model of this kind.
            VisformerError: the model predicts no next token.
        """
        self._require_predictions()
        ids: Mapping[str, list[int]] = trace.meta.get("ids", {})
        sides = {side: checked_ids(ids.get(side, []), self._known[side != "src"], least=0) for side in _SIDES}
        if not sides["tgt"] or (self.info.kind != "decoder" and not sides["src"]):
            raise TraceError(N_("This trace does not hold the token ids that {name} reads."), name=self.info.name)
        request = Request(sides["src"] or sides["tgt"], None, None, trace.meta.get("to"), (), ())
        if self.info.kind == "decoder":
            return Encoded(request, [], sides["tgt"], sides["next"])
        segments = trace.meta.get("segments") or [0] * len(sides["src"])
        return Encoded(request, sides["src"], sides["tgt"][:1], sides["next"], segments)

    def log_probabilities(
        self,
        runs: Iterable[tuple[Encoded, Edit | Sequence[Edit]]],
        *,
        every: bool = False,
        batch: int | None = None,
    ) -> Iterator[Floats]:
        """Run texts, each under edits of its own, several in one pass.

        Args:
            runs: texts from :meth:`forced` or :meth:`read_again`, and for each its edits.
            every: whether to return the log-probabilities of all tokens, not only of those that the rows predict.
            batch: number of consecutive runs in one pass; None: see ``trace_many``.

        Yields:
            (row,) float32, natural logarithms, of what each row predicts; with ``every`` (row, vocab).

        Raises:
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            VisformerError: see :meth:`trace_many`.
        """

        def prepare(run: tuple[Encoded, Edit | Sequence[Edit]]) -> Encoded:
            encoded, edits = run
            return replace(encoded, request=replace(encoded.request, edits=self._edits(edits)))

        def run(texts: Sequence[Encoded]) -> list[Floats]:
            visit = _RowRecorder([each.request.edits for each in texts], sides=_sides(texts), axes=self._axes)
            with self._passes.open(), torch.inference_mode():
                found = (_of_every if every else _of_predicted)(self._forward(texts, visit), texts)
            for each in texts:
                require_changes(each.request.edits)
            return [each.cpu().numpy() for each in found]

        return run_all(runs, prepare, run, self._together(frozenset(), batch))

    def gate_gradients(
        self, runs: Iterable[tuple[Encoded, Sequence[int]]], names: Sequence[str], *, batch: int | None = None
    ) -> Iterator[dict[str, Floats]]:
        """Multiply each value of some tensors by the gradient of what rows predict: the gradient of a gate at 1.

        Minus that is to first order what setting the value to 0 changes.

        Args:
            runs: texts from :meth:`forced` or :meth:`read_again`, and for each the rows whose log-probabilities are
                summed.
            names: full names of tensors.
            batch: number of consecutive runs in one pass; None: see ``trace_many``.

        Yields:
            Name to the products, shaped like the tensor in a Trace, float32, nats.

        Raises:
            EditError: the model shows such a tensor but does not continue from it.
            VisformerError: see :meth:`trace_many`.
        """
        for name in names or ["names=[]"]:
            if name not in self._names or name in self._fixed:
                raise EditError(N_("{name} is no tensor of this model that can be changed."), name=name)

        def run(texts: Sequence[tuple[Encoded, Sequence[int]]]) -> list[dict[str, Floats]]:
            encoded = [each for each, _ in texts]
            visit = _GateRecorder(names, sides=_sides(encoded), axes=self._axes)
            with self._passes.open(), torch.inference_mode(mode=False), torch.enable_grad():
                predicted = _of_predicted(self._forward(encoded, visit), encoded)
                wanted = [each[list(rows)] for each, (_, rows) in zip(predicted, texts, strict=True)]
                found = torch.autograd.grad(torch.cat(wanted).sum(), [visit.gates[name] for name in names])
            return visit.cut(dict(zip(names, found, strict=True)))

        how: Batches[Any] = self._together(frozenset(self._names), batch)
        lengths = how.lengths
        return run_all(runs, lambda each: each, run, replace(how, lengths=lambda each: lengths(each[0])))

    def recorded(self, texts: Iterable[Encoded], names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run texts from :meth:`forced` as they are, and read some tensors, without the labels of a Trace.

        Args:
            texts: from :meth:`forced` or :meth:`read_again`.
            names: full names of tensors.

        Yields:
            Name to its values, shaped as in a Trace.

        Raises:
            TraceError: there is no tensor of a name.
            VisformerError: see :meth:`trace_many`.
        """
        matching(self._names, tuple(names))

        def run(batch: Sequence[Encoded]) -> list[dict[str, NDArray[Any]]]:
            visit = Recorder(frozenset(names), (), sides=_sides(batch), copied=True, axes=self._axes)
            with self._passes.open(), torch.inference_mode():
                self._forward(batch, visit)
            return [{name: tensor.value for name, tensor in row.items()} for row in visit.rows]

        return run_all(texts, lambda each: each, run, self._together(frozenset(names), None))

    def _together(self, held: frozenset[str], batch: int | None) -> Batches[Encoded]:
        """Which runs share a pass: where padding is not exact, those that are equally long."""
        how = self._batches(held, (), batch=batch)
        return how if self._pads_exactly() else replace(how, size=batch, padded=False)

    def _require_predictions(self) -> None:
        if self.info.kind == "encoder":
            raise VisformerError(
                N_("{name} is an encoder: it predicts no next token, so there is no effect on one."),
                name=self.info.name,
            )

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        """The axes of a tensor of this model."""
        return axes_of(name)

    @abstractmethod
    def _forward(self, batch: Sequence[Encoded], visit: Recorder) -> Tensor:
        """Run texts with what their rows predict; return the logits, (batch, row, vocab), padded at the end."""

    # Implemented by TracedModel
    @abstractmethod
    def _encode(self, request: Request) -> Encoded: ...

    @abstractmethod
    def _greedy(self, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]: ...

    @abstractmethod
    def _request(
        self, source: Text, target: Text | None = None, *, pair: Text | None = None, **checked: Any
    ) -> Request: ...

    @abstractmethod
    def _batches(
        self, wanted: frozenset[str], edits: Sequence[Edit], *, batch: int | None, padded: bool = True
    ) -> Batches[Encoded]: ...

    @abstractmethod
    def _edits(self, given: Edit | Sequence[Edit]) -> tuple[Edit, ...]: ...

    @abstractmethod
    def _require_language(self, to: str | None) -> None: ...

    @abstractmethod
    def _pads_exactly(self) -> bool: ...


_SIDES = ("src", "tgt", "next")


class _RowRecorder(Recorder):
    """A session's ``visit`` that applies to each text of a batch edits of its own, and records nothing."""

    def __init__(self, edits: Sequence[Sequence[Edit]], **about: Any) -> None:
        """``edits``: those of each text; the other arguments are the :class:`Recorder`'s."""
        super().__init__(frozenset(), list(dict.fromkeys(chain.from_iterable(edits))), **about)
        self._of_row = edits

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Return ``tensor`` with the edits of each text."""
        cancellation.check()
        self.visited.add(name)
        reaching = {edit for edit in self.edits if not isinstance(edit, _Edit) or edit.applies(name)}
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


class _GateRecorder(Recorder):
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

    def cut(self, gradients: Mapping[str, Tensor]) -> list[dict[str, Floats]]:
        """Return those of each text, without padding."""
        return [
            {name: each[row][self._own(row, self._axes(name) or ())].float().cpu().numpy() for name, each in
             gradients.items()}
            for row in range(len(self.rows))
        ]  # fmt: skip


def _sides(texts: Sequence[Encoded]) -> list[dict[str, list[int]]]:
    return [{"src": each.src, "tgt": each.tgt} if each.src else {"tgt": each.tgt} for each in texts]


def _of_predicted(logits: Tensor, texts: Sequence[Encoded]) -> list[Tensor]:
    """For each text the log-probabilities of what its rows predict, (row,), of logits (batch, row, vocab)."""
    ids = pad([each.predicted for each in texts]).to(logits.device)  # (batch, row)
    own = logits[:, : ids.shape[1]].float()
    found = own.gather(2, ids[..., None])[..., 0] - own.logsumexp(dim=2)
    return [each[: len(text.predicted)] for each, text in zip(found, texts, strict=True)]


def _of_every(logits: Tensor, texts: Sequence[Encoded]) -> list[Tensor]:
    """For each text the log-probabilities of all tokens, (row, vocab)."""
    found = logits.float().log_softmax(dim=-1)
    return [each[: len(text.tgt)] for each, text in zip(found, texts, strict=True)]
