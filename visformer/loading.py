"""From a name or a module to a model that translates and traces."""

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from visformer.adapters.base import TracedModel
from visformer.adapters.own import Translator
from visformer.checkpoints import BUNDLED, FOLDER, load_checkpoint
from visformer.errors import N_, CheckpointError, VisformerError
from visformer.memory import keep_freed_memory
from visformer.model.transformer import Transformer


def load(name: str | Path, *, device: str = "cpu", dtype: torch.dtype | None = None) -> TracedModel:
    """A bundled model by name, a local folder, or a model of the Hugging Face hub by its id.

    Bundled models and folders use no network. Also tells malloc to keep freed memory for the next trace
    (:mod:`visformer.memory`), process-wide.

    Args:
        name: "en-zh"; a folder with a checkpoint of our own or of transformers; or a hub id, "owner/model".
        device: where the model runs.
        dtype: of the weights; None: float32.

    Raises:
        CheckpointError: no such model, or its files are missing or damaged; the message says how to restore them.
    """
    keep_freed_memory()
    folder = FOLDER / name if name in BUNDLED else Path(name)
    if not folder.is_dir() or _is_of_transformers(folder):
        return _load_hub(str(name), device=device, dtype=dtype)
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


def _is_of_transformers(folder: Path) -> bool:
    """Their checkpoints say in config.json what they are; ours have none."""
    return (folder / "config.json").is_file()


def _load_hub(name: str, *, device: str, dtype: torch.dtype | None) -> TracedModel:
    if find_spec("transformers") is None:
        raise CheckpointError(
            N_(
                "There is no model {name!r}: bundled is {bundled}, and no folder with our checkpoint has that name. "
                "Models of transformers need one more installation: {remedy}"
            ),
            name=name,
            bundled=", ".join(BUNDLED),
            remedy="pip install -r requirements-hf.txt",
        )
    from visformer.adapters.hf_load import load_hub

    return load_hub(name, device=device, dtype=dtype)


def load_to_serve(name: str | Path) -> TracedModel:
    """As :func:`load`, in a process that serves visitors: torch gets half of the cores (OMP_NUM_THREADS overrides it).

    A sentence is too short to gain from more, and the others decode for other visitors, or draw where the browser runs
    on the same machine. Threads that wait for each other on a busy core take several times as long as one alone.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    return load(name)


def wrap(module: nn.Module, tokenizer: Any) -> TracedModel:
    """A model that is already in memory, put into evaluation mode.

    Args:
        module: a Transformer of ours, or a model of transformers, which gets visformer's attention function.
        tokenizer: its tokenizer.

    Raises:
        VisformerError: another kind of module.
    """
    if isinstance(module, Transformer):
        return Translator(module.eval(), tokenizer)
    if "transformers" in sys.modules:
        from visformer.adapters.hf import HubModel, is_pretrained

        if is_pretrained(module):
            return HubModel(module, tokenizer)
    raise VisformerError(
        N_("wrap takes a visformer.Transformer or a model of transformers, not {kind}."), kind=type(module).__name__
    )


def untrained(like: TracedModel, *, norm: Literal["pre", "post"], seed: int = 0) -> Translator:
    """A model of the same sizes and tokenizer with random weights: what training has to start from.

    Args:
        like: gives sizes and tokenizer.
        norm: "post", as in the paper, or "pre".
        seed: of the weights; torch's own generator is left as it was.

    Raises:
        VisformerError: not a model of ours.
    """
    if not isinstance(like, Translator):
        raise VisformerError(N_("Only a Transformer of visformer's own can be shown untrained."))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = Transformer(replace(like.module.config, norm=norm))
    return Translator(module.eval(), like.tokenizer, name=f"untrained, {norm}-norm")
