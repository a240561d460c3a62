"""The files of a hub model: which are loaded, how large they are, whether they are cached, and their download.

Does not import torch. A model is downloaded in a process of its own, which can be ended at any moment, even while the
network stalls or native code is running; an exception raised from a progress bar in a thread cannot do that. If it is
ended, the file in progress is discarded, and complete files stay.
"""

import errno
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

from visformer.adapters.checkpoints import BUNDLED
from visformer.errors import N_, CheckpointError, Message, ShortageError
from visformer.system.memory import enough_memory
from visformer.system.progress import report

TIMEOUT = 10.0
"""Seconds to wait for the hub's first answer."""

UNREACHABLE = N_(
    "There is no model {name!r}: the bundled ones are {bundled}, no folder has that name, and the hub {endpoint} "
    "does not answer. Set HF_ENDPOINT to a mirror you can reach, or download the model elsewhere and give its "
    "folder."
)
NOT_FOUND = N_(
    "There is no model {name!r}: the bundled ones are {bundled}, no folder has that name, and the hub {endpoint} "
    "does not know it."
)
GATED = N_("{name!r} is gated on the hub {endpoint}: accept its terms there and log in.")
FULL = N_(
    "{name!r} does not fit on the disk of {folder} ({reason}): free some space, or set HF_HOME to a folder with more."
)
UNANSWERED = N_("The hub {endpoint} does not report the size of {name!r} ({reason}).")
NO_SAFETENSORS = N_(
    "{name!r} has no model.safetensors on the hub {endpoint}, the only format visformer loads: choose another "
    "model, or convert it elsewhere and give its folder."
)

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_COMPANION = re.compile(r"[^/]+\.(json|txt|model|spm|jinja)|README\.md")
_OTHER_FRAMEWORK = re.compile(r".+\.index\.json|(tf|flax|onnx|openvino).*")


@dataclass(frozen=True)
class Files:
    """The files of a hub model that are loaded."""

    name: str  # hub id
    sizes: Mapping[str, int]  # bytes of each file, the weights last: once they are here, everything is
    licence: str  # as named in the model card

    @property
    def nbytes(self) -> int:
        """Bytes of all files together."""
        return sum(self.sizes.values())


def is_here(name: str) -> bool:
    """Whether a model can be loaded without the hub: from a folder, or with all weights from the cache.

    Raises:
        HFValidationError: this cannot be a name on a hub.
    """
    return os.path.isdir(name) or (_found(name, "config.json") is not None and has_weights(name))


def has_weights(name: str) -> bool:
    """Whether all weights of a model can be read, in its folder or in the cache.

    Raises:
        HFValidationError: this cannot be a name on a hub.
    """
    index = _found(name, _INDEX)
    if _found(name, _SINGLE) is not None or index is None:
        return _found(name, _SINGLE) is not None
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return all(_found(name, shard) for shard in shards)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return True  # but damaged: loading it raises the error


def may_have_processor(name: str) -> bool:
    """Whether a model has a file on how to read pictures or sound, or is not here, so that nobody knows."""
    try:
        return not is_here(name) or any(_found(name, file) for file in _PROCESSORS)
    except HFValidationError:  # no hub can have it: whoever loads it says so
        return True


def snapshot_of(name: str) -> Path:
    """Return the folder of the cache with the files of a model that :func:`is_here`."""
    config = _found(name, "config.json")
    return Path(name) if config is None else config.parent


def _found(name: str, file: str) -> Path | None:
    """Return a file of a model that can be read, if there is one."""
    path = Path(name, file) if os.path.isdir(name) else try_to_load_from_cache(name, file)
    return Path(path) if isinstance(path, str | Path) and os.access(path, os.R_OK) else None


def files_of(name: str) -> Files:
    """Query the hub, with a single request; the library would send one for each file, and retry.

    Raises:
        The library's own errors, which :func:`helpful` translates.
    """
    info = HfApi().model_info(name, timeout=TIMEOUT, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    licence = str(getattr(info.card_data, "license", None) or "-")
    return Files(name, {file: sizes[file] for file in _loaded(sizes)}, licence)


def _loaded(files: Mapping[str, int]) -> list[str]:
    """Select, from all files of a model, one copy of the weights and the files that accompany them."""
    weights = [_SINGLE] if _SINGLE in files else [file for file in files if _SHARD.fullmatch(file)]
    others = [file for file in files if _COMPANION.fullmatch(file) and not _OTHER_FRAMEWORK.fullmatch(file)]
    return [*others, *([_INDEX] if _INDEX in files and _SINGLE not in files else []), *weights]


def require_weights(files: Files) -> None:
    """Refuse a model without safetensors before it is downloaded.

    Raises:
        CheckpointError: it has none.
    """
    if not any(file.endswith(".safetensors") for file in files.sizes):
        raise CheckpointError(NO_SAFETENSORS, name=files.name, endpoint=constants.ENDPOINT)


def require_room(files: Files) -> None:
    """Refuse a download that the disk has no space for.

    Raises:
        OSError: the error that writing would end in, raised before the download.
    """
    cache = Path(constants.HF_HUB_CACHE).absolute()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if shutil.disk_usage(existing).free < files.nbytes:
        raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def helpful(name: str, *, otherwise: Message) -> Iterator[None]:
    """Replace the library's errors by ones that explain what went wrong and what helps; ``otherwise``: for the rest.

    Raises:
        CheckpointError: for any error inside the block.
    """
    try:
        with enough_memory():
            yield
    except (CheckpointError, ShortageError):
        raise
    except Exception as error:  # the library raises a dozen classes, and some bare Exceptions
        causes = list(_causes(error))
        raise CheckpointError(
            _why(causes, otherwise=otherwise, is_folder=os.path.isdir(name)),
            name=name,
            bundled=", ".join(BUNDLED),
            endpoint=constants.ENDPOINT,
            folder=constants.HF_HUB_CACHE,
            reason=_first_line(causes),
        ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _why(causes: list[BaseException], *, otherwise: Message, is_folder: bool) -> Message:
    if is_folder:
        return otherwise
    if any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in causes):
        return FULL
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        return GATED
    if any(isinstance(cause, RepositoryNotFoundError | HFValidationError) for cause in causes):
        return NOT_FOUND
    away = ("LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectError", "ConnectionError", "ConnectTimeout",
            "ReadTimeout", "ProxyError")  # fmt: skip
    if any(type(cause).__name__ in away for cause in causes):
        return UNREACHABLE
    return otherwise


def _first_line(causes: list[BaseException]) -> str:
    text = str(causes[0]).strip() or type(causes[0]).__name__
    return text.splitlines()[0].rstrip(".:")


BROKE_OFF = N_("The download of {name!r} was interrupted ({reason}). Try again: completed files are kept.")


def fetch(name: str) -> None:
    """Download the files of a model that are loaded, in this process's main thread; reports its bytes.

    Raises:
        CheckpointError: the model cannot be downloaded.
    """
    signal.signal(signal.SIGTERM, _end)
    constants.HF_HUB_DISABLE_XET = True  # plain HTTP: every mirror supports it, and every byte is counted
    constants.DOWNLOAD_CHUNK_SIZE = 2**18  # bytes, each chunk reported: with the default 10 MB the bar seems stuck
    with helpful(name, otherwise=BROKE_OFF):
        files = files_of(name)
        require_weights(files)
        require_room(files)
        _Count.before, _Count.total = 0, files.nbytes
        # Without this argument, before version 1.1 of the library, files are counted once they are complete.
        counts: dict[str, Any] = {"tqdm_class": _Count} if "tqdm_class" in signature(hf_hub_download).parameters else {}
        for file, size in files.sizes.items():
            hf_hub_download(name, file, **counts)
            _Count.before += size
            report(_Count.before, _Count.total)


class _Count:
    """Replaces the library's progress bar."""

    before = total = 0  # bytes of the files that are complete, and of all

    def __init__(self, *args: Any, initial: int = 0, **kwargs: Any) -> None:
        self._current = initial

    def __enter__(self) -> "_Count":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, more: float | None = 1) -> None:
        """Add this many bytes."""
        self._current += int(more or 0)
        report(_Count.before + self._current, _Count.total)


def _end(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)  # so that the library's own cleanup runs
