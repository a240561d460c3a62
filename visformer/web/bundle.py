"""Bundle the views' JavaScript and CSS: separate files, combined here because a host loads a single script."""

import json
import re
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath

_FOLDER = Path(__file__).parent / "static"
_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"(\.[\w./]+)\"\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?:/\*\*.*?\*/|// [^\n]*)\n", re.MULTILINE | re.DOTALL)
_OTHER = re.compile(r"[^\x00-\x7f]")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) (\w+))", re.MULTILINE)


@cache
def script(run: str, **imported: str) -> str:
    """Bundle one statement, and everything that it needs, into one module, dependencies first.

    Each file keeps its own scope, as modules do, so two files may use the same name.

    Args:
        run: the statement, such as ``showPage(mountMap)``.
        imported: each name that the statement uses, and the file below static/ that exports it.

    Returns:
        The module in ASCII: it is the same, with the same digest, in a page of any encoding.
    """
    files: list[str] = []
    for name in imported.values():
        files = files if name in files else _in_order(name, files)
    taken = [f"const {{ {what} }} = {_variable(name)}" for what, name in imported.items()]
    bundle = "\n".join([*map(_scoped, files), *taken, run])
    sent = re.sub(r"\n\s+", "\n", _COMMENT.sub("", bundle))  # without comments and indentation
    return _OTHER.sub(lambda match: json.dumps(match[0])[1:-1], sent)


def imports(name: str) -> list[str]:
    """Return the files that a file imports, as paths below static/."""
    return [normpath(join(dirname(name), needed)) for _, needed in _IMPORT.findall(_read(name))]


def _scoped(name: str) -> str:
    """Wrap a file in a function that returns an object of its exports."""
    exported = ", ".join(_EXPORT.findall(_read(name)))
    return f"const {_variable(name)} = (() => {{\n{_EXPORT.sub('', _linked(name))}\nreturn {{ {exported} }}\n}})()"


def _linked(name: str) -> str:
    """Return a file's text with each import replaced by destructuring the imported file's object."""
    needed = iter(imports(name))
    return _IMPORT.sub(lambda match: f"const {match[1]} = {_variable(next(needed))}\n", _read(name))


def _variable(name: str) -> str:
    return "file_" + name.removesuffix(".js").replace("/", "_")


def _in_order(name: str, before: list[str]) -> list[str]:
    """Append to ``before`` the imports of ``name`` that are not in it yet, then ``name`` itself."""
    for needed in imports(name):
        if needed not in before:
            before = _in_order(needed, before)
    return [*before, name]


@cache
def stylesheet(name: str = "shared/style.css") -> str:
    """Return a style sheet, for a shadow root or a page, in ASCII."""
    return _OTHER.sub(lambda match: f"\\{ord(match[0]):x} ", _read(name))


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
