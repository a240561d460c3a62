"""``visformer trace`` and ``visformer export``: a sentence in, a file out."""

import json
from pathlib import Path
from typing import Any, Literal

import click

from visformer.i18n import LANGUAGES

_NUMBERS = (".safetensors", ".json", ".csv")


def _sentence(command: Any) -> Any:
    """The options that say which sentence, and which model."""
    options = (
        click.option("--target", help="Read this target; by default the model's own translation."),
        click.option("--pair", help="A second sentence, of an encoder such as BERT."),
        click.option("--to", help="Language of the target, such as zh; by default the other one."),
        click.option("--model", "name", default="en-zh", show_default=True, help="Bundled, a folder, or a hub id."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("text")
@_sentence
@click.option("--record", multiple=True, default=("*.pattern",), show_default=True, help="What is kept, such as '*.q'.")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help=f"Write it there: {', '.join(_NUMBERS)}."
)
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

    if out is not None and out.suffix.lower() not in _NUMBERS:
        raise click.UsageError(f"{out.name} does not end in any of {', '.join(_NUMBERS)}; pictures: visformer export")
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
            click.echo(f"{title}: {' '.join(found.tokens[side])}")
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
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Its ending says what is written: .html, .svg, .png, .csv, .json, .safetensors.",
)
@click.option("--stack", type=click.Choice(["encoder", "decoder", "cross"]), help="By default the encoder.")
@click.option("--layer", type=click.IntRange(min=1), help="From 1, as on screen.")
@click.option("--head", type=click.IntRange(min=1), help="From 1. Without layer and head: all heads.")
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Of a picture.")
@click.option("--scale", default=3.0, show_default=True, help="Of a PNG: 3 is about 300 pixels to the inch.")
@click.option("--lang", type=click.Choice(list(LANGUAGES)), default="en", show_default=True, help="Of its words.")
def export(
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
    theme: Literal["light", "dark"],
    scale: float,
    lang: str,
) -> None:
    """Write the attention of a sentence to a file: the explorer, a picture, or the numbers.

    \b
    Examples:
      visformer export "I went to school." -o attention.html
      visformer export "I went to school." -o head.svg --stack cross --layer 3 --head 6
      visformer export "I went to school." -o heads.png --stack cross --theme dark
      visformer export --trace trace.safetensors -o weights.csv
    """
    from visformer.canvas.selection import Selection
    from visformer.export import save
    from visformer.i18n import translations
    from visformer.trace import Trace

    if (text is None) == (saved is None):
        raise click.UsageError("Give either a sentence or --trace FILE.")
    found = Trace.load(saved) if saved else _traced(name, str(text), target, pair=pair, to=to)
    save(
        found,
        out,
        stack=Selection.from_link({"stack": stack}).stack if stack else None,
        layer=None if layer is None else layer - 1,
        head=None if head is None else head - 1,
        theme=theme,
        scale=scale,
        gettext=translations(lang).gettext,
        lang=lang,
    )
    click.echo(f"Written to {out}")


def _traced(name: str, text: str, target: str | None, **settings: Any) -> Any:
    from visformer.loading import load

    return load(name).trace(text, target, **settings)
