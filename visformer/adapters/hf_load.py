"""Weights from the Hugging Face hub or a local folder: safetensors only, no code of others, and errors that help."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from visformer.adapters.hf import HubModel
from visformer.adapters.hf_run import kind_of
from visformer.checkpoints import BUNDLED
from visformer.errors import N_, CheckpointError, Message

_CLASSES = {"encoder": AutoModel, "decoder": AutoModelForCausalLM, "encoder-decoder": AutoModelForSeq2SeqLM}

TIMEOUT = 10.0
"""Seconds that the hub gets for its first answer."""

UNREACHABLE = N_(
    "There is no model {name!r}: bundled is {bundled}, no folder has that name, and the hub {endpoint} does not "
    "answer. Set HF_ENDPOINT to a mirror that you reach, or download the model elsewhere and give its folder."
)
NOT_FOUND = N_(
    "There is no model {name!r}: bundled is {bundled}, no folder has that name, and the hub {endpoint} does not "
    "know it."
)
GATED = N_("{name!r} is on the hub {endpoint}, but only for those who asked for it: accept its terms there and log in.")
UNREADABLE = N_(
    "{name!r} cannot be loaded ({reason}). Visformer takes weights as safetensors only, of families that transformers "
    "itself knows, and runs no code that comes with a model."
)


def load_hub(name: str, *, device: str, dtype: torch.dtype | None) -> HubModel:
    """A model of transformers, by hub id or from a folder.

    Args:
        name: hub id or path.
        device: where it runs.
        dtype: of the weights; None: float32.

    Raises:
        CheckpointError: it is not there, or not what visformer loads.
    """
    folder = Path(name)
    licence = _licence(folder)
    with _helpful(name), _quiet():
        here = folder.is_dir() or try_to_load_from_cache(name, "config.json") is not None
        safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": here}
        if not here:  # one question with one answer, where the library would ask for each file and try again and again
            card = HfApi().model_info(name, timeout=TIMEOUT).card_data
            licence = str(getattr(card, "license", None) or "-")
        config = AutoConfig.from_pretrained(name, **safe)
        module = _CLASSES[kind_of(config)].from_pretrained(
            name, use_safetensors=True, attn_implementation="eager", dtype=dtype or torch.float32, **safe
        )
        tokenizer = AutoTokenizer.from_pretrained(name, **safe)
    return HubModel(
        module.to(device),
        tokenizer,
        name=folder.resolve().name if folder.is_dir() else name,
        licence=licence,
        source=str(folder) if folder.is_dir() else f"{constants.ENDPOINT}/{name}",
    )


@contextmanager
def _helpful(name: str) -> Iterator[None]:
    """Say what went wrong and what helps, instead of what the library says."""
    try:
        yield
    except Exception as error:  # the library raises a dozen kinds, and some bare
        causes = list(_causes(error))
        raise CheckpointError(
            _why(causes, is_folder=Path(name).is_dir()),
            name=name,
            bundled=", ".join(BUNDLED),
            endpoint=constants.ENDPOINT,
            reason=_first_line(causes),
        ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _why(causes: list[BaseException], *, is_folder: bool) -> Message:
    if is_folder:
        return UNREADABLE
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        return GATED
    if any(isinstance(cause, RepositoryNotFoundError | HFValidationError) for cause in causes):
        return NOT_FOUND
    away = ("LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError", "ConnectionError", "ConnectTimeout",
            "ReadTimeout", "ProxyError")  # fmt: skip
    if any(type(cause).__name__ in away for cause in causes):
        return UNREACHABLE
    return UNREADABLE


def _first_line(causes: list[BaseException]) -> str:
    text = str(causes[0]).strip() or type(causes[0]).__name__
    return text.splitlines()[0].rstrip(".:")


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars: a visitor does not see them, and a log is no place for them."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _licence(folder: Path) -> str:
    """What the model card in the folder names, if there is one."""
    card = folder / "README.md"
    if not card.is_file():
        return "-"
    found = re.search(r"^license:\s*(\S+)", card.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    return found[1] if found else "-"
