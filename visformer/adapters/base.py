"""What every adapted model offers, whatever family it is of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from visformer.decoding import Decoding
from visformer.edits import Edit
from visformer.trace import Trace


@dataclass(frozen=True)
class ModelInfo:
    """What a model is.

    Args:
        name: for people.
        kind: "encoder", "decoder" or "encoder-decoder".
        n_encoder_layers: 0 where there is no encoder.
        n_decoder_layers: 0 where there is no decoder.
        n_heads: attention heads per layer.
        d_model: width.
        max_tokens: most tokens of one side, specials included.
        licence: of the weights.
        source: where the weights come from.
        n_kv_heads: heads of keys and values where several heads of queries read one; None: not known.
        position: how it knows the order of tokens: "learned", "sinusoidal", "rotary", "alibi", "relative" and others.
    """

    name: str
    kind: Literal["encoder", "decoder", "encoder-decoder"]
    n_encoder_layers: int
    n_decoder_layers: int
    n_heads: int
    d_model: int
    max_tokens: int
    licence: str
    source: str
    n_kv_heads: int | None = None
    position: str = "unknown"


class TracedModel(Protocol):
    """A model that a page or a notebook can hold."""

    info: ModelInfo

    def tokenize(self, text: str) -> tuple[str, ...]:
        """The tokens of a source text as shown, one per id, specials included."""
        ...

    def translate(
        self,
        source: str,
        *,
        to: str | None = None,
        prefix: str = "",
        beam_size: int = 1,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        edits: Sequence[Edit] = (),
        max_new_tokens: int | None = None,
    ) -> Decoding:
        """What the decoder says to a source, step by step. An encoder alone raises VisformerError."""
        ...

    def trace(
        self,
        source: str,
        target: str | Sequence[int] | None = None,
        *,
        pair: str | None = None,
        to: str | None = None,
        record: Sequence[str] = ("*.pattern",),
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """Run the model on a sentence and keep what ``record`` names."""
        ...
