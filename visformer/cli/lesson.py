"""``visformer lesson``: check a lesson's format and claims, and write it to one HTML file."""

from functools import cache
from pathlib import Path
from typing import Any

import click

from visformer.cli.running import PATH, in_language
from visformer.i18n import translations
from visformer.system.files import write_whole

_FILE = click.argument("file", type=PATH, required=False)


@click.group()
def lesson() -> None:
    """Check a guided lesson, or write it to one HTML file. Without FILE: the bundled lesson.

    \b
    Examples:
      visformer lesson check my-lesson.yaml
      visformer lesson export my-lesson.yaml --out lesson.html --lang zh
    """


@lesson.command()
@_FILE
@in_language
def check(file: Path | None, lang: str) -> None:
    """List the mistakes of a lesson with their lines; exit code 1 if there are any.

    \b
    Example:
      visformer lesson check my-lesson.yaml
    """
    found = _read(file, lang)
    click.echo(f"{found.called(lang)}: {len(found.steps)} steps, no mistakes")


@lesson.command()
@_FILE
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    required=True,
    help="Output file; an existing file is replaced.",
)
@in_language
def export(file: Path | None, out: Path, lang: str) -> None:
    """Write a lesson to one HTML file that needs no network.

    \b
    Example:
      visformer lesson export my-lesson.yaml --out lesson.html --lang zh
    """
    from visformer.app.lessons.handout import page

    made = page(_read(file, lang), lang, model_of=_model)
    write_whole(out, made)
    click.echo(f"Written to {out}")


def _read(file: Path | None, lang: str) -> Any:
    """The lesson.

    Raises:
        ClickException: every fault in a line of its own.
    """
    from visformer.app.lessons import lesson_file
    from visformer.app.lessons.handout import trace_of
    from visformer.app.session import url_state

    path = file or lesson_file.offered({})[url_state.SHIPPED]
    found, faults = lesson_file.read(path.read_bytes())
    if found is not None:
        faults = tuple(lesson_file.held_against(found, lambda state: trace_of(state, _model)))
    if found is None or faults:
        gettext = translations(lang).gettext
        raise click.ClickException("\n".join([str(path), *(fault.localized(gettext) for fault in faults)]))
    return found


@cache
def _model(name: str) -> Any:
    from visformer.adapters.load import load
    from visformer.app.serving.models import MODEL

    return load(name or MODEL)
