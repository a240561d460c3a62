"""One model from the hub into the cache, as a process: ``python -m visformer.adapters.huggingface.fetch NAME``.

A process can be ended at any moment, also while the network stands still or a library written in another language has
the word; an exception raised from a progress bar cannot do that. It says how far it is in lines of JSON, and ends with
nothing half done but the file it was at: that one is thrown away, complete ones stay.
"""

import json
import signal
import sys
from typing import Any

from huggingface_hub import constants, hf_hub_download

from visformer.adapters.huggingface.files import files_of, helpful, require_room, require_weights
from visformer.errors import N_, CheckpointError

BROKE_OFF = N_("The download of {name!r} was interrupted ({reason}). Try again: completed files are kept.")


def fetch(name: str) -> None:
    """Download what is loaded of a model.

    Raises:
        CheckpointError: it cannot be had.
    """
    constants.HF_HUB_DISABLE_XET = True  # plain HTTP: every mirror speaks it, and every byte is counted
    constants.DOWNLOAD_CHUNK_SIZE = 2**18  # bytes, with a line for each: after 10 MB, as usual, the bar stands still
    with helpful(name, otherwise=BROKE_OFF):
        files = files_of(name)
        require_weights(files)
        require_room(files)
        for file, size in files.sizes.items():
            hf_hub_download(name, file, tqdm_class=_Count)
            _Count.before += size
            _say(done=_Count.before)


class _Count:
    """In the place of the library's progress bar."""

    before = 0  # bytes of the files that are complete

    def __init__(self, *args: Any, initial: int = 0, **kwargs: Any) -> None:
        self._here = initial

    def __enter__(self) -> "_Count":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, more: float | None = 1) -> None:
        """So many bytes have come."""
        self._here += int(more or 0)
        _say(done=_Count.before + self._here)


def _say(**news: object) -> None:
    print(json.dumps(news), flush=True)


def _end(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)  # through the library's own tidying up


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    try:
        fetch(sys.argv[1])
    except CheckpointError as error:
        _say(error=error.message_id, params=error.params)
        sys.exit(1)
