"""The weights of a model, or of a moment of its training: from their seed, or in about five bits a weight.

Each row of a matrix is rounded to whole steps of a fraction of its root mean square. Small numbers are then the common
ones, so that Huffman codes take fewer bits than a fixed width. There are no repetitions for DEFLATE to look for.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from visformer.model.kinds import Config, Model, build

STEP = 0.12
"""Step, in root mean squares of a row: on the bundled translator a divergence of 0.003 nats a token."""

_ROW_STEP = ".step"
_MOST_EXPANDED = 8
"""Huffman codes take at least one bit for a byte: more comes from bytes that :func:`pack` did not write."""


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


def pack(weights: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Round matrices to int8 multiples of a step for each row, vectors to float16, and compress them."""
    arrays: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() == 2:
            step = (STEP * weight.float().square().mean(dim=1, keepdim=True).sqrt()).half()  # (row, 1)
            steps = (weight.float() / step.float().clamp_min(1e-7)).round().clamp(-127, 127)
            arrays |= {name: steps.to(torch.int8), name + _ROW_STEP: step}
        else:
            arrays[name] = weight.half()
    coder = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    return coder.compress(save(arrays, metadata)) + coder.flush()


def unpack(packed: bytes) -> dict[str, Tensor]:
    """Return the weights that :func:`pack` rounded, float32.

    Raises:
        zlib.error, SafetensorError: the bytes are damaged.
    """
    arrays = load(_expanded(packed))
    steps = {name: arrays.pop(name + _ROW_STEP).float() for name in list(arrays) if name + _ROW_STEP in arrays}
    return {name: array.float() * steps.get(name, 1.0) for name, array in arrays.items()}


def metadata_of(packed: bytes) -> dict[str, str]:
    """Return the metadata that :func:`pack` was given: safetensors has it in its header, after the length of that.

    Raises:
        zlib.error, ValueError: the bytes are damaged.
    """
    content = _expanded(packed)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(header.get("__metadata__", {}))


def _expanded(packed: bytes) -> bytes:
    decoder = zlib.decompressobj()
    content = decoder.decompress(packed, _MOST_EXPANDED * len(packed))
    if not decoder.eof:
        raise zlib.error("cut off, or longer than such weights can be")
    return content
