"""``visformer trace`` and ``visformer export``: a sentence in, a file out."""

import codecs
import json
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.core import ParameterSource

from visformer.cli.running import MODEL_HELP, PATH, Real, complete_model, in_language, with_default
from visformer.errors import VisformerError
from visformer.export.formats import FORMATS, Format
from visformer.model.positions import PAPERS, described
from visformer.pictures.style import Theme
from visformer.system.memory import enough_memory
from visformer.trace.stacks import STACKS, ranges
from visformer.web.selection import Exported

if TYPE_CHECKING:
    from visformer.pictures.registry.options import Option
    from visformer.pictures.registry.picture import Picture
    from visformer.pictures.registry.setting import Source

# TEXT: a sentence, or - for those on standard input, one a line -------------------------------------------------------

_STDIN, _NUMBER = "-", "{n}"
_Work = Callable[[Any, Any, int | None], None]
"""Takes a sentence (None: there is none, as for a saved Trace), a file (None: none is written), and its line."""


def _for_each(text: str | None, out: Path | None, work: _Work) -> None:
    """Call ``work`` with each sentence and the file it goes to; with its line where TEXT is -, else once with None.

    A line that fails is named on standard error; the others are processed all the same.

    Raises:
        ClickException: a line failed, or there is none.
        UsageError: several sentences would go to one file.
    """
    if text != _STDIN:
        work(text, out, None)
        return
    lines = _lines()
    if out is not None:
        out.parent.mkdir(exist_ok=True)
        lines = lines if _NUMBER in out.name else iter(_require_one(list(lines), out))
    count = failed = 0
    for number, line in lines:
        count += 1
        try:
            with enough_memory():
                work(line.decode(), out and out.with_name(out.name.replace(_NUMBER, str(number))), number)
        except (VisformerError, click.UsageError, UnicodeDecodeError) as error:
            failed += 1
            click.echo(f"Line {number}: {_reason(error)}", err=True)
    if not count:
        raise click.ClickException("There is no sentence on standard input: write one a line.")
    if failed:
        raise click.ClickException(f"{failed} of {count} lines failed.")


def _files_for(out: Path, text: str | None, ending: str) -> Path:
    """Return ``out``; for the sentences on standard input a folder becomes files in it, such as ``out/{n}.html``."""
    return out / f"{_NUMBER}{ending}" if text == _STDIN and _is_folder(out) else out


def _is_folder(out: Path) -> bool:
    """Whether the sentences on standard input get files of their own in ``out``."""
    return out.is_dir() or not (out.suffix or out.exists())


def _require_one(lines: list[tuple[int, bytes]], out: Path) -> list[tuple[int, bytes]]:
    """Refuse several sentences for one file, before any is written."""
    if len(lines) > 1:
        several = f"{out.stem}-{_NUMBER}{out.suffix}"
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


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8: save the text in that encoding."
    return error.format_message() if isinstance(error, click.UsageError) else str(error)


# Options that both commands have --------------------------------------------------------------------------------------

_TRACE_PARAMETERS = ("model", "target", "pair", "to")
"""Parameters that a saved Trace already fixes."""

_HEAD_PARAMETERS = ("stack", "layer", "head", "view", "query")
"""Parameters that select a head, with or without a picture."""

_FILE = click.Path(dir_okay=False, writable=True)
_FROM_1, _ABOVE_0 = click.IntRange(min=1), Real(min=0, min_open=True)
_BY_ENDING = {one.ending: one for one in FORMATS}
_NUMBERS = [one.ending for one in FORMATS if one.content == "numbers"]
_F = TypeVar("_F", bound=Callable[..., Any])


def _out(endings: Collection[str], about: str, *, required: bool) -> Callable[[_F], _F]:
    """Make the option ``-o``, which is checked before a model is loaded."""

    def checked(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
        if path is None:
            return None
        if context.params.get("text") == _STDIN and _is_folder(path):
            return path
        _FILE.convert(path, option, context)
        if path.suffix.lower() not in endings:
            more = "; pictures: visformer export" if endings is _NUMBERS else ": the ending sets the format."
            raise click.UsageError(f"{path.name} does not end in any of {', '.join(endings)}{more}")
        if not path.parent.is_dir():
            raise click.ClickException(f"{path}: there is no folder {path.parent}. Create it first.")
        return path

    several = "For sentences on standard input: a folder, or a name with {n}."
    text = f"{about} {', '.join(endings)}. An existing file is replaced. {several}"
    return click.option("-o", "--out", type=PATH, callback=checked, required=required, help=text)


def _sentence(command: Any) -> Any:
    """Add the options that specify the sentence and the model."""
    options = (
        click.option("--target", help="Force this target; by default the model's own translation."),
        click.option("--pair", help="A second sentence, for an encoder such as BERT."),
        click.option("--to", help="Language of the target, such as zh; by default the one that TEXT is not in."),
        with_default("--model", default="en-zh", shell_complete=complete_model, help=MODEL_HELP),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("text", is_eager=True)  # -o depends on it
@_sentence
@with_default("--record", multiple=True, default=("*.pattern",), help="Tensors to record, such as '*.q'.")
@_out(_NUMBERS, "The file to write; its ending selects the format:", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def trace(model: str, text: str, out: Path | None, as_json: bool, **how: Any) -> None:
    """Run the model on a sentence and record its tensors.

    TEXT is a sentence; - reads sentences from standard input, one a line. -o is then a folder, or a name with {n}, the
    number of the line. A line that fails is named; the others are written, and the exit code is 1.

    \b
    Examples:
      visformer trace "I went to school."
      visformer trace "I went to school." --target 我去学校。 -o trace.safetensors
      visformer trace "I went to school." --record "*.scores" --record "*.pattern" --json
      visformer trace - -o traces < sentences.txt                # traces/1.safetensors, traces/2.safetensors ...
      visformer trace - --json < sentences.txt > summaries.jsonl
    """
    from visformer.adapters.load import load
    from visformer.export import save

    loaded = load(model)

    def work(sentence: str, out: Path | None, line: int | None) -> None:
        recorded = loaded.trace(sentence, **how)
        if out is not None:
            save(recorded, out)
        tensors = {tensor: list(value.shape) for tensor, value in recorded.tensors.items()}
        summary = {"tokens": dict(recorded.tokens), "meta": dict(recorded.meta), "tensors": tensors}
        if as_json and line is None:
            click.echo(json.dumps(summary, ensure_ascii=False, indent=2))
        elif as_json:
            click.echo(json.dumps({"line": line, **summary}, ensure_ascii=False))
        else:
            click.echo("\n".join(_summary(recorded, out, line)))

    _for_each(text, out and _files_for(out, text, ".safetensors"), work)


def _summary(recorded: Any, out: Path | None, line: int | None) -> Iterator[str]:
    """Yield what is printed of a Trace."""
    from visformer.pictures.style import EMPTY, visible

    if line is not None:
        yield f"line {line}"
    for side, title in (("src", "source"), ("tgt", "target")):
        if side in recorded.tokens:
            yield f"{title}: {' '.join(map(visible, recorded.tokens[side]))}"
    if {"src", "tgt"} <= {*recorded.tokens} and not recorded.meta.get("target"):
        yield f"translation: {EMPTY}"
    if recorded.confidence is not None:
        yield f"confidence: {recorded.confidence:.0%}{' (the model is unsure)' * recorded.is_unsure}"
    for tensor, value in recorded.tensors.items():
        yield f"  {tensor}  {tuple(value.shape)}"
    if out is not None:
        yield f"Written to {out}"
    if line is not None:
        yield ""


class _Export(click.Command):
    """Adds the options of all pictures, looked up lazily since ``visformer --help`` does not need them."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, last = super().get_params(ctx)  # --help comes last
        return [*own, *_picture_options(), last]


@cache
def _picture_options() -> list[click.Parameter]:
    from visformer.pictures.registry.picture import pictures

    names = ", ".join(pictures())
    about = f"A picture of another page, instead of a head: {names}."
    kind = click.Choice([*pictures()])
    options: list[click.Parameter] = [click.Option(["--picture"], type=kind, metavar="NAME", help=about)]
    takers: dict[str, list[str]] = {}
    declared: dict[str, Option] = {}
    for picture in pictures().values():
        for option in (picture.option(name) for name in picture.names):
            takers.setdefault(option.name, []).append(picture.name)
            declared.setdefault(option.name, option)
    for name, option in declared.items():
        if name not in _HEAD_PARAMETERS:
            about = f"{option.help} Pictures: {', '.join(takers[name])}."
            default = None if option.default is None or callable(option.default) else option.write(option.default)
            options.append(
                click.Option([_flag(name), name], type=_kind(option), default=default, show_default=True, help=about)
            )
    return options


def _kind(option: "Option") -> Any:
    from visformer.pictures.registry.options import Choice, Flag, Number, PlaceOption, resolved
    from visformer.pictures.registry.setting import Setting, Source

    if isinstance(option, PlaceOption):
        return click.IntRange(min=option.first)
    if isinstance(option, Number):
        return int if option.whole else Real()
    if isinstance(option, Choice):
        return click.Choice([option.spell(value) for value in resolved(option.values, Setting(Source()))])
    return bool if isinstance(option, Flag) else str


@click.command(cls=_Export)
@click.argument("text", required=False, is_eager=True)  # -o depends on it
@_sentence
@click.option("--trace", "saved", type=PATH, help="A file written by visformer trace, instead of a sentence.")
@_out(_BY_ENDING, "The file to write; its ending selects the format:", required=True)
@click.option(
    "--stack",
    type=click.Choice([stack.name for stack in STACKS]),
    help="By default the one that the pages begin with; with --layer or --head the first of the model.",
)
@click.option("--layer", type=_FROM_1, help="From 1, as on screen.")
@click.option("--head", type=_FROM_1, help="From 1; with --layer. Without both: all heads.")
@with_default("--view", type=click.Choice(get_args(Exported)), default="heatmap", help="How a picture shows one head.")
@with_default("--query", type=_FROM_1, default=1, help="The token that reads, from 1: --view tokens, --picture query.")
@with_default("--theme", type=click.Choice(get_args(Theme)), default="light", help="Colours of a picture.")
@with_default("--scale", type=_ABOVE_0, default=3.0, help="Pixels of a PNG per CSS pixel: 3 is about 300 dpi.")
@in_language
@click.pass_context
def export(
    context: click.Context,
    /,
    text: str | None,
    target: str | None,
    pair: str | None,
    to: str | None,
    model: str,
    saved: Path | None,
    out: Path,
    view: Exported,
    picture: str | None,
    theme: Theme,
    scale: float,
    lang: str,
    **choices: Any,
) -> None:
    """Write the attention of a sentence to a file: the explorer, a picture, or the numbers.

    TEXT is a sentence; - reads sentences from standard input, one a line. -o is then a folder, or a name with {n}, the
    number of the line. A line that fails is named; the others are written, and the exit code is 1.

    \b
    Examples:
      visformer export "I went to school." -o attention.html
      visformer export "I went to school." -o head.svg --stack decoder.cross_attn --layer 3 --head 6
      visformer export "I went to school." -o heads.png --stack decoder.cross_attn --theme dark
      visformer export "I went to school." -o arcs.svg --stack decoder.cross_attn --layer 3 --head 6 --view arcs
      visformer export "I went to school." -o map.html --picture map --stack decoder.cross_attn --layer 3 --head 6
      visformer export "I went to school." -o history.html --picture history --layer 3 --head 6
      visformer export "I went to school." -o stream.png --picture stream --stack decoder.self_attn
      visformer export "I went to school." -o beams.svg --picture beams --beams 6
      visformer export "I went to school." -o growing.svg --picture growing --layer 3 --step 2
      visformer export -o circle.svg --picture position-circle --pos 3 --offset 5
      visformer export -o lab.svg --picture lab --example self-attention
      visformer export --trace trace.safetensors -o weights.csv
      visformer export - -o pages < sentences.txt                 # pages/1.html, pages/2.html ...
      visformer export - -o head-{n}.svg --stack decoder.cross_attn < sentences.txt
    """
    from visformer.adapters.load import load
    from visformer.export import save
    from visformer.figures import source_of
    from visformer.i18n import translations
    from visformer.pictures.registry.picture import pictures
    from visformer.trace import Trace

    declared = pictures()[picture] if picture else None
    is_formula = declared is not None and declared.formula
    if (text is None) == (saved is None) and not (text is None and is_formula):
        raise click.UsageError("Give either a sentence or --trace FILE.")
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    out = _files_for(out, text, ".html" if declared is None or declared.live else ".svg")
    format = _BY_ENDING[out.suffix.lower()]
    if declared is not None and declared.live and "model" not in format.offers:
        told = f"--picture {picture} is drawn by a browser: -o {out.stem}.html, whose buttons save other kinds."
        raise click.UsageError(told)
    _refuse_unused_source(given, declared, format)
    _refuse_unused(given, declared, format, view)
    how: dict[str, Any] = {"theme": theme, "scale": scale, "gettext": translations(lang).gettext, "lang": lang}
    numbers = Trace.load(saved) if saved else None if declared and declared.alone else load(model)
    _note_formula(declared, numbers)
    stack = choices["stack"]
    layer, head, query = (choices[name] and choices[name] - 1 for name in ("layer", "head", "query"))

    def write(sentence: str | None, out: Path, _line: int | None) -> None:
        if declared is not None:
            settings = {name: value for name, value in choices.items() if name in given}
            about = numbers.about if isinstance(numbers, Trace) else _about(model, sentence)
            source = source_of(numbers, sentence, target, pair=pair, to=to, theme=theme, gettext=how["gettext"])
            save(_drawn(declared, source, settings), out, about=about, **how)
        else:
            if isinstance(numbers, Trace):
                recorded = numbers
            else:
                assert numbers is not None and sentence is not None  # the lab, which has no model, is a picture
                recorded = numbers.trace(sentence, target=target, pair=pair, to=to)
            with _places(lambda _: 1):
                save(recorded, out, stack=stack, layer=layer, head=head, query=query, view=view, **how)
        click.echo(f"Written to {out}")

    _for_each(text, out, write)


@contextmanager
def _places(first_of: Callable[[str], int]) -> Iterator[None]:
    """Report a place out of range as the user counts, starting at ``first_of`` its option."""
    try:
        yield
    except VisformerError as error:
        details: dict[str, Any] = error.params
        if not {"name", "place", "indices"} <= details.keys():
            raise
        first = first_of(details["name"])
        numbers = ranges(index + first for index in details["indices"])
        message = f"{details['place'] + first}: there are {numbers}, counted from {first}."
        raise click.BadParameter(message, param_hint=f"--{details['name']}") from error


def _drawn(picture: "Picture", source: "Source", given: dict[str, Any]) -> Any:
    """Draw a picture: panels or a figure."""
    from visformer.pictures.registry.options import OptionError

    if given.get("stack") and given["stack"] not in source.stacks:
        stacks = " and ".join(source.stacks)
        message = f"{given['stack']}: the model has no such attention, only {stacks}."
        raise click.BadParameter(message, param_hint="--stack")
    values = {name: _value(picture.option(name), value) for name, value in given.items() if name in picture.names}
    try:
        with _places(lambda name: getattr(picture.option(name), "first", 0)):
            return picture.make(source, values)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _value(option: "Option", given: Any) -> Any:
    """Convert a command-line value to Python's: counted from 0, and with full names."""
    from visformer.pictures.registry.options import Choice, PlaceOption, Several

    if isinstance(option, PlaceOption):
        return given - option.first
    if isinstance(option, Several):
        return [int(part) for part in given.split(".") if part.isdecimal()]
    if isinstance(option, Choice) and option.also:
        return option.also.get(given, given)
    return given


def _about(model: str, text: str | None) -> str:
    """Name the model and the sentence; "" for a formula."""
    from visformer.system.files import called

    return "" if text is None else f"{called(Path(model)) if Path(model).is_dir() else model}: {text}"


def _note_formula(picture: "Picture | None", numbers: Any) -> None:
    """Print a note if a picture of the paper's positional encoding does not show this model's."""
    from visformer.trace import Trace

    if picture is None or not picture.formula or numbers is None:
        return
    order = numbers.meta.get("position", PAPERS) if isinstance(numbers, Trace) else numbers.info.position
    if order != PAPERS:
        click.echo(f"This model: {described(order)}. The picture shows the formula alone.", err=True)


def _refuse_unused_source(given: set[str], picture: "Picture | None", format: Format) -> None:
    """Refuse parameters without effect on this source of numbers or this kind of file."""
    if "saved" in given:
        for name in (each for each in _TRACE_PARAMETERS if each in given):
            raise click.UsageError(f"--{name} makes no difference to --trace, which already holds a model's output.")
    if picture is not None and picture.alone and {"text", "saved"} & given:
        told = f"A sentence makes no difference to --picture {picture.name}, which has its own numbers."
        raise click.UsageError(told)
    if "scale" in given and not format.scaled:
        scaled = " and ".join(one.name for one in FORMATS if one.scaled)
        raise click.UsageError(f"--scale makes no difference to {format.ending}: it is for {scaled}.")
    if "theme" in given and format.content != "picture":
        pictures = " or ".join(one.ending for one in FORMATS if one.content == "picture")
        raise click.UsageError(f"--theme makes no difference to {format.ending}: it is for pictures, {pictures}.")


def _refuse_unused(given: set[str], picture: "Picture | None", format: Format, view: str) -> None:
    """Refuse options without effect on this picture or file."""
    accepted: tuple[str, ...] = ("stack", "layer", "head")
    if picture is not None:
        accepted, what = picture.names, f"--picture {picture.name}"
    elif format.content == "numbers":
        accepted, what = (), f"{format.ending}, which holds all attention"
    elif format.content == "page":
        what = "a page"
    else:
        accepted, what = (*accepted, "view", *(["query"] * (view == "tokens"))), f"--view {view}"
        if view != "heatmap" and not {"layer", "head"} & given:
            raise click.UsageError(f"--view {view} shows one head: give --layer and --head, from 1.")
        if len({"layer", "head"} & given) == 1:
            raise click.UsageError("Give both --layer and --head for one head, or neither for all heads.")
    choices = {*_HEAD_PARAMETERS, *(str(option.name) for option in _picture_options()[1:])}
    for name in sorted((given & choices) - {*accepted}):
        takes = f" It takes {', '.join(map(_flag, accepted))}." if accepted else ""
        raise click.UsageError(f"{_flag(name)} makes no difference to {what}.{takes}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
