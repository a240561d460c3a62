"""Names that describe an untrained Transformer: ``untrained-128x4-enc2-dec2-ff512-pre-learned-seed3``.

"untrained" alone has the default sizes.
Pages, links, ``visformer.load`` and the command line all use the same names.
"""

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, cast

from visformer.errors import N_, ConfigError
from visformer.model.config import TransformerConfig
from visformer.model.positions import PAPERS, POSITIONS, PositionName

EXAMPLE = "untrained-128x4-enc2-dec2-ff512"
"""An example of a name, for messages."""

UNTRAINED = "untrained"
"""The name of one with the default sizes."""

_PREFIX = "untrained-"
_NUMBER = r"(0|[1-9]\d{0,8})"
_OTHERS = [name for name in POSITIONS if name != PAPERS]
_KINDS = "|".join(_OTHERS)
_NAME = re.compile(
    rf"untrained-{_NUMBER}x{_NUMBER}-enc{_NUMBER}-dec{_NUMBER}-ff{_NUMBER}(-pre)?(?:-({_KINDS}))?(?:-seed([1-9]\d{{0,8}}))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Untrained:
    """Sizes and choices as in :class:`visformer.TransformerConfig`, and the seed of the random weights.

    The default is as large as the bundled translator, so that the two can be compared.

    Raises:
        ConfigError: no such Transformer is possible.
    """

    d_model: int = 256
    n_heads: int = 8
    n_encoder_layers: int = 3
    n_decoder_layers: int = 3
    d_ff: int = 1024
    norm: Literal["post", "pre"] = "post"
    position: PositionName = "sinusoidal"
    seed: int = 0

    def __post_init__(self) -> None:
        self.config(vocab=1)
        if not isinstance(self.seed, int) or not 0 <= self.seed < 10**9:
            raise ConfigError(N_("seed={value!r} must be a whole number from 0 to 999999999."), value=self.seed)

    @classmethod
    def named(cls, name: str) -> Self:
        """Parse a name.

        Raises:
            ConfigError: the name does not have this form, or no such Transformer is possible.
        """
        if name == UNTRAINED:
            return cls()
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                N_(
                    "{name!r} is not the name of an untrained Transformer: write {example}, optionally "
                    "followed, in this order, by -pre, one of -{kinds}, -seed1."
                ),
                kinds=", -".join(_OTHERS),
                name=name,
                example=EXAMPLE,
            )
        *sizes, pre, position, seed = match.groups()
        d_model, n_heads, n_encoder_layers, n_decoder_layers, d_ff = map(int, sizes)
        return cls(
            d_model,
            n_heads,
            n_encoder_layers,
            n_decoder_layers,
            d_ff,
            norm="pre" if pre else "post",
            position=cast(PositionName, position or PAPERS),
            seed=int(seed or 0),
        )

    @property
    def name(self) -> str:
        """The name; choices of the paper are left out, so that each Transformer has one name."""
        depth = f"enc{self.n_encoder_layers}-dec{self.n_decoder_layers}"
        norm, position = "-pre" * (self.norm == "pre"), f"-{self.position}" * (self.position != PAPERS)
        seed = f"-seed{self.seed}" if self.seed else ""
        return f"{_PREFIX}{self.d_model}x{self.n_heads}-{depth}-ff{self.d_ff}{norm}{position}{seed}"

    @property
    def sizes(self) -> dict[str, Any]:
        """All fields but the seed, named as in a config."""
        return {name: value for name, value in asdict(self).items() if name != "seed"}

    def config(self, vocab: int) -> TransformerConfig:
        """The configuration for languages that share one vocabulary of this size and one embedding matrix."""
        return TransformerConfig(vocab, vocab, tie_embeddings=True, **self.sizes)


def is_untrained_name(name: str | None) -> bool:
    """Whether this is meant as the name of an untrained Transformer, well-formed or not."""
    return name is not None and (name == UNTRAINED or name.startswith(_PREFIX))
