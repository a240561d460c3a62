"""The three kinds of attention in a Transformer. No arrays here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from visformer.errors import N_, TraceError
from visformer.trace.names import PREFIX

if TYPE_CHECKING:  # numpy
    from collections.abc import Collection, Iterable, Mapping

    from visformer.trace import Trace, TracedTensor


StackName = Literal["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"]
"""The name of an attention, as in the names of its tensors."""


@dataclass(frozen=True)
class Stack:
    """One of the three kinds of attention in a Transformer, and how its tensors are named."""

    part: Literal["encoder", "decoder"]
    kind: Literal["self_attn", "cross_attn"]
    label: str
    about: str
    says: str  # the same in everyday words
    translating: str  # the same of a translator

    @property
    def name(self) -> str:
        """As in tensor names: ``decoder.cross_attn``, a :data:`StackName`."""
        return f"{self.part}.{self.kind}"

    @property
    def sides(self) -> tuple[str, str]:
        """The side of a Trace that reads, "src" or "tgt", and the one that is read."""
        query = "src" if self.part == "encoder" else "tgt"
        return query, "src" if self.kind == "cross_attn" else query

    def of_kind(self, kind: str) -> bool:
        """Whether models of ``kind`` ("encoder", "decoder" or "encoder-decoder") have it."""
        return kind == "encoder-decoder" or (kind == self.part and self.kind == "self_attn")

    def in_trace(self, trace: "Trace") -> bool:
        """Whether the Trace holds this attention's patterns, or maps in their place."""
        ends = tuple(f".{self.kind}.{values}" for values in ("pattern", "map"))
        return any(name.startswith(f"{self.part}.") and name.endswith(ends) for name in trace)

    def layers(self, trace: "Trace") -> "Mapping[int, TracedTensor]":
        """This attention's patterns by layer, see :meth:`visformer.trace.Trace.layers`."""
        return trace.layers(self.name)


STACKS = (
    Stack(
        "encoder", "self_attn", N_("Encoder"), N_("Encoder self-attention: the source reads itself."),
        N_("source reads itself"), N_("sentence reads itself"),
    ),
    Stack(
        "decoder", "self_attn", N_("Decoder"), N_("Decoder self-attention: the target reads itself, never ahead."),
        N_("target reads itself"), N_("translation reads itself"),
    ),
    Stack(
        "decoder", "cross_attn", N_("Cross"), N_("Cross-attention: the target reads the source."),
        N_("target reads source"), N_("translation reads sentence"),
    ),
)  # fmt: skip


def stack_named(name: str, among: "Collection[Stack]" = STACKS) -> Stack:
    """Find an attention by its name, a :data:`StackName`.

    Args:
        name: such as "decoder.cross_attn".
        among: those that there are.

    Raises:
        TraceError: there is none of this name.
    """
    found = next((stack for stack in among if stack.name == name), None)
    if found is None:
        raise TraceError(
            N_("{name}={value!r} is unknown: choose one of {choices}."),
            name="stack",
            value=name,
            choices=", ".join(stack.name for stack in among),
        )
    return found


def shape_of(layers: "Mapping[int, TracedTensor]") -> tuple[int, int, int, int]:
    """The shape (layer, head, query, key) of the patterns of all layers.

    Raises:
        TraceError: the layers have different numbers of heads.
    """
    first, *others = layers.values()
    for other in others:
        if other.shape != first.shape:
            raise TraceError(
                N_("{name} has {given} heads, but {first} has {wanted}: take one layer at a time, trace[{name!r}]."),
                name=other.name,
                given=len(other),
                first=first.name,
                wanted=len(first),
            )
    return len(layers), *first.shape  # type: ignore[return-value]


def most_heads(layers: "Mapping[int, TracedTensor]") -> int:
    """The number of heads of the layer that has most of them."""
    return max(layer.shape[0] for layer in layers.values())


def require_only_tokens(trace: "Trace", what: str) -> None:
    """Refuse a Trace in which keys come before the tokens, for what follows tokens alone.

    Raises:
        TraceError: it is one.
    """
    for name, tensor in trace.tensors.items():
        if str(tensor.axes[-1].side).startswith(PREFIX):
            raise TraceError(
                N_("{name} has keys before its tokens, which {what} does not follow: give a Trace without them."),
                name=name,
                what=what,
            )


def nearest(layers: "Iterable[int]", layer: int) -> int:
    """The one of the layers whose number is closest; of two, the first."""
    return min(layers, key=lambda other: abs(other - layer))


def ranges(numbers: "Iterable[int]") -> str:
    """Write ascending numbers in short: "1–3, 6"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


SHORT_NAMES: "Mapping[str, StackName]" = {
    "encoder": "encoder.self_attn",
    "decoder": "decoder.self_attn",
    "cross": "decoder.cross_attn",
}
"""Short names, for links alone: addresses that people have."""


def short_name(stack: str) -> str:
    """Shorten a name: "cross" for "decoder.cross_attn"."""
    return next(short for short, name in SHORT_NAMES.items() if name == stack)
