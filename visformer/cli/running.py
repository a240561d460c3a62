"""``visformer run``, ``bench`` and ``models``."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click

import visformer

HERE = Path(visformer.__file__).resolve().parent.parent
"""The repository, where the package was installed from it with ``pip install -e .``."""


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="By default 8501, or the next one that is free.")
@click.option("--address", default="localhost", show_default=True, help="0.0.0.0: for others in the network too.")
@click.option("--headless", is_flag=True, help="Do not open a browser.")
@click.option("--model", help="Bundled, a folder, or a hub id.")
def run(port: int | None, address: str, headless: bool, model: str | None) -> None:
    """Open the app in the browser. Ctrl+C ends it.

    \b
    Examples:
      visformer run
      visformer run --port 8600 --headless
    """
    options = ["--server.address", address, "--server.headless", "true" if headless else "false"]
    options += ["--server.port", str(port)] if port else []
    environment = {**os.environ, **({"VISFORMER_MODEL": model} if model else {})}
    command = [sys.executable, "-m", "streamlit", "run", str(_of_the_repository("app.py")), *options]
    try:
        code = subprocess.call(command, cwd=HERE, env=environment)
    except KeyboardInterrupt:
        return
    if code:
        raise click.ClickException(f"The app ended with exit code {code}.")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Measure what the app costs, as ratios; the arguments are those of ``python -m benchmarks``.

    \b
    Examples:
      visformer bench model --quick
      visformer bench --json bench.json
    """
    _of_the_repository("benchmarks")
    given = [str(Path(text).resolve()) if before == "--json" else text for before, text in _paired(arguments)]
    code = subprocess.call([sys.executable, "-m", "benchmarks", *given], cwd=HERE)
    if code:
        raise click.ClickException(f"The benchmarks ended with exit code {code}.")


def _paired(arguments: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each argument with the one before it."""
    return list(zip(("", *arguments), arguments, strict=False))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def models(as_json: bool) -> None:
    """List the models that need no network.

    \b
    Examples:
      visformer models
      visformer models --json
    """
    from visformer.checkpoints import BUNDLED
    from visformer.loading import load

    infos = [load(name).info for name in BUNDLED]
    if as_json:
        click.echo(json.dumps([asdict(info) for info in infos], ensure_ascii=False, indent=2))
        return
    for info in infos:
        depth = (
            f"{info.n_encoder_layers} + {info.n_decoder_layers} layers, {info.n_heads} heads, d_model {info.d_model}"
        )
        click.echo(f"{info.name}: {info.kind}, {depth}\n  {info.licence}; {info.source}")
    click.echo("Others: a folder, or an id of the Hugging Face hub (docs/models.md).")


def _of_the_repository(name: str) -> Path:
    path = HERE / name
    if not path.exists():
        raise click.ClickException(
            f"{path} is not there. App and benchmarks are part of the repository: clone it, then pip install -e ."
        )
    return path
