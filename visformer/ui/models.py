"""Which models a visitor may choose: the operator's list, and any hub id only where the operator says so."""

import os
from collections.abc import Mapping
from pathlib import Path

from visformer.errors import N_, VisformerError

MODEL = os.environ.get("VISFORMER_MODEL", "en-zh")
"""What every page shows: the bundled translator, or a local folder with one of our own."""


def offered(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The names in VISFORMER_MODELS, separated by commas, behind MODEL."""
    listed = (name.strip() for name in environ.get("VISFORMER_MODELS", "").split(","))
    return tuple(dict.fromkeys([MODEL, *filter(None, listed)]))


def label(name: str) -> str:
    """What a visitor sees of it: of a folder its name, not where it is."""
    return Path(name).name if Path(name).is_absolute() else name


def any_allowed(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a visitor may type any hub id: VISFORMER_ANY_MODEL=1. It may be as large as the memory."""
    return environ.get("VISFORMER_ANY_MODEL") == "1"


def require_allowed(name: str) -> None:
    """Refuse what the operator did not offer, before anything is looked up. A path is never typed by a visitor.

    Raises:
        VisformerError: not on the list.
    """
    if name in offered():
        return
    if not any_allowed():
        raise VisformerError(
            N_("The model {name!r} is not offered here: choose one of {names}."),
            name=name,
            names=", ".join(map(label, offered())),
        )
    if name.startswith((".", "/", "~", "\\")) or name.count("/") > 1 or os.path.exists(name):
        raise VisformerError(
            N_("{name!r} is no hub id: type it as owner/model. Folders are offered by the operator."), name=name
        )
