"""Lines of this package's own source, for the pages that show what computes a step. Nothing is imported for it."""

import ast
from functools import cache
from pathlib import Path

import visformer

_FOLDER = Path(visformer.__file__).parent


@cache
def excerpt(file: str, name: str) -> str:
    """A function, class or method without its docstring, by its file in the package and ``Class.method``.

    Raises:
        KeyError: the file defines nothing of that name.
    """
    text = (_FOLDER / file).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        found = [child for child in getattr(node, "body", ()) if getattr(child, "name", None) == part]
        if not found:
            raise KeyError(f"{file} defines no {name}")
        node = found[0]
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
    first = node.body[0]  # type: ignore[attr-defined]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        start = node.lineno  # type: ignore[attr-defined]
        del lines[first.lineno - start : (first.end_lineno or first.lineno) - start + 1]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines)
