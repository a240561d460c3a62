"""The models that a visitor may choose: the operator's list, untrained ones, and any hub id if the operator allows."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from visformer.adapters.checkpoints import BUNDLED, CAPTIONER, find, folder_of, model_of, moment_name
from visformer.adapters.names import made_here, require_name
from visformer.errors import N_, Message, VisformerError
from visformer.model.untrained import EXAMPLE
from visformer.system import settings
from visformer.system.files import called

MODEL = settings.MODEL()
"""The default model: the bundled translator, unless the operator sets another."""

SECOND_BOX = {"encoder": N_("Second sentence"), "decoder": N_("What follows"), "encoder-decoder": N_("Target")}
"""The label of the box beside the sentence, by the kind of model."""


def offered() -> tuple[str, ...]:
    """Return MODEL, the other bundled ones unless the operator set MODEL, and then the operator's list."""
    bundled = tuple(BUNDLED) if MODEL in BUNDLED else ()
    return tuple(dict.fromkeys([MODEL, *bundled, *settings.MODELS()]))


def label(name: str) -> str:
    """Return the name that pages and links show; for a folder, as many of its last parts as tell it from other models.

    A generic name such as "checkpoint" gets its parent's as well, see :func:`visformer.system.files.called`.
    """
    name, moment = model_of(name)
    path = Path(name)
    if moment is not None:
        return moment_name(label(name), moment)
    if not path.is_absolute():
        return name
    others = [Path(other).parts for other in offered() if other != name]
    least = len(Path(called(path)).parts)
    ends = (path.parts[-n:] for n in range(least, len(path.parts)))
    unique = (end for end in ends if all(other[-len(end) :] != end for other in others))
    return "/".join(next(unique, path.parts[-least:]))


def named(text: str) -> str:
    """Return the offered model with this label, or its moment; if there is none, the text itself."""
    shown, moment = model_of(text)
    name = next((name for name in offered() if label(name) == shown), shown)
    return name if moment is None else moment_name(name, moment)


def can_be_loaded_again(name: str) -> bool:
    """Whether the weights of a model that was loaded are still there, in its folder or in the hub's cache."""
    name, _ = model_of(name)
    if made_here(name):
        return True
    folder = find(name)[2].folder
    if folder.is_absolute() and not (folder / "config.json").is_file():  # transformers writes one
        return any(os.access(folder / file, os.R_OK) for file in ("model.safetensors", "model.z"))
    from visformer.adapters.huggingface.files import has_weights

    return has_weights(name)


def may_read_pictures(name: str) -> bool:
    """Whether a model is one of transformers with a file on how to read pictures, or one whose files are not here yet.

    Raises:
        VisformerError: there can be no such model.
    """
    name, _ = model_of(name)
    if made_here(name) or name in BUNDLED:
        return False
    require_name(name)
    folder = find(name)[2].folder
    if folder.is_dir() and not (folder / "config.json").is_file():  # transformers writes one
        return False
    from visformer.adapters.huggingface.files import may_have_processor

    return may_have_processor(name)


@contextmanager
def discreetly(name: str) -> Iterator[None]:
    """Make an error from loading this model :func:`discreet`; the operator finds the path in the log."""
    try:
        yield
    except VisformerError as error:
        if name in offered():  # otherwise a visitor typed it, and it must not reach a log
            logging.getLogger(__name__).error("%s", error)
        raise discreet(error, name) from error


def discreet(error: VisformerError, name: str) -> VisformerError:
    """Return the error without paths of the server: the model by its label, other files by their names."""
    folder = folder_of(name)

    def without(value: object) -> object:
        if isinstance(value, Message | int | float):
            return value
        text = str(value)
        for path in (folder, folder.resolve()):
            text = text.replace(str(path), label(name)) if path.is_absolute() else text
        return _PATH.sub(r"\1", text)

    return type(error)(error.message_id, **{key: without(value) for key, value in error.params.items()})


_PATH = re.compile(r"(?<![\w:/\\.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":;,()]+)*[/\\]([^\s/\\'\":;,()]+)")
"""Matches an absolute path and captures its last part; does not match URLs."""


_HUB_ID = re.compile(r"\w[\w.-]{0,95}(/\w[\w.-]{0,95})?", re.ASCII)
"""Matches what may be a model on the hub, and no path beyond the server's folder."""


def require_allowed(name: str) -> None:
    """Require a model that the operator offers, or that a page has as its own, before anything is looked up.

    Visitors may not type paths.

    Raises:
        VisformerError: it is not offered.
    """
    if name in (*offered(), CAPTIONER):
        return
    if not settings.ANY_MODEL():
        raise VisformerError(
            N_("The model {name!r} is not offered here: choose one of {names}, or an untrained one such as {example}."),
            name=name,
            names=", ".join(map(label, offered())),
            example=EXAMPLE,
        )
    if not _HUB_ID.fullmatch(name) or os.path.exists(name):
        raise VisformerError(
            N_("{name!r} is not a hub id: type owner/model. Only the operator can offer folders."), name=name
        )
