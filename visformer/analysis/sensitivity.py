"""What a prediction is sensitive to: tokens that are hidden, and gradients, times the input or the attention.

Each explains what every row predicts or, of a classifier and with ``answer``, one number of the logits, in one row.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from visformer.analysis.answers import Answer, ask, traced
from visformer.analysis.flow import stacks_of
from visformer.analysis.needs import Floats
from visformer.errors import N_, VisformerError
from visformer.trace import Trace

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.adapters.interventions import Gradients
    from visformer.adapters.requests import Text


def masking(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Floats:
    """Drop of log p, of the word that a row predicts, when a source token is hidden everywhere; signed.

    Its key is masked in all heads of the encoder and of cross-attention, of a model without either in all heads; the
    target stays as it is (occlusion: Zeiler & Fergus 2014, section 2.1; Li et al. 2016, "Understanding Neural Networks
    through Representation Erasure", section 3). It cannot say what two tokens do together: of two that say the same,
    hiding either changes nothing.

    Args:
        model: a traced model that predicts tokens or labels.
        source: as for :meth:`visformer.adapters.base.TracedModel.trace`.
        target: the target that is predicted; None: the model's own. Of an encoder its second sentence.
        answer: an :data:`visformer.analysis.Answer`, whose logit is explained; None: what each row predicts, of a
            classifier its likeliest label.
        row: of the answer.
        to: target language.

    Returns:
        (row, source token), nats: positive where the token helps. Row q is of the word that it predicts; of an answer
        or a label there is one row. Of a decoder-only model (row, token), whose rows before a token have 0.

    Raises:
        VisformerError: the model predicts nothing, a text cannot be used, or there is no such answer or row.
        EditError: the model does not let its masks be changed.
    """
    hidden = Hidden(model, source, target, answer=answer, row=row, to=to)
    return np.stack([hidden.none - hidden((key,)) for key in range(hidden.n_keys)], axis=1)


class Hidden:
    """A forced pass in which source tokens can be hidden."""

    def __init__(
        self,
        model: "TracedModel",
        source: "Text",
        target: "Text | None",
        *,
        answer: Answer | None = None,
        row: int = -1,
        to: str | None = None,
    ) -> None:
        require_prediction(model, "masking")
        self._model, self._source, self._to = model, source, to
        self._target = own_target(model, source, target, to)
        trace, self._of = ask(model, source, self._target, answer=answer, row=row, to=to, record=("logits",))
        self.n_keys = len(trace.tokens["tgt" if model.info.kind == "decoder" else "src"])
        self._following = trace.meta["ids"].get("next")  # what a decoder-only model's last row predicts may change
        self.none = self._predicted(trace)  # log p of what each row predicts, (row,), or what is asked for, (1,); nats
        self._seen = {frozenset[int](): self.none}

    def __call__(self, keys: Iterable[int]) -> Floats:
        """Return the same with these source tokens hidden."""
        hidden = frozenset(keys)
        if hidden not in self._seen:
            self._seen[hidden] = self._predicted(self._traced(hidden))
        return self._seen[hidden]

    def _traced(self, keys: frozenset[int]) -> Trace:
        from visformer.edits import Block  # needs torch, which scores of heads do without

        where = {
            "encoder": ("encoder.*.self_attn",),
            "decoder": ("decoder.*.self_attn",),
            "encoder-decoder": ("encoder.*.self_attn", "decoder.*.cross_attn"),
        }[self._model.info.kind]
        edits = [Block(path, key=key) for key in sorted(keys) for path in where]
        return traced(self._model, self._source, self._target, to=self._to, record=("logits",), edits=edits)

    def _predicted(self, trace: Trace) -> Floats:
        logits = trace["logits"].value.astype(np.float64)  # (row, vocab)
        if self._of is not None:
            return np.array([self._of(logits)])
        return np.asarray(logits[np.arange(len(logits)), self._following] - np.logaddexp.reduce(logits, axis=-1))


def own_target(model: "TracedModel", source: "Text", target: "Text | None", to: str | None = None) -> "Text | None":
    """The target, or the translation of an encoder-decoder in its place; other models need none."""
    if target is None and model.info.kind == "encoder-decoder" and model._predicts_next:
        return model.translate(source, to=to).ids
    return target


def require_prediction(model: "TracedModel", method: str) -> None:
    """Refuse a model whose predictions cannot be read.

    Raises:
        VisformerError: it is an encoder without a head, or of a family that shows patterns only.
    """
    if model.info.kind == "encoder" and "logits" not in model._names:
        raise VisformerError(
            N_("{name} is an encoder: it predicts no next word, which {method} explains."),
            name=model.info.name,
            method=method,
        )
    if not model.available(("*.heads",)):
        raise VisformerError(
            N_("Of {name}, only patterns and logits can be read, not what lies between, which {method} needs."),
            name=model.info.name,
            method=method,
        )


def gradient_x_input(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Floats:
    """Gradient x input: the sum over dimensions of (d log p / d e_k) e_k, signed (Denil et al. 2014; Li et al. 2016).

    "Extraction of Salient Sentences from Labelled Documents", section 3; "Visualizing and Understanding Neural Models
    in NLP", section 5. e_k is the embedding of token k before its position is added, p that of the word that a row
    predicts. It cannot say what a large change of a token would do: a gradient holds for small ones.

    Args:
        model: a traced model that predicts tokens or labels.
        source: as for :func:`masking`.
        target: as for :func:`masking`.
        answer: as for :func:`masking`.
        row: as for :func:`masking`.
        to: target language.

    Returns:
        (row, source token), nats; of an answer or a label one row; of a decoder-only model (row, token).

    Raises:
        VisformerError: as for :func:`masking`, or no gradient reaches the embeddings.
    """
    require_prediction(model, "gradient")
    name = "tgt.embed" if model.info.kind == "decoder" else "src.embed"
    target = own_target(model, source, target, to)
    of = ask(model, source, target, answer=answer, row=row, to=to)[1]
    found = model.gradients(source, target, at=name, to=to, of=of or "log_probability")
    gradient, embedding = (each.astype(np.float64) for each in (found.values[name], found.trace[name].value))
    return np.asarray((gradient * embedding).sum(axis=-1))


def attention_gradient(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Floats:
    """Attention x gradient by the rules of Chefer et al. 2021, "Generic Attention-model Explainability", section 3.

    A~ = mean over heads of max(0, A dy/dA) (equation 5), with y the logit of the word that row q predicts, in a pass of
    its own for each row. Encoder: R_ii += A~ R_ii, from the identity (6). Decoder: R_qq += A~ R_qq, from the identity,
    and R_qi += A~ R_qi, from 0 (6, 7); cross-attention: R_qi += N(R_qq)^T A~ N(R_ii) (10), where N divides the rows of
    R - I by their sum, 0 / 0 = 0, and adds I (8, 9). Nothing flows from target to source. It cannot show what speaks
    against a word: negative terms are dropped.

    Of an answer or a label, y is its logit, and its row that of what its head reads, such as [CLS] (section 3.2); where
    a head reads several, as one that takes their mean, the mean of their rows, which is our extension.

    Args:
        model: a traced model that predicts tokens or labels.
        source: as for :func:`masking`.
        target: as for :func:`masking`.
        answer: as for :func:`masking`.
        row: as for :func:`masking`.
        to: target language.

    Returns:
        (row, source token), relevance without a unit: row q of its own R_qi; of a decoder-only model (row, token), row
        q of its own R_qq; of an encoder of its R_ii. Of an answer or a label one row.

    Raises:
        VisformerError: as for :func:`masking`, or no gradient reaches its weights.
        TraceError: some layers have no attention.
    """
    require_prediction(model, "attention x gradient")
    target = own_target(model, source, target, to)
    of = ask(model, source, target, answer=answer, row=row, to=to)[1]
    last = "encoder.out" if model.info.kind == "encoder" else "decoder.out"
    at = ("*.pattern",) if of is None else ("*.pattern", last)
    found = model.gradients(source, target, at=at, to=to, of=of or "logit")
    relevance = _relevance(found)  # (answer, row, token)
    if of is None:
        rows = np.arange(len(relevance))
        return relevance[rows, rows]
    read = abs(found.values[last][0]).max(axis=-1) > 0  # rows that the head reads
    return np.asarray(relevance[:, read].mean(axis=1))


def _relevance(found: "Gradients") -> Floats:
    """R_qi, of a decoder alone R_qq, of an encoder alone R_ii, of each number that was differentiated."""
    encoder, decoder, crosses = stacks_of(found.trace, "attention x gradient")
    n = len(next(iter(found.values.values())))

    def identities(side: str) -> Floats:
        return np.repeat(np.eye(len(found.trace.tokens.get(side, ())))[None], n, axis=0)

    source_own, own = identities("src"), identities("tgt")  # R_ii and R_qq, (answer, token, token)
    for layer in range(encoder):
        source_own = source_own + _weighted(found, f"encoder.{layer}.self_attn") @ source_own
    if not decoder:
        return source_own
    read = np.zeros((n, own.shape[1], source_own.shape[1]))  # R_qi
    for layer in range(decoder):
        weights = _weighted(found, f"decoder.{layer}.self_attn")
        own, read = own + weights @ own, read + weights @ read
        if crosses:
            weights = _weighted(found, f"decoder.{layer}.cross_attn")
            read = read + _normalised(own).transpose(0, 2, 1) @ weights @ _normalised(source_own)
    return read if crosses else own


def _weighted(found: "Gradients", path: str) -> Floats:
    """A~ of each row, (row, query, key)."""
    name = f"{path}.pattern"
    terms = found.values[name].astype(np.float64) * found.trace[name].value
    return np.asarray(np.maximum(0, terms).mean(axis=1))


def _normalised(relevance: Floats) -> Floats:
    """Equations 8 and 9: the rows of R - I divided by their sums, plus I."""
    eye = np.eye(relevance.shape[-1])
    rest = relevance - eye
    total = rest.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(rest, total, out=np.zeros_like(rest), where=total != 0) + eye)
