"""Anybody's attention arrays, checked: what :meth:`visformer.trace.Trace.from_attention` is given, NumPy only."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, TraceError

ROUNDING = 0.01
"""A row may miss the sum of 1 by so much: bfloat16 keeps three digits."""

_SPECIAL = re.compile(r"</?s>|<(pad|unk|mask|bos|eos|cls|sep)>|<\|[^|]*\|>|\[(CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]", re.I)


def special_tokens(tokens: Sequence[str]) -> tuple[bool, ...]:
    """Which tokens stand for no text, by names that tokenizers give them: ``</s>``, ``[CLS]``, ``<|endoftext|>``."""
    return tuple(bool(_SPECIAL.fullmatch(token)) for token in tokens)


def token_texts(tokens: Any, *, name: str) -> tuple[str, ...]:
    """The tokens as a tuple of text.

    Args:
        tokens: a sequence of str.
        name: of the argument, for the message.

    Raises:
        TraceError: one text instead of several, none at all, or something that is not text.
    """
    if isinstance(tokens, str):
        raise TraceError(
            N_("{name} is one text, {given!r}; give a list with one text for each token."), name=name, given=tokens
        )
    texts = tuple(tokens)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TraceError(
                N_("{name}[{place}] is {given!r}, which is no text; ids become tokens in the tokenizer."),
                name=name,
                place=place,
                given=text,
            )
    if not texts:
        raise TraceError(N_("{name} is empty; attention needs at least one token."), name=name)
    return texts


def layers_of(patterns: Any, *, name: str, queries: int, keys: int) -> tuple[NDArray[np.float32], ...]:
    """The patterns of each layer, (head, query, key), float32.

    Args:
        patterns: an array (layer, head, query, key), or a sequence of arrays (head, query, key), either with a batch of
            one before the heads; NumPy's or any framework's.
        name: of the argument, for the messages.
        queries: tokens that read.
        keys: tokens that are read.

    Raises:
        TraceError: another shape, or rows that are no probabilities; the message says where.
    """
    if patterns is None or isinstance(patterns, str) or not hasattr(patterns, "__len__") or len(patterns) == 0:
        raise TraceError(
            N_("{name} holds no layers: give an array (layer, head, query, key), or a list with one for each layer."),
            name=name,
        )
    layers = tuple(_layer(layer, f"{name}[{i}]", queries, keys) for i, layer in enumerate(patterns))
    for i, layer in enumerate(layers):
        if len(layer) != len(layers[0]):
            raise TraceError(
                N_("{name}[{i}] has {given} heads, but {name}[0] has {wanted}; all layers need as many."),
                name=name,
                i=i,
                given=len(layer),
                wanted=len(layers[0]),
            )
    return layers


def _layer(given: Any, name: str, queries: int, keys: int) -> NDArray[np.float32]:
    if given is None:
        raise TraceError(
            N_(
                "{name} is None. Hugging Face models give their attention with "
                'output_attentions=True and attn_implementation="eager".'
            ),
            name=name,
        )
    array = _as_array(given, name)
    if array.ndim == 4 and len(array) == 1:  # a batch of one sentence
        array = array[0]
    if array.ndim == 4:
        raise TraceError(
            N_("{name} has shape {shape}: a batch of {n}. Give one sentence: [layer[:1] for layer in patterns]."),
            name=name,
            shape=array.shape,
            n=len(array),
        )
    if array.ndim != 3 or len(array) == 0 or array.shape[1:] != (queries, keys):
        raise TraceError(
            N_(
                "{name} has shape {shape}, but wanted is (head, query, key) = (any, {queries}, {keys}): "
                "a place for each token."
            ),
            name=name,
            shape=array.shape,
            queries=queries,
            keys=keys,
        )
    _check_rows(array, name)
    return np.minimum(array, np.float32(1.0))  # what rounding put above 1


def _as_array(given: Any, name: str) -> NDArray[np.float32]:
    """As float32; tensors of torch, also on a device, with a gradient or as bfloat16, without importing torch."""
    for step in ("detach", "cpu"):
        given = getattr(given, step)() if hasattr(given, step) else given
    try:
        array = np.asarray(given.float() if str(getattr(given, "dtype", "")) == "torch.bfloat16" else given)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return np.ascontiguousarray(array, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise TraceError(N_("{name} is no array of numbers: {reason}"), name=name, reason=error) from error


def _check_rows(array: NDArray[np.float32], name: str) -> None:
    """Each row sums to 1, or is 0 where everything is masked."""
    inside = np.isfinite(array) & (array >= 0) & (array <= 1 + ROUNDING)
    if not inside.all():
        head, query, key = np.argwhere(~inside)[0].tolist()
        raise TraceError(
            N_(
                "{name}, head {head}, query {query}, key {key} (from 0) is {value:.4g}, no probability: "
                "give the weights after the softmax, not the scores."
            ),
            name=name,
            head=head,
            query=query,
            key=key,
            value=float(array[head, query, key]),
        )
    sums = array.sum(axis=-1, dtype=np.float64)  # (head, query)
    wrong = (np.abs(sums - 1) > ROUNDING) & (sums != 0)
    if wrong.any():
        head, query = np.argwhere(wrong)[0].tolist()
        raise TraceError(
            N_(
                "{name}, head {head}, query {query} (from 0) sums to {sum:.4f}, not to 1: "
                "rows are queries, columns keys, and a model in training mode drops weights out."
            ),
            name=name,
            head=head,
            query=query,
            sum=float(sums[head, query]),
        )
