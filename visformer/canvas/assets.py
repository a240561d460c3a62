"""The canvas's JavaScript and CSS: real files, put together here because a host takes one script."""

import re
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^import .* from \"\./([\w.]+)\"\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/| *// [^\n]*)\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


@cache
def script(host: str) -> str:
    """One module: the files that the host's own imports, each behind those that it needs, and the host's last.

    Args:
        host: file name of the host's side, such as ``streamlit_attention.js``.
    """
    *needed, last = _in_order(host, [])
    parts = [_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in needed]
    whole = "\n".join([*parts, _IMPORT.sub("", _read(last))])
    # It travels with every picture, so without what only a reader of the files needs.
    return re.sub(r"\n\s+", "\n", _COMMENT.sub("", whole))


def _in_order(name: str, before: list[str]) -> list[str]:
    """``before``, then what ``name`` imports and is not there yet, then ``name``."""
    for needed in _IMPORT.findall(_read(name)):
        if needed not in before:
            before = _in_order(needed, before)
    return [*before, name]


@cache
def stylesheet() -> str:
    """The CSS, for a shadow root or a page."""
    return _read("style.css")


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
