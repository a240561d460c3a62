"""The canvas's JavaScript and CSS: real files, put together here because a host takes one script."""

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_MODULES = ("payload.js", "colours.js", "paint.js", "attention.js")
_IMPORT = re.compile(r"^import .* from \"\./[\w.]+\"\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/| *// [^\n]*)\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


@cache
def script(host: str) -> str:
    """One module: the files in the order in which they need each other, then the host's own, which exports.

    Args:
        host: file name of the host's side, such as ``streamlit.js``.
    """
    parts = [_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in _MODULES]
    whole = "\n".join([*parts, _IMPORT.sub("", _read(host))])
    # It travels with every picture, so without what only a reader of the files needs.
    return re.sub(r"\n\s+", "\n", _COMMENT.sub("", whole))


@cache
def stylesheet() -> str:
    """The CSS, for a shadow root or a page."""
    return _read("attention.css")


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
