"""Load weights from the Hugging Face hub or a local folder: safetensors only, no remote code, and helpful errors."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import constants
from transformers import AutoConfig, AutoProcessor
from transformers.utils import logging

from visformer.adapters.huggingface.families import refuse
from visformer.adapters.huggingface.files import files_of, helpful, is_here, snapshot_of
from visformer.adapters.huggingface.model import HubModel
from visformer.adapters.huggingface.pictures import TOKENS, adapted, processor_of, refuse_sound
from visformer.adapters.huggingface.run import HEADS, class_of, kind_of
from visformer.errors import N_, CheckpointError
from visformer.system.files import called

UNREADABLE = N_(
    "{name!r} cannot be loaded ({reason}). Visformer loads safetensors weights only, of families built into "
    "transformers, and runs no code shipped with a model."
)

ADAPTER = N_("The adapter {name!r} cannot be loaded ({reason}): it needs peft (pip install peft), and its base model.")


def load_hub(
    name: str,
    *,
    device: str | torch.device,
    dtype: torch.dtype | None,
    revision: str | None = None,
    **options: Any,
) -> HubModel:
    """Load a transformers model by hub id or from a folder, see :func:`visformer.load`; ``options``: its others.

    Raises:
        CheckpointError: no such model, or not one that visformer can load.
    """
    folder = Path(name)
    base = _base_of(folder)
    if base is not None:
        return _with_adapter(
            folder, load_hub(base, device=device, dtype=dtype, revision=revision, **options), named=base
        )
    licence = _licence(folder)
    with helpful(name, otherwise=UNREADABLE), _quiet():
        is_local = is_here(name) and revision is None
        safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": is_local}
        safe["revision"] = revision or "main"
        if not is_local:
            licence = files_of(name).licence
        config = AutoConfig.from_pretrained(name, **safe)
        refuse(config)
        # Where peft is installed, transformers looks for an adapter too: of a name it would ask the hub for one.
        place = str(snapshot_of(name)) if is_local else name
        module, missing = _module(place, config, dtype=dtype or "auto", **safe, **options)
        refuse_sound(module)
        _refuse_missing(name, missing)
        processor = _processor(module, name, **safe)
        if hasattr(processor, "tokenizer") or processor_of(module) == TOKENS:
            _require_vocabulary(folder, getattr(processor, "tokenizer", processor))
    return adapted(
        module if options else module.to(device),  # with one of these, the modules are where they belong
        processor,
        name=called(folder) if folder.is_dir() else name,
        licence=licence,
        source=str(folder) if folder.is_dir() else f"{constants.ENDPOINT}/{name}",
    )


def _base_of(folder: Path) -> str | None:
    """The model that the adapter in a folder is for; None: the folder holds none, or a whole model, too."""
    file = folder / "adapter_config.json"
    if not file.is_file() or (folder / "config.json").is_file():
        return None
    try:
        base = json.loads(file.read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        base = None
    if not isinstance(base, str) or not base:
        raise CheckpointError(
            N_("{file} does not name the model that this adapter is for: set base_model_name_or_path in it."), file=file
        )
    return base


def _with_adapter(folder: Path, model: HubModel, *, named: str) -> HubModel:
    """Return the model with the adapter in a folder."""
    with helpful(str(folder), otherwise=ADAPTER), _quiet():
        model.module.load_adapter(str(folder))
    return adapted(
        model.module,
        model.tokenizer,
        name=f"{called(folder)} ({named})",
        licence=_licence(folder),
        source=str(folder),
    )


def _module(name: str, config: Any, **options: Any) -> tuple[Any, list[str]]:
    """Load an encoder with the head that it was saved with, unless the head's weights are not there, and all else."""
    saved_as = (config.architectures or [""])[0] if kind_of(config) == "encoder" else ""
    heads = [f"AutoModel{head}" for head in HEADS if head in saved_as]
    for auto in (*(each for each in heads if hasattr(transformers, each)), class_of(config)):
        module, loading_info = getattr(transformers, auto).from_pretrained(
            name, use_safetensors=True, output_loading_info=True, **options
        )
        missing = sorted(key for key in loading_info["missing_keys"] if "pooler" not in key)
        if not missing:
            break
    return module, missing


def _processor(module: Any, name: str, **safe: Any) -> Any:
    """Load what a model reads with; a decoder without what its processor needs, such as torchvision, reads texts."""
    if hasattr(module.config, "image_token_id") and module.can_generate():
        with suppress(ImportError, OSError, ValueError):
            return AutoProcessor.from_pretrained(name, **safe)  # type: ignore[no-untyped-call]
    return getattr(transformers, processor_of(module)).from_pretrained(name, **safe)


def _refuse_missing(name: str, missing: list[str]) -> None:
    """Refuse missing weights, which would be random, as would all that depends on them."""
    if missing:
        raise CheckpointError(
            N_(
                "{name!r} has no weights for {first} ({count} missing in all); they would be random. Is the file "
                "complete?"
            ),
            name=name,
            first=missing[0],
            count=len(missing),
        )


def _require_vocabulary(folder: Path, tokenizer: Any) -> None:
    """Refuse a folder without one: transformers would make an empty tokenizer, to which every word is unknown."""
    files = set(type(tokenizer).vocab_files_names.values())
    if folder.is_dir() and files and not any((folder / file).exists() for file in files | {"tokenizer.json"}):
        raise CheckpointError(
            N_("{name!r} has no tokenizer: save it there with tokenizer.save_pretrained(folder)."),
            name=str(folder),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars: visitors do not see them, and they do not belong in a log."""
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _licence(folder: Path) -> str:
    """The licence named in the folder's model card, if there is one."""
    card = folder / "README.md"
    if not card.is_file():
        return "-"
    match = re.search(r"^license:\s*(\S+)", card.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return match[1] if match else "-"
