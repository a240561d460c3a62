"""One door to all methods: what each word of the target takes from each word that it reads, and how it was computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from visformer.analysis.contributions import alti, alti_plus
from visformer.analysis.flow import halves, rollout, through_encoder
from visformer.analysis.gradients import attention_gradient, gradient_x_input
from visformer.analysis.hiding import masking, own_target
from visformer.analysis.needs import Floats, blocks_of, needed
from visformer.analysis.sublayers import norm_weighted
from visformer.errors import N_, Message, VisformerError
from visformer.trace import Trace

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.adapters.ids import Text

Where = Literal["encoder", "decoder", "cross", "total"]
Row = Literal["input", "prediction"]


@dataclass(frozen=True)
class Method:
    """A method, and what it can be asked for.

    Args:
        name: its name in code.
        about: what its numbers are, with the paper; a message id.
        limit: what it cannot say, in one sentence; a message id.
        of: "heads": an attention, all heads or one; "layers": an attention; "shares": a stack or the whole model, from
            the layers' shares; "model": the whole model, which it runs.
        signed: whether numbers may be negative.
        unit: of its numbers; empty: a share or without a unit.
    """

    name: str
    about: Message
    limit: Message
    of: Literal["heads", "layers", "shares", "model"]
    signed: bool = False
    unit: str = ""


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            "raw",
            N_("The attention weight itself; of all heads, their mean."),
            N_("It cannot say what the value behind a weight holds, which may be near zero."),
            "heads",
        ),
        Method(
            "norm",
            N_("The length of the weighted, projected value vector (Kobayashi et al. 2020, section 2)."),
            N_("It cannot say what the residual stream contributes, nor whether two vectors cancel."),
            "heads",
        ),
        Method(
            "alti",
            N_("How near the sublayer's output is to each of its parts (Ferrando et al. 2022a, section 3)."),
            N_("It cannot say whether a part speaks for or against a word."),
            "layers",
        ),
        Method(
            "alti+",
            N_("ALTI of all layers, multiplied: source and target share each row (Ferrando et al. 2022b, section 3)."),
            N_("It cannot say what the feed-forward layers do, nor whether a token speaks for or against a word."),
            "shares",
        ),
        Method(
            "rollout",
            N_(
                "Mean weights of all layers, each averaged with the residual stream, multiplied (Abnar & Zuidema 2020, "
                "section 3); with cross-attention, our extension."
            ),
            N_("It cannot say what a value vector holds: a weight on a vector near zero counts like any other."),
            "shares",
        ),
        Method(
            "attention x gradient",
            N_("Weights times the gradient of the predicted word's logit, all layers (Chefer et al. 2021, section 3)."),
            N_("It cannot show what speaks against a word: negative terms are dropped."),
            "model",
        ),
        Method(
            "gradient",
            N_("Gradient of the predicted word's log-probability times the embedding (Denil et al. 2014, section 3)."),
            N_("It cannot say what a large change of a token would do: a gradient holds for small ones."),
            "model",
            signed=True,
            unit="nats",
        ),
        Method(
            "masking",
            N_("Log-probability that the predicted word loses when a token is hidden (Li et al. 2016, section 3)."),
            N_("It cannot say what two tokens do together: of two that say the same, hiding either changes nothing."),
            "model",
            signed=True,
            unit="nats",
        ),
    )
}  # fmt: skip
"""Name to method, in menu order."""

_PLACES: Mapping[str, tuple[str, ...]] = {
    "heads": ("encoder", "decoder", "cross"),
    "layers": ("encoder", "decoder", "cross"),
    "shares": ("encoder", "decoder", "cross", "total"),
    "model": ("cross", "total"),
}
RUNS: Mapping[str, Callable[..., Floats]] = {
    "attention x gradient": attention_gradient,
    "gradient": gradient_x_input,
    "masking": masking,
}
"""Methods that run the model themselves: (model, source, target, to=) to (row, source token)."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each row takes from each token that it reads.

    Args:
        value: (query, key), float64.
        query_tokens: the tokens of the rows, as displayed.
        key_tokens: the tokens of the columns; of ALTI's cross-attention the last is "residual".
        method: a key of :data:`METHODS`.
        about: what the numbers are, and what they cannot say.
        row: what ``query_tokens`` are: "prediction", the words that the rows predict, or "input", the words that they
            are given.
        stack: where it was read.
        layer: the layer, from 0; None: all.
        head: the head, from 0; None: all.
    """

    value: Floats
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    method: str
    about: str
    row: Row
    stack: Where
    layer: int | None = None
    head: int | None = None


def attribution(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    method: str,
    stack: Where = "cross",
    layer: int | None = None,
    head: int | None = None,
    to: str | None = None,
) -> Attribution:
    """Compute what each row takes from each token by one of the :data:`METHODS`, in one forced pass.

    "raw", "norm" and "alti" are of one layer, and their rows are the tokens that are read there ("input"); the other
    methods are of the whole model, and their rows are the words that are predicted. ``about`` of the result says what
    the method cannot say.

    Args:
        model: a traced model.
        source: as for :meth:`visformer.adapters.base.TracedModel.trace`.
        target: the target; None: an encoder-decoder's own translation.
        method: "raw", "norm", "alti", "alti+", "rollout", "attention x gradient", "gradient" or "masking".
        stack: "encoder", "decoder" or "cross": which attention; "alti+" and "rollout" then follow the encoder's
            layers, or say what a row takes from the target. "total", and of methods of the whole model "cross", too:
            from source tokens to predicted words; of a decoder-only model from its own tokens.
        layer: from 0, for "raw", "norm" and "alti"; None: the last.
        head: from 0, for "raw" and "norm"; None: all heads together.
        to: target language.

    Returns:
        The numbers with the tokens along both axes.

    Raises:
        VisformerError: there is no such method, or it has no such stack, layer or head in this model.
        MissingTensor: the model does not let a tensor be read that the method needs.
        TraceError: norms are elsewhere in this family.
    """
    if method not in METHODS:
        raise VisformerError(N_("method={method!r} is none of {known}."), method=method, known=", ".join(METHODS))
    target = own_target(model, source, target, to)
    of = METHODS[method].of
    places = _PLACES[of] + (("decoder",) if of == "model" and model.info.kind == "decoder" else ())
    _require(method, places, stack, layer=layer, head=head)
    if of == "model":
        return _of_model(model, source, target, METHODS[method], to)
    trace = model.trace(source, target, to=to, record=needed(model, method))
    return attribution_of(trace, method=method, stack=stack, layer=layer, head=head)


def attribution_of(
    trace: Trace, *, method: str, stack: Where = "cross", layer: int | None = None, head: int | None = None
) -> Attribution:
    """Compute :func:`attribution` from a Trace, for the methods that do not run the model themselves.

    Args:
        trace: with what :func:`needed` names for the method.
        method: "raw", "norm", "alti", "alti+" or "rollout".
        stack: as for :func:`attribution`.
        layer: as for :func:`attribution`.
        head: as for :func:`attribution`.

    Returns:
        The numbers with the tokens along both axes.

    Raises:
        VisformerError: as for :func:`attribution`, or the method runs a model.
        MissingTensor: a tensor was not recorded.
        TraceError: norms are elsewhere in this family.
    """
    known = [name for name, one in METHODS.items() if one.of != "model"]
    if method not in known:
        raise VisformerError(N_("method={method!r} is none of {known}."), method=method, known=", ".join(known))
    of = METHODS[method].of
    _require(method, _PLACES[of], stack, layer=layer, head=head)
    if of == "shares":
        return _of_shares(trace, METHODS[method], stack)
    return _of_attention(trace, METHODS[method], stack, layer, head)


def _require(method: str, places: tuple[str, ...], stack: str, *, layer: int | None, head: int | None) -> None:
    """Refuse a place that the method does not know."""
    if stack not in places:
        raise VisformerError(
            N_("stack={stack!r}: {method} can be had for {known}."), stack=stack, method=method, known=", ".join(places)
        )
    of = METHODS[method].of
    for name, given, refused in (("layer", layer, of in ("shares", "model")), ("head", head, of != "heads")):
        if given is not None and refused:
            raise VisformerError(
                N_("{name}={given}: {method} is of all of them together; leave {name} out."),
                name=name,
                given=given,
                method=method,
            )


def _of_attention(trace: Trace, method: Method, stack: Where, layer: int | None, head: int | None) -> Attribution:
    part, kind = ("decoder", "cross_attn") if stack == "cross" else (stack, "self_attn")
    layers = trace.layers(part, kind)  # type: ignore[arg-type]
    chosen = max(layers) if layer is None else layer
    if chosen not in layers:
        raise VisformerError(N_("layer={layer}: there are {known}."), layer=layer, known=", ".join(map(str, layers)))
    pattern = layers[chosen]
    if head is not None and not 0 <= head < len(pattern):
        raise VisformerError(N_("head={head}: there are {n}, counted from 0."), head=head, n=len(pattern))
    path = pattern.name.rpartition(".")[0]
    queries, keys = (trace.tokens[str(axis.side)] for axis in pattern.axes[1:])
    if method.name == "raw":
        value = pattern.value.astype(np.float64)
        value = value.mean(axis=0) if head is None else value[head]
    elif method.name == "norm":
        value = norm_weighted(trace, path, head=head)
    else:
        value = alti(trace, path)
    more = ("residual",) * (value.shape[1] - len(keys))
    return _told(method, value, queries, (*keys, *more), "input", stack, chosen, head)


def _of_shares(trace: Trace, method: Method, stack: Where) -> Attribution:
    blocks = blocks_of(trace, method.name)
    both = None not in (blocks.encoder, blocks.decoder)
    if (stack == "encoder" and blocks.encoder is None) or (stack == "decoder" and blocks.decoder is None):
        raise VisformerError(N_("stack={stack!r}: this model has none."), stack=stack)
    if stack == "encoder" or blocks.decoder is None:
        value = through_encoder(trace, partial(alti if method.name == "alti+" else halves, trace), method.name)
        return _told(method, value, trace.tokens["src"], trace.tokens["src"], "input", stack)
    src, tgt = (alti_plus if method.name == "alti+" else rollout)(trace)
    if both and stack != "decoder":
        return _told(method, src, trace.tokens["next"], trace.tokens["src"], "prediction", stack)
    return _told(method, tgt, trace.tokens["next"], trace.tokens["tgt"], "prediction", stack)


def _of_model(
    model: "TracedModel", source: "Text", target: "Text | None", method: Method, to: str | None
) -> Attribution:
    value = RUNS[method.name](model, source, target, to=to)
    trace = model.trace(source, target, to=to)
    keys = trace.tokens["tgt" if model.info.kind == "decoder" else "src"]
    return _told(method, value, trace.tokens["next"], keys, "prediction", "total")


def _told(
    method: Method,
    value: Floats,
    queries: tuple[str, ...],
    keys: tuple[str, ...],
    row: Row,
    stack: Where,
    layer: int | None = None,
    head: int | None = None,
) -> Attribution:
    about = f"{method.about} {method.limit}"
    return Attribution(value, queries, keys, method.name, about, row, stack, layer, head)
