"""TEXT of ``visformer trace`` and ``visformer export``: a sentence, or - for those on standard input, one a line."""

import codecs
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from visformer.errors import VisformerError
from visformer.system.memory import enough_memory

STDIN, NUMBER = "-", "{n}"
Work = Callable[[Any, Any, int | None], None]
"""Takes a sentence (None: there is none, as for a saved Trace), a file (None: none is written), and its line."""


def each(text: str | None, out: Path | None, work: Work) -> None:
    """Call ``work`` with each sentence and the file it goes to; with its line where TEXT is -, else once with None.

    A line that fails is named on standard error; the others are processed all the same.

    Raises:
        ClickException: a line failed, or there is none.
        UsageError: several sentences would go to one file.
    """
    if text != STDIN:
        work(text, out, None)
        return
    lines = _lines()
    if out is not None:
        out.parent.mkdir(exist_ok=True)
        lines = lines if NUMBER in out.name else iter(_only(list(lines), out))
    count = failed = 0
    for number, line in lines:
        count += 1
        try:
            with enough_memory():
                work(line.decode(), out and out.with_name(out.name.replace(NUMBER, str(number))), number)
        except (VisformerError, click.UsageError, UnicodeDecodeError) as error:
            failed += 1
            click.echo(f"Line {number}: {_told(error)}", err=True)
    if not count:
        raise click.ClickException("There is no sentence on standard input: write one a line.")
    if failed:
        raise click.ClickException(f"{failed} of {count} lines failed.")


def files(out: Path, text: str | None, ending: str) -> Path:
    """Return ``out``; for the sentences on standard input a folder becomes files in it, such as ``out/{n}.html``."""
    return out / f"{NUMBER}{ending}" if text == STDIN and is_folder(out) else out


def is_folder(out: Path) -> bool:
    """Whether the sentences on standard input get files of their own in ``out``."""
    return out.is_dir() or not (out.suffix or out.exists())


def _only(lines: list[tuple[int, bytes]], out: Path) -> list[tuple[int, bytes]]:
    """Refuse several sentences for one file, before any is written."""
    if len(lines) > 1:
        several = f"{out.stem}-{NUMBER}{out.suffix}"
        raise click.UsageError(f"{len(lines)} sentences for {out.name}: give a folder, or a name such as {several}.")
    return lines


def _lines() -> Iterator[tuple[int, bytes]]:
    """Yield the lines of standard input that are not blank, as they arrive, with their numbers from 1."""
    if sys.stdin is None:  # closed
        return
    if sys.stdin.isatty():
        click.echo("Type sentences, one a line. Ctrl+D ends (on Windows: Ctrl+Z, Enter).", err=True)
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if line := line.removeprefix(codecs.BOM_UTF8).strip():
            yield number, line


def _told(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8: save the text in that encoding."
    return error.format_message() if isinstance(error, click.UsageError) else str(error)
