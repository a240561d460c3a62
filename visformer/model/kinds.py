"""The kinds of model there are: each has a name, a configuration and a class."""

from visformer.model.config import GPTConfig, TransformerConfig
from visformer.model.gpt import GPT
from visformer.model.transformer import Transformer

Config = TransformerConfig | GPTConfig
Model = Transformer | GPT

CONFIGS: dict[str, type[Config]] = {"transformer": TransformerConfig, "gpt": GPTConfig}
"""Name of a kind, as checkpoints have it, to its configuration."""


def kind_of(config: Config) -> str:
    """The name of the kind that a configuration is of."""
    return next(name for name, kind in CONFIGS.items() if isinstance(config, kind))


def build(config: Config) -> Model:
    """A model with random weights."""
    return GPT(config) if isinstance(config, GPTConfig) else Transformer(config)
