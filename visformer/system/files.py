"""Files of models: written whole or not at all, with checksums, and what to do about one that is damaged.

When the disk is full, the old file stays and no partial file is left behind. Files that come with visformer have a
SHA256SUMS beside them, as ``sha256sum -c`` reads it. Does not import torch.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visformer.errors import N_, CheckpointError, Message

_ANY = re.compile(r"models?|checkpoint(-\d+)?|best|last|final|latest|weights|outputs?", re.IGNORECASE)
"""Names of folders that tell nothing about the model inside."""

_PACKAGE = Path(__file__).resolve().parents[1]

_FROM_RUST = re.compile(r"\(os error (\d+)\)")
"""The system's error code in messages of safetensors and tokenizers."""


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; the file written there then replaces ``path``.

    A device or a pipe, such as /dev/stdout, is written to directly.

    Raises:
        OSError: the file cannot be written; names ``path``.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    special = target.exists() and not target.is_file()
    partial = target if special else target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        if not special:
            partial.replace(target)
    except BaseException as error:
        if not special:
            partial.unlink(missing_ok=True)
        match = _FROM_RUST.search(str(error))
        code = error.errno if isinstance(error, OSError) else int(match[1]) if match else None
        if code is None:
            raise
        raise OSError(code, os.strerror(code), str(path)) from error


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8 with its line endings unchanged.

    Raises:
        OSError: the file cannot be written; its old content is unchanged.
    """
    with whole(path) as partial:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())


def called(folder: Path) -> str:
    """Return the name of the model in a folder: the folder's name, with its parent's if it could be any model's."""
    path = Path(os.path.abspath(folder))  # keeps the name of a symbolic link
    return f"{path.parent.name}/{path.name}".strip("/") if _ANY.fullmatch(path.name) else path.name


def require_files(folder: Path) -> None:
    """Require a folder with a checkpoint of Visformer or transformers.

    Raises:
        CheckpointError: the folder has none of their files, or is that of a training.
    """
    there = {file for file in ("model.safetensors", "tokenizer.json", "config.json") if (folder / file).exists()}
    if there <= {"tokenizer.json"} and (folder / "settings.json").exists():
        raise CheckpointError(
            N_("{folder} is the folder of a training: its model is {checkpoint}, once the training has ended."),
            folder=folder,
            checkpoint=folder / "checkpoint",
        )
    if not there:
        raise CheckpointError(
            N_(
                "The folder {folder} holds no model: neither visformer's model.safetensors nor a config.json of "
                "transformers."
            ),
            folder=folder,
        )


def remedy_of(path: Path) -> Message:
    """Say how to get a damaged file of a model again: one that comes with visformer, of a training, or another."""
    path = path.resolve()
    if path.is_relative_to(_PACKAGE):
        return N_("restore it with git checkout, or reinstall visformer")
    if path.parent.name == "moments" and path.suffix == ".safetensors":
        return N_("delete it; the other moments remain")  # repeating the training would not write it again
    if any((folder / "settings.json").exists() for folder in path.parents[:2]):
        return N_("delete it if it is there, and repeat the command that trained it, which writes it anew")
    return N_("copy it anew from where it comes from")


SUMS = "SHA256SUMS"

_SUFFIXES = (".safetensors", ".json", ".csv", ".z", ".zip")
"""Files of a checkpoint with a checksum; the model card, written by hand, has none."""


def write_sums(folder: Path) -> None:
    """Write the checksums of a checkpoint's files."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES)
    lines = [f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    write_whole(folder / SUMS, "".join(lines))


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each damaged or missing file with what is wrong with it; also SHA256SUMS itself if it cannot be read."""
    sums = folder / SUMS
    try:
        lines = [line.split("  ", 1) for line in sums.read_text(encoding="utf-8").splitlines()]
        expected = {name: digest for digest, name in lines}
    except (OSError, ValueError) as error:
        yield sums, "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        return
    for name, digest in expected.items():
        path = folder / name
        try:
            if sha256(path) != digest:
                yield path, f"is damaged: {path.stat().st_size:,} bytes that are not those of the release"
        except FileNotFoundError:
            yield path, "is missing"
        except OSError as error:
            yield path, f"cannot be read ({error.strerror})"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
