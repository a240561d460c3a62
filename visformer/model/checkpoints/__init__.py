"""Checkpoints: a folder with model.safetensors, its tokenizer.json and its model card (README.md).

The weights are float16: half the size, each within 1/2048 of the trained value. They are loaded as float32.
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from visformer.errors import N_, CheckpointError, ShortageError
from visformer.model.config import TransformerConfig
from visformer.model.moments import initial_model, unpack
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import Transformer, load_state
from visformer.system.files import require_files, whole
from visformer.system.memory import enough_memory

FOLDER = Path(__file__).resolve().parent
"""Contains a folder for each bundled checkpoint."""


def save_checkpoint(folder: Path, model: Transformer, tokenizer: Tokenizer) -> None:
    """Write the weights and the tokenizer."""
    save_weights(folder / "model.safetensors", model)
    tokenizer.save(folder / "tokenizer.json")


def save_weights(path: Path, model: Transformer, **told: float) -> None:
    """Write the weights as float16 (tied matrices once), with the config and what else is told as metadata."""
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().to(torch.float16).contiguous() for name, p in model.named_parameters()}
    metadata = {"config": asdict(model.config), **told}
    with whole(path) as partial:
        save_file(weights, partial, metadata={key: json.dumps(value) for key, value in metadata.items()})


def load_checkpoint(
    folder: Path, *, weights: Path | int | None = None, dtype: torch.dtype = torch.float32
) -> tuple[Transformer, Tokenizer]:
    """Read a checkpoint, in evaluation mode.

    Args:
        folder: contains model.safetensors and tokenizer.json.
        weights: those of another moment of its training: a file, packed if it ends in .z, or the seed of the first.
        dtype: dtype of the loaded weights.

    Raises:
        CheckpointError: a file is missing or damaged; the message says which and how to restore it.
    """
    path = folder / "model.safetensors"
    require_files(folder)
    with _readable(path), safe_open(path, framework="pt") as file:
        config = TransformerConfig(**json.loads(file.metadata()["config"]))
        _require_room(config, [file.get_slice(name).get_shape() for name in file.keys()])  # noqa: SIM118 (no mapping)
    if isinstance(weights, int):
        model = initial_model(config, weights).to(dtype)
    else:
        path = weights or path
        with _readable(path):
            state = unpack(path.read_bytes()) if path.suffix == ".z" else load_file(path)
            model = Transformer(config).to(dtype)
            load_state(model, state)
    return model.eval(), Tokenizer.load(folder / "tokenizer.json")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name a file that cannot be read, and its remedy."""
    try:
        with enough_memory():
            yield
    except ShortageError:
        raise
    except (
        OSError, SafetensorError, zlib.error, KeyError, TypeError, ValueError, OverflowError, RuntimeError
    ) as error:  # fmt: skip
        raise CheckpointError(
            N_("The weights {path} cannot be read ({reason}): restore the file, e.g. git checkout -- {path}"),
            path=path,
            reason=error,
        ) from error


def _require_room(config: TransformerConfig, shapes: list[list[int]]) -> None:
    """Refuse a config far larger than its weights before allocating memory: a file may claim any size."""
    held = sum(map(prod, shapes))
    layers = config.n_encoder_layers + config.n_decoder_layers
    per_layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff  # of attention and feed-forward, at least
    positions = config.max_len if config.position == "learned" else 0
    wanted = layers * per_layer + config.d_model * max(config.src_vocab, config.tgt_vocab, positions)
    if wanted > held or layers > len(shapes):
        raise ValueError(f"its config asks for {wanted:,} weights and more, and it has {held:,}")
