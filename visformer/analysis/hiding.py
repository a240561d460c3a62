"""What is lost when a source token is hidden: the effect on what the model predicts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from visformer.analysis.needs import Floats
from visformer.errors import N_, VisformerError
from visformer.trace import Trace

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text


def masking(model: "TracedModel", source: "Text", target: "Text | None" = None, *, to: str | None = None) -> Floats:
    """Drop of log p, of the word that a row predicts, when a source token is hidden everywhere; signed.

    Its key is masked in all heads of the encoder and of cross-attention, of a decoder-only model in all heads; the
    target stays as it is (occlusion: Zeiler & Fergus 2014, section 2.1; Li et al. 2016, "Understanding Neural Networks
    through Representation Erasure", section 3). It cannot say what two tokens do together: of two that say the same,
    hiding either changes nothing.

    Args:
        model: a traced model that predicts tokens.
        source: as for :meth:`visformer.adapters.base.TracedModel.trace`.
        target: the target that is predicted; None: the model's own.
        to: target language.

    Returns:
        (row, source token), nats: positive where the token helps. Row q is of the word that it predicts. Of a
        decoder-only model (row, token), whose rows before a token have 0.

    Raises:
        VisformerError: the model predicts no tokens, or a text cannot be used.
        EditError: the model does not let its masks be changed.
    """
    hidden = Hidden(model, source, target, to=to)
    return np.stack([hidden.none - hidden((key,)) for key in range(hidden.n_keys)], axis=1)


class Hidden:
    """A forced pass in which source tokens can be hidden."""

    def __init__(self, model: "TracedModel", source: "Text", target: "Text | None", *, to: str | None = None) -> None:
        require_prediction(model, "masking")
        self._model, self._source, self._to = model, source, to
        self._target = own_target(model, source, target, to)
        trace = self._traced(frozenset())
        self.n_keys = len(trace.tokens["tgt" if model.info.kind == "decoder" else "src"])
        self._following = trace.meta["ids"]["next"]  # what a decoder-only model's last row predicts may change
        self.none = self._predicted(trace)  # log p of what each row predicts, (row,), nats
        self._seen = {frozenset[int](): self.none}

    def __call__(self, keys: Iterable[int]) -> Floats:
        """Return log p of what each row predicts, (row,), nats, with these source tokens hidden."""
        hidden = frozenset(keys)
        if hidden not in self._seen:
            self._seen[hidden] = self._predicted(self._traced(hidden))
        return self._seen[hidden]

    def _traced(self, keys: frozenset[int]) -> Trace:
        from visformer.edits import Block  # needs torch, which scores of heads do without

        decoder = self._model.info.kind == "decoder"
        where = ("decoder.*.self_attn",) if decoder else ("encoder.*.self_attn", "decoder.*.cross_attn")
        edits = [Block(path, key=key) for key in sorted(keys) for path in where]
        return self._model.trace(self._source, self._target, to=self._to, record=("logits",), edits=edits)

    def _predicted(self, trace: Trace) -> Floats:
        logits = trace["logits"].value.astype(np.float64)  # (row, vocab)
        return np.asarray(logits[np.arange(len(logits)), self._following] - np.logaddexp.reduce(logits, axis=-1))


def own_target(model: "TracedModel", source: "Text", target: "Text | None", to: str | None = None) -> "Text | None":
    """The target, or the translation of an encoder-decoder in its place; a decoder-only model needs none."""
    if target is None and model.info.kind == "encoder-decoder":
        return model.translate(source, to=to).ids
    return target


def require_prediction(model: "TracedModel", method: str) -> None:
    """Refuse a model whose next words cannot be read.

    Raises:
        VisformerError: it is an encoder, or of a family that shows patterns only.
    """
    if model.info.kind == "encoder":
        raise VisformerError(
            N_("{name} is an encoder: it predicts no next word, which {method} explains."),
            name=model.info.name,
            method=method,
        )
    if not model.available(("logits",)):
        raise VisformerError(
            N_("Of {name}, only patterns can be read, not the words that it predicts, which {method} explains."),
            name=model.info.name,
            method=method,
        )
