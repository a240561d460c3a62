"""Files are written whole or not at all: a full disk leaves what was there, and nothing half-written beside it."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visformer.errors import N_, CheckpointError

_ANY = re.compile(r"models?|checkpoint(-\d+)?|best|last|final|latest|weights|outputs?", re.IGNORECASE)
"""Names of folders that say nothing of the model inside."""

_FROM_RUST = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers say what the system said."""


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Gives another name to write to. What was written there then takes the place of ``path``.

    A device or a pipe, such as /dev/stdout, is written to directly.

    Raises:
        OSError: it cannot be written; names ``path``.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays one
    special = target.exists() and not target.is_file()
    partial = target if special else target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        if not special:
            partial.replace(target)
    except BaseException as error:
        if not special:
            partial.unlink(missing_ok=True)
        said = _FROM_RUST.search(str(error))
        code = error.errno if isinstance(error, OSError) else int(said[1]) if said else None
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Bytes, or text as UTF-8 with its line ends as they are.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    with whole(path) as partial:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())


def called(folder: Path) -> str:
    """What people call the model in a folder: by the folder above too, where its own name could be any model's."""
    whole = Path(os.path.abspath(folder))  # a link to a folder is called by its own name
    return f"{whole.parent.name}/{whole.name}".strip("/") if _ANY.fullmatch(whole.name) else whole.name


def require_files(folder: Path) -> None:
    """Refuse a folder without a checkpoint of ours or of transformers.

    Raises:
        CheckpointError: none of their files is there.
    """
    if not any((folder / file).exists() for file in ("model.safetensors", "tokenizer.json", "config.json")):
        raise CheckpointError(
            N_(
                "The folder {folder} holds no model: neither visformer's model.safetensors nor a config.json of "
                "transformers."
            ),
            folder=folder,
        )
