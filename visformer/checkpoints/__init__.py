"""Checkpoints: a folder with model.safetensors, its tokenizer.json and its model card (README.md).

The weights are float16: half the size, and each is within 1/2048 of what was trained; they are loaded as float32.
"""

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from visformer.config import TransformerConfig
from visformer.errors import N_, CheckpointError
from visformer.model.transformer import Transformer, load_state
from visformer.tokenizer import Tokenizer

FOLDER = Path(__file__).resolve().parent
"""Each bundled checkpoint is a folder in here."""

BUNDLED = ("en-zh",)


def save_checkpoint(folder: Path, model: Transformer, tokenizer: Tokenizer) -> None:
    """Write the weights as float16 (tied matrices once), the config beside them, and the tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().to(torch.float16).contiguous() for name, p in model.named_parameters()}
    save_file(weights, folder / "model.safetensors", metadata={"config": json.dumps(asdict(model.config))})
    tokenizer.save(folder / "tokenizer.json")


def load_checkpoint(folder: Path, *, dtype: torch.dtype = torch.float32) -> tuple[Transformer, Tokenizer]:
    """Read a checkpoint, in evaluation mode.

    Args:
        folder: with model.safetensors and tokenizer.json.
        dtype: of the loaded weights.

    Raises:
        CheckpointError: a file is missing or damaged; the message says which and how to restore it.
    """
    path = folder / "model.safetensors"
    try:
        with safe_open(path, framework="pt") as file:
            config = TransformerConfig(**json.loads(file.metadata()["config"]))
            state = {name: file.get_tensor(name).to(dtype) for name in file.keys()}  # noqa: SIM118 (no mapping)
        model = Transformer(config).to(dtype)
        load_state(model, state)
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            N_("The weights {path} cannot be read ({reason}): restore the file, e.g. git checkout -- {path}"),
            path=path,
            reason=error,
        ) from error
    return model.eval(), Tokenizer.load(folder / "tokenizer.json")
