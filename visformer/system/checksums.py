"""Whether files are as they were bundled: SHA256SUMS beside them, which ``sha256sum -c`` reads too. No torch."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from visformer.system.files import write_whole

SUMS = "SHA256SUMS"

_KEPT = (".safetensors", ".json", ".csv")
"""What a checkpoint consists of; the model card is written by hand."""


def write_sums(folder: Path) -> None:
    """Record the files of a checkpoint as they are."""
    files = sorted(path for path in folder.iterdir() if path.suffix in _KEPT)
    lines = [f"{_digest(path)}  {path.name}\n" for path in files]
    write_whole(folder / SUMS, "".join(lines))


def damaged(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that are not as they were recorded, each with what is wrong with it; SHA256SUMS itself among them."""
    sums = folder / SUMS
    try:
        recorded = [line.split("  ", 1) for line in sums.read_text(encoding="utf-8").splitlines()]
        wanted = {name: digest for digest, name in recorded}
    except (OSError, ValueError) as error:
        yield sums, "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        return
    for name, digest in wanted.items():
        path = folder / name
        try:
            if _digest(path) != digest:
                yield path, f"is damaged: {path.stat().st_size:,} bytes that are not those of the release"
        except FileNotFoundError:
            yield path, "is missing"
        except OSError as error:
            yield path, f"cannot be read ({error.strerror})"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
