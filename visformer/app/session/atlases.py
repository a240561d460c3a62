"""The atlases that a visitor may see: the bundled ones, the operator's, and one of the visitor's own."""

import logging
import secrets
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from visformer.adapters.checkpoints import OF_TEXT
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.models import MODEL, label, offered, require_allowed
from visformer.app.serving.workers import confined
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.errors import N_, DataError, VisformerError
from visformer.system import settings
from visformer.system.cache import CACHE
from visformer.system.files import called

if TYPE_CHECKING:  # pandas
    from visformer.analysis.atlas import Atlas

OWN = "own"
"""The name of the visitor's own atlas, in links, too: whoever opens one there has no such file."""

_KEY = Slot("own_atlas", "")  # under which it is kept


def names() -> tuple[str, ...]:
    """Return the names of all that can be shown; that of the visitor's model first."""
    from visformer.analysis.atlas import bundled_names

    every = [*_operators(), *bundled_names()]
    if _KEY.get() and CACHE.get(_KEY.get()) is not None:
        every.insert(0, OWN)
    model = _plain(boxes.model() or MODEL)
    return tuple(sorted(every, key=lambda name: _model_of(name) != model))


def atlas(name: str) -> "Atlas":
    """Return an atlas by its name.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    if name == OWN:
        kept: Atlas | None = CACHE.get(_KEY.get())
        if kept is None:
            raise DataError(N_("Your atlas is no longer in memory: open its file again."))
        return kept
    path = _operators().get(name)
    return _bundled(name) if path is None else _read(path)


def open_own(content: bytes) -> None:
    """Read the file of a visitor in a process whose memory is limited, and keep what it holds as long as there is room.

    Raises:
        VisformerError: it is no atlas, or there is no room for it.
    """
    from visformer.analysis.atlas.archive import NAME
    from visformer.analysis.atlas.tables import Atlas

    session, key = own_session(), f"atlas {secrets.token_hex(8)}"
    work = partial(confined, NAME, Atlas.unpack, content)
    found = ADMISSION.run((session, key), work, on_wait=lambda _before: None, session=session, kind="long")
    CACHE.drop(_KEY.get())
    CACHE.put(key, found, found.nbytes)
    _KEY.set(key)


def opens_with(shown: "Atlas") -> str | None:
    """Return the model with which the examples of an atlas can be opened here; None: it is not offered."""
    model = str(shown.about["model"])
    if (known := next((name for name in offered() if _plain(name) == model), None)) is not None:
        return known
    try:
        require_allowed(model)
    except VisformerError:
        return None
    return model


def is_of_other_weights(shown: "Atlas") -> bool:
    """Whether an atlas is of a model that has the name of a bundled one, and other weights."""
    model = str(shown.about["model"])
    if model not in OF_TEXT or opens_with(shown) != model:
        return False
    return bool(_bundled(model).about["fingerprint"] != shown.about.get("fingerprint"))


def missing() -> str | None:
    """Return the name of the visitor's model if there is no atlas of it."""
    model = boxes.model() or MODEL
    return None if any(_model_of(name) == _plain(model) for name in names()) else label(model)


@cache
def _bundled(name: str) -> "Atlas":
    from visformer.analysis.atlas import Atlas

    return Atlas.bundled(name)


def _operators() -> dict[str, Path]:
    """Return the operator's atlases by name: that of the folder, with its parent's where two have the same."""
    found: dict[str, Path] = {}
    for path in map(Path, settings.ATLASES()):
        name = path.stem if path.suffix == ".zip" else called(path)
        found[name if name not in found else f"{path.parent.name}/{name}"] = path
    return found


@cache
def _read(path: Path) -> "Atlas":
    from visformer.analysis.atlas import Atlas

    try:
        return Atlas.read(path)
    except (VisformerError, OSError) as error:
        logging.getLogger(__name__).error("%s", error)
        raise DataError(N_("This atlas cannot be read; the server's log says why.")) from error


def _model_of(name: str) -> str:
    if name not in _operators() and name != OWN:
        return name
    try:
        return str(atlas(name).about["model"])
    except DataError:
        return ""


def _plain(model: str) -> str:
    """Return the name that a model has in an atlas: for a folder, as it is called."""
    return called(Path(model)) if Path(model).is_absolute() else model
