"""Checkpoints: a folder with model.safetensors, its tokenizer.json and its model card (README.md).

The weights are float16: half the size, each within 1/2048 of the trained value. They are loaded as float32. In place of
model.safetensors there may be model.z, of about five bits a weight (:mod:`visformer.model.moments`).
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from visformer.errors import N_, CheckpointError, ShortageError
from visformer.model.kinds import CONFIGS, Config, Model, build, kind_of
from visformer.model.moments import metadata_of, unpack
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import load_state
from visformer.system.files import require_files, whole
from visformer.system.memory import enough_memory

FOLDER = Path(__file__).resolve().parent
"""Contains a folder for each bundled checkpoint."""


def save_checkpoint(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Write the weights and the tokenizer."""
    save_weights(folder / "model.safetensors", model)
    tokenizer.save(folder / "tokenizer.json")


def save_weights(path: Path, model: Model, **told: float) -> None:
    """Write the weights as float16 (tied matrices once); the metadata has kind, config and what else is told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().to(torch.float16).contiguous() for name, p in model.named_parameters()}
    metadata = {"kind": kind_of(model.config), "config": asdict(model.config), **told}
    with whole(path) as partial:
        save_file(weights, partial, metadata={key: json.dumps(value) for key, value in metadata.items()})


def load_checkpoint(folder: Path, *, dtype: torch.dtype = torch.float32) -> tuple[Model, Tokenizer]:
    """Read a checkpoint, in evaluation mode.

    Args:
        folder: contains model.safetensors or model.z, and tokenizer.json.
        dtype: dtype of the loaded weights.

    Raises:
        CheckpointError: a file is missing or damaged; the message says which and how to restore it.
    """
    require_files(folder)
    packed, path = folder / "model.z", folder / "model.safetensors"
    path = packed if packed.exists() else path
    try:
        with enough_memory():
            metadata, state = _read(path)
            kind = json.loads(metadata.get("kind", '"transformer"'))
            config = CONFIGS[kind](**json.loads(metadata["config"]))
            _require_room(config, state)
            model = build(config).to(dtype)
            load_state(model, {name: weight.to(dtype) for name, weight in state.items()})
    except ShortageError:
        raise
    except (
        OSError,
        SafetensorError,
        zlib.error,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RuntimeError,
    ) as error:
        raise CheckpointError(
            N_("The weights {path} cannot be read ({reason}): restore the file, e.g. git checkout -- {path}"),
            path=path,
            reason=error,
        ) from error
    return model.eval(), Tokenizer.load(folder / "tokenizer.json")


def _read(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    if path.suffix == ".z":
        packed = path.read_bytes()
        return metadata_of(packed), unpack(packed)
    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)


def _require_room(config: Config, state: Mapping[str, torch.Tensor]) -> None:
    """Refuse a config far larger than its weights before allocating memory: a file may claim any size."""
    held = sum(tensor.numel() for tensor in state.values())
    layers = sum(filter(None, config.depths))
    vocab = max(size for name, size in vars(config).items() if name.endswith("vocab"))
    per_layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff  # of attention and feed-forward, at least
    positions = config.max_len if config.position == "learned" else 0
    wanted = layers * per_layer + config.d_model * max(vocab, positions)
    if wanted > held or layers > len(state):
        raise ValueError(f"its config asks for {wanted:,} weights and more, and it has {held:,}")
