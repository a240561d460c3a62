"""The three kinds of attention in a Transformer. No arrays here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from visformer.errors import N_

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace


@dataclass(frozen=True)
class Stack:
    """One of the three kinds of attention in a Transformer, and how its tensors are named."""

    part: Literal["encoder", "decoder"]
    kind: Literal["self_attn", "cross_attn"]
    label: str
    about: str

    @property
    def name(self) -> str:
        """As in tensor names: ``decoder.cross_attn``."""
        return f"{self.part}.{self.kind}"

    def of_kind(self, kind: str) -> bool:
        """Whether models of ``kind`` ("encoder", "decoder" or "encoder-decoder") have it."""
        return kind == "encoder-decoder" or (kind == self.part and self.kind == "self_attn")

    def in_trace(self, trace: "Trace") -> bool:
        """Whether the Trace holds this attention's patterns, or maps in their place."""
        return any(f"{self.part}.0.{self.kind}.{values}" in trace for values in ("pattern", "map"))


STACKS = (
    Stack("encoder", "self_attn", N_("Encoder"), N_("Encoder self-attention: the source reads itself.")),
    Stack("decoder", "self_attn", N_("Decoder"), N_("Decoder self-attention: the target reads itself, never ahead.")),
    Stack("decoder", "cross_attn", N_("Cross"), N_("Cross-attention: the target reads the source.")),
)

SHORT_NAMES = {"encoder": "encoder.self_attn", "decoder": "decoder.self_attn", "cross": "decoder.cross_attn"}
"""Short names, for links and the command line."""


def short_name(stack: str) -> str:
    """Shorten a name: "cross" for "decoder.cross_attn"."""
    return next(short for short, name in SHORT_NAMES.items() if name == stack)
