"""Checkpoints: a folder with model.safetensors and tokenizer.json.

One that was evaluated has evaluation.json, a bundled one also a model card (README.md), with the figures of that.

The weights are float16: half the size, each within 1/2048 of the trained value. They are loaded as float32. In place of
model.safetensors there may be model.z, of about five bits a weight: each row of a matrix is rounded to whole steps of a
fraction of its root mean square. Small numbers are then the common ones, so that Huffman codes take fewer bits than a
fixed width. There are no repetitions for DEFLATE to look for.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, load_file, save, save_file
from torch import Tensor

from visformer.errors import N_, CheckpointError, ShortageError
from visformer.model.kinds import CONFIGS, Config, Model, build, initial_model, kind_of
from visformer.model.tokenizer import Tokenizer
from visformer.model.transformer import load_state
from visformer.system.files import remedy_of, require_files, whole
from visformer.system.memory import enough_memory

FOLDER = Path(__file__).resolve().parent
"""Contains a folder for each bundled checkpoint."""

STEP = 0.12
"""Step, in root mean squares of a row: on the bundled translator a divergence of 0.003 nats a token."""

_ROW_STEP = ".step"
_MOST_EXPANDED = 8
"""Huffman codes take at least one bit for a byte: more comes from bytes that :func:`pack` did not write."""


def save_checkpoint(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    """Write the weights and the tokenizer."""
    save_weights(folder / "model.safetensors", model)
    tokenizer.save(folder / "tokenizer.json")


def save_weights(path: Path, model: Model, **more: float) -> None:
    """Write the weights as float16 (tied matrices once); the metadata has kind, config and ``more``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    weights = {name: p.detach().to(torch.float16).contiguous() for name, p in model.named_parameters()}
    metadata = {"kind": kind_of(model.config), "config": asdict(model.config), **more}
    with whole(path) as partial:
        save_file(weights, partial, metadata={key: json.dumps(value) for key, value in metadata.items()})


def load_checkpoint(
    folder: Path, *, weights: Path | int | None = None, dtype: torch.dtype = torch.float32
) -> tuple[Model, Tokenizer]:
    """Read a checkpoint, in evaluation mode.

    Args:
        folder: contains model.safetensors or model.z, and tokenizer.json.
        weights: those of another moment of its training: a file, packed if it ends in .z, or the seed of the first.
        dtype: dtype of the loaded weights.

    Raises:
        CheckpointError: a file is missing or damaged; the message says which and how to restore it.
    """
    packed = folder / "model.z"
    path = packed if packed.exists() else folder / "model.safetensors"
    require_files(folder)
    with _readable(path):
        metadata, shapes = _header(path)
        kind = json.loads(metadata.get("kind", '"transformer"'))
        config = CONFIGS[kind](**json.loads(metadata["config"]))
        _require_room(config, shapes)
    if isinstance(weights, int):
        model = initial_model(config, weights).to(dtype)
    else:
        path = weights or path
        with _readable(path):
            state = unpack(path.read_bytes()) if path.suffix == ".z" else load_file(path)
            model = build(config).to(dtype)
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
            N_("The weights {path} cannot be read ({reason}): {remedy}."),
            path=path,
            reason=error,
            remedy=remedy_of(path),
        ) from error


def unsure_below(folder: Path) -> float | None:
    """Return the confidence below which translations count as unsure, which the evaluation of a checkpoint chose.

    Args:
        folder: may contain evaluation.json, which ``visformer evaluate --judged --json`` prints.

    Returns:
        From 0 to 1; None if the checkpoint was not evaluated, or had no translation right or none wrong. Also while
        the file is empty: a shell makes it before the evaluation that it is for begins.

    Raises:
        CheckpointError: the file is damaged; the message says what to do.
    """
    path = folder / "evaluation.json"
    try:
        evaluation = json.loads(path.read_text(encoding="utf-8") or "{}")
        return None if evaluation.get("calibration") is None else float(evaluation["calibration"]["threshold"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            N_("The evaluation {path} cannot be read ({reason}): restore the file or delete it."),
            path=path,
            reason=error,
        ) from error


def _header(path: Path) -> tuple[dict[str, str], list[list[int]]]:
    """The metadata of weights, and their shapes."""
    if path.suffix == ".z":
        packed = path.read_bytes()
        return metadata_of(packed), [list(weight.shape) for weight in unpack(packed).values()]
    with safe_open(path, framework="pt") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 (no mapping)
        return file.metadata() or {}, shapes


def _require_room(config: Config, shapes: list[list[int]]) -> None:
    """Refuse a config far larger than its weights before allocating memory: a file may claim any size."""
    held = sum(map(prod, shapes))
    layers = sum(filter(None, config.depths))
    vocab = max(size for name, size in vars(config).items() if name.endswith("vocab"))
    per_layer = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff  # of attention and feed-forward, at least
    positions = config.max_len if config.position == "learned" else 0
    wanted = layers * per_layer + config.d_model * max(vocab, positions)
    if wanted > held or layers > len(shapes):
        raise ValueError(f"its config asks for {wanted:,} weights and more, and it has {held:,}")


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
