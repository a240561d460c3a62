"""``visformer trace`` and ``visformer export``: a sentence in, a file out."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import click
from click.core import ParameterSource

from visformer.cli.running import MODEL_HELP, complete_model
from visformer.export.formats import endings
from visformer.i18n import languages

PICTURES: Mapping[str, tuple[str, ...]] = {
    "embedding": ("stack",),
    **dict.fromkeys(("positions", "position-angles", "position-similarity"), ("positions",)),
    **dict.fromkeys(("position-rotation", "position-circle"), ("pos", "offset", "i")),
    "position-learned": ("positions",),
    "position-model": (),
    "waves": ("positions",),
    "mask": ("stack", "layer", "head"),
    "mask-batch": (),
    "mask-steps": ("step",),
    "query": ("stack", "layer", "head", "query"),
    "all-heads": ("stack", "layer", "query"),
    "stream": ("stack",),
    "sublayer": ("stack", "layer"),
    "feed-forward": ("stack", "layer"),
    "zeros": ("stack",),
    "similarity": ("stack",),
    "norms": ("stack",),
    "sureness": ("step",),
    "candidates": ("step",),
    "growing": ("layer", "step"),
    "beams": ("beams",),
    "lab": ("example", "sample", "head"),
}
"""As :data:`visformer.export.named.PICTURES`, which help does not wait for, with the options that each takes."""

_FORMULAS = ("positions", "pos", "example")
"""Options by which a picture is known that shows formulas, and needs no sentence."""

_CHOICES = ("stack", "layer", "head", "view", "query", "step", "beams", *_FORMULAS, "offset", "i", "sample")
"""Options that are of some pictures only."""

_OF_TRACE = {"name": "model", "target": "target", "pair": "pair", "to": "to"}
"""What a saved trace has settled, by parameter."""

_STACKS = {"encoder": "encoder.self_attn", "decoder": "decoder.self_attn", "cross": "decoder.cross_attn"}

_FROM_ZERO = ("pos", "i")
"""Places that the formula counts from 0; all others count from 1, as on screen."""

_FROM_0, _FROM_1 = click.IntRange(min=0), click.IntRange(min=1)
_NUMBERS, _PICTURED, _ENDINGS = endings("numbers"), endings("picture"), endings()
_F = TypeVar("_F", bound=Callable[..., Any])


def _out(endings: tuple[str, ...], about: str, *, required: bool) -> Callable[[_F], _F]:
    """``-o``, refused before a model is loaded where nothing could be written."""

    def checked(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
        if path is not None and path.suffix.lower() not in endings:
            more = "; pictures: visformer export" if endings == _NUMBERS else ": the ending says what is written."
            raise click.UsageError(f"{path.name} does not end in any of {', '.join(endings)}{more}")
        if path is not None and not path.parent.is_dir():
            raise click.ClickException(f"{path}: there is no folder {path.parent}. Make it first.")
        return path

    kind = click.Path(path_type=Path, dir_okay=False, writable=True)
    said = f"{about} {', '.join(endings)}. A file that is there is replaced."
    return click.option("-o", "--out", type=kind, callback=checked, required=required, help=said)


def _sentence(command: Any) -> Any:
    """The options that say which sentence, and which model."""
    options = (
        click.option("--target", help="Read this target; by default the model's own translation."),
        click.option("--pair", help="A second sentence, of an encoder such as BERT."),
        click.option("--to", help="Language of the target, such as zh; by default the other one."),
        click.option(
            "--model", "name", default="en-zh", shell_complete=complete_model, show_default=True, help=MODEL_HELP
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("text")
@_sentence
@click.option("--record", multiple=True, default=("*.pattern",), show_default=True, help="What is kept, such as '*.q'.")
@_out(_NUMBERS, "Write it there:", required=False)
@click.option("--json", "as_json", is_flag=True, help="The summary for programs.")
def trace(
    text: str,
    target: str | None,
    pair: str | None,
    to: str | None,
    name: str,
    record: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the model on a sentence and keep its numbers.

    \b
    Examples:
      visformer trace "I went to school."
      visformer trace "I went to school." --target 我去学校。 -o trace.safetensors
      visformer trace "I went to school." --record "*.scores" --record "*.pattern" --json
    """
    from visformer.export import save
    from visformer.pictures.theme import visible

    found = _traced(name, text, target, pair=pair, to=to, record=record)
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


@click.command()
@click.argument("text", required=False)
@_sentence
@click.option(
    "--trace", "saved", type=click.Path(path_type=Path), help="Instead of a sentence, a file of visformer trace."
)
@_out(_ENDINGS, "Its ending says what is written:", required=True)
@click.option("--stack", type=click.Choice([*_STACKS]), help="By default the first that the model has.")
@click.option("--layer", type=click.IntRange(min=1), help="From 1, as on screen.")
@click.option("--head", type=click.IntRange(min=1), help="From 1; with --layer. Without both: all heads.")
@click.option(
    "--view",
    type=click.Choice(["heatmap", "arcs", "tokens"]),
    default="heatmap",
    show_default=True,
    help="Of one head, in a picture.",
)
@click.option(
    "--picture",
    type=click.Choice([*PICTURES]),
    metavar="NAME",
    help=f"Instead of a head, a picture of the other pages: {', '.join(PICTURES)}.",
)
@click.option(
    "--query",
    type=_FROM_1,
    default=1,
    show_default=True,
    help="The token that reads, from 1: view tokens, picture query.",
)
@click.option(
    "--step",
    type=_FROM_1,
    help="Of decoding, from 1. By default the first; of what grows (pictures growing, mask-steps) the last.",
)
@click.option(
    "--beams", type=click.IntRange(2, 8), default=4, show_default=True, help="Hypotheses kept: picture beams."
)
@click.option(
    "--positions",
    type=click.IntRange(2, 1024),
    default=24,
    show_default=True,
    help="How many: pictures positions and so on.",
)
@click.option("--pos", type=_FROM_0, default=3, show_default=True, help="Where a rotation starts, from 0.")
@click.option("--offset", type=int, default=5, show_default=True, help="How many positions further it takes.")
@click.option("--i", type=_FROM_0, default=1, show_default=True, help="It turns dimensions 2i and 2i + 1; from 0.")
@click.option("--example", default="", metavar="NAME", help="Of the lab, such as self-attention: picture lab.")
@click.option("--sample", type=_FROM_1, default=1, show_default=True, help="The sentence, from 1: --example shapes.")
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Of a picture.")
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=3.0,
    show_default=True,
    help="Of a PNG: 3 is about 300 pixels to the inch.",
)
@click.option("--lang", type=click.Choice(list(languages())), default="en", show_default=True, help="Of its words.")
@click.pass_context
def export(
    context: click.Context,
    /,
    text: str | None,
    target: str | None,
    pair: str | None,
    to: str | None,
    name: str,
    saved: Path | None,
    out: Path,
    stack: str | None,
    layer: int | None,
    head: int | None,
    view: Literal["heatmap", "arcs", "tokens"],
    picture: str | None,
    query: int,
    theme: Literal["light", "dark"],
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
    from visformer.export import save
    from visformer.i18n import translations
    from visformer.trace import Trace

    alone = picture is not None and not {*PICTURES[picture]}.isdisjoint(_FORMULAS)
    if (text is None) == (saved is None) and not (text is None and alone):
        raise click.UsageError("Give either a sentence or --trace FILE.")
    given = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    _refuse_idle_source(given, picture, out.suffix.lower())
    _refuse_idle(given, picture, out.suffix.lower(), view)
    attention = _STACKS[stack] if stack else None
    how: dict[str, Any] = {"theme": theme, "scale": scale, "gettext": translations(lang).gettext, "lang": lang}
    if picture is not None:
        attention = _attention(picture, stack, attention, saved, name)
        part, kind = attention.split(".")
        if "stack" in PICTURES[picture] and {"layer", "head", "query"} & given:
            found = Trace.load(saved) if saved else _traced(name, str(text), target, pair=pair, to=to)
            _from_0(found, attention, layer=layer, head=head, query=query)
        asked = {
            "part": part,
            "kind": kind,
            "layer": (layer or 1) - 1,
            "head": (head or 1) - 1,
            "query": query - 1,
            "theme": theme,
            "gettext": how["gettext"],
            **choices,
            "step": None if choices["step"] is None else choices["step"] - 1,
            "sample": choices["sample"] - 1,
        }
        how["about"] = Trace.load(saved).about if saved else _about(name, text)
        save(_drawn(picture, asked, saved, name, text, target, pair=pair, to=to), out, **how)
    else:
        found = Trace.load(saved) if saved else _traced(name, str(text), target, pair=pair, to=to)
        place = _from_0(found, attention, layer=layer, head=head, query=query)
        save(found, out, stack=attention, **place, view=view, **how)
    click.echo(f"Written to {out}")


def _attention(picture: str, stack: str | None, asked: str | None, saved: Path | None, name: str) -> str:
    """The one that was asked for, which the model has to have, or its first; of formulas no matter which."""
    from visformer.adapters.load import load
    from visformer.trace import Trace

    if "stack" not in PICTURES[picture]:
        return "encoder.self_attn"
    if saved:
        names = [name.split(".") for name in Trace.load(saved) if name.endswith(".pattern")]
        has = [*dict.fromkeys(f"{part}.{kind}" for part, _, kind, _ in names)] or [*_STACKS.values()]
    else:
        of_kind = {"encoder": ("encoder",), "decoder": ("decoder",)}
        has = [_STACKS[one] for one in of_kind.get(load(name).info.kind, tuple(_STACKS))]
    if asked not in (None, *has):
        there = " and ".join(one for one, attention in _STACKS.items() if attention in has)
        raise click.BadParameter(f"{stack}: the model has no such attention, only {there}.", param_hint="--stack")
    return asked or has[0]


def _about(name: str, text: str | None) -> str:
    """Which model was given which sentence; of a formula nothing."""
    from visformer.system.files import called

    return "" if text is None else f"{called(Path(name)) if Path(name).is_dir() else name}: {text}"


def _traced(name: str, text: str, target: str | None, **settings: Any) -> Any:
    from visformer.adapters.load import load

    return load(name).trace(text, target, **settings)


def _drawn(
    picture: str, asked: dict[str, Any], saved: Path | None, name: str, text: str | None, target: str | None, **how: Any
) -> Any:
    """Panels or a figure."""
    from visformer.export.named import Asked, Outside, draw
    from visformer.trace import Trace

    made: dict[str, Any] = {}
    if saved:
        found = Trace.load(saved)
        made = {"trace": lambda record: found, "order": found.meta.get("position", Asked.order)}
    elif picture != "lab":  # has numbers of its own
        made = _by_model(name, str(text), target, **how)
    asked = {**made, **asked}
    _tell_formula(picture, asked.get("order", Asked.order))
    try:
        return draw(picture, Asked(**asked))
    except Outside as error:
        at: dict[str, Any] = error.params
        first = 0 if at["name"] in _FROM_ZERO else 1
        said = f"{at['place'] + first}: there are {at['count']}, counted from {first}."
        raise click.BadParameter(said, param_hint=f"--{at['name']}") from error


def _tell_formula(picture: str, order: str) -> None:
    """That a picture of the paper's encoding is not this model's, where it is not."""
    from visformer.adapters.huggingface.families import POSITIONS

    if order != "sinusoidal" and not {"positions", "pos"}.isdisjoint(PICTURES[picture]):
        reason = POSITIONS.get(order, POSITIONS["unknown"])
        click.echo(f"This model: {reason}. Here you see the paper's encoding.", err=True)


def _by_model(name: str, text: str, target: str | None, **how: Any) -> dict[str, Any]:
    """Where a picture's numbers come from."""
    from visformer.adapters.load import load, untrained
    from visformer.trace import Trace

    model = load(name)

    def trace(record: tuple[str, ...]) -> Trace:
        return model.trace(text, target, record=model.available(record), **how)

    def other(norm: str, record: tuple[str, ...]) -> Trace:
        pair = str(trace(("*.pattern",)).meta["target"])
        return untrained(model, norm=norm).trace(text, pair, record=record)

    return {
        "trace": trace,
        "speak": lambda **settings: model.translate(text, to=how["to"], **settings),
        "read": model.trace,
        "untrained": other,
        "d_model": model.info.d_model,
        "order": model.info.position,
    }


def _refuse_idle_source(given: set[str], picture: str | None, ending: str) -> None:
    """Refuse what adds nothing to where the numbers come from, or is of another kind of file."""
    if "saved" in given:
        for name in (option for parameter, option in _OF_TRACE.items() if parameter in given):
            raise click.UsageError(f"--{name} makes no difference to --trace, which holds what a model made.")
    if picture == "lab" and {"text", "saved"} & given:
        raise click.UsageError("A sentence makes no difference to --picture lab, which has numbers of its own.")
    if "scale" in given and ending != ".png":
        raise click.UsageError(f"--scale makes no difference to {ending}: it is of a PNG.")
    if "theme" in given and ending not in _PICTURED:
        endings = " or ".join(_PICTURED)
        raise click.UsageError(f"--theme makes no difference to {ending}: it is of a picture, {endings}.")


def _refuse_idle(given: set[str], picture: str | None, ending: str, view: str) -> None:
    """Refuse what would make no difference."""
    if picture is not None:
        taken, what = PICTURES[picture], f"--picture {picture}"
    elif ending in _NUMBERS:
        taken, what = (), f"{ending}, which holds all attention"
    elif ending == ".html":
        taken, what = ("stack", "layer", "head"), "a page"
    else:
        taken, what = ("stack", "layer", "head", "view", *(["query"] * (view == "tokens"))), f"--view {view}"
        if view != "heatmap" and not {"layer", "head"} & given:
            raise click.UsageError(f"--view {view} is of one head: give --layer and --head, from 1.")
        if len({"layer", "head"} & given) == 1:
            raise click.UsageError("Give both --layer and --head: a picture is of one head, or without both of all.")
    for name in (name for name in _CHOICES if name in given and name not in taken):
        takes = f" It takes {', '.join(f'--{one}' for one in taken)}." if taken else ""
        raise click.UsageError(f"--{name} makes no difference to {what}.{takes}")


def _require(name: str, place: int | None, size: int) -> None:
    if place is not None and place > size:
        raise click.BadParameter(f"{place}: there are {size}, counted from 1.", param_hint=f"--{name}")


def _from_0(found: Any, attention: str | None, **places: int | None) -> dict[str, Any]:
    """Places as programs count them; refused as people do."""
    stack = attention or next((n.rpartition(".")[0] for n in found if n.endswith(".pattern")), "encoder.0.self_attn")
    part, kind = stack.split(".")[0], stack.split(".")[-1]
    if f"{part}.0.{kind}.pattern" in found:
        for name, size in zip(("layer", "head", "query"), found.stack(part, kind).shape[:3], strict=True):
            _require(name, places[name], size)
    return {name: None if place is None else place - 1 for name, place in places.items()}
