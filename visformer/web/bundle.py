"""The views' JavaScript and CSS: real files, put together here because a host takes one script."""

import re
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

_FOLDER = Path(__file__).parent / "static"
_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"(\.[\w./]+)\"\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|// [^\n]*)\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export (?!default)(?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)


@cache
def script(host: str) -> str:
    """One module: the files that the host's own imports, each behind those that it needs, and the host's last.

    Each file keeps a scope of its own, as modules do: names in two of them may be the same.

    Args:
        host: file of the host's side below static/, such as ``streamlit/attention.js``.
    """
    *needed, last = _in_order(host, [])
    whole = "\n".join([*map(_scoped, needed), _linked(last)])
    return re.sub(r"\n\s+", "\n", _COMMENT.sub("", whole))  # without what only a reader of the files needs


def imports(name: str) -> list[str]:
    """The files that a file imports, each by its path below static/."""
    return [normpath(join(dirname(name), needed)) for _, needed in _IMPORT.findall(_read(name))]


def _scoped(name: str) -> str:
    """A file as an object of what it exports."""
    exported = ", ".join(_EXPORT.findall(_read(name)))
    return f"const {_variable(name)} = (() => {{\n{_EXPORT.sub('', _linked(name))}\nreturn {{ {exported} }}\n}})()"


def _linked(name: str) -> str:
    """A file's text with each import taken from the object of that file."""
    needed = iter(imports(name))
    return _IMPORT.sub(lambda found: f"const {found[1]} = {_variable(next(needed))}\n", _read(name))


def _variable(name: str) -> str:
    return "file_" + name.removesuffix(".js").replace("/", "_")


def _in_order(name: str, before: list[str]) -> list[str]:
    """``before``, then what ``name`` imports and is not there yet, then ``name``."""
    for needed in imports(name):
        if needed not in before:
            before = _in_order(needed, before)
    return [*before, name]


@cache
def stylesheet(name: str = "shared/style.css") -> str:
    """The CSS, for a shadow root or a page."""
    return _read(name)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
