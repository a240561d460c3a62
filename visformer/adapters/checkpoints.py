"""The checkpoints of a model: the bundled ones, and those kept at moments of a training. Does not import torch.

Each of these has a name of its own, "en-zh@3", for the command line and wherever else a model is a single text.
"""

import csv
import json
import operator
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from safetensors import SafetensorError, safe_open

from visformer.errors import N_, CheckpointError
from visformer.system.files import remedy_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bundled:
    """What is known of a bundled model before it is loaded.

    Args:
        source: where its weights come from.
        reads: whether it reads a text or a picture.
    """

    source: str = "bundled; trained on CC-BY 2.0 FR sentences from Tatoeba"
    reads: Literal["text", "image"] = "text"


BUNDLED = {
    (TRANSLATOR := "en-zh"): Bundled(),
    (GPT := "mini-gpt"): Bundled(),
    (GPT_2 := "mini-gpt-2"): Bundled(),
    (CAPTIONER := "mini-caption"): Bundled("bundled; trained on scenes that a script draws", reads="image"),
}
"""Folders in visformer/model/checkpoints: translator, decoder-only model, a second seed of it, captioner."""


def reads_pictures(name: str) -> bool:
    """Whether this is a bundled model that reads a picture."""
    return name in BUNDLED and BUNDLED[name].reads == "image"


OF_TEXT = tuple(name for name, model in BUNDLED.items() if model.reads == "text")
"""The bundled models that read a text."""


def folder_of(name: str) -> Path:
    """Return the folder of a model; for a hub id there is none at that path."""
    return Path(__file__).resolve().parents[1] / "model" / "checkpoints" / name if name in BUNDLED else Path(name)


def start_of(name: str) -> tuple[str, int, int] | None:
    """Return the stack, layer and head that ``scripts/choose_heads.py`` chose for a bundled model; None: none."""
    if name in BUNDLED:
        with suppress(OSError, ValueError, LookupError, TypeError):  # visformer doctor says what is wrong
            head = json.loads((folder_of(name) / "start.json").read_text(encoding="utf-8"))
            return str(head["stack"]), int(head["layer"]), int(head["head"])
    return None


HEADS = "heads.csv"
"""The scores of all heads at each moment, beside the moments of a bundled model."""

_SHOWN = 80  # characters of a name that is too long
_NAME = re.compile(r"(.+)@(\d{1,4})", re.ASCII)
_OF_TRANSFORMERS = re.compile(r"checkpoint-(\d+)", re.ASCII)


@dataclass(frozen=True)
class Checkpoint:
    """The weights of one moment of a training."""

    folder: Path  # a checkpoint of visformer or of transformers
    weights: Path | int | None  # a file with its weights, or the seed they come from; None: those of the folder
    figures: dict[str, float]  # "step" and whatever else is known


def moments(name: str | Path) -> "pd.DataFrame":
    """List the moments of a model's training that ``visformer.load(name, moment=...)`` can load.

    Args:
        name: a bundled model; the ``checkpoint`` folder of ``visformer train --keep-moments``; or a folder of
            transformers' Trainer, with ``checkpoint-500``, ``checkpoint-1000`` and so on.

    Returns:
        A row for each moment, the first one first; NaN for what is not known. Always "moment" (from 0), "step" (of the
        optimizer), "tokens" (seen by then: source and target, without padding) and "loss" (held-out, in nats a token).
        For the bundled translator also "bleu_en_zh" and "bleu_zh_en" (0 to 100, on held-out pairs), "aer_en_zh" and
        "aer_zh_en" (alignment error rate of the best cross-attention head in rows whose input is the word, 0 to 1) and
        "kl" (divergence of what is stored from the trained model, in nats a token); for transformers "train_loss", as
        logged.

    Raises:
        CheckpointError: no such model, it has no history, or a file of it cannot be read.
    """
    import pandas as pd

    rows = [{"moment": number, **moment.figures} for number, moment in enumerate(history(str(name)))]
    columns = dict.fromkeys([*("moment", "step", "tokens", "loss"), *(key for row in rows for key in row)])
    return pd.DataFrame(rows, columns=list(columns))


def head_scores(name: str | Path) -> "pd.DataFrame | None":
    """Return the record of ``visformer.analysis.head_history`` that lies beside a model's moments; None: there is none.

    Raises:
        CheckpointError: no such model, or the file cannot be read.
    """
    path = _folder(str(name)) / "moments" / HEADS
    if not path.exists():
        return None
    import pandas as pd

    with _readable(path):
        return pd.read_csv(path)


def model_of(name: str) -> tuple[str, int | None]:
    """Split the name of a moment, such as "en-zh@3", into the model's name and the moment; None: no moment."""
    match = None if os.path.exists(name) else _NAME.fullmatch(name)  # Path.exists raises at a text that is too long
    return (name, None) if match is None else (match[1], int(match[2]))


def moment_name(name: str, moment: int) -> str:
    """Return the name of a moment of a model's training, see :func:`model_of`."""
    return f"{name}@{moment}"


def find(name: str, moment: int | None = None) -> tuple[str, int | None, Checkpoint]:
    """Return the model's name, the number of the moment (None: neither name nor argument has one), and the moment.

    A folder of transformers' checkpoints that holds no model itself is the last of them.

    Raises:
        CheckpointError: the model has no such moment, or the text is no name of a file.
    """
    if moment is None:
        name, moment = model_of(name)
    if moment is None:
        folder = _folder(name)
        return name, None, history(name)[-1] if _has_only_moments(folder) else Checkpoint(folder, None, {})
    kept = history(name)
    try:
        number = range(len(kept))[operator.index(moment)]
    except (IndexError, TypeError) as error:
        raise CheckpointError(
            N_("moment={moment!r}: {name!r} has the moments 0 to {last}; -1 is the last one."),
            moment=moment,
            name=name,
            last=len(kept) - 1,
        ) from error
    return name, number, kept[number]


def _folder(name: str) -> Path:
    """Return the folder of a model, whether or not it is there."""
    folder = folder_of(name)
    try:
        (folder / "moments" / "moments.json").exists()
    except OSError as error:  # it is too long, or may not be read
        raise CheckpointError(
            N_("{name!r} cannot be the name of a model ({reason}): choose a bundled one, or give another folder."),
            name=name if len(name) <= _SHOWN else f"{name[: _SHOWN - 1]}…",
            reason=error.strerror,
        ) from error
    return folder


def _has_only_moments(folder: Path) -> bool:
    is_model = any((folder / file).exists() for file in ("config.json", "model.safetensors", "model.z"))
    return not is_model and any(_OF_TRANSFORMERS.fullmatch(path.name) for path in folder.glob("checkpoint-*/"))


def history(name: str) -> list[Checkpoint]:
    """Return every moment of a model's training that was kept, the first one first.

    Raises:
        CheckpointError: there is none, or a file of it cannot be read.
    """
    folder = _folder(name)
    if (folder / "moments" / "moments.json").exists():
        found = [*_packed(folder)]
    elif (folder / "moments").is_dir():
        found = [*_trained(folder)]
    else:
        found = [*_of_transformers(folder)]
    if not found:
        raise CheckpointError(
            N_(
                "{name!r} has no history: there is one of {bundled}, of a checkpoint trained with --keep-moments, and "
                "of a folder with checkpoint-500, checkpoint-1000 ... of transformers."
            ),
            name=name,
            bundled=", ".join(each for each in BUNDLED if (folder_of(each) / "moments").is_dir()),
        )
    return found


def _packed(folder: Path) -> Iterator[Checkpoint]:
    """The moments that scripts/bundle.py packed: the first comes from its seed, the last is the model itself."""
    path = folder / "moments" / "moments.json"
    with _readable(path):
        record = json.loads(path.read_text(encoding="utf-8"))
        first, *between, last = (dict(row) for row in record["moments"])
        files = [folder / "moments" / f"step-{row['step']:07d}.z" for row in between]
        seed = int(record["seed"])
    for weights, row in zip([seed, *files, None], [first, *between, last], strict=True):
        yield Checkpoint(folder, weights, row)


def _trained(folder: Path) -> Iterator[Checkpoint]:
    """The moments that ``visformer train`` kept; the last one is there once the training has ended."""
    for number, path in enumerate(sorted((folder / "moments").glob("step-*.safetensors"))):
        with _readable(path), safe_open(path, framework="numpy") as file:
            record = {key: json.loads(value) for key, value in file.metadata().items()}
            seed = int(record["seed"])
            figures = {key: record[key] for key in ("step", "tokens", "loss") if key in record}
        if not number:
            yield Checkpoint(folder, seed, {"step": 0, "tokens": 0})
        yield Checkpoint(folder, path, figures)
    if (folder / "model.safetensors").exists():
        curve = folder / "curve.csv"
        with _readable(curve), curve.open(encoding="utf-8", newline="") as file:
            *_, row = csv.DictReader(file)
            figures = {"step": int(row["step"]), "tokens": int(row["tokens"]), "loss": float(row["valid_loss"])}
        yield Checkpoint(folder, None, figures)


def _of_transformers(folder: Path) -> Iterator[Checkpoint]:
    """The checkpoints that transformers' Trainer saved on the way, and what it logged."""
    paths = {int(match[1]): path for path in folder.glob("*/") if (match := _OF_TRANSFORMERS.fullmatch(path.name))}
    for step, path in sorted(paths.items()):
        state = path / "trainer_state.json"
        figures: dict[str, float] = {"step": step}
        if state.exists():
            with _readable(state):
                figures |= _logged(json.loads(state.read_text(encoding="utf-8")), step)
        yield Checkpoint(path, None, figures)


def _logged(state: dict[str, Any], step: int) -> dict[str, float]:
    """What a trainer_state.json tells of its step: the loss of an evaluation then, and the last one in training."""
    figures = {}
    for row in state["log_history"]:
        if "loss" in row:
            figures["train_loss"] = float(row["loss"])
        if "eval_loss" in row and row["step"] == step:
            figures["loss"] = float(row["eval_loss"])
    if tokens := state.get("num_input_tokens_seen"):  # 0: not counted
        figures["tokens"] = int(tokens)
    return figures


def figures_of(name: str) -> tuple[dict[str, float], ...]:
    """Return what is known of each moment of a model's training, the first one first; none: not kept."""
    try:
        return tuple(moment.figures for moment in history(model_of(name)[0]))
    except CheckpointError:
        return ()


def steps(name: str) -> tuple[int, ...]:
    """Return the step of the optimizer at each moment of a model's training, the first one first; none: not kept."""
    return tuple(int(figures["step"]) for figures in figures_of(name))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name a file that cannot be read, and its remedy."""
    try:
        yield
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(
            N_("{path} cannot be read ({reason}): {remedy}."),
            path=path,
            reason=error,
            remedy=remedy_of(path),
        ) from error
