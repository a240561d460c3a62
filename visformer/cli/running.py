"""``visformer run``, ``bench`` and ``models``."""

import json
import math
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from visformer.adapters.names import require_model
from visformer.i18n import languages
from visformer.model.untrained import EXAMPLE, Untrained
from visformer.system import limits, settings
from visformer.system.shipped import HERE, app_folder


def complete_model(_context: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the models that need no network, and folders, which the shell knows."""
    from visformer.adapters.checkpoints import OF_TEXT

    items = [CompletionItem(name) for name in (*OF_TEXT, "untrained", EXAMPLE) if name.startswith(begun)]
    return items or [CompletionItem(begun, type="dir")]


MODEL_HELP = f"A bundled model, a folder, a hub id, or an untrained one such as {EXAMPLE}."


class Real(click.FloatRange):
    """A finite number in a range; click alone takes nan."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert the text of an option."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


PATH = click.Path(path_type=Path)
with_default = partial(click.option, show_default=True)
in_language = with_default("--lang", type=click.Choice([*languages()]), default="en", help="Language of its words.")


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    envvar="STREAMLIT_SERVER_PORT",
    help="By default 8501, or the next free port.",
)
@with_default("--address", default="localhost", help="0.0.0.0 also serves others in the network.")
@click.option("--headless", is_flag=True, help="Do not open a browser.")
@click.option("--model", envvar="VISFORMER_MODEL", shell_complete=complete_model, help=MODEL_HELP)
@click.option("--atlas", "atlases", multiple=True, type=PATH, help="A folder that visformer atlas wrote, or its zip.")
@click.option("--room", is_flag=True, help="For many visitors: load the model at once, and compute in other processes.")
def run(
    port: int | None, address: str, headless: bool, model: str | None, atlases: tuple[Path, ...], room: bool
) -> None:
    """Open the app in the browser. Ctrl+C stops it.

    \b
    Examples:
      visformer run
      visformer run --port 8600 --headless
      visformer run --model runs/en-zh/checkpoint
      visformer run --atlas runs/atlas
      visformer run --room --headless --address 0.0.0.0
    """
    from visformer.cli.doctor import port_refused

    settings.check()
    if port is not None and (refused := port_refused(address, port)):  # Streamlit would bury it in its log
        raise click.ClickException(
            f"Port {port} of {address} cannot be used ({refused}): choose another with --port, or omit it "
            "to use the next free one."
        )
    folder = app_folder()
    if folder is None:
        raise click.ClickException(f"The app's files are not where visformer is, {HERE}. Reinstall it: README.md")
    if model:
        require_model(model)
        os.environ["VISFORMER_MODEL"] = str(Path(model).resolve()) if Path(model).is_dir() else model
    for atlas in atlases:
        if not atlas.is_file() and not (atlas / "heads.parquet").is_file():
            raise click.ClickException(f"There is no atlas in {atlas}: visformer atlas makes one.")
    if atlases:
        os.environ[settings.ATLASES.name] = ",".join(str(atlas.resolve()) for atlas in atlases)
    if ":" not in address:  # a name of this machine, under which the address is printed
        os.environ[settings.HOSTS.name] = ",".join({**dict.fromkeys(settings.HOSTS()), address: None})
    if room and not os.environ.get(settings.PROCESSES.name):
        os.environ[settings.PROCESSES.name] = settings.AUTO
    if not room and not os.environ.get(settings.MEMORY.name):
        os.environ[settings.MEMORY.name] = str(limits.OWN_KEPT_BYTES // 10**6)
    from visformer.app.serving.server import serve

    with suppress(KeyboardInterrupt):  # which uvicorn raises again once the server has shut down
        # Without the flag, Streamlit opens a browser where there is a screen.
        given = {"headless": headless or None, "port": port}
        serve(folder / "app.py", address=address, **{name: value for name, value in given.items() if value is not None})


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Run the benchmarks, reported as ratios.

    \b
    Arguments:
      model, browser, peers or all   what to measure; by default all
      --quick                        few repetitions, only to see that everything runs
      --json FILE                    also save the rows to FILE
      --threads N                    torch threads; by default torch decides

    \b
    Examples:
      visformer bench model --quick
      visformer bench --json bench.json
    """
    if not (HERE / "benchmarks").is_dir():
        raise click.ClickException(
            f"No benchmarks in {HERE}. They are part of the repository: clone it, then pip install -e ."
        )
    pairs = zip(("", *arguments), arguments, strict=False)  # each argument with the one before it
    absolute = [str(Path(text).resolve()) if before == "--json" else text for before, text in pairs]
    code = subprocess.call([sys.executable, "-m", "benchmarks", *absolute], cwd=HERE)
    if code == 2:  # wrong usage, which it has reported itself
        sys.exit(code)
    if code:
        raise click.ClickException(f"The benchmarks failed with exit code {code}.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models(as_json: bool) -> None:
    """List the models that need no network.

    \b
    Examples:
      visformer models
      visformer models --json
    """
    from visformer.adapters.checkpoints import BUNDLED
    from visformer.adapters.load import load

    infos = [load(name).info for name in BUNDLED]
    if as_json:
        infos.append(load(Untrained().name).info)
        click.echo(json.dumps([asdict(info) for info in infos], ensure_ascii=False, indent=2))
        return
    for info in infos:
        layers = " + ".join(str(n) for n in (info.n_encoder_layers, info.n_decoder_layers) if n)
        depth = f"{layers} layers, {info.n_heads} heads, d_model {info.d_model}"
        click.echo(f"{info.name}: {info.kind}, {depth}\n  {info.licence}; {info.source}")
    click.echo(f"{Untrained().name}: random weights, of any size\n  visformer trace SENTENCE --model NAME")
    click.echo("Others: a folder, or a Hugging Face hub id (docs/models.md).")
