"""Checkpoints: a folder with model.safetensors and tokenizer.json.

One that was evaluated has evaluation.json, a bundled one also a model card (README.md), with the figures of that.

The weights are float16: half the size, each within 1/2048 of the trained value. They are loaded as float32.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from visformer.errors import N_, CheckpointError, ShortageError
from visformer.model.config import TransformerConfig
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


def load_checkpoint(folder: Path, *, dtype: torch.dtype = torch.float32) -> tuple[Transformer, Tokenizer]:
    """Read a checkpoint, in evaluation mode.

    Args:
        folder: contains model.safetensors and tokenizer.json.
        dtype: dtype of the loaded weights.

    Raises:
        CheckpointError: a file is missing or damaged; the message says which and how to restore it.
    """
    path = folder / "model.safetensors"
    require_files(folder)
    try:
        with enough_memory():
            with safe_open(path, framework="pt") as file:
                config = TransformerConfig(**json.loads(file.metadata()["config"]))
                state = {name: file.get_tensor(name).to(dtype) for name in file.keys()}  # noqa: SIM118 (no mapping)
            _require_room(config, state)
            model = Transformer(config).to(dtype)
            load_state(model, state)
    except ShortageError:
        raise
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise CheckpointError(
            N_("The weights {path} cannot be read ({reason}): restore the file, e.g. git checkout -- {path}"),
            path=path,
            reason=error,
        ) from error
    return model.eval(), Tokenizer.load(folder / "tokenizer.json")


def unsure_below(folder: Path) -> float | None:
    """Return the confidence below which translations count as unsure, which the evaluation of a checkpoint chose.

    Args:
        folder: may contain evaluation.json, which ``visformer evaluate --judged --json`` prints.

    Returns:
        From 0 to 1; None if the checkpoint was not evaluated, or had no translation right or none wrong.

    Raises:
        CheckpointError: the file is damaged; the message says what to do.
    """
    path = folder / "evaluation.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return None if told.get("calibration") is None else float(told["calibration"]["threshold"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            N_("The evaluation {path} cannot be read ({reason}): restore the file or delete it."),
            path=path,
            reason=error,
        ) from error


def _require_room(config: TransformerConfig, state: Mapping[str, torch.Tensor]) -> None:
    """Refuse a config far larger than its weights before allocating memory: a file may claim any size."""
    held = sum(tensor.numel() for tensor in state.values())
    layers = config.n_encoder_layers + config.n_decoder_layers
    per_layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff  # of attention and feed-forward, at least
    positions = config.max_len if config.position == "learned" else 0
    wanted = layers * per_layer + config.d_model * max(config.src_vocab, config.tgt_vocab, positions)
    if wanted > held or layers > len(state):
        raise ValueError(f"its config asks for {wanted:,} weights and more, and it has {held:,}")
