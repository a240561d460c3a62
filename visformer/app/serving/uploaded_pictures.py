"""A picture as a text, such as "[picture 1] What is this?", and the uploaded ones that such texts name.

A link holds the name alone. The pictures are in this process's memory, for as long as a session shows them and there is
room: a reload finds them again, and so does whoever opens the link meanwhile.
"""

import io
import re
import secrets
import threading
from collections import OrderedDict
from functools import cache

from visformer import scenes
from visformer.adapters.picture_files import Prompt
from visformer.errors import N_, DataError
from visformer.system import limits
from visformer.system.cache import CACHE

EXAMPLES = tuple(str(i + 1) for i in range(len(scenes.EXAMPLES)))
"""The names of the pictures that are always there: drawn scenes."""
NONE = "none"
"""In place of a name: a text without a picture, for a model that reads both."""

_MARK = re.compile(r"\[picture ([0-9a-z]+)\][^\S\n]?")
_SIDE = 256  # of a drawn scene, in pixels
_LOCK = threading.Lock()
_SHOWN_BY: dict[str, OrderedDict[str, None]] = {}  # session to the names of its pictures, the last one shown last


def named(text: str) -> tuple[str, str]:
    """Return the name of the picture at the beginning of a text, "" without one, and the rest of the text."""
    match = _MARK.match(text)
    return ("", text) if match is None else (match[1], text[match.end() :])


def text_of(name: str, text: str = "") -> str:
    """Return a text with a picture, see :func:`named`."""
    return f"[picture {name}] {text}".rstrip(" ")


def file_of(name: str) -> bytes:
    """Return the picture of this name as a PNG file.

    Raises:
        DataError: there is none, or none any more.
    """
    if name in EXAMPLES:
        return _drawn(EXAMPLES.index(name))
    file: bytes | None = CACHE.get(_key(name))
    if file is None:
        raise DataError(
            N_(
                "The picture {name!r} is not on this server any more, which keeps an upload while a session shows it: "
                "upload its file again."
            ),
            name=name,
        )
    return file


def prompt_of(text: str) -> Prompt:
    """Return what a model reads of a text with a picture, or with the first example where it names none.

    Raises:
        DataError: see :func:`file_of`.
    """
    name, rest = named(text)
    return Prompt(rest, file_of(name or EXAMPLES[0]))


def keep(file: bytes, session: str) -> str:
    """Keep a picture for a session; return its name, which nobody can guess.

    Raises:
        BudgetError: there is no room for it.
    """
    name = secrets.token_hex(8)
    CACHE.put(_key(name), file, len(file))
    show(name, session)
    return name


def show(name: str, session: str) -> None:
    """Note that a session shows a picture; what it has not shown for longest makes room."""
    if name in (*EXAMPLES, NONE) or CACHE.get(_key(name)) is None:
        return
    with _LOCK:
        own = _SHOWN_BY.setdefault(session, OrderedDict())
        own[name] = None
        own.move_to_end(name)
        gone = [own.popitem(last=False)[0]] if len(own) > limits.PICTURES else []
        _drop(gone)


def forget(session: str) -> None:
    """Drop the pictures of a session that has ended, but for those that another one shows."""
    with _LOCK:
        _drop([*_SHOWN_BY.pop(session, ())])


def _drop(names: list[str]) -> None:
    for name in names:
        if not any(name in own for own in _SHOWN_BY.values()):
            CACHE.drop(_key(name))


def _key(name: str) -> str:
    return f"picture {name}"


@cache
def _drawn(i: int) -> bytes:
    from PIL import Image

    large = Image.fromarray(scenes.render(scenes.EXAMPLES[i])).resize((_SIDE, _SIDE))
    large.save(file := io.BytesIO(), "PNG")
    return file.getvalue()
