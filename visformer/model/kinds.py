"""The kinds of model there are, each with a name, a configuration and a class, and how one is built."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from visformer.model.config import GPTConfig, TransformerConfig, VisionConfig
from visformer.model.gpt import GPT
from visformer.model.transformer import Transformer

Config = TransformerConfig | VisionConfig | GPTConfig
Model = Transformer | GPT

CONFIGS: dict[str, type[Config]] = {"transformer": TransformerConfig, "vision": VisionConfig, "gpt": GPTConfig}
"""Name of a kind, as checkpoints have it, to its configuration."""


def kind_of(config: Config) -> str:
    """The name of the kind that a configuration is of."""
    return next(name for name, kind in CONFIGS.items() if isinstance(config, kind))


def build(config: Config) -> Model:
    """A model with random weights."""
    return GPT(config) if isinstance(config, GPTConfig) else Transformer(config)


class _DrawingFrom(TorchFunctionMode):
    """Random weights come from a generator of their own: torch's is shared by all threads, whatever they draw."""

    DRAWS = (Tensor.uniform_, nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func not in self.DRAWS:
            return func(*args, **named)
        if torch.get_default_device().type == "meta":  # there, torch would import its compiler to draw, for seconds
            return named["tensor"] if "tensor" in named else args[0]
        return func(*args, **named | {"generator": self.generator})


def initial_model(config: Config, seed: int) -> Model:
    """A model before its first step: the same weights for the same seed; torch's generator is left as it was.

    Where torch's default device is "meta" it has no numbers, and none are drawn.
    """
    with _DrawingFrom(seed):
        return build(config)
