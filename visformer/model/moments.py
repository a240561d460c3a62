"""The weights of a moment of a training: the first from their seed, the others in about five bits a weight.

Each row of a matrix is rounded to whole steps of a fraction of its root mean square. Small numbers are then the common
ones, so that Huffman codes take fewer bits than a fixed width. There are no repetitions for DEFLATE to look for.
"""

import threading
import zlib
from collections.abc import Mapping

import torch
from safetensors.torch import load, save
from torch import Tensor

from visformer.model.config import TransformerConfig
from visformer.model.transformer import Transformer

STEP = 0.12
"""Step, in root mean squares of a row: on the bundled translator a divergence of 0.003 nats a token."""

_ROW_STEP = ".step"
_MOST_EXPANDED = 8
"""Huffman codes take at least one bit for a byte: more comes from bytes that :func:`pack` did not write."""

_SEEDING = threading.Lock()
"""All threads share torch's generator: two models made at once must not take numbers from each other's seed."""


def initial_model(config: TransformerConfig, seed: int) -> Transformer:
    """A model before its first step: the same weights for the same seed; torch's generator is left as it was."""
    with _SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Transformer(config)


def pack(weights: Mapping[str, Tensor]) -> bytes:
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
    return coder.compress(save(arrays)) + coder.flush()


def unpack(packed: bytes) -> dict[str, Tensor]:
    """Return the weights that :func:`pack` rounded, float32.

    Raises:
        zlib.error, SafetensorError: the bytes are damaged.
    """
    decoder = zlib.decompressobj()
    content = decoder.decompress(packed, _MOST_EXPANDED * len(packed))
    if not decoder.eof:
        raise zlib.error("cut off, or longer than such weights can be")
    arrays = load(content)
    steps = {name: arrays.pop(name + _ROW_STEP).float() for name in list(arrays) if name + _ROW_STEP in arrays}
    return {name: array.float() * steps.get(name, 1.0) for name, array in arrays.items()}
