"""From a name or a module to a model that translates and traces."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from visformer.adapters.own import Translator
from visformer.checkpoints import BUNDLED, FOLDER, load_checkpoint
from visformer.errors import N_, CheckpointError, VisformerError
from visformer.memory import keep_freed_memory
from visformer.model.transformer import Transformer
from visformer.tokenizer import Tokenizer


def load(name: str | Path, *, device: str = "cpu", dtype: torch.dtype | None = None) -> Translator:
    """A bundled model by name, or a checkpoint of our own from a local folder. No network is used.

    Also tells malloc to keep freed memory for the next trace (:mod:`visformer.memory`), process-wide.

    Args:
        name: "en-zh", or a folder with model.safetensors and tokenizer.json.
        device: where the model runs.
        dtype: of the weights; None: float32.

    Raises:
        CheckpointError: no such model, or its files are missing or damaged; the message says how to restore them.
    """
    folder = FOLDER / name if name in BUNDLED else Path(name)
    if not folder.is_dir():
        raise CheckpointError(
            N_(
                "There is no model {name!r}: bundled is {bundled}; "
                "anything else must be a folder with model.safetensors and tokenizer.json."
            ),
            name=str(name),
            bundled=", ".join(BUNDLED),
        )
    keep_freed_memory()
    module, tokenizer = load_checkpoint(folder, dtype=dtype or torch.float32)
    module = module.to(device)
    if name in BUNDLED:
        return Translator(
            module,
            tokenizer,
            name=str(name),
            licence="Apache-2.0",
            source="bundled; trained on CC-BY 2.0 FR sentences from Tatoeba",
        )
    return Translator(module, tokenizer, name=folder.name, source=str(folder))


def load_to_serve(name: str | Path) -> Translator:
    """As :func:`load`, in a process that serves visitors: torch gets half of the cores (OMP_NUM_THREADS overrides it).

    A sentence is too short to gain from more, and the others decode for other visitors, or draw where the browser runs
    on the same machine. Threads that wait for each other on a busy core take several times as long as one alone.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    return load(name)


def wrap(module: nn.Module, tokenizer: Tokenizer) -> Translator:
    """A Transformer of ours that is already in memory, put into evaluation mode.

    Raises:
        VisformerError: another kind of module.
    """
    if not isinstance(module, Transformer):
        raise VisformerError(N_("wrap takes a visformer.Transformer, not {kind}."), kind=type(module).__name__)
    return Translator(module.eval(), tokenizer)


def untrained(like: Translator, *, norm: Literal["pre", "post"], seed: int = 0) -> Translator:
    """A model of the same sizes and tokenizer with random weights: what training has to start from.

    Args:
        like: gives sizes and tokenizer.
        norm: "post", as in the paper, or "pre".
        seed: of the weights; torch's own generator is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Transformer(replace(like.module.config, norm=norm))
    return Translator(module.eval(), like.tokenizer, name=f"untrained, {norm}-norm")
