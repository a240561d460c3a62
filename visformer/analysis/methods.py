"""All methods behind one function: what each word of the target takes from each word that it reads, and how they do.

Deletion and insertion test whether the tokens that a method names matter (Petsiuk et al. 2018, section 3).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from visformer.analysis.answers import Answer, ask, traced
from visformer.analysis.flow import alti, alti_plus, halves, norm_weighted, rollout, through_encoder
from visformer.analysis.intervals import SEED, counts, percentiles
from visformer.analysis.needs import Floats, blocks_of
from visformer.analysis.sensitivity import Hidden, attention_gradient, gradient_x_input, masking, own_target
from visformer.errors import N_, Message, ShapeError, TraceError, VisformerError
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, StackName

if TYPE_CHECKING:  # torch; torch; pandas, which takes long
    import pandas as pd

    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text


Row = Literal["input", "prediction", "answer"]


@dataclass(frozen=True, kw_only=True)
class Method:
    r"""All that is said of a method, in code and on screen: to add one, add its entry to :data:`METHODS`.

    Args:
        name: its name in code.
        title: its name on screen, with what it is of.
        about: what its numbers are, with the paper; a message id.
        limit: what it cannot say, in one sentence; a message id.
        formula: in LaTeX, with symbols as ``\sym{name}{tex}``, which have colours.
        plain: the formula in a line of text, for the note below a picture.
        paper: its citation, which is shown beside the formula; a message id.
        of: "heads": an attention, all heads or one; "layers": an attention; "shares": a stack or the whole model, from
            the layers' shares; "model": the whole model, which it runs.
        compute: its function. Of "heads" and "layers": (trace, path) to (query, key), of "heads" also with head=; of
            "shares": trace to R_src and R_tgt; of "model": (model, source, target, answer=, row=, to=) to (row, source
            token).
        share: of "shares": what a row of one attention consists of, (trace, path) to (query, key).
        needs: the ends of the names of what a Trace has to record, of an attention or, after "<", of its layer.
        signed: whether numbers may be negative.
        unit: of its numbers; empty: a share or without a unit.
        are_lengths: whether they are lengths, which a picture divides by the sum of their row.
        hides: whether it hides tokens, which is what :func:`deletion` and :func:`insertion` do.
        split_title: title of the picture beside it that tells source from prefix; None: there is none.
    """

    name: str
    title: Message
    about: Message
    limit: Message
    formula: str
    plain: str
    paper: Message
    of: Literal["heads", "layers", "shares", "model"]
    compute: Callable[..., Any]
    share: Callable[[Trace, str], Floats] | None = None
    needs: tuple[str, ...] = ()
    signed: bool = False
    unit: str = ""
    are_lengths: bool = False
    hides: bool = False
    split_title: Message | None = None


def mean_weights(trace: Trace, path: str, *, head: int | None = None) -> Floats:
    """Read the attention weights, (query, key); ``head``: of one head; None: the mean of all."""
    pattern = trace[f"{path}.pattern"].value.astype(np.float64)
    return np.asarray(pattern.mean(axis=0) if head is None else pattern[head])


_TERMS = ("pattern", "v", "w_o")
_PARTS = (
    *(*_TERMS, "b_o", "<resid_pre", "<resid_self", "<resid_cross"),
    *("<norm_self.gamma", "<norm_self.beta", "<norm_cross.gamma", "<norm_cross.beta"),
)

METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="raw",
            title=N_("weights, mean of the heads of the last layer"),
            about=N_("The attention weight itself; of all heads, their mean."),
            limit=N_("It cannot say what the value behind a weight holds, which may be near zero."),
            formula=r"\tfrac{1}{H} \textstyle\sum_h \sym{pattern}{\alpha_{h,qk}}",
            plain="α[q,k]",
            paper=N_("Vaswani et al. 2017, § 3.2"),
            of="heads",
            compute=mean_weights,
            needs=("pattern",),
        ),
        Method(
            name="norm",
            title=N_("weights × values, last layer"),
            about=N_("The length of the weighted, projected value vector (Kobayashi et al. 2020, section 2)."),
            limit=N_("It cannot say what the residual stream contributes, nor whether two vectors cancel."),
            formula=r"\| \textstyle\sum_h \sym{pattern}{\alpha_{h,qk}}\, \sym{v}{v_{h,k}}\, W_{O,h} \|",
            plain="‖Σₕ αₕ[q,k] vₕ[k] W_O,h‖",
            paper=N_("Kobayashi et al. 2020, § 2"),
            of="heads",
            compute=norm_weighted,
            needs=_TERMS,
            are_lengths=True,
        ),
        Method(
            name="alti",
            title=N_("ALTI, last layer"),
            about=N_("How near the sublayer's output is to each of its parts (Ferrando et al. 2022a, section 3)."),
            limit=N_("It cannot say whether a part speaks for or against a word."),
            formula=r"\max(0,\ \| \sym{out}{y_q} \|_1 - \| \sym{out}{y_q} - \sym{v}{T_{qk}} \|_1)",
            plain="max(0, ‖y‖₁ − ‖y − T[q,k]‖₁)",
            paper=N_("Ferrando et al. 2022a, § 3"),
            of="layers",
            compute=alti,
            needs=_PARTS,
        ),
        Method(
            name="alti+",
            title=N_("ALTI+, all layers"),
            about=N_(
                "ALTI of all layers, multiplied: source and target share each row (Ferrando et al. 2022b, section 3)."
            ),
            limit=N_(
                "It cannot say what the feed-forward layers do, nor whether a token speaks for or against a word."
            ),
            formula=r"\textstyle\prod_l \sym{pattern}{C_l}, \quad \sym{pattern}{C_l} = \mathrm{ALTI}_l",
            plain="∏ ALTI",
            paper=N_("Ferrando et al. 2022b, § 3"),
            of="shares",
            compute=alti_plus,
            share=alti,
            needs=_PARTS,
            split_title=N_("where each word comes from, by ALTI+"),
        ),
        Method(
            name="rollout",
            title=N_("rollout, all layers"),
            about=N_(
                "Mean weights of all layers, each averaged with the residual stream, multiplied (Abnar & Zuidema 2020, "
                "section 3); with cross-attention, our extension."
            ),
            limit=N_("It cannot say what a value vector holds: a weight on a vector near zero counts like any other."),
            formula=r"\textstyle\prod_l \tfrac{1}{2} (\sym{pattern}{A_l} + I)",
            plain="∏ (A + I) / 2",
            paper=N_("Abnar & Zuidema 2020, § 3"),
            of="shares",
            compute=rollout,
            share=halves,
            needs=("pattern",),
        ),
        Method(
            name="attention x gradient",
            title=N_("attention × gradient, all layers"),
            about=N_(
                "Weights times the gradient of the predicted word's logit, all layers (Chefer et al. 2021, section 3)."
            ),
            limit=N_("It cannot show what speaks against a word: negative terms are dropped."),
            formula=r"\max(0,\ \sym{pattern}{A} \odot \partial y / \partial \sym{pattern}{A})",
            plain="max(0, A · ∂y/∂A)",
            paper=N_("Chefer et al. 2021, § 3"),
            of="model",
            compute=attention_gradient,
        ),
        Method(
            name="gradient",
            title=N_("gradient × input, nats"),
            about=N_(
                "Gradient of the predicted word's log-probability times the embedding (Denil et al. 2014, section 3)."
            ),
            limit=N_("It cannot say what a large change of a token would do: a gradient holds for small ones."),
            formula=r"\textstyle\sum (\partial \log p / \partial \sym{embed}{e_k}) \cdot \sym{embed}{e_k}",
            plain="Σ (∂ log p / ∂e) · e",
            paper=N_("Denil et al. 2014, § 3"),
            of="model",
            compute=gradient_x_input,
            signed=True,
            unit="nats",
        ),
        Method(
            name="masking",
            title=N_("hiding the token, nats"),
            about=N_(
                "Log-probability that the predicted word loses when a token is hidden (Li et al. 2016, section 3)."
            ),
            limit=N_(
                "It cannot say what two tokens do together: of two that say the same, hiding either changes nothing."
            ),
            formula=r"\log p - \log p\,(\cdot \mid \sym{pattern}{\alpha_{\cdot k}} = 0)",
            plain="log p − log p∖k",
            paper=N_("Li et al. 2016, § 3"),
            of="model",
            compute=masking,
            signed=True,
            unit="nats",
            hides=True,
        ),
    )
}
"""Name to method, in menu order."""


def needed(model: "TracedModel", method: str, path: str = "*") -> tuple[str, ...]:
    """Name what a Trace has to record for a method: ``model.trace(text, record=needed(model, "alti"))``.

    Args:
        model: a traced model.
        method: "parts", as of :func:`parts`, or a method; those that run the model record by themselves.
        path: path of an attention, such as "decoder.0.cross_attn"; "*": all.

    Returns:
        Glob patterns for ``record``, without those for which the model has nothing, such as biases.

    Raises:
        TraceError: the method is none of these.
    """
    needs = {name: one.needs for name, one in METHODS.items() if one.needs} | {"parts": _PARTS}
    if method not in needs:
        raise TraceError(N_("{method!r} is none of the methods {known}."), method=method, known=", ".join(needs))
    return model.available(globs(needs[method], path))


def globs(needs: Iterable[str], path: str = "*") -> tuple[str, ...]:
    """Return glob patterns for what methods need, without repetition; ``path``: of an attention; "*": all."""
    layer = path.rpartition(".")[0] or path
    return tuple(dict.fromkeys(f"{layer}.{end[1:]}" if end[0] == "<" else f"{path}.{end}" for end in needs))


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each row takes from each token that it reads.

    Args:
        value: (query, key), float64.
        query_tokens: the tokens of the rows, as displayed.
        key_tokens: the tokens of the columns; of ALTI's cross-attention the last is "residual".
        method: a key of :data:`METHODS`.
        about: what the numbers are, and what they cannot say.
        row: what ``query_tokens`` are: "prediction", the words that the rows predict, "input", the words that they
            are given, or "answer", what was asked for.
        stack: where it was read; of the whole model the attention between the same tokens.
        layer: the layer, from 0; None: all.
        head: the head, from 0; None: all.
    """

    value: Floats
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    method: str
    about: str
    row: Row
    stack: StackName
    layer: int | None = None
    head: int | None = None


def attribution(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    method: str,
    stack: StackName | None = None,
    layer: int | None = None,
    head: int | None = None,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Attribution:
    """Compute what each row takes from each token by one of the :data:`METHODS`, in one forced pass.

    "raw", "norm" and "alti" are of one layer, and their rows are the tokens that are read there ("input"); the other
    methods are of the whole model, and their rows are the words that are predicted. ``about`` of the result says what
    the method cannot say.

    Args:
        model: a traced model.
        source: as for :meth:`visformer.adapters.base.TracedModel.trace`.
        target: the target; None: an encoder-decoder's own translation. Of an encoder its second sentence.
        method: a key of :data:`METHODS`.
        stack: which attention, such as "decoder.cross_attn"; "alti+" and "rollout" then follow the encoder's layers, or
            say what a row takes from the target. None: the last that the model has, in which methods of the whole
            model go from source tokens to predicted words; of a decoder-only model from its own tokens.
        layer: from 0, for "raw", "norm" and "alti"; None: the last.
        head: from 0, for "raw" and "norm"; None: all heads together.
        answer: an :data:`visformer.analysis.Answer`, whose logit the methods that run the model explain; None: what
            each row predicts, of a classifier its likeliest label.
        row: of the answer.
        to: target language.

    Returns:
        The numbers with the tokens along both axes.

    Raises:
        VisformerError: there is no such method, or it has no such stack, layer or head in this model, or asks nothing.
        MissingTensor: the model does not let a tensor be read that the method needs.
        TraceError: norms are elsewhere in this family.
    """
    if method not in METHODS:
        raise VisformerError(N_("method={method!r} is none of {known}."), method=method, known=", ".join(METHODS))
    one = METHODS[method]
    if one.of != "model" and answer is not None:
        raise VisformerError(
            N_("answer={answer!r}: {method} is the same whatever is predicted; leave answer out."),
            answer=answer,
            method=method,
        )
    there = [each.name for each in STACKS if each.of_kind(model.info.kind)]
    where = _place(one, there[-1:] if one.of == "model" else there, stack, layer=layer, head=head)
    target = own_target(model, source, target, to)
    if one.of == "model":
        trace, of = ask(model, source, target, answer=answer, row=row, to=to)
        value = one.compute(model, source, target, answer=answer, row=row, to=to)
        keys = trace.tokens["tgt" if model.info.kind == "decoder" else "src"]
        rows = trace.tokens["next"] if of is None else (of.name,)
        return _told(one, value, rows, keys, "prediction" if of is None else "answer", where)
    trace = traced(model, source, target, to=to, record=needed(model, method))
    return attribution_of(trace, method=method, stack=where, layer=layer, head=head)


def attribution_of(
    trace: Trace, *, method: str, stack: StackName | None = None, layer: int | None = None, head: int | None = None
) -> Attribution:
    """Compute :func:`attribution` from a Trace, for the methods that do not run the model themselves.

    Args:
        trace: with what :func:`needed` names for the method.
        method: a key of :data:`METHODS` whose ``of`` is not "model".
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
    there = [each.name for each in STACKS if each.in_trace(trace)]
    where = _place(METHODS[method], there, stack, layer=layer, head=head)
    if METHODS[method].of == "shares":
        return _of_shares(trace, METHODS[method], where)
    return _of_attention(trace, METHODS[method], where, layer, head)


def _place(
    method: Method, there: Sequence[str], stack: str | None, *, layer: int | None, head: int | None
) -> StackName:
    """Return the attention that is meant, and refuse a place that the method does not know; ``there``: those it has."""
    if not there or (stack is not None and stack not in there):
        raise VisformerError(
            N_("stack={stack!r}: {method} can be had for {known}."),
            stack=stack,
            method=method.name,
            known=", ".join(there) or "-",
        )
    for name, given, refused in (
        ("layer", layer, method.of in ("shares", "model")),
        ("head", head, method.of != "heads"),
    ):
        if given is not None and refused:
            raise VisformerError(
                N_("{name}={given}: {method} is of all of them together; leave {name} out."),
                name=name,
                given=given,
                method=method.name,
            )
    return next(name for name in reversed(there) if stack in (None, name))  # type: ignore[misc]


def _of_attention(trace: Trace, method: Method, stack: StackName, layer: int | None, head: int | None) -> Attribution:
    layers = trace.layers(stack)
    chosen = max(layers) if layer is None else layer
    if chosen not in layers:
        raise VisformerError(N_("layer={layer}: there are {known}."), layer=layer, known=", ".join(map(str, layers)))
    pattern = layers[chosen]
    if head is not None and not 0 <= head < len(pattern):
        raise VisformerError(N_("head={head}: there are {n}, counted from 0."), head=head, n=len(pattern))
    path = pattern.name.rpartition(".")[0]
    queries, keys = (trace.tokens[str(axis.side)] for axis in pattern.axes[1:])
    value = method.compute(trace, path, **({} if head is None else {"head": head}))
    more = ("residual",) * (value.shape[1] - len(keys))
    return _told(method, value, queries, (*keys, *more), "input", stack, chosen, head)


def _of_shares(trace: Trace, method: Method, stack: StackName) -> Attribution:
    blocks_of(trace, method.name)
    if stack == "encoder.self_attn":
        assert method.share is not None
        value = through_encoder(trace, partial(method.share, trace), method.name)
        return _told(method, value, trace.tokens["src"], trace.tokens["src"], "input", stack)
    src, tgt = method.compute(trace)
    value, side = (src, "src") if stack == "decoder.cross_attn" else (tgt, "tgt")
    return _told(method, value, trace.tokens["next"], trace.tokens[side], "prediction", stack)


def _told(
    method: Method,
    value: Floats,
    queries: tuple[str, ...],
    keys: tuple[str, ...],
    row: Row,
    stack: StackName,
    layer: int | None = None,
    head: int | None = None,
) -> Attribution:
    about = f"{method.about} {method.limit}"
    return Attribution(value, queries, keys, method.name, about, row, stack, layer, head)


def deletion(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    values: ArrayLike,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Floats:
    """Log p of each row's word, or what is asked for, while its source tokens are hidden, greatest value first.

    "RISE: Randomized Input Sampling for Explanation of Black-box Models", section 3. Tokens are hidden as by
    :func:`masking`, which therefore wins by construction: it has measured the first step of every curve. A curve
    cannot say why a token matters, and sentences with hidden tokens are none that the model was trained on.

    Args:
        model: a traced model that predicts tokens or labels.
        source: as for :func:`masking`.
        target: as for :func:`masking`.
        values: (row, source token), of any method; ties are hidden from left to right.
        answer: as for :func:`masking`.
        row: as for :func:`masking`.
        to: target language.

    Returns:
        (row, source token + 1), nats: column n with n tokens hidden. The steeper it falls, the better.

    Raises:
        ShapeError: ``values`` has another shape.
        VisformerError: as for :func:`masking`.
        EditError: as for :func:`masking`.
    """
    return _curves(Hidden(model, source, target, answer=answer, row=row, to=to), values, inserted=False)


def insertion(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    values: ArrayLike,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> Floats:
    """Log p of each row's word, or what is asked for, while its source tokens, all hidden, come back, greatest first.

    See :func:`deletion`, also for what it cannot say; :func:`masking`, which hides tokens in the same way, has an
    advantage by construction here, too.

    Args:
        model: as for :func:`deletion`.
        source: as for :func:`deletion`.
        target: as for :func:`deletion`.
        values: as for :func:`deletion`.
        answer: as for :func:`deletion`.
        row: as for :func:`deletion`.
        to: as for :func:`deletion`.

    Returns:
        (row, source token + 1), nats: column n with n tokens back. The steeper it rises, the better.

    Raises:
        ShapeError: ``values`` has another shape.
        VisformerError: as for :func:`masking`.
        EditError: as for :func:`masking`.
    """
    return _curves(Hidden(model, source, target, answer=answer, row=row, to=to), values, inserted=True)


def _curves(hidden: Hidden, values: ArrayLike, *, inserted: bool) -> Floats:
    given, wanted = np.asarray(values, dtype=np.float64), (len(hidden.none), hidden.n_keys)
    if given.shape != wanted:
        raise ShapeError(
            N_("values has the shape {given}; rows and source tokens are {wanted}."), given=given.shape, wanted=wanted
        )
    orders = np.argsort(-given, axis=1, kind="stable")  # (row, rank)
    curves = np.empty((wanted[0], wanted[1] + 1))
    for row, n in np.ndindex(curves.shape):
        curves[row, n] = hidden(orders[row, n:] if inserted else orders[row, :n])[row]
    return curves


def curve_scores(
    model: "TracedModel", pairs: "Sequence[tuple[Text, Text | None]]", *, method: str, to: str | None = None
) -> "pd.DataFrame":
    """Mean height of both curves over many pairs, for the values of a method.

    Args:
        model: an encoder-decoder that predicts tokens.
        pairs: sources and targets; None: the model's own translation.
        method: a method of :func:`attribution`, of one layer the last and all heads together; or "random", a random
            order of the tokens, the same in each run: the baseline.
        to: target language.

    Returns:
        A row for "deletion", where lower is better, and one for "insertion", where higher is. Columns: "method",
        "curve", "n" (pairs), "height" (nats a word: mean of the curve over its steps, of a pair's rows, of the pairs),
        "low" and "high" (95 %, 1,000 resamples of the pairs).

    Raises:
        VisformerError: as for :func:`deletion` and :func:`attribution`.
    """
    import pandas as pd

    random = np.random.default_rng(SEED)
    heights: dict[str, list[float]] = {"deletion": [], "insertion": []}
    for source, target in pairs:
        hidden = Hidden(model, source, target, to=to)
        if method == "random":
            values = random.random((len(hidden.none), hidden.n_keys))
        else:
            values = attribution(model, source, target, method=method, to=to).value[:, : hidden.n_keys]
        for curve, all_of_it in heights.items():
            all_of_it.append(float(_curves(hidden, values, inserted=curve == "insertion").mean()))
    rows = []
    for curve, each in heights.items():
        drawn = counts(len(each)) @ np.asarray(each) / len(each)
        low, high = percentiles(drawn)
        rows.append(
            {"method": method, "curve": curve, "n": len(each), "height": float(np.mean(each)), "low": low, "high": high}
        )
    return pd.DataFrame(rows)
