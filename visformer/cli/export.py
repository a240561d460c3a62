"""``visformer trace`` and ``visformer export``: a sentence in, a file out."""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from click.core import ParameterSource

from visformer.cli.running import MODEL_HELP, PATH, complete_model, in_language, with_default
from visformer.errors import VisformerError
from visformer.export.formats import FORMATS, Format
from visformer.model.positions import PAPERS, described
from visformer.pictures.theme import Theme
from visformer.trace.stacks import SHORT_NAMES, short_name

if TYPE_CHECKING:
    from visformer.pictures.options import Option
    from visformer.pictures.picture import Picture
    from visformer.pictures.setting import Source

_OF_TRACE = ("model", "target", "pair", "to")
"""Parameters that a saved Trace has settled."""

_OF_HEAD = ("stack", "layer", "head", "view", "query")
"""Parameters that choose a head, with a picture or without."""

_VIEWS = ("heatmap", "arcs", "tokens")
_FROM_1, _ABOVE_0 = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)
_BY_ENDING = {one.ending: one for one in FORMATS}
_NUMBERS = [one.ending for one in FORMATS if one.content == "numbers"]
_F = TypeVar("_F", bound=Callable[..., Any])


def _out(endings: Collection[str], about: str, *, required: bool) -> Callable[[_F], _F]:
    """``-o``, refused before a model is loaded where nothing could be written."""

    def checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix.lower() not in endings:
            more = "; pictures: visformer export" if endings is _NUMBERS else ": the ending sets the format."
            raise click.UsageError(f"{path.name} does not end in any of {', '.join(endings)}{more}")
        if path is not None and not path.parent.is_dir():
            raise click.ClickException(f"{path}: there is no folder {path.parent}. Create it first.")
        return path

    kind = click.Path(path_type=Path, dir_okay=False, writable=True)
    said = f"{about} {', '.join(endings)}. An existing file is replaced."
    return click.option("-o", "--out", type=kind, callback=checked, required=required, help=said)


def _sentence(command: Any) -> Any:
    """The options that say which sentence, and which model."""
    options = (
        click.option("--target", help="The target to read; by default the model's own translation."),
        click.option("--pair", help="A second sentence, for encoders such as BERT."),
        click.option("--to", help="Language of the target, such as zh; by default the other one."),
        with_default("--model", default="en-zh", shell_complete=complete_model, help=MODEL_HELP),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("text")
@_sentence
@with_default("--record", multiple=True, default=("*.pattern",), help="Tensors to record, such as '*.q'.")
@_out(_NUMBERS, "Output file:", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def trace(model: str, text: str, out: Path | None, as_json: bool, **how: Any) -> None:
    """Run the model on a sentence and print or save its numbers.

    \b
    Examples:
      visformer trace "I went to school."
      visformer trace "I went to school." --target 我去学校。 -o trace.safetensors
      visformer trace "I went to school." --record "*.scores" --record "*.pattern" --json
    """
    from visformer.export import save
    from visformer.pictures.theme import visible

    found = _traced(model, text, **how)
    if out is not None:
        save(found, out)
    tensors = {tensor: list(value.shape) for tensor, value in found.tensors.items()}
    summary = {"tokens": dict(found.tokens), "meta": dict(found.meta), "tensors": tensors}
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False, indent=2))
        return
    for side, title in (("src", "source"), ("tgt", "target")):
        if side in found.tokens:
            click.echo(f"{title}: {' '.join(map(visible, found.tokens[side]))}")
    for tensor, shape in tensors.items():
        click.echo(f"  {tensor}  {tuple(shape)}")
    if out is not None:
        click.echo(f"Written to {out}")


class _Export(click.Command):
    """With the options of all pictures; they are looked up when they are needed, which ``visformer --help`` is not."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, last = super().get_params(ctx)  # --help comes last
        return [*own, *_picture_options(), last]


@cache
def _picture_options() -> list[click.Parameter]:
    from visformer.pictures.picture import pictures

    names = ", ".join(pictures())
    about = f"Draw a picture of another page instead of attention: {names}."
    kind = click.Choice([*pictures()])
    options: list[click.Parameter] = [click.Option(["--picture"], type=kind, metavar="NAME", help=about)]
    takers: dict[str, list[str]] = {}
    declared: dict[str, Option] = {}
    for picture in pictures().values():
        for option in (picture.option(name) for name in picture.names):
            takers.setdefault(option.name, []).append(picture.name)
            declared.setdefault(option.name, option)
    for name, option in declared.items():
        if name not in _OF_HEAD:
            about = f"{option.help} Pictures: {', '.join(takers[name])}."
            first = None if option.default is None or callable(option.default) else option.write(option.default)
            options.append(
                click.Option([_flag(name), name], type=_kind(option), default=first, show_default=True, help=about)
            )
    return options


def _kind(option: "Option") -> Any:
    from visformer.pictures.options import Choice, Flag, Number, Place, resolved
    from visformer.pictures.setting import Setting, Source

    if isinstance(option, Place):
        return click.IntRange(min=option.first)
    if isinstance(option, Number):
        return int if option.whole else float
    if isinstance(option, Choice):
        return click.Choice([option.spell(value) for value in resolved(option.values, Setting(Source()))])
    return bool if isinstance(option, Flag) else str


@click.command(cls=_Export)
@click.argument("text", required=False)
@_sentence
@click.option("--trace", "saved", type=PATH, help="A file of visformer trace, instead of a sentence.")
@_out(_BY_ENDING, "Output file; its ending sets the format:", required=True)
@click.option("--stack", type=click.Choice([*SHORT_NAMES]), help="By default the model's first.")
@click.option("--layer", type=_FROM_1, help="From 1, as on screen.")
@click.option("--head", type=_FROM_1, help="From 1; with --layer. Without both: all heads.")
@with_default("--view", type=click.Choice(_VIEWS), default="heatmap", help="How to draw a single head.")
@with_default("--query", type=_FROM_1, default=1, help="Query token, from 1; for --view tokens, --picture query.")
@with_default("--theme", type=click.Choice(get_args(Theme)), default="light", help="For pictures.")
@with_default("--scale", type=_ABOVE_0, default=3.0, help="For PNG: 3 is about 300 pixels per inch.")
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
    view: Literal["heatmap", "arcs", "tokens"],
    picture: str | None,
    theme: Theme,
    scale: float,
    lang: str,
    **choices: Any,
) -> None:
    """Write the attention of a sentence to a file: the explorer, a picture, or the numbers.

    \b
    Examples:
      visformer export "I went to school." -o attention.html
      visformer export "I went to school." -o head.svg --stack cross --layer 3 --head 6
      visformer export "I went to school." -o heads.png --stack cross --theme dark
      visformer export "I went to school." -o arcs.svg --stack cross --layer 3 --head 6 --view arcs
      visformer export "I went to school." -o stream.png --picture stream --stack decoder
      visformer export "I went to school." -o beams.svg --picture beams --beams 6
      visformer export "I went to school." -o growing.svg --picture growing --layer 3 --step 2
      visformer export -o circle.svg --picture position-circle --pos 3 --offset 5
      visformer export -o lab.svg --picture lab --example self-attention
      visformer export --trace trace.safetensors -o weights.csv
    """
    from visformer.adapters.load import load
    from visformer.export import save
    from visformer.figures import source_of
    from visformer.i18n import translations
    from visformer.pictures.picture import pictures
    from visformer.trace import Trace

    drawn = pictures()[picture] if picture else None
    alone = drawn is not None and drawn.formula
    if (text is None) == (saved is None) and not (text is None and alone):
        raise click.UsageError("Give either a sentence or --trace FILE.")
    given = {one for one in context.params if context.get_parameter_source(one) is ParameterSource.COMMANDLINE}
    format = _BY_ENDING[out.suffix.lower()]
    _refuse_idle_source(given, picture, format)
    _refuse_idle(given, drawn, format, view)
    how: dict[str, Any] = {"theme": theme, "scale": scale, "gettext": translations(lang).gettext, "lang": lang}
    kept = Trace.load(saved) if saved else None
    if drawn is not None:
        wanted = {one: value for one, value in choices.items() if one in given}
        how["about"] = kept.about if kept else _about(model, text)
        numbers = kept or (None if drawn.name == "lab" else load(model))
        _tell_formula(drawn, numbers)
        source = source_of(numbers, text, target, pair=pair, to=to, theme=theme, gettext=how["gettext"])
        save(_drawn(drawn, source, wanted), out, **how)
    else:
        found = kept or _traced(model, text, target=target, pair=pair, to=to)
        stack = SHORT_NAMES[choices["stack"]] if choices["stack"] else None
        layer, head, query = (choices[one] and choices[one] - 1 for one in ("layer", "head", "query"))
        with _places(lambda _: 1):
            save(found, out, stack=stack, layer=layer, head=head, query=query, view=view, **how)
    click.echo(f"Written to {out}")


@contextmanager
def _places(first_of: Callable[[str], int]) -> Iterator[None]:
    """Tell of a place that there is not as people count, from ``first_of`` its option."""
    try:
        yield
    except VisformerError as error:
        at: dict[str, Any] = error.params
        if not {"name", "place", "count"} <= at.keys():
            raise
        first = first_of(at["name"])
        said = f"{at['place'] + first}: there are {at['count']}, counted from {first}."
        raise click.BadParameter(said, param_hint=f"--{at['name']}") from error


def _drawn(picture: "Picture", source: "Source", given: dict[str, Any]) -> Any:
    """Panels or a figure."""
    from visformer.pictures.options import OptionError

    if given.get("stack") and SHORT_NAMES[given["stack"]] not in source.stacks:
        there = " and ".join(short_name(one) for one in source.stacks)
        said = f"{given['stack']}: the model has no such attention, only {there}."
        raise click.BadParameter(said, param_hint="--stack")
    values = {one: _value(picture.option(one), value) for one, value in given.items() if one in picture.names}
    try:
        with _places(lambda name: getattr(picture.option(name), "first", 0)):
            return picture.make(source, values)
    except OptionError as error:
        raise click.UsageError(str(error)) from error


def _value(option: "Option", given: Any) -> Any:
    """What the command line says, as Python has it: counted from 0, and by its own name."""
    from visformer.pictures.options import Choice, Place, Several

    if option.name == "stack":
        return SHORT_NAMES[given]
    if isinstance(option, Place):
        return given - option.first
    if isinstance(option, Several):
        return [int(one) for one in given.split(".") if one.isdecimal()]
    if isinstance(option, Choice) and option.also:
        return option.also.get(given, given)
    return given


def _about(model: str, text: str | None) -> str:
    """Which model was given which sentence; of a formula nothing."""
    from visformer.system.files import called

    return "" if text is None else f"{called(Path(model)) if Path(model).is_dir() else model}: {text}"


def _traced(model: str, text: str | None, **settings: Any) -> Any:
    from visformer.adapters.load import load

    return load(model).trace(str(text), **settings)


def _tell_formula(picture: "Picture", numbers: Any) -> None:
    """Say that a picture of the paper's encoding is not this model's, where it is not."""
    from visformer.trace import Trace

    if not picture.formula or numbers is None:
        return
    order = numbers.meta.get("position", PAPERS) if isinstance(numbers, Trace) else numbers.info.position
    if order != PAPERS:
        click.echo(f"This model: {described(order)}. The picture shows the formula alone.", err=True)


def _refuse_idle_source(given: set[str], picture: str | None, format: Format) -> None:
    """Refuse what adds nothing to where the numbers come from, or is of another kind of file."""
    if "saved" in given:
        for name in (one for one in _OF_TRACE if one in given):
            raise click.UsageError(f"--{name} makes no difference to --trace, which already holds a model's output.")
    if picture == "lab" and {"text", "saved"} & given:
        raise click.UsageError("A sentence makes no difference to --picture lab, which has its own numbers.")
    if "scale" in given and not format.scaled:
        scaled = " and ".join(one.name for one in FORMATS if one.scaled)
        raise click.UsageError(f"--scale makes no difference to {format.ending}: it is for {scaled}.")
    if "theme" in given and format.content != "picture":
        pictures = " or ".join(one.ending for one in FORMATS if one.content == "picture")
        raise click.UsageError(f"--theme makes no difference to {format.ending}: it is for pictures, {pictures}.")


def _refuse_idle(given: set[str], picture: "Picture | None", format: Format, view: str) -> None:
    """Refuse what would make no difference."""
    taken: tuple[str, ...] = ("stack", "layer", "head")
    if picture is not None:
        taken, what = picture.names, f"--picture {picture.name}"
    elif format.content == "numbers":
        taken, what = (), f"{format.ending}, which holds all attention"
    elif format.content == "page":
        what = "a page"
    else:
        taken, what = (*taken, "view", *(["query"] * (view == "tokens"))), f"--view {view}"
        if view != "heatmap" and not {"layer", "head"} & given:
            raise click.UsageError(f"--view {view} shows one head: give --layer and --head, from 1.")
        if len({"layer", "head"} & given) == 1:
            raise click.UsageError("Give both --layer and --head for one head, or neither for all heads.")
    choices = {*_OF_HEAD, *(str(option.name) for option in _picture_options()[1:])}
    for name in sorted((given & choices) - {*taken}):
        takes = f" It takes {', '.join(map(_flag, taken))}." if taken else ""
        raise click.UsageError(f"{_flag(name)} makes no difference to {what}.{takes}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
