"""What the canvas says, and which stacks it shows. Indexes become 1-based only where the browser writes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from visformer.errors import N_
from visformer.trace import Trace


@dataclass(frozen=True)
class Stack:
    """One of the three attentions of a Transformer, by the names of its tensors."""

    part: Literal["encoder", "decoder"]
    kind: Literal["self_attn", "cross_attn"]
    label: str
    about: str

    @property
    def name(self) -> str:
        """As in tensor names: ``decoder.cross_attn``."""
        return f"{self.part}.{self.kind}"

    def in_trace(self, trace: Trace) -> bool:
        """Whether the Trace holds this attention's patterns."""
        return f"{self.part}.0.{self.kind}.pattern" in trace


STACKS = (
    Stack("encoder", "self_attn", N_("Encoder"), N_("Encoder self-attention: the source reads itself.")),
    Stack("decoder", "self_attn", N_("Decoder"), N_("Decoder self-attention: the target reads itself, never ahead.")),
    Stack("decoder", "cross_attn", N_("Cross"), N_("Cross-attention: the target reads the source.")),
)

_TEXT = {
    "stacks": N_("Which attention is shown"),
    "overview": N_("All heads: a row for each layer, a column for each head. The arrow keys choose."),
    "head": N_("{stack}, layer {layer}, head {head}. Shift and the arrow keys go through the cells."),
    "place": N_("Layer {layer} · Head {head}"),
    "rows": N_("reads (query)"),
    "columns": N_("is read (key)"),
    "reads": N_("{query} reads {key}"),
    "hover": N_("Point at a cell to read its exact weight."),
    "click": N_("Click to see this head large."),
    "locked": N_("locked, Escape frees it"),
    "hint": N_(
        "Each row sums to 1. Click a cell to lock it, Escape frees it. Arrow keys change head and layer, with Shift "
        "the cell."
    ),
    "legend": N_("Colour scale from weight 0 to weight 1, on a square-root scale."),
}

_SIDES = (("src", N_("Source")), ("tgt", N_("Target")))


def words(trace: Trace, gettext: Callable[[str], str], lang: str) -> dict[str, Any]:
    """The header's words: fixed texts, and a title for each token line."""
    return {
        "text": {"lang": lang, **{name: gettext(text) for name, text in _TEXT.items()}},
        "sides": [{"side": side, "title": gettext(title)} for side, title in _SIDES if trace.tokens.get(side)],
    }
