"""The Trace: everything that was computed on one sentence, frozen, labelled, NumPy only.

An array can only be reached together with the tokens along its axes, and both are checked against each other when
the Trace is made: a picture cannot be labelled with the wrong sentence.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors

from visformer.errors import N_, Message, MissingTensor, TraceError
from visformer.system.files import write_whole
from visformer.trace import display
from visformer.trace.from_arrays import layers_of, marks_of, special_tokens, token_texts
from visformer.trace.labels import check_labels
from visformer.trace.names import Axis, axes_of

_SHORT = 60
"""Characters of a side in a Trace's ``repr``."""


@dataclass(frozen=True, eq=False)
class TracedTensor:
    """One array and what stands along its axes.

    Args:
        name: as in :mod:`visformer.trace.names`.
        value: read-only; float32, or bool for a mask.
        axes: one for each dimension of ``value``.
    """

    name: str
    value: NDArray[Any]
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if self.value.ndim != len(self.axes):
            raise TraceError(
                N_("{name} has shape {shape}, but {n} axes are named: {axes}."),
                name=self.name,
                shape=self.value.shape,
                n=len(self.axes),
                axes=", ".join(axis.name for axis in self.axes),
            )
        view = self.value.view()
        view.flags.writeable = False
        object.__setattr__(self, "value", view)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.value.shape

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        """Plain NumPy indexing into ``value``; the labels stay behind."""
        return self.value[index]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What a model computed on one sentence (and its target).

    Args:
        tokens: side ("src", "tgt", "next") to the tokens as shown.
        special: side to which of them stand for no text.
        words: side to the number of the word that each belongs to.
        tensors: name to tensor.
        params: name to the weights used, on request.
        meta: JSON values: "model", "source", "target", "to", "forced" and more. "missing" lists pairs of a glob and
            the reason why the model has no tensor of such a name.

    Raises:
        TraceError: labels and arrays, or labels among each other, differ in length.
    """

    tokens: Mapping[str, tuple[str, ...]]
    special: Mapping[str, tuple[bool, ...]]
    words: Mapping[str, tuple[int, ...]]
    tensors: Mapping[str, TracedTensor]
    params: Mapping[str, TracedTensor] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, MappingProxyType(dict(getattr(self, each.name))))
        for side, tokens in self.tokens.items():
            for label, values in (("special", self.special), ("words", self.words)):
                if len(values.get(side, ())) != len(tokens):
                    raise TraceError(
                        N_("{label}[{side!r}] has {given} entries for {wanted} tokens."),
                        label=label,
                        side=side,
                        given=len(values.get(side, ())),
                        wanted=len(tokens),
                    )
        if len(self.tokens.get("next", ())) != len(self.tokens.get("tgt", ())):
            raise TraceError(N_('tokens["next"] must have one entry for each of tokens["tgt"].'))
        for tensor in (*self.tensors.values(), *self.params.values()):
            self._check_labels(tensor)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(dict(getattr(self, each.name)) for each in fields(self))  # no proxy is pickled

    def _check_labels(self, tensor: TracedTensor) -> None:
        for size, axis in zip(tensor.shape, tensor.axes, strict=True):
            if axis.side is not None and size != len(self.tokens.get(axis.side, ())):
                raise TraceError(
                    N_("{name}: its {axis} axis has {size} entries, but there are {tokens} {side} tokens."),
                    name=tensor.name,
                    axis=axis.name,
                    size=size,
                    tokens=len(self.tokens.get(axis.side, ())),
                    side=axis.side,
                )

    def names(self) -> tuple[str, ...]:
        """The tensors that were recorded, in the order in which they were computed.

        Returns:
            Names such as "encoder.0.self_attn.pattern".
        """
        return tuple(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __getitem__(self, name: str) -> TracedTensor:
        """The tensor of this name.

        Raises:
            MissingTensor: it is not here; the message says why, and what there is.
        """
        if name in self.tensors:
            return self.tensors[name]
        reason = N_("there is no tensor of that name") if axes_of(name) is None else self._why_missing(name)
        raise MissingTensor(
            N_("No {name!r} in this trace: {reason}. Recorded: {names}."),
            name=name,
            reason=reason,
            names=", ".join(self.tensors) or "-",
        )

    def lacks(self, name: str) -> Message | None:
        """Why the model has no tensor of this name.

        Args:
            name: of a tensor, such as "encoder.0.self_attn.q".

        Returns:
            The reason; None where nothing is said against it.
        """
        for glob, reason in self.meta.get("missing", ()):
            if fnmatchcase(name, glob):
                return Message(reason)
        return None

    def _why_missing(self, name: str) -> Message:
        """What the adapter says of it; else that it was not asked for."""
        not_asked = N_("it was not recorded (request it with record=...), or the model has no such layer")
        return self.lacks(name) or not_asked

    def layers(
        self, stack: Literal["encoder", "decoder"], attention: Literal["self_attn", "cross_attn"] = "self_attn"
    ) -> tuple[TracedTensor, ...]:
        """The patterns of one kind of attention, (head, query, key) each, from the first layer on.

        Args:
            stack: "encoder" or "decoder".
            attention: "self_attn", or "cross_attn" of the decoder.

        Returns:
            One tensor for each layer, not copied; each row of a pattern sums to 1.

        Raises:
            MissingTensor: no layer's pattern of this kind was recorded.
        """
        found: list[TracedTensor] = []
        while (name := f"{stack}.{len(found)}.{attention}.pattern") in self.tensors:
            found.append(self.tensors[name])
        return tuple(found) or (self[name],)  # raises, and says why

    def stack(
        self, stack: Literal["encoder", "decoder"], attention: Literal["self_attn", "cross_attn"] = "self_attn"
    ) -> TracedTensor:
        """The patterns of :meth:`layers` as one array (layer, head, query, key), copied.

        Args:
            stack: "encoder" or "decoder".
            attention: "self_attn", or "cross_attn" of the decoder.

        Returns:
            Float32, with the axes (layer, head, query, key).

        Raises:
            MissingTensor: no layer's pattern of this kind was recorded.
        """
        layers = self.layers(stack, attention)
        value = np.stack([tensor.value for tensor in layers])
        return TracedTensor(f"{stack}.{attention}.pattern", value, (Axis("layer"), *layers[0].axes))

    @classmethod
    def from_attention(
        cls,
        tokens: Sequence[str] | None = None,
        patterns: Any = None,
        *,
        target: Sequence[str] | None = None,
        decoder: Any = None,
        cross: Any = None,
        sink: Any = None,
        following: Sequence[str] | None = None,
        special: Mapping[str, Sequence[bool]] | None = None,
        words: Mapping[str, Sequence[int]] | None = None,
    ) -> "Trace":
        """A Trace of attention that was computed elsewhere, by any framework.

        An encoder gives ``tokens`` and ``patterns``, a decoder-only model ``target`` and ``decoder``, an
        encoder-decoder all of them and ``cross``. Each row is a probability. What arrays are taken for:

        - 4 dimensions: (layer, head, query, key); 5: (layer, 1, head, query, key), with a batch of one.
        - 3: (head, query, key) of one layer, which ``[array]`` or ``array[None]`` is the stack of.
        - 2: (query, key) of one head, which ``array[None, None]`` is the stack of.
        - A sequence has one array for each layer: (head, query, key), or (1, head, query, key).

        Args:
            tokens: what the encoder reads; a vocabulary's marks (ĠThe, ▁The, ##ing) are not shown.
            patterns: of the encoder's self-attention.
            target: what the decoder reads.
            decoder: patterns of the decoder's self-attention; they need not be causal.
            cross: patterns of the cross-attention: queries are ``target``, keys ``tokens``.
            sink: of attention whose rows sum to less than 1. True: the rest is the sink's, or what stands in a last
                column that no token has. Or its mass (layer, head, query). Where several stacks are given, True for all
                of them, or a dict with "patterns", "decoder" or "cross".
            following: what each token of ``target`` predicts; None: not known.
            special: "src" and "tgt" to which tokens stand for no text; by default by their names, such as ``</s>``.
            words: "src" and "tgt" to the number of the word of each token; by default each is one.

        Returns:
            A Trace with patterns only; every picture of attention can be drawn of it.

        Raises:
            TraceError: an array that does not fit its tokens, or is no probability; the message says where.
        """
        sides = {
            side: token_texts(given, name=name)
            for side, name, given in (("src", "tokens", tokens), ("tgt", "target", target))
            if given is not None
        }
        given = {"encoder.self_attn": patterns, "decoder.self_attn": decoder, "decoder.cross_attn": cross}
        arguments = dict(zip(given, ("patterns", "decoder", "cross"), strict=True))
        sinks = _sinks(sink, [arguments[kind] for kind, arrays in given.items() if arrays is not None])
        tensors = {
            tensor.name: tensor
            for kind, arrays in given.items()
            if arrays is not None
            for tensor in _patterns(kind, arrays, sides, arguments[kind], sinks.get(arguments[kind]))
        }
        if not tensors:
            raise TraceError(
                N_(
                    "No attention was given: use from_attention(tokens, patterns), or target= and decoder=. "
                    "Hugging Face models return theirs with output_attentions=True and "
                    'attn_implementation="eager".'
                )
            )
        flags = marks_of(special, {side: special_tokens(texts) for side, texts in sides.items()}, name="special")
        numbers = marks_of(words, {side: tuple(range(len(texts))) for side, texts in sides.items()}, name="words")
        if "tgt" in sides:
            sides["next"] = ("",) * len(sides["tgt"])
            flags["next"], numbers["next"] = flags["tgt"], numbers["tgt"]
        if following is not None:
            sides["next"] = token_texts(following, name="following")
            if len(sides["next"]) != len(sides.get("tgt", ())):
                raise TraceError(N_("following must have one entry for each of target."))
            flags["next"] = special_tokens(sides["next"])
        return cls(tokens=sides, special=flags, words=numbers, tensors=tensors, meta={"model": ""})

    @property
    def about(self) -> str:
        """Which model made the numbers, and of what: what a file says of itself."""
        texts = " → ".join(str(self.meta[side]) for side in ("source", "target") if self.meta.get(side))
        return ": ".join(filter(None, (str(self.meta.get("model") or ""), texts)))

    def __repr__(self) -> str:
        sides = "".join(f"{side}: {_in_short(tokens)}; " for side, tokens in self.tokens.items() if side != "next")
        return f"Trace({sides}{len(self.tensors)} tensors, {self.nbytes:,} bytes)"

    def _repr_html_(self) -> str | None:
        """The explorer, where a notebook shows the Trace."""
        return None if display.as_html is None else display.as_html(self)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold."""
        return sum(tensor.value.nbytes for tensor in (*self.tensors.values(), *self.params.values()))

    def save(self, path: str | Path) -> None:
        """Write everything to one safetensors file; the labels are JSON in its metadata.

        Args:
            path: where to; an existing file is replaced.

        Raises:
            TraceError: a name with an ending that means another kind of file.
        """
        if Path(path).suffix.lower() not in ("", ".safetensors"):
            raise TraceError(
                N_(
                    "{name!r}: this writes only safetensors. For pictures, pages and tables, use visformer.export.save."
                ),
                name=Path(path).name,
            )
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """What :meth:`save` writes.

        Returns:
            A safetensors file.
        """
        arrays = {name: np.ascontiguousarray(tensor.value) for name, tensor in self.tensors.items()}
        arrays |= {f"params.{name}": np.ascontiguousarray(tensor.value) for name, tensor in self.params.items()}
        labels = {
            "order": list(self.tensors),
            "params": {name: _plain(tensor.axes) for name, tensor in self.params.items()},
            "axes": {name: _plain(t.axes) for name, t in self.tensors.items() if t.axes != axes_of(name)},
            "tokens": dict(self.tokens),
            "special": dict(self.special),
            "words": dict(self.words),
            "meta": dict(self.meta),
        }
        return safetensors(arrays, metadata={"visformer_trace": json.dumps(labels, ensure_ascii=False)})

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read what :meth:`save` wrote.

        Args:
            path: a file of :meth:`save`.

        Returns:
            The Trace as it was, to the last bit.

        Raises:
            TraceError: no such file, damaged, or not a Trace.
        """
        try:
            with safe_open(str(path), framework="np") as file:
                if "visformer_trace" not in (file.metadata() or {}):
                    raise TraceError(N_("{path} is a .safetensors file, but not a trace."), path=path)
                labels = json.loads(file.metadata()["visformer_trace"])
                check_labels(labels)
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            tensors = {name: _labelled(name, arrays[name], labels.get("axes", {})) for name in labels["order"]}
            params = {
                name: TracedTensor(name, arrays[f"params.{name}"], tuple(Axis(*axis) for axis in axes))
                for name, axes in labels["params"].items()
            }
            sides = {
                label: {side: tuple(values) for side, values in labels[label].items()}
                for label in ("tokens", "special", "words")
            }
            return cls(**sides, tensors=tensors, params=params, meta=labels["meta"])
        except SafetensorError as error:
            raise TraceError(N_("{path} is not a .safetensors trace ({reason})."), path=path, reason=error) from error
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise TraceError(N_("{path} cannot be read as a trace: {reason}"), path=path, reason=error) from error


def _plain(axes: tuple[Axis, ...]) -> list[list[str | None]]:
    return [[axis.name, axis.side] for axis in axes]


def _sinks(sink: Any, arguments: Sequence[str]) -> Mapping[str, Any]:
    """Argument to its sink."""
    if sink is None or sink is False:
        return {}
    found: dict[str, Any] = dict(sink) if isinstance(sink, Mapping) else dict.fromkeys(arguments, sink)
    whose = isinstance(sink, Mapping) or sink is True or len(arguments) == 1
    if not whose or any(name not in arguments for name in found):
        raise TraceError(N_("sink must be True for all, or a dict with any of {names}."), names=", ".join(arguments))
    return found


def _patterns(
    kind: str, arrays: Any, sides: Mapping[str, tuple[str, ...]], argument: str, sink: Any
) -> Iterator[TracedTensor]:
    """Each layer's pattern of one kind of attention, such as "decoder.cross_attn", and the mass of its sink."""
    stack, attention = kind.split(".")
    axes = axes_of(f"{stack}.0.{attention}.pattern")
    assert axes is not None
    for axis in axes[1:]:
        if axis.side not in sides:
            raise TraceError(
                N_("{argument} needs the tokens along its {axis} axis: give {missing}."),
                argument=argument,
                axis=axis.name,
                missing="tokens" if axis.side == "src" else "target",
            )
    queries, keys = (len(sides[str(axis.side)]) for axis in axes[1:])
    for i, layer in enumerate(layers_of(arrays, name=argument, queries=queries, keys=keys, sink=sink)):
        yield TracedTensor(f"{stack}.{i}.{attention}.pattern", layer.pattern, axes)
        if layer.sink is not None:
            yield TracedTensor(f"{stack}.{i}.{attention}.sink", layer.sink, axes[:2])


def _labelled(name: str, value: NDArray[Any], special: Mapping[str, list[list[str | None]]]) -> TracedTensor:
    """``special``: axes that are not those which the name implies."""
    axes = tuple(Axis(str(axis), side) for axis, side in special[name]) if name in special else axes_of(name)
    if axes is None:
        raise TraceError(N_("There is no tensor named {name!r}."), name=name)
    if value.dtype not in (np.float32, np.bool_):
        raise TraceError(
            N_("{name} holds {dtype}; a Trace holds float32, or bool for a mask."), name=name, dtype=value.dtype
        )
    return TracedTensor(name, value, axes)


def _in_short(tokens: Sequence[str]) -> str:
    """As many as fit into a line, without line breaks of their own."""
    words = " ".join(" ".join(tokens).split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}… ({len(tokens)} tokens)"
