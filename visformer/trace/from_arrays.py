"""Check arrays from any source for :meth:`visformer.trace.Trace.from_attention` and ``from_maps``; NumPy only.

TransformerLens, nnsight, BertViz and transformers hold and call attention weights in ways of their own, which are
understood without importing them.
"""

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, Message, TraceError
from visformer.trace.labels import can_be_written
from visformer.trace.tokens import cleaned

ROUNDING = 0.01
"""How far the sum of a row may be from 1, whatever its dtype is now: bfloat16 keeps three digits."""

_SPECIAL = re.compile(r"</?s>|<(pad|unk|mask|bos|eos|cls|sep)>|<\|[^|]*\|>|\[(CLS|SEP|PAD|MASK|UNK|BOS|EOS)\]", re.I)


def special_tokens(tokens: Sequence[str]) -> tuple[bool, ...]:
    """Whether each token is special, judging by the usual names: ``</s>``, ``[CLS]``, ``<|endoftext|>``."""
    return tuple(bool(_SPECIAL.fullmatch(token)) for token in tokens)


def token_texts(tokens: Any, *, name: str) -> tuple[str, ...]:
    """The tokens as displayed, without a vocabulary's marks such as Ġ, ▁ and ##.

    Raises:
        TraceError: ``tokens`` is a single text, is empty, or holds something that is not text.
    """
    if isinstance(tokens, str):
        raise TraceError(
            N_("{name} is one text, {given!r}; give a list with one text for each token."), name=name, given=tokens
        )
    if any(
        len(getattr(each, "shape", ())) > 1 for each in (tokens, *(tokens if isinstance(tokens, list | tuple) else ()))
    ):
        raise TraceError(
            N_("{name} is an array, not a list of texts: the tokens come first, then their arrays."), name=name
        )
    if not isinstance(tokens, Iterable):
        raise TraceError(N_("{name} is {given!r}; give a list with one text for each token."), name=name, given=tokens)
    texts = tuple(tokens)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TraceError(
                N_("{name}[{place}] is {given!r}, not a text; convert ids to tokens with the tokenizer."),
                name=name,
                place=place,
                given=text,
            )
    broken = next((text for text in texts if not can_be_written(text)), None)
    if broken is not None:
        raise TraceError(N_("{name} contains {given!r}, half of a surrogate pair: remove it."), name=name, given=broken)
    if not texts:
        raise TraceError(N_("{name} is empty; attention needs at least one token."), name=name)
    return cleaned(texts, special_tokens(texts))


_Mark = TypeVar("_Mark", bool, int, str | None)


def marks_of(marks: Any, default: Mapping[str, tuple[_Mark, ...]], *, name: str) -> dict[str, tuple[_Mark, ...]]:
    """The marks of the tokens of each side; ``default``: for sides that ``marks`` leaves out.

    Raises:
        TraceError: a side does not have one number or flag for each token.
    """
    result = dict(default)
    if marks is None:
        return result
    try:
        if not isinstance(marks, Mapping):
            raise TypeError(type(marks))
        if other := [side for side in marks if side not in ("src", "tgt")]:
            raise TraceError(N_('{name} has {other!r}; its keys must be "src" and "tgt".'), name=name, other=other[0])
        for side in result:
            if side in marks:
                convert: Any = {"special": _flag, "roles": _role}.get(name, operator.index)
                result[side] = tuple(convert(mark) for mark in marks[side])
    except TraceError:  # a subclass of ValueError
        raise
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise TraceError(
            N_("{name} is {given!r}; give a dict from side to a list with one entry for each token."),
            name=name,
            given=marks,
        ) from error
    return result


def _flag(mark: Any) -> bool:
    """Convert to bool; NumPy's booleans, 0 and 1 are accepted, text is not."""
    if isinstance(mark, str):
        raise TraceError(N_("special contains {given!r}: give True or False for each token."), given=mark)
    return bool(mark)


def _role(mark: Any) -> str | None:
    """Check the role of a message, or None."""
    if mark is not None and not (isinstance(mark, str) and can_be_written(mark)):
        raise TraceError(N_("roles contains {given!r}: give the role of each token's message, or None."), given=mark)
    return mark


def names_before(prefix: Any, sides: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The names of the keys before the tokens of each side.

    Raises:
        TraceError: it is no dict from "src" and "tgt", or a side's names are no texts.
    """
    if prefix is None:
        return {}
    if not isinstance(prefix, Mapping) or any(side not in sides for side in prefix):
        raise TraceError(
            N_("prefix is {given!r}; give a dict from {sides} to the names of the keys before its tokens."),
            given=prefix,
            sides=" and ".join(f'"{side}"' for side in sides if side != "next"),
        )
    return {side: token_texts(names, name=f"prefix[{side!r}]") for side, names in prefix.items()}


@dataclass(frozen=True)
class GivenLayer:
    """One layer's attention, or its map."""

    values: NDArray[np.float32]  # (head, query, key), with the keys before the tokens
    sink: NDArray[np.float32] | None = None  # (head, query), the part of each row that no token gets


def layers_of(
    patterns: Any,
    *,
    name: str,
    queries: int,
    keys: int,
    before: int | None = 0,
    sink: Any = None,
    weights: bool = True,
) -> dict[int, GivenLayer]:
    """Split an array of attention patterns, or of maps, into layers; those of a mapping keep their numbers.

    Args:
        patterns: an array (layer, head, query, key), or a sequence of arrays (head, query, key), either with a batch of
            one before the heads; NumPy's or any framework's; a mapping from numbers of layers to such arrays; or as in
            :func:`layers_in` and :func:`weights_in`. Layers may differ in heads.
        name: name of the argument, for error messages.
        queries: number of tokens that read.
        keys: number of tokens that are read.
        before: number of keys that may come before these; None: as many as there are, the same in all layers.
        sink: True: whatever a row lacks to 1, or a last column beyond the tokens; or an array (layer, head, query).
        weights: whether rows are probabilities; maps hold any finite numbers.

    Raises:
        TraceError: wrong shape, rows that are not probabilities, or maps that are not finite; the message says where.
    """
    numbers, patterns = _numbered(layers_in(patterns, name))
    _check_kind(patterns, name)
    arrays = _sequence(patterns, name)
    _check_dimensions(arrays, name)
    numbers = range(len(arrays)) if numbers is None else numbers
    sinks: Any = [sink] * len(arrays) if sink is None or sink is True else _sequence(sink, f"sink of {name}")
    if len(sinks) != len(arrays):
        raise TraceError(
            N_("sink of {name} has {given} layers, but {name} has {wanted}."),
            name=name,
            given=len(sinks),
            wanted=len(arrays),
        )
    check = _weights if weights else _map
    plain = {
        i: _alone(_plain(array, f"{name}[{i}]"), 4, f"{name}[{i}]") for i, array in zip(numbers, arrays, strict=True)
    }
    keys += _before(next(iter(plain.values())), queries, keys, before, has_column=sink is True)
    return {
        i: check(array, f"{name}[{i}]", (queries, keys), sink)
        for (i, array), sink in zip(plain.items(), sinks, strict=True)
    }


def _before(layer: NDArray[np.float32], queries: int, keys: int, before: int | None, *, has_column: bool) -> int:
    """How many keys a layer has before its tokens; ``has_column``: its last column may be that of the sink."""
    given = layer.shape[-1] - keys if layer.ndim == 3 and layer.shape[1] == queries else 0
    if before is None:
        return 0 if has_column else max(0, given)
    return before if given in (before, before + has_column) else 0


def _numbered(patterns: Any) -> tuple[Sequence[int] | None, Any]:
    """The numbers of the layers, if they are given with them, and the layers, in ascending order."""
    if isinstance(patterns, Mapping) and patterns and all(type(layer) is int and layer >= 0 for layer in patterns):
        numbers = sorted(patterns)
        return numbers, [patterns[layer] for layer in numbers]
    return None, patterns


_FEWER = {
    2: N_("{name} has shape {shape}: if it is (query, key) of one head, give {name}[None, None]."),
    3: N_(
        "{name} has shape {shape}: if it is (head, query, key) of one layer, give {name}[None]; if (layer, "
        "query, key) with one head in each layer, {name}[:, None]."
    ),
}


def _check_kind(given: Any, name: str) -> None:
    """Refuse other outputs of a transformers model than the attention of one pass."""
    if isinstance(given, Mapping):
        fields = [field for field in given if "attentions" in str(field)]
        raise TraceError(
            N_("{name} is a {kind}, a model's whole output with {fields}: give one of them, such as out.{first}."),
            name=name,
            kind=type(given).__name__,
            fields=", ".join(fields) or ", ".join(map(str, given)) or "-",
            first=fields[0] if fields else "attentions",
        )
    if _is_by_step(given):
        raise TraceError(
            N_(
                "{name} is a {kind} of {n} steps with {layers} layers each, as generate() returns them of a decoder: "
                "give it as decoder= or cross=, with the tokens as target=."
            ),
            name=name,
            kind=type(given).__name__,
            n=len(given),
            layers=len(given[0]),
        )


def _is_by_step(given: Any) -> bool:
    """Whether this is a tuple of steps with an array (batch, head, query, key), or None, for each layer."""
    first = given[0] if isinstance(given, (tuple, list)) and given else None
    is_step = isinstance(first, (tuple, list)) and bool(first)
    return is_step and all(layer is None or len(getattr(layer, "shape", ())) == 4 for layer in first or ())


def joined(steps: Any, name: str) -> list[NDArray[np.float32]] | None:
    """Join the rows that ``generate(output_attentions=True, return_dict_in_generate=True)`` returns step by step.

    The first step has the rows of what the text begins with, each other step that of the token that it has read: the
    last one of as many as there are, which without a cache are all. Keys that a sliding window has dropped get 0; empty
    places of a cache of fixed size are left out. The token that the last step has chosen has no row.

    Args:
        steps: a tuple of steps, each with an array (1, head, query, key) for each layer.
        name: name of the argument, for error messages: "cross", whose keys are the same in all steps, or "decoder".

    Returns:
        For each layer (head, query, key), float32; None: this is anything else.

    Raises:
        TraceError: there are no weights, steps differ in layers, or there are beams or several texts.
    """
    if not _is_by_step(steps):
        return None
    arrays = [
        [_one_text(_plain(layer, f"{name}[{t}][{i}]"), f"{name}[{t}][{i}]") for i, layer in enumerate(step)]
        for t, step in enumerate(steps)
    ]
    layers = [*zip(*arrays, strict=False)]
    sizes = [{(step.shape[0], step.shape[2] * (name == "cross")) for step in layer} for layer in layers]
    if any(len(step) != len(layers) for step in arrays) or any(len(each) > 1 for each in sizes):
        raise TraceError(N_("{name} is no output of one generate(): its steps differ in layers or shapes."), name=name)
    if name == "cross":
        return [np.concatenate(_new_rows(layer), axis=1) for layer in layers]
    filled = [_without_empty_places(layer) for layer in layers]
    before = max(layer[0].shape[2] - layer[0].shape[1] for layer in filled)
    return [_aligned(_new_rows(layer), max(0, before)) for layer in filled]


def _new_rows(steps: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """The rows that each step adds: all of the first one, then one each, (head, query, key)."""
    return [steps[0], *(step[:, -1:] for step in steps[1:])]


def _without_empty_places(steps: Sequence[NDArray[np.float32]]) -> Sequence[NDArray[np.float32]]:
    """Cut off places of a cache of fixed size that no token has filled yet: all steps have them, without weight."""
    read = [steps[0].shape[1] + t for t in range(len(steps))]
    is_fixed = len({step.shape[2] for step in steps}) == 1 and steps[0].shape[2] > read[0]
    if not is_fixed or any(step[..., n:].any() for step, n in zip(steps, read, strict=True)):
        return steps
    return [step[..., :n] for step, n in zip(steps, read, strict=True)]


def _aligned(rows: Sequence[NDArray[np.float32]], before: int) -> NDArray[np.float32]:
    """Join rows whose last key is the token that reads, (head, query, before + query)."""
    n = sum(each.shape[1] for each in rows)
    whole = np.zeros((len(rows[0]), n, before + n), dtype=np.float32)
    end = 0
    for each in rows:
        first, end = end, end + each.shape[1]
        width = min(each.shape[2], before + end)
        whole[:, first:end, before + end - width : before + end] = each[..., each.shape[2] - width :]
    return whole


def _check_dimensions(given: Any, name: str) -> None:
    """Check an array of all layers at once: its own shape makes a clearer message than that of its first layer."""
    shape = tuple(getattr(given, "shape", ()))
    if len(shape) in (0, 4, 5) or getattr(getattr(given, "dtype", None), "kind", "") == "O":
        return
    raise TraceError(
        _FEWER.get(
            len(shape),
            N_("{name} has shape {shape}; expected (layer, head, query, key), or (layer, 1, head, query, key)."),
        ),
        name=name,
        shape=shape,
    )


def _length(given: Any) -> int:
    """Like ``len``, but 0 for what has no length, such as a zero-dimensional array."""
    try:
        return len(given)
    except TypeError:
        return 0


def _sequence(given: Any, name: str) -> Any:
    """Return a sequence of layers."""
    is_array = hasattr(given, "__array__") or hasattr(given, "__dlpack__")
    if is_array and not hasattr(given, "__len__"):
        given = _as_array(given, name)
    if isinstance(given, Iterator):
        given = tuple(given)
    kind = getattr(getattr(given, "dtype", None), "kind", "f")
    if given is None or isinstance(given, str) or kind not in "biufcO" or _length(given) == 0:
        raise TraceError(
            N_(
                "{name} has no layers: give an array (layer, head, query, key), or a list with one for each "
                "layer. Hugging Face models return theirs with output_attentions=True and "
                'attn_implementation="eager".'
            ),
            name=name,
        )
    return given


def _weights(array: NDArray[np.float32], name: str, size: tuple[int, int], sink: Any) -> GivenLayer:
    array = _layer(array, name, (size[0], size[1]), extra=sink is True)
    if array.shape[-1] > size[1]:
        array, sink = array[..., :-1], array[..., -1]
    _check_weights(array, name)
    sums = array.sum(axis=-1, dtype=np.float64)  # (head, query)
    mass = _mass(sums, sink, name)
    message = _NOT_ONE if sink is None or sink is True else _NOT_ONE_WITH_SINK
    _check_rows(sums if mass is None else sums + mass, name, message)
    return GivenLayer(np.minimum(array, np.float32(1.0)), mass)  # rounding may exceed 1


def _map(array: NDArray[np.float32], name: str, size: tuple[int, int], _sink: None) -> GivenLayer:
    array = _layer(array, name, size)
    check_finite(array, name)
    return GivenLayer(array)


def check_finite(array: NDArray[np.float32], name: str) -> None:
    """Refuse a map (head, query, key) that holds NaN or an infinity.

    Raises:
        TraceError: the message says where.
    """
    if np.isfinite(array).all():
        return
    head, query, key = np.argwhere(~np.isfinite(array))[0].tolist()
    raise TraceError(
        N_(
            "{name}, head {head}, query {query}, key {key} (from 0) is {value} as float32: a map needs finite numbers; "
            "put 0 where there is no value."
        ),
        name=name,
        head=head,
        query=query,
        key=key,
        value=float(array[head, query, key]),
    )


def _plain(given: Any, name: str) -> NDArray[np.float32]:
    """Return the numbers of one layer."""
    given = weights_in(given, name)
    if given is None:
        raise TraceError(
            N_(
                "{name} is None. Hugging Face models return their attention with output_attentions=True and "
                'attn_implementation="eager".'
            ),
            name=name,
        )
    return _as_array(given, name)


def _one_text(array: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    """Drop the batch axis of a layer of one step of ``generate``, which must be of one text and one beam."""
    if array.ndim == 4 and len(array) == 1:
        return array.reshape(array.shape[1:])
    raise TraceError(
        N_(
            "{name} has shape {shape}, not (1, head, query, key): of several beams or texts, which change places from "
            "step to step, nothing whole is assembled. Call generate() with num_beams=1, num_return_sequences=1 and "
            "one text."
        ),
        name=name,
        shape=array.shape,
    )


def _layer(array: NDArray[np.float32], name: str, size: tuple[int, int], *, extra: bool = False) -> NDArray[np.float32]:
    """Return one layer, (head, query, key); ``extra``: it may have one more key, the sink."""
    queries, keys = size
    fits = array.shape[1:] in ((queries, keys), (queries, keys + extra))
    if array.ndim != 3 or len(array) == 0 or not fits:
        raise TraceError(
            N_(
                "{name} has shape {shape}; expected (head, query, key) = (any, {queries}, {keys}): one "
                "position for each token."
            ),
            name=name,
            shape=array.shape,
            queries=queries,
            keys=keys,
        )
    return array


def _mass(sums: NDArray[np.float64], sink: Any, name: str) -> NDArray[np.float32] | None:
    """The mass that each row of a layer gives to the sink, (head, query)."""
    if sink is None:
        return None
    if sink is True:
        return np.clip(1.0 - sums, 0.0, 1.0).astype(np.float32)
    mass = _alone(_as_array(sink, f"sink of {name}"), 3, f"sink of {name}")
    if mass.shape != sums.shape:
        raise TraceError(
            N_("sink of {name} has shape {shape}; expected (head, query) = {wanted}."),
            name=name,
            shape=mass.shape,
            wanted=sums.shape,
        )
    return mass


def _alone(array: NDArray[np.float32], ndim: int, name: str) -> NDArray[np.float32]:
    """Drop a leading batch axis, which must have size 1, from an array with ``ndim`` axes."""
    if array.ndim != ndim:
        return array
    if len(array) == 1:
        return array.reshape(array.shape[1:])
    raise TraceError(
        N_("{name} has shape {shape}: a batch of {n}. Give one sentence, layer[:1] of each layer."),
        name=name,
        shape=array.shape,
        n=len(array),
    )


def _as_array(given: Any, name: str) -> NDArray[np.float32]:
    """Convert to float32, also torch tensors on a device, with a gradient or in half precision; torch not imported."""
    for step in ("detach", "cpu", "float") if str(getattr(given, "dtype", "")).startswith("torch.") else ():
        given = getattr(given, step)() if step != "float" or given.is_floating_point() else given
    try:
        if not hasattr(given, "__array__") and hasattr(given, "__dlpack__"):
            given = np.from_dlpack(given)
        array = np.asarray(given)
        if array.dtype.kind not in "biufO":
            raise TypeError("complex numbers" if array.dtype.kind == "c" else str(array.dtype))
        with np.errstate(over="ignore"):  # beyond float32 is an infinity, which the checks refuse with its place
            return np.ascontiguousarray(array, dtype=np.float32)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise TraceError(N_("{name} is not an array of numbers: {reason}"), name=name, reason=error) from error


def _check_weights(array: NDArray[np.float32], name: str) -> None:
    """Check that all weights are from 0 to 1."""
    inside = np.isfinite(array) & (array >= 0) & (array <= 1 + ROUNDING)
    if inside.all():
        return
    head, query, key = np.argwhere(~inside)[0].tolist()
    where = {"name": name, "head": head, "query": query, "key": key}
    if np.isnan(array[head, query, key]):
        raise TraceError(
            N_(
                "{name}, head {head}, query {query}, key {key} (from 0) is NaN. A query whose keys are all "
                "masked gets NaN from a softmax over −∞: set such a row to 0."
            ),
            **where,
        )
    raise TraceError(
        N_(
            "{name}, head {head}, query {query}, key {key} (from 0) is {value:.4g}, not a probability: give "
            "the weights after the softmax, not the scores."
        ),
        **where,
        value=float(array[head, query, key]),
    )


_NOT_ONE = N_(
    "{name}, head {head}, query {query} (from 0) sums to {sum:.4f}, not to 1: rows must be queries and columns "
    "keys; a model in training mode applies dropout; for one with attention sinks, give sink=True."
)
_NOT_ONE_WITH_SINK = N_(
    "{name}, head {head}, query {query} (from 0): the row and its sink sum to {sum:.4f} together, not to 1."
)


def _check_rows(sums: NDArray[np.float64], name: str, message: Message) -> None:
    """Check that each row sums to 1 with its sink, or to 0 if everything is masked."""
    wrong = (np.abs(sums - 1) > ROUNDING) & (sums != 0)
    if wrong.any():
        head, query = np.argwhere(wrong)[0].tolist()
        raise TraceError(message, name=name, head=head, query=query, sum=float(sums[head, query]))


# Other libraries ------------------------------------------------------------------------------------------------------

_HOOK = re.compile(r"(blocks|encoder|decoder)\.(\d+)\.(attn|cross_attn)\.hook_pattern")
_STACKS = {"decoder": ("blocks.attn", "decoder.attn"), "cross": ("decoder.cross_attn",)}
_ENCODER = ("blocks.attn", "encoder.attn")

_OUR_NAMES = {
    "attention": "patterns",
    "attentions": "patterns",
    "encoder_attention": "patterns",
    "encoder_attentions": "patterns",
    "decoder_attention": "decoder",
    "decoder_attentions": "decoder",
    "cross_attention": "cross",
    "cross_attentions": "cross",
    "encoder_tokens": "tokens",
    "decoder_tokens": "target",
}
"""What BertViz and transformers call the arguments of ``Trace.from_attention``."""


def refuse_others(names: Iterable[str]) -> None:
    """Refuse arguments that ``Trace.from_attention`` does not have.

    Raises:
        TraceError: the name is BertViz's or transformers'; the message says what it is called here.
        TypeError: any other name, as Python itself raises it.
    """
    for name in names:
        if name not in _OUR_NAMES:
            raise TypeError(f"Trace.from_attention() got an unexpected keyword argument {name!r}")
        raise TraceError(
            N_(
                "{given}= is called {name}= here: from_attention(tokens, patterns) for an encoder, target= and "
                "decoder= for a decoder, and cross= for cross-attention."
            ),
            given=name,
            name=_OUR_NAMES[name],
        )


def layers_in(given: Any, name: str) -> Any:
    """Return the layers that another library's container holds; anything else as it is.

    Args:
        given: a cache of TransformerLens, by whose names its layers are found; a saved proxy of nnsight.
        name: name of the argument, for error messages; it says which stack of a cache is meant.

    Raises:
        TraceError: the cache has no patterns of this stack, or not those of all layers from the first on.
    """
    given = _saved(given)
    names = [str(key) for key in given.keys()] if hasattr(given, "keys") else []  # noqa: SIM118 (no mapping)
    if not any("hook_" in each for each in names):
        return given
    stacks = _STACKS.get(name, _ENCODER)
    found = {
        int(match[2]): each for each in names if (match := _HOOK.fullmatch(each)) and f"{match[1]}.{match[3]}" in stacks
    }
    if sorted(found) != list(range(len(found))) or not found:
        raise TraceError(
            N_(
                "{name} is a cache with the patterns of {layers} for this argument; it needs those of all layers from "
                'the first on, such as "blocks.0.attn.hook_pattern". Caches keep them with names_filter=lambda name: '
                'name.endswith("hook_pattern"). For some layers only, give a dict: {{3: cache["pattern", 3]}}.'
            ),
            name=name,
            layers=", ".join(found[layer] for layer in sorted(found)) or "-",
        )
    return [given[found[layer]] for layer in sorted(found)]


def weights_in(layer: Any, name: str) -> Any:
    """Return a layer's weights from a saved proxy, or from an attention's whole output; anything else as it is.

    Args:
        layer: an array, or (attn_output, attn_weights) as torch.nn.MultiheadAttention and transformers return it.
        name: name of the layer, for error messages.

    Raises:
        TraceError: the output holds no weights of each head.
    """
    layer = _saved(layer)
    parts = [_saved(part) for part in layer] if isinstance(layer, tuple) else []
    sizes = [len(getattr(part, "shape", ())) for part in parts]
    if not parts or max(sizes) < 3:
        return layer
    if len(parts) > 1 and sizes[0] < max(sizes) and sizes.count(max(sizes)) == 1:
        return parts[sizes.index(max(sizes))]
    raise TraceError(
        N_(
            "{name} is an output with the shapes {shapes}, without the weights of each head, (1, head, query, key): "
            'transformers returns them with attn_implementation="eager", torch.nn.MultiheadAttention with '
            "average_attn_weights=False."
        ),
        name=name,
        shapes=", ".join(str(tuple(getattr(part, "shape", ()))) if part is not None else "None" for part in parts),
    )


def _saved(given: Any) -> Any:
    """Return what a proxy has saved: its ``value``."""
    value = getattr(given, "value", None)
    return value if hasattr(value, "shape") or isinstance(value, tuple | list | Mapping) else given
