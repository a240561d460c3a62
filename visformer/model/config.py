"""The configuration of a model: a frozen dataclass that validates itself."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from visformer.errors import N_, ConfigError
from visformer.model.positions import POSITIONS, Position, PositionName
from visformer.system.arguments import checked_class

UNDIVIDED = N_("d_model={d_model} cannot be divided among n_heads={n_heads}: choose a divisor of d_model.")


class LayerConfig:
    """What embeddings and layers read of a configuration."""

    d_model: int
    n_heads: int
    d_ff: int
    dropout: float
    max_len: int
    norm: Literal["post", "pre"]
    final_norm: bool | None
    layer_norm_eps: float
    position: PositionName
    activation: Literal["relu", "gelu"]

    @property
    def d_k(self) -> int:
        """Width of one head's queries and keys (and values): d_model / n_heads."""
        return self.d_model // self.n_heads

    @property
    def positions(self) -> Position:
        """The positional encoding."""
        return POSITIONS[self.position]()

    @property
    def has_final_norm(self) -> bool:
        """Whether each stack ends with a LayerNorm of its own."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    def _check_sizes(self, *, least_d_ff: int = 1) -> None:
        for name in ("d_model", "n_heads", "max_len"):
            self._require_int(name, least=1)
        self._require_int("d_ff", least=least_d_ff)
        if self.d_model % self.n_heads:
            raise ConfigError(UNDIVIDED, d_model=self.d_model, n_heads=self.n_heads)
        for name in ("dropout", "layer_norm_eps"):
            self._require_number(name)
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(N_("dropout={value} is not a probability in [0, 1)."), value=self.dropout)
        if not 0.0 < self.layer_norm_eps < math.inf:
            raise ConfigError(N_("layer_norm_eps={value} must be finite and above 0."), value=self.layer_norm_eps)

    def _require_int(self, name: str, *, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                N_("{name}={value!r} must be a whole number of at least {least}."), name=name, value=value, least=least
            )

    def _require_choice(self, name: str, choices: tuple[str | bool | None, ...]) -> None:
        value = getattr(self, name)
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise ConfigError(
                N_("{name}={value!r} is not known: choose one of {choices}."),
                name=name,
                value=value,
                choices=", ".join(map(str, choices)),
            )

    def _require_number(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ConfigError(N_("{name}={value!r} must be a number."), name=name, value=value)


@checked_class
@dataclass(frozen=True)
class TransformerConfig(LayerConfig):
    """The sizes and choices of "Attention Is All You Need" (table 3), base model by default.

    Args:
        src_vocab: number of source token ids; id 0 is padding.
        tgt_vocab: number of target token ids; id 0 is padding.
        d_model: width of every vector between layers.
        n_heads: attention heads per layer; must divide d_model.
        n_encoder_layers: encoder blocks.
        n_decoder_layers: decoder blocks.
        d_ff: inner width of the feed-forward networks.
        dropout: probability in [0, 1), on each sublayer's output and on the embedded input (section 5.4).
        max_len: number of rows of a learned position table; with sinusoids, how many tokens a loaded or wrapped model
            takes; the other encodings have no limit.
        norm: "post" normalises each sum (the paper), "pre" each sublayer's input.
        final_norm: whether each stack ends with one more LayerNorm; None: only with pre-norm.
        layer_norm_eps: added to the variance inside the square root.
        position: positional encoding: "sinusoidal" (section 3.5), "learned" (a table), "rotary", "alibi" or "none",
            see :mod:`visformer.model.positions`.
        activation: nonlinearity of the feed-forward network; the paper uses "relu".
        tie_embeddings: share one matrix between target embedding and output projection (section 3.4), and the source
            embedding too if both vocabularies have the same size and so are taken to be one.

    Raises:
        ConfigError: a value is out of range; the message names it.
    """

    src_vocab: int
    tgt_vocab: int
    _: KW_ONLY
    d_model: int = 512
    n_heads: int = 8
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    max_len: int = 512
    norm: Literal["post", "pre"] = "post"
    final_norm: bool | None = None
    layer_norm_eps: float = 1e-5
    position: PositionName = "sinusoidal"
    activation: Literal["relu", "gelu"] = "relu"
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        for name in ("src_vocab", "tgt_vocab"):
            self._require_int(name, least=1)
        for name in ("n_encoder_layers", "n_decoder_layers"):
            self._require_int(name, least=0)
        self._check_sizes()
        self._require_choice("norm", ("post", "pre"))
        self._require_choice("position", tuple(POSITIONS))
        self.positions.check(d_k=self.d_k)
        self._require_choice("activation", ("relu", "gelu"))
        self._require_choice("final_norm", (True, False, None))
        self._require_choice("tie_embeddings", (True, False))

    @property
    def ties_all_three(self) -> bool:
        """Whether source embedding, target embedding and output projection are one matrix."""
        return self.tie_embeddings and self.src_vocab == self.tgt_vocab

    @property
    def depths(self) -> tuple[int, int]:
        """Number of encoder and of decoder layers."""
        return self.n_encoder_layers, self.n_decoder_layers


@checked_class
@dataclass(frozen=True)
class VisionConfig(LayerConfig):
    """The sizes of a Transformer that reads a picture, as patches, and writes a text.

    Pre-norm with a final LayerNorm, GELU and learned positions are fixed, as in Dosovitskiy et al. 2021.

    Args:
        tgt_vocab: number of target token ids; id 0 is padding.
        image_size: height and width of a picture in pixels.
        patch_size: height and width of a patch; must divide image_size.
        d_model: width of every vector between layers.
        n_heads: attention heads per layer; must divide d_model.
        n_encoder_layers: encoder blocks.
        n_decoder_layers: decoder blocks.
        d_ff: inner width of the feed-forward networks.
        dropout: probability in [0, 1), on each sublayer's output and on the embedded input.
        max_len: number of rows of the target's position table: the longest target.
        layer_norm_eps: added to the variance inside the square root.

    Raises:
        ConfigError: a value is out of range; the message names it.
    """

    tgt_vocab: int
    _: KW_ONLY
    image_size: int = 224
    patch_size: int = 16
    d_model: int = 768
    n_heads: int = 12
    n_encoder_layers: int = 12
    n_decoder_layers: int = 12
    d_ff: int = 3072
    dropout: float = 0.1
    max_len: int = 512
    layer_norm_eps: float = 1e-5

    norm = "pre"
    final_norm = True
    activation = "gelu"
    position = "learned"
    tie_embeddings = False
    ties_all_three = False

    def __post_init__(self) -> None:
        for name in ("tgt_vocab", "image_size", "patch_size"):
            self._require_int(name, least=1)
        for name in ("n_encoder_layers", "n_decoder_layers"):
            self._require_int(name, least=0)
        self._check_sizes()
        if self.image_size % self.patch_size:
            raise ConfigError(
                N_("image_size={image_size} cannot be cut into patches of {patch_size}: choose a divisor of it."),
                image_size=self.image_size,
                patch_size=self.patch_size,
            )

    @property
    def depths(self) -> tuple[int, int]:
        """Number of encoder and of decoder layers."""
        return self.n_encoder_layers, self.n_decoder_layers

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image_size // self.patch_size, self.image_size // self.patch_size


EncoderDecoderConfig = TransformerConfig | VisionConfig
"""What a Transformer of two stacks is made from."""


@checked_class
@dataclass(frozen=True)
class GPTConfig(LayerConfig):
    """The sizes of a decoder-only model, GPT-2's smallest by default (Radford et al. 2019, table 2).

    Pre-norm with a final LayerNorm and exact GELU are fixed.

    Args:
        vocab: number of token ids; id 0 is padding.
        d_model: width of every vector between layers.
        n_heads: attention heads per layer; must divide d_model.
        n_layers: blocks.
        d_ff: inner width of the feed-forward networks; 0: there are none, blocks of attention alone (Elhage et al.
            2021).
        dropout: probability in [0, 1), on each sublayer's output and on the embedded input.
        max_len: number of rows of the position table: the longest text.
        layer_norm_eps: added to the variance inside the square root.
        position: "learned" (a table) or "none".
        causal: whether a token attends only to itself and those before it; without, the model reads what it is to
            predict.

    Raises:
        ConfigError: a value is out of range; the message names it.
    """

    vocab: int
    _: KW_ONLY
    d_model: int = 768
    n_heads: int = 12
    n_layers: int = 12
    d_ff: int = 3072
    dropout: float = 0.1
    max_len: int = 1024
    layer_norm_eps: float = 1e-5
    position: PositionName = "learned"
    causal: bool = True

    norm = "pre"
    final_norm = True
    activation = "gelu"

    def __post_init__(self) -> None:
        self._require_int("vocab", least=1)
        self._require_int("n_layers", least=1)
        self._check_sizes(least_d_ff=0)
        self._require_choice("position", ("learned", "none"))
        self._require_choice("causal", (True, False))

    @property
    def depths(self) -> tuple[None, int]:
        """No encoder, and the number of blocks."""
        return None, self.n_layers
