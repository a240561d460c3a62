"""The command line: ``visformer --help``. Exit codes: 0 success, 1 failure (one line says why), 2 wrong usage."""

import errno
from typing import Any

import click

from visformer import __version__
from visformer.cli import atlas, doctor, export, lesson, running, site, training
from visformer.cli.packages import remedy
from visformer.errors import VisformerError
from visformer.system.memory import enough_memory


class _Group(click.Group):
    """Reports an error as one line, not as a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with enough_memory():
                return super().invoke(ctx)
        except VisformerError as error:
            raise click.ClickException(str(error)) from error
        except ModuleNotFoundError as error:
            name = str(error.name)
            raise click.ClickException(f"The package {name} is not installed: {remedy(name)}") from error
        except KeyboardInterrupt:
            ctx.exit(130)  # the exit code that shells expect after Ctrl+C
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader closed the pipe, as `head` does: not an error
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{where}{error.strerror or error}") from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """See what a Transformer does with a sentence.

    \b
    Examples:
      visformer run
      visformer trace "I went to Northeastern University."
      visformer export "I went to Northeastern University." -o attention.html

    \b
    Exit codes:
      0    success
      1    failure; one line says why
      2    wrong usage
      130  interrupted with Ctrl+C

    \b
    Tab completion of commands and options:
      bash: eval "$(_VISFORMER_COMPLETE=bash_source visformer)"
      zsh:  eval "$(_VISFORMER_COMPLETE=zsh_source visformer)"
      fish: _VISFORMER_COMPLETE=fish_source visformer | source
    """


for _command in (
    running.run,
    export.trace,
    atlas.atlas,
    export.export,
    lesson.lesson,
    site.site,
    training.train,
    training.train_gpt,
    training.train_caption,
    training.evaluate,
    running.bench,
    running.models,
    doctor.doctor,
):
    main.add_command(_command)
