"""Download one model from the hub into the cache, in a process of its own.

A process can be ended at any moment, even while the network stalls or native code is running; an exception raised from
a progress bar in a thread cannot do that. If it is ended, the file in progress is discarded, and complete files stay.
"""

import signal
import sys
from inspect import signature
from typing import Any

from huggingface_hub import constants, hf_hub_download

from visformer.adapters.huggingface.files import files_of, helpful, require_room, require_weights
from visformer.errors import N_
from visformer.system.progress import report

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
