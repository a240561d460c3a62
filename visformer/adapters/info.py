"""What is said of a model: its name, sizes and origin."""

from dataclasses import dataclass
from typing import Literal

from visformer.trace.blocks import Blocks


@dataclass(frozen=True)
class ModelInfo:
    """A model's name, sizes and origin.

    Args:
        name: name for people to read.
        kind: "encoder", "decoder" or "encoder-decoder".
        n_encoder_layers: 0 without an encoder.
        n_decoder_layers: 0 without a decoder.
        n_heads: attention heads per layer.
        d_model: width of the vectors between layers.
        max_tokens: maximum number of tokens on each side, specials included; None: no limit.
        licence: licence of the weights.
        source: where the weights come from.
        n_kv_heads: heads of keys and values, fewer than n_heads in grouped-query attention; None: not known.
        position: positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`.
        moment: the moment of its training, as numbered by :func:`visformer.moments`, if one was asked for.
        blocks: its architecture: the order of sublayers and norms in each stack; :attr:`visformer.Trace.blocks` has it.
    """

    name: str
    kind: Literal["encoder", "decoder", "encoder-decoder"]
    n_encoder_layers: int
    n_decoder_layers: int
    n_heads: int
    d_model: int
    max_tokens: int | None
    licence: str
    source: str
    n_kv_heads: int | None = None
    position: str = "unknown"
    moment: int | None = None
    blocks: Blocks | None = None
