"""The Trace: everything computed on one sentence, frozen, labelled, NumPy only.

An array is only accessible together with the tokens along its axes, and the two are checked against each other when
the Trace is made, so that a picture cannot be labelled with the wrong sentence.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors

from visformer import trace
from visformer.errors import N_, Message, MissingTensor, TraceError
from visformer.system.arguments import checked_class
from visformer.system.files import write_whole
from visformer.trace.blocks import Blocks
from visformer.trace.from_arrays import (
    joined,
    layers_of,
    marks_of,
    names_before,
    refuse_others,
    special_tokens,
    token_texts,
)
from visformer.trace.labels import can_be_written, check_labels
from visformer.trace.names import PREFIX, Axis, axes_of
from visformer.trace.overview import PatternOnDemand
from visformer.trace.stacks import STACKS, Stack, shape_of, stack_named
from visformer.trace.tensor import TracedTensor

_SHORT = 60
"""Maximum number of characters of each side in a Trace's ``repr``."""


class _Held(dict[str, Any]):
    """One of a Trace's mappings, which says what it has where somebody asks for what it has not."""

    def __init__(self, what: str, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: object) -> Never:
        raise MissingTensor(
            N_("No {name!r} in the {what} of this trace ({names}): record it, or take a model that has it."),
            name=name,
            what=self._what,
            names=", ".join(self) or "-",
        )


@checked_class
@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What a model computed on one sentence (and its target).

    Args:
        tokens: side ("src", "tgt", "next") to its tokens as displayed. Where an attention has keys before its tokens,
            "prefix+src" or "prefix+tgt" are both together.
        special: side to whether each token is special, that is, stands for no text.
        words: side to the index of the word that each token belongs to.
        tensors: name to tensor.
        params: name to weights that were used, on request.
        meta: JSON values: "model", "source", "target", "to", "forced", "confidence", "quantity" and more. "missing"
            lists pairs of a glob and the reason why the model has no such tensor; "grid" has the rows and columns of a
            picture's patches, "patches" the side whose tokens they are and the first of these, see :attr:`patches`.
        roles: of a chat, side to the role of the message that each token is part of: "system", "user", "assistant",
            "tool", or another name of the messages' own; None for what the chat template wrote between them. Empty
            for any other text.

    Raises:
        TraceError: labels and arrays, or labels of one side, differ in length.
    """

    tokens: Mapping[str, tuple[str, ...]]
    special: Mapping[str, tuple[bool, ...]]
    words: Mapping[str, tuple[int, ...]]
    tensors: Mapping[str, TracedTensor]
    params: Mapping[str, TracedTensor] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    roles: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, MappingProxyType(_Held(each.name, getattr(self, each.name))))
        for label in ("special", "words", "roles"):
            values = getattr(self, label)
            for side in values if label == "roles" else self.tokens:
                given, wanted = (len(labels.get(side, ())) for labels in (values, self.tokens))
                if given != wanted:
                    raise TraceError(
                        N_("{label}[{side!r}] has {given} entries for {wanted} tokens."),
                        label=label,
                        side=side,
                        given=given,
                        wanted=wanted,
                    )
        if len(self.tokens.get("next", ())) != len(self.tokens.get("tgt", ())):
            raise TraceError(N_('tokens["next"] must have one entry for each of tokens["tgt"].'))
        for tensor in (*self.tensors.values(), *self.params.values()):
            self._check_labels(tensor)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(dict(getattr(self, each.name)) for each in fields(self))  # proxies do not pickle

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
        """The names of the recorded tensors, in the order of computation.

        Returns:
            Names such as "encoder.0.self_attn.pattern".
        """
        return tuple(self.tensors)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __getitem__(self, name: str) -> TracedTensor:
        """Return the tensor of this name.

        Raises:
            MissingTensor: it is not in this Trace; the message says why, and which tensors are.
        """
        if name in self:
            return self.tensors[name]
        if not isinstance(name, str) or axes_of(name) is None:
            reason = N_("there is no tensor of that name")
        else:
            reason = self.lacks(name) or N_(
                "it was not recorded (request it with record=...), or the model has no such layer"
            )
        raise MissingTensor(
            N_("No {name!r} in this trace: {reason}. Recorded: {names}."),
            name=name,
            reason=reason,
            names=", ".join(self.tensors) or "-",
        )

    def lacks(self, name: str) -> Message | None:
        """Why the model has no tensor of this name.

        Args:
            name: name of a tensor, such as "encoder.0.self_attn.q".

        Returns:
            The reason; None if the model is not known to lack it.
        """
        for glob, reason in self.meta.get("missing", ()):
            if fnmatchcase(name, glob):
                return Message(reason)
        return None

    @property
    def image(self) -> NDArray[np.uint8]:
        """The picture that the model read, put together from "src.pixels": uint8 (row, column, RGB).

        Raises:
            MissingTensor: the model read a text.
        """
        pixels = self["src.pixels"].value  # (patch, pixel)
        rows, columns = self.meta["grid"]
        side = math.isqrt(pixels.shape[1] // 3)
        cut = pixels.reshape(rows, columns, 3, side, side).transpose(0, 3, 1, 4, 2)  # (row, y, column, x, RGB)
        picture: NDArray[np.uint8] = np.rint(255 * cut).clip(0, 255).astype(np.uint8)
        return picture.reshape(rows * side, columns * side, 3)

    @property
    def source(self) -> str:
        """What the model read first: a text, one that stands for its picture, or "" if none does."""
        return str(self.meta.get("picture") or self.meta.get("source") or "")

    @property
    def patches(self) -> tuple[str, range]:
        """Which tokens are the patches of the picture that the model read, row by row.

        Returns:
            Their side, "src" or of a decoder-only model "tgt", and their places among its tokens.

        Raises:
            MissingTensor: the model read a text.
        """
        rows, columns = self.meta["grid"]
        side, first = self.meta.get("patches", ("src", 0))
        return side, range(first, first + rows * columns)

    def with_tensor(self, name: str, array: ArrayLike, axes: Sequence[str | tuple[str, str]] | None = None) -> "Trace":
        """Return this Trace with a tensor of one's own, or in place of another.

        Args:
            name: any name; one of visformer's has its axes.
            array: numbers, stored as float32, or booleans.
            axes: of another name, one for each dimension: its name, such as "head", or name and side, such as
                ("query", "src"), if it has tokens along it.

        Returns:
            A new Trace, which shares all else with this one.

        Raises:
            TraceError: the axes are not known, their number is another, or they do not fit the tokens.
        """
        known = axes_of(name)
        if axes is not None:
            known = tuple(Axis(each) if isinstance(each, str) else Axis(*each) for each in axes)
        if known is None:
            raise TraceError(N_("What are the axes of {name!r}? Pass axes=, one for each dimension."), name=name)
        values = np.array(array)
        values = values if values.dtype == np.bool_ else values.astype(np.float32)
        return replace(self, tensors={**self.tensors, name: TracedTensor(name, values, known)})

    def layers(self, stack: str) -> Mapping[int, TracedTensor]:
        """The patterns of one attention by layer, (head, query, key) each.

        Layers keep the numbers that they have in the model. Some may be missing: those that were not recorded, and in a
        hybrid model those that have no attention.

        Args:
            stack: the name of the attention, such as "decoder.cross_attn".

        Returns:
            Index of each recorded layer, from 0 and ascending, to its pattern, not copied; each row sums to 1. Of a
            Trace of maps, its maps.

        Raises:
            MissingTensor: no layer's pattern of this attention was recorded.
            TraceError: there is no attention of this name.
        """
        of = stack_named(stack)
        named = re.compile(rf"{of.part}\.(\d+)\.{of.kind}\.(?:pattern|map)")
        found = {int(match[1]): name for name in self.tensors if (match := named.fullmatch(name))}
        if not found:
            found = {0: f"{of.part}.0.{of.kind}.pattern"}  # raises MissingTensor
        return MappingProxyType({layer: self[found[layer]] for layer in sorted(found)})

    def stack(self, stack: str) -> NDArray[np.float32]:
        """The patterns of :meth:`layers` as one array, whose rows are the layers in that order.

        Args:
            stack: the name of the attention, such as "decoder.cross_attn".

        Returns:
            (layer, head, query, key), float32, copied.

        Raises:
            MissingTensor: no layer's pattern of this attention was recorded.
            TraceError: there is no attention of this name, or its layers have different numbers of heads.
        """
        layers = self.layers(stack)
        shape_of(layers)
        return np.stack([tensor.value for tensor in layers.values()])

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
        roles: Mapping[str, Sequence[str | None]] | None = None,
        prefix: Mapping[str, Sequence[str]] | None = None,
        **others: Never,
    ) -> "Trace":
        """Build a Trace from attention that was computed elsewhere, by any framework.

        An encoder needs ``tokens`` and ``patterns``, a decoder-only model ``target`` and ``decoder``, an
        encoder-decoder all of these and ``cross``. Each row is a probability distribution. Accepted arrays:

        - 4 dimensions: (layer, head, query, key); 5: (layer, 1, head, query, key), with a batch of one.
        - A sequence with one array per layer: (head, query, key), or (1, head, query, key). Or a mapping from the
          layers' numbers, from 0, to these arrays, such as :meth:`layers` returns.
        - For a single layer, (head, query, key), pass ``[array]``; for a single head, ``array[None, None]``.
        - As ``decoder`` and ``cross`` what transformers' ``generate(output_attentions=True,
          return_dict_in_generate=True)`` returns: for each step a tuple of layers. Whole matrices are assembled. The
          last token of its sequences has been chosen, but never read: ``target`` is all of them, and each token's
          ``following`` the next, or all but the last.
        - A TransformerLens cache; saved proxies of nnsight; for each layer (attn_output, attn_weights).

        Layers may have different numbers of heads. Self-attention may have more keys than tokens, all before the first
        one: virtual tokens (prefix tuning, Li and Liang 2021, section 4), or a cache of earlier tokens.

        Args:
            tokens: the encoder's tokens; a vocabulary's marks (ĠThe, ▁The, ##ing) are not displayed.
            patterns: patterns of the encoder's self-attention.
            target: the decoder's tokens.
            decoder: patterns of the decoder's self-attention; they need not be causal.
            cross: patterns of the cross-attention: queries are ``target``, keys ``tokens``.
            sink: for attention whose rows sum to less than 1. True: the sink has the rest, or is an additional last
                column. Or its mass, (layer, head, query). With several stacks: True for all of them, or a dict with
                any of "patterns", "decoder" and "cross".
            following: what each token of ``target`` predicts; None: unknown.
            special: "src" and "tgt" to whether each token is special; by default judged by names such as ``</s>``.
            words: "src" and "tgt" to the index of each token's word; by default each token is a word.
            roles: of a chat, "src" and "tgt" to the role of each token's message, or None.
            prefix: "src" and "tgt" to the names of the keys before the tokens; by default "[prefix 1]", "[prefix 2]".
                In cross-attention, such keys have to be named.
            others: none; the error for a name that BertViz or transformers uses says what it is called here.

        Returns:
            A Trace with patterns only, enough for every picture of attention.

        Raises:
            TraceError: an array does not fit its tokens, or is not a probability; the message says where.
        """
        refuse_others(others)
        by_step = {name: joined(given, name) for name, given in (("decoder", decoder), ("cross", cross))}
        target, following = _as_read(target, following, [layers for layers in by_step.values() if layers])
        labels = _labels(tokens, target, following=following, special=special, words=words, roles=roles)
        arrays = {"patterns": patterns, "decoder": by_step["decoder"] or decoder, "cross": by_step["cross"] or cross}
        names = names_before(prefix, labels["tokens"])
        tensors = _tensors("pattern", arrays, labels["tokens"], sink, names)
        return cls(**_with_prefix(labels, tensors, names), tensors=tensors, meta={"model": ""})

    @classmethod
    def from_maps(
        cls,
        tokens: Sequence[str] | None = None,
        maps: Any = None,
        *,
        target: Sequence[str] | None = None,
        decoder: Any = None,
        cross: Any = None,
        quantity: str = "",
        following: Sequence[str] | None = None,
        special: Mapping[str, Sequence[bool]] | None = None,
        words: Mapping[str, Sequence[int]] | None = None,
        roles: Mapping[str, Sequence[str | None]] | None = None,
        prefix: Mapping[str, Sequence[str]] | None = None,
    ) -> "Trace":
        """Build a Trace from any number for each head, query and key: a difference, an attribution, an effect, a count.

        Pictures colour it on one linear scale for all heads: from 0 to the largest number, or, if any is negative, to
        the same distance on both sides of 0. What is true of attention weights only, such as sums of rows, thresholds
        and scores of heads, is left out.

        Args:
            tokens: the encoder's tokens, as in :meth:`from_attention`.
            maps: finite numbers in place of the encoder's self-attention, of the same shapes as in
                :meth:`from_attention`; stored as float32.
            target: the decoder's tokens.
            decoder: maps in place of the decoder's self-attention.
            cross: maps in place of the cross-attention: queries are ``target``, keys ``tokens``.
            quantity: what the numbers are, for titles and legends, such as "effect (nats)".
            following: as in :meth:`from_attention`.
            special: as in :meth:`from_attention`.
            words: as in :meth:`from_attention`.
            roles: as in :meth:`from_attention`.
            prefix: as in :meth:`from_attention`.

        Returns:
            A Trace with tensors such as "encoder.0.self_attn.map".

        Raises:
            TraceError: an array does not fit its tokens, or holds NaN or an infinity; the message says where.
        """
        if not (isinstance(quantity, str) and can_be_written(quantity)):
            raise TraceError(N_('quantity is {given!r}: give a text, such as "effect (nats)".'), given=quantity)
        labels = _labels(tokens, target, following=following, special=special, words=words, roles=roles)
        names = names_before(prefix, labels["tokens"])
        tensors = _tensors("map", {"maps": maps, "decoder": decoder, "cross": cross}, labels["tokens"], None, names)
        meta = {"model": "", "quantity": quantity}
        return cls(**_with_prefix(labels, tensors, names), tensors=tensors, meta=meta)

    @property
    def confidence(self) -> float | None:
        """How sure the model was of its own translation, from 0 to 1.

        The geometric mean of the probabilities that it gave to the tokens it chose, the end included, times a small
        power of the probability with which it reads the whole sentence back from its translation; see
        :class:`visformer.model.decoding.Decoding`. None if the target was given, or if the model is not one of
        visformer's own translators.
        """
        return self.meta.get("confidence")

    @property
    def is_unsure(self) -> bool:
        """Whether its confidence is below the threshold that its evaluation chose; False for a model without one.

        Also False under edits: the threshold is of the model as it is.
        """
        below = self.meta.get("unsure_below")
        return below is not None and self.confidence is not None and self.confidence < below

    @property
    def blocks(self) -> Blocks | None:
        """The architecture of the model; None if it is not known, as in files of earlier versions."""
        described = self.meta.get("blocks")
        return None if described is None else Blocks.from_json(described)

    @property
    def about(self) -> str:
        """The model and the texts that the numbers come from, as a description for files."""
        texts = " → ".join(str(self.meta[side]) for side in ("source", "target") if self.meta.get(side))
        return ": ".join(filter(None, (str(self.meta.get("model") or ""), texts)))

    def __repr__(self) -> str:
        shown = {side: self.tokens[side] for side in ("src", "tgt") if side in self.tokens}
        sides = "".join(f"{side}: {_in_short(tokens)}; " for side, tokens in shown.items())
        how = "heads on demand, " if any(isinstance(each, PatternOnDemand) for each in self.tensors.values()) else ""
        return f"Trace({sides}{len(self.tensors)} tensors, {how}{self.nbytes:,} bytes)"

    def _repr_html_(self) -> str | None:
        """Display the explorer in a notebook."""
        return None if trace.as_html is None else trace.as_html(self)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold."""
        return sum(tensor.nbytes for tensor in (*self.tensors.values(), *self.params.values()))

    def save(self, path: str | Path, *, heads: bool = False) -> None:
        """Write everything to one safetensors file; the labels are JSON in its metadata.

        Args:
            path: file to write; an existing file is replaced.
            heads: of a Trace recorded as "overview", whether the file also has q and k, from which heads are computed.

        Raises:
            TraceError: the extension belongs to another file format.
        """
        if Path(path).suffix.lower() not in ("", ".safetensors"):
            raise TraceError(
                N_(
                    "{name!r}: this writes only safetensors. For pictures, pages and tables, use visformer.export.save."
                ),
                name=Path(path).name,
            )
        write_whole(path, self.to_bytes(heads=heads))

    def to_bytes(self, *, heads: bool = False) -> bytes:
        """Serialise the Trace as :meth:`save` does.

        Args:
            heads: as for :meth:`save`.

        Returns:
            The content of a safetensors file.
        """
        held = {name: each for name, each in self.tensors.items() if isinstance(each, PatternOnDemand)}
        arrays = {name: each.value for name, each in self.tensors.items() if name not in held}
        arrays |= {f"params.{name}": tensor.value for name, tensor in self.params.items()}
        for name, pattern in held.items():
            arrays |= {f"overview.{name}.{part}": each for part, each in pattern.arrays(heads=heads).items()}
        labels = {
            "overview": [*held],
            "order": list(self.tensors),
            "params": {name: _plain(tensor.axes) for name, tensor in self.params.items()},
            "axes": {name: _plain(t.axes) for name, t in self.tensors.items() if t.axes != axes_of(name)},
            "tokens": dict(self.tokens),
            "special": dict(self.special),
            "words": dict(self.words),
            "meta": dict(self.meta),
            **({"roles": dict(self.roles)} if self.roles else {}),
        }
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        return safetensors(arrays, metadata={"visformer_trace": json.dumps(labels, ensure_ascii=False)})

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a file written by :meth:`save`.

        Args:
            path: file to read.

        Returns:
            The same Trace, bit for bit.

        Raises:
            TraceError: the file is missing, damaged, or not a Trace.
        """
        try:
            with safe_open(str(path), framework="np") as file:
                if "visformer_trace" not in (file.metadata() or {}):
                    raise TraceError(N_("{path} is a .safetensors file, but not a trace."), path=path)
                labels = json.loads(file.metadata()["visformer_trace"])
                check_labels(labels)
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            special_axes, overviews = labels.get("axes", {}), labels.get("overview", ())
            tensors = {
                name: _on_demand(name, arrays) if name in overviews else _labelled(name, arrays[name], special_axes)
                for name in labels["order"]
            }
            params = {
                name: TracedTensor(name, arrays[f"params.{name}"], tuple(Axis(*axis) for axis in axes))
                for name, axes in labels["params"].items()
            }
            sides = {
                label: {side: tuple(values) for side, values in labels.get(label, {}).items()}
                for label in ("tokens", "special", "words", "roles")
            }
            return cls(**sides, tensors=tensors, params=params, meta=labels["meta"])
        except SafetensorError as error:
            raise TraceError(N_("{path} is not a .safetensors trace ({reason})."), path=path, reason=error) from error
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise TraceError(N_("{path} cannot be read as a trace: {reason}"), path=path, reason=error) from error


def _plain(axes: tuple[Axis, ...]) -> list[list[str | None]]:
    return [[axis.name, axis.side] for axis in axes]


def _sinks(sink: Any, arguments: Sequence[str]) -> Mapping[str, Any]:
    """Map each argument to its sink."""
    if sink is None or sink is False:
        return {}
    sinks: dict[str, Any] = dict(sink) if isinstance(sink, Mapping) else dict.fromkeys(arguments, sink)
    unambiguous = isinstance(sink, Mapping) or sink is True or len(arguments) == 1
    if not unambiguous or any(name not in arguments for name in sinks):
        raise TraceError(N_("sink must be True for all, or a dict with any of {names}."), names=", ".join(arguments))
    return sinks


def _labels(
    tokens: Sequence[str] | None,
    target: Sequence[str] | None,
    *,
    following: Sequence[str] | None,
    special: Mapping[str, Sequence[bool]] | None,
    words: Mapping[str, Sequence[int]] | None,
    roles: Mapping[str, Sequence[str | None]] | None,
) -> dict[str, Any]:
    """Check the tokens and their marks, and return them as a Trace's arguments."""
    sides = {
        side: token_texts(texts, name=name)
        for side, name, texts in (("src", "tokens", tokens), ("tgt", "target", target))
        if texts is not None
    }
    flags = marks_of(special, {side: special_tokens(texts) for side, texts in sides.items()}, name="special")
    numbers = marks_of(words, {side: tuple(range(len(texts))) for side, texts in sides.items()}, name="words")
    none: dict[str, tuple[str | None, ...]] = {side: (None,) * len(texts) for side, texts in sides.items()}
    parts = {} if roles is None else marks_of(roles, none, name="roles")
    if "tgt" in sides:
        sides["next"] = ("",) * len(sides["tgt"])
        flags["next"], numbers["next"] = flags["tgt"], numbers["tgt"]
        parts |= {"next": (*parts["tgt"][1:], None)} if parts else {}
    if following is not None:
        sides["next"] = token_texts(following, name="following")
        if len(sides["next"]) != len(sides.get("tgt", ())):
            raise TraceError(N_("following must have one entry for each of target."))
        flags["next"] = special_tokens(sides["next"])
    return {"tokens": dict(sides), "special": dict(flags), "words": dict(numbers), "roles": parts}


def _as_read(target: Any, following: Any, given: Sequence[Sequence[NDArray[np.float32]]]) -> tuple[Any, Any]:
    """Return the tokens that ``generate`` has read and what each predicts, where its last one is among the target."""
    rows = given[0][0].shape[1] if given else 0
    if not rows or isinstance(target, str) or not isinstance(target, Sequence) or len(target) != rows + 1:
        return target, following
    return target[:-1], target[1:] if following is None else following


def _with_prefix(
    labels: Mapping[str, Any], tensors: Mapping[str, TracedTensor], names: Mapping[str, tuple[str, ...]]
) -> Mapping[str, Any]:
    """Return the labels with those of the sides that have keys before their tokens.

    Raises:
        TraceError: keys were named that no array has.
    """
    labels, sides = {label: dict(each) for label, each in labels.items()}, labels["tokens"]
    given = {str(tensor.axes[-1].side): tensor.shape[-1] for tensor in tensors.values() if tensor.axes[-1].side}
    for side in sides:
        n = given.get(f"{PREFIX}{side}", len(sides[side])) - len(sides[side])
        before = names.get(side) or tuple(f"[prefix {i + 1}]" for i in range(n))
        if not n and before:
            raise TraceError(
                N_("prefix[{side!r}] names {n} keys, but no array has so many more keys than {side} has tokens."),
                side=side,
                n=len(before),
            )
        if n:
            own = {
                "tokens": before,
                "special": special_tokens(before) if side in names else (True,) * n,
                "words": tuple(range(-n, 0)),
                "roles": (None,) * n,
            }
            for label, values in own.items():
                if side in labels[label]:
                    labels[label][f"{PREFIX}{side}"] = (*values, *labels[label][side])
    return labels


_NOTHING = {
    "pattern": N_(
        "No attention was given: use from_attention(tokens, patterns), or target= and decoder=. "
        "Hugging Face models return theirs with output_attentions=True and "
        'attn_implementation="eager".'
    ),
    "map": N_("No maps were given: use from_maps(tokens, maps), or target= and decoder=."),
}


def _tensors(
    values: Literal["pattern", "map"],
    arrays: Mapping[str, Any],
    sides: Mapping[str, tuple[str, ...]],
    sink: Any,
    before: Mapping[str, tuple[str, ...]],
) -> dict[str, TracedTensor]:
    """Check the arrays, by argument in the order of STACKS, against the tokens of both sides, and name their layers.

    ``before``: side to the names of the keys before its tokens, as far as they were given.
    """
    given = {argument: stack for stack, argument in zip(STACKS, arrays, strict=True) if arrays[argument] is not None}
    if not given:
        raise TraceError(_NOTHING[values])
    sinks = _sinks(sink, list(given))
    named = (
        _layers(stack, values, arrays[argument], sides, argument, sinks.get(argument), before)
        for argument, stack in given.items()
    )
    return {tensor.name: tensor for layers in named for tensor in layers}


def _layers(
    stack: Stack,
    values: Literal["pattern", "map"],
    arrays: Any,
    sides: Mapping[str, tuple[str, ...]],
    argument: str,
    sink: Any,
    before: Mapping[str, tuple[str, ...]],
) -> Iterator[TracedTensor]:
    """Yield each layer's values of one kind of attention, and its sink's mass."""
    axes = axes_of(f"{stack.part}.0.{stack.kind}.{values}")
    assert axes is not None
    for axis in axes[1:]:
        if axis.side not in sides:
            raise TraceError(
                N_("{argument} needs the tokens along its {axis} axis: give {missing}."),
                argument=argument,
                axis=axis.name,
                missing="tokens" if axis.side == "src" else "target",
            )
    queries, keys = (str(axis.side) for axis in axes[1:])
    # Cross-attention with another number of keys is likelier to have come with the wrong tokens than with a prefix.
    n = len(before[keys]) if keys in before else None if queries == keys else 0
    size = {"queries": len(sides[queries]), "keys": len(sides[keys])}
    for i, layer in layers_of(arrays, name=argument, **size, before=n, sink=sink, weights=values == "pattern").items():
        side = keys if layer.values.shape[-1] == len(sides[keys]) else f"{PREFIX}{keys}"
        yield TracedTensor(f"{stack.part}.{i}.{stack.kind}.{values}", layer.values, (*axes[:2], Axis("key", side)))
        if layer.sink is not None:
            yield TracedTensor(f"{stack.part}.{i}.{stack.kind}.sink", layer.sink, axes[:2])


def _labelled(name: str, value: NDArray[Any], special: Mapping[str, list[list[str | None]]]) -> TracedTensor:
    """Build one tensor; ``special``: axes that differ from those that the name implies."""
    axes = tuple(Axis(str(axis), side) for axis, side in special[name]) if name in special else axes_of(name)
    if axes is None:
        raise TraceError(N_("There is no tensor named {name!r}."), name=name)
    if value.dtype not in (np.float32, np.bool_):
        raise TraceError(
            N_("{name} holds {dtype}; a Trace holds float32, or bool for a mask."), name=name, dtype=value.dtype
        )
    return TracedTensor(name, value, axes)


def _on_demand(name: str, arrays: Mapping[str, NDArray[Any]]) -> PatternOnDemand:
    """Build a pattern that a file has the overview of."""
    start, axes = f"overview.{name}.", axes_of(name)
    if axes is None:
        raise TraceError(N_("There is no tensor named {name!r}."), name=name)
    own = {key.removeprefix(start): value for key, value in arrays.items() if key.startswith(start)}
    return PatternOnDemand.of_arrays(name, axes, own)


def _in_short(tokens: Sequence[str]) -> str:
    """Join as many tokens as fit on a line, without line breaks inside them."""
    words = " ".join(" ".join(tokens).split())
    return words if len(words) <= _SHORT else f"{words[:_SHORT].rstrip()}… ({len(tokens)} tokens)"
