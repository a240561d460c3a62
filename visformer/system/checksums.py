"""Integrity of the bundled files: a SHA256SUMS beside them, as ``sha256sum -c`` reads it. Does not import torch."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from visformer.system.files import write_whole

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
