"""Which models a visitor may choose: the operator's list, untrained ones, and any hub id where the operator says so."""

import os
import re
from pathlib import Path

from visformer.errors import N_, Message, VisformerError
from visformer.model.untrained import EXAMPLE
from visformer.system import settings
from visformer.system.files import called

MODEL = settings.MODEL()
"""What every page shows: the bundled translator, or a local folder with one of our own."""

SECOND_BOX = {"encoder": N_("Second sentence"), "decoder": N_("What follows"), "encoder-decoder": N_("Target")}
"""What the box beside the sentence is called, by the kind of model."""


def offered() -> tuple[str, ...]:
    """MODEL, and behind it the operator's list."""
    return tuple(dict.fromkeys([MODEL, *settings.MODELS()]))


def label(name: str) -> str:
    """What a visitor sees of it, and a link says: of a folder its name, not where it is; of two alike a part more.

    As is of a name such as "checkpoint", see :func:`visformer.system.files.called`.
    """
    path = Path(name)
    if not path.is_absolute():
        return name
    others = [Path(other).parts for other in offered() if other != name]
    least = len(Path(called(path)).parts)
    ends = (path.parts[-n:] for n in range(least, len(path.parts)))
    alone = (end for end in ends if all(other[-len(end) :] != end for other in others))
    return "/".join(next(alone, path.parts[-least:]))


def named(said: str) -> str:
    """The model that is offered under this label; what is none stays as it is."""
    return next((name for name in offered() if label(name) == said), said)


def discreet(error: VisformerError, name: str, folder: Path) -> VisformerError:
    """The same error without a path of the server: the model goes by its label, other files by their names."""

    def without(value: object) -> object:
        if isinstance(value, Message | int | float):
            return value
        said = str(value)
        for path in (folder, folder.resolve()):
            said = said.replace(str(path), label(name)) if path.is_absolute() else said
        return _PATH.sub(r"\1", said)

    return type(error)(error.message_id, **{key: without(value) for key, value in error.params.items()})


_PATH = re.compile(r"(?<![\w:/\\.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":;,()]+)*[/\\]([^\s/\\'\":;,()]+)")
"""An absolute path, and its last part; the address of a hub is none."""


def require_allowed(name: str) -> None:
    """Refuse what the operator did not offer, before anything is looked up. A path is never typed by a visitor.

    Raises:
        VisformerError: not on the list.
    """
    if name in offered():
        return
    if not settings.ANY_MODEL():
        raise VisformerError(
            N_("The model {name!r} is not offered here: choose one of {names}, or an untrained one such as {example}."),
            name=name,
            names=", ".join(map(label, offered())),
            example=EXAMPLE,
        )
    if name.startswith((".", "/", "~", "\\")) or name.count("/") > 1 or os.path.exists(name):
        raise VisformerError(
            N_("{name!r} is not a hub id: type owner/model. Only the operator can offer folders."), name=name
        )
