"""Lines of the model's own code that a lesson shows, read from its files, so that they are never out of date."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import visformer
from visformer.errors import N_, LessonError

_FOLDER = Path(visformer.__file__).parent / "model"
_FILE = re.compile(r"[a-z_]{1,40}\.py")


@dataclass(frozen=True)
class CodeLines:
    """Lines of a file.

    Args:
        file: its name from the package's folder on, such as "visformer/model/attention.py".
        numbers: of the lines, from 1.
        text: the lines, without what all are indented by.
    """

    file: str
    numbers: tuple[int, ...]
    text: str


@lru_cache(maxsize=64)
def code_lines(file: str, part: str) -> CodeLines:
    """Find the lines of a file in visformer/model that contain ``part``.

    Raises:
        LessonError: there is no such file, or no such line.
    """
    path = _FOLDER / file
    if not _FILE.fullmatch(file) or not path.is_file():
        raise LessonError(N_("there is no such file in {folder}."), folder="visformer/model")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {number: line for number, line in enumerate(lines, 1) if part in line}
    if not part or not found:
        raise LessonError(N_("no line of {file} contains this."), file=f"visformer/model/{file}")
    least = min(len(line) - len(line.lstrip()) for line in found.values())
    return CodeLines(f"visformer/model/{file}", tuple(found), "\n".join(line[least:] for line in found.values()))
