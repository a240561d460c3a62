"""What every adapted model offers, whatever family it is of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from visformer.adapters.generating import Vocabulary
from visformer.edits import Edit
from visformer.model.decoding import Decoding
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
        position: how it knows the order of tokens, a key of :data:`visformer.model.positions.DESCRIBED`.
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

    def describe(self, kind: str) -> str:
        """For a model's ``repr``.

        Args:
            kind: name of its class.

        Returns:
            One line: name, kind, layers, heads, d_model.
        """
        depth = f"{self.n_encoder_layers} + {self.n_decoder_layers} layers"
        return f"{kind}({self.name}: {self.kind}, {depth}, {self.n_heads} heads, d_model {self.d_model})"


class TracedModel(Protocol):
    """A model that a page or a notebook can hold."""

    info: ModelInfo

    @property
    def text(self) -> Vocabulary:
        """What its ids mean."""
        ...

    def available(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """What there is of the wanted, for pages that show any model.

        Args:
            wanted: glob patterns over names.

        Returns:
            Those of them that ``record`` takes here.
        """
        ...

    def tokenize(self, text: str) -> tuple[str, ...]:
        """The tokens of a source text as shown, one per id, specials included.

        Args:
            text: a source text.

        Returns:
            Such as the ``trace.tokens["src"]`` of the same text.
        """
        ...

    def translate(
        self,
        source: str,
        *,
        to: str | None = None,
        prefix: str | Sequence[int] = "",
        beam_size: int = 1,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        edits: Sequence[Edit] = (),
        max_new_tokens: int | None = None,
    ) -> Decoding:
        """What the decoder says to a source, step by step. An encoder alone raises VisformerError.

        Args:
            source: the text.
            to: language of the target, such as "zh"; None: the other one.
            prefix: text that the target begins with.
            beam_size: hypotheses kept; 1: greedy.
            temperature: draw instead of taking the likeliest; divides the logits.
            top_k: draw from so many of the likeliest.
            top_p: draw from the likeliest that together have this probability.
            seed: of drawing.
            edits: what is changed while it computes.
            max_new_tokens: where to stop at the latest; None: the model's own limit.

        Returns:
            The text, its tokens, and the candidates of every step.
        """
        ...

    @property
    def generate(self) -> Callable[..., Decoding]:
        """The same as :meth:`translate`, by the name that fits a decoder alone."""
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
        """Run the model on a sentence and keep what ``record`` names.

        Args:
            source: the text.
            target: text or ids that the decoder reads; None: its own translation, greedily decoded.
            pair: a second sentence, of an encoder such as BERT.
            to: language of the target.
            record: glob patterns of tensor names.
            edits: what is changed while it computes.

        Returns:
            The tokens, and what was recorded, labelled and frozen.
        """
        ...
