"""Download one model from the hub into the cache: ``python -m visformer.adapters.huggingface.fetch NAME``.

It is a process of its own because a process can be ended at any moment, even while the network stalls or native code
is running; an exception raised from a progress bar cannot do that. It reports progress as lines of JSON. If it is
ended, the file in progress is discarded, and complete files stay.
"""

import json
import signal
import sys
from inspect import signature
from typing import Any

from huggingface_hub import constants, hf_hub_download

from visformer.adapters.huggingface.files import files_of, helpful, require_room, require_weights
from visformer.errors import N_, CheckpointError

BROKE_OFF = N_("The download of {name!r} was interrupted ({reason}). Try again: completed files are kept.")


def fetch(name: str) -> None:
    """Download the files of a model that are loaded.

    Raises:
        CheckpointError: the model cannot be downloaded.
    """
    constants.HF_HUB_DISABLE_XET = True  # plain HTTP: every mirror supports it, and every byte is counted
    constants.DOWNLOAD_CHUNK_SIZE = 2**18  # bytes, each chunk reported: with the default 10 MB the bar seems stuck
    with helpful(name, otherwise=BROKE_OFF):
        files = files_of(name)
        require_weights(files)
        require_room(files)
        # Without this argument, before version 1.1 of the library, files are counted once they are complete.
        counts: dict[str, Any] = {"tqdm_class": _Count} if "tqdm_class" in signature(hf_hub_download).parameters else {}
        for file, size in files.sizes.items():
            hf_hub_download(name, file, **counts)
            _Count.before += size
            _report(done=_Count.before)


class _Count:
    """Replaces the library's progress bar."""

    before = 0  # bytes of the files that are complete

    def __init__(self, *args: Any, initial: int = 0, **kwargs: Any) -> None:
        self._current = initial

    def __enter__(self) -> "_Count":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, more: float | None = 1) -> None:
        """Add this many bytes."""
        self._current += int(more or 0)
        _report(done=_Count.before + self._current)


def _report(**progress: object) -> None:
    print(json.dumps(progress), flush=True)


def _end(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)  # so that the library's own cleanup runs


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        fetch(sys.argv[1])
    except CheckpointError as error:
        _report(error=error.message_id, params=error.params)
        sys.exit(1)
