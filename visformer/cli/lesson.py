"""``visformer lesson``: validate a lesson's file, check it against its model, and write it to one HTML file."""

from functools import cache
from pathlib import Path
from typing import Any

import click

from visformer.cli.running import PATH, in_language
from visformer.i18n import translations
from visformer.system.files import write_whole

_FILE = click.argument("file", type=PATH, required=False)
_OUT = click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    required=True,
    help="The file to write; an existing one is replaced.",
)


@click.group()
def lesson() -> None:
    """Check a guided lesson, or write it to one HTML file. FILE is by default the shipped lesson.

    \b
    Examples:
      visformer lesson check my-lesson.yaml
      visformer lesson export my-lesson.yaml --out lesson.html --lang zh
      visformer lesson worksheet my-lesson.yaml --out worksheet.html --lang zh
    """


@lesson.command()
@_FILE
@in_language
def check(file: Path | None, lang: str) -> None:
    """List the faults of a lesson with their lines; exit code 1 if there are any.

    \b
    Example:
      visformer lesson check my-lesson.yaml
    """
    checked = _read(file, lang)
    click.echo(f"{checked.title_in(lang)}: {len(checked.steps)} steps, no mistakes")


@lesson.command()
@_FILE
@_OUT
@in_language
def export(file: Path | None, out: Path, lang: str) -> None:
    """Write a lesson to one HTML file that needs no network.

    \b
    Example:
      visformer lesson export my-lesson.yaml --out lesson.html --lang zh
    """
    from visformer.app.lessons.handout import page

    html = page(_read(file, lang), lang, model_of=_model)
    write_whole(out, html)
    click.echo(f"Written to {out}")


@lesson.command()
@_FILE
@_OUT
@in_language
def worksheet(file: Path | None, out: Path, lang: str) -> None:
    """Write a lesson's questions to one HTML page to print, and their answers to a second one.

    \b
    Example:
      visformer lesson worksheet my-lesson.yaml --out worksheet.html --lang zh
    """
    from visformer.app.lessons import handout

    write_whole(out, handout.worksheet(_read(file, lang), lang, model_of=_model))
    click.echo(f"Written to {out}")


def _read(file: Path | None, lang: str) -> Any:
    """Read and check a lesson."""
    from visformer.app.lessons import lesson_file
    from visformer.app.lessons.handout import trace_of
    from visformer.app.session import url_state

    path = file or lesson_file.offered({})[url_state.SHIPPED]
    parsed, faults = lesson_file.read(path.read_bytes())
    if parsed is not None:
        faults = tuple(lesson_file.check_against_model(parsed, lambda state, record: trace_of(state, _model, record)))
    if parsed is None or faults:
        gettext = translations(lang).gettext
        raise click.ClickException("\n".join([str(path), *(fault.localized(gettext) for fault in faults)]))
    return parsed


@cache
def _model(name: str) -> Any:
    from visformer.adapters.load import load
    from visformer.app.serving.models import MODEL

    return load(name or MODEL)
