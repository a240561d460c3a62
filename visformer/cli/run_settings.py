"""The settings of a run of ``visformer train``, kept in its folder: it is resumed with the same ones, or not at all."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from visformer.system.checksums import sha256
from visformer.system.files import write_whole

if TYPE_CHECKING:
    from visformer.training.data import Pair


_OF_THE_TOKENIZER = ("--pairs", "--supplement", "--vocab", "--seed")
"""Settings that a tokenizer is learned with."""


def pairs_named(pairs: "Iterable[Pair]") -> str:
    """Name sentence pairs by a digest; not their file, which may be a pipe."""
    return _named("".join(f"{pair.en}\t{pair.zh}\n" for pair in pairs))


def tables_named(folder: Path) -> str:
    """Name the tables in a folder by a digest."""
    tables = sorted(folder.rglob("*.tsv"))
    return _named("".join(f"{sha256(table)}  {table.relative_to(folder).as_posix()}\n" for table in tables))


def tokenizer_named(folder: Path) -> dict[str, str]:
    """Name the tokenizer in the folder of a run by a digest, as one more setting: another may have been put there."""
    return {"tokenizer.json": _named((folder / "tokenizer.json").read_text(encoding="utf-8"))}


def _named(text: str) -> str:
    return f"data with sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def given(context: click.Context, **computed: Any) -> dict[str, Any]:
    """Return what a command trains with, by option; ``computed`` instead of what is given, except the folder."""
    named = {str(option.name): option.opts[0] for option in context.command.params if option.name != "folder"}
    return {flag: computed.get(name, context.params.get(name)) for name, flag in named.items()}


def require_same(folder: Path, settings: Mapping[str, Any]) -> None:
    """Keep the settings of a new run, and refuse others for a run that has a state.

    Raises:
        ClickException: the message names each setting that differs, with both values.
    """
    kept = _kept(folder / "settings.json")
    names = [name for name in settings if kept is None or kept.get(name, "not set") != settings[name]]
    if not names:
        return
    if (folder / "state.safetensors").exists():
        if kept is None:
            raise click.ClickException(
                f"The run in {folder} cannot be resumed without its settings.json, which is missing or damaged: "
                "give another --out."
            )
        raise click.ClickException(
            f"{folder} holds a run with other settings: "
            + "; ".join(f"{name} was {_said(kept, name)} and is {_said(settings, name)}" for name in names)
            + ". Give the old ones to resume it, or another --out."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if kept is not None and not {*_OF_THE_TOKENIZER}.isdisjoint(names):  # without settings it was put there to be used
        (folder / "tokenizer.json").unlink(missing_ok=True)
    write_whole(folder / "settings.json", json.dumps(settings, indent=2) + "\n")


def _kept(path: Path) -> dict[str, Any] | None:
    """Read the settings of a run; None if there are none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return kept if isinstance(kept, dict) else None


def _said(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name, "not set")
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
