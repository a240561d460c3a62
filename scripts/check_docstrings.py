"""Check that every public function documents its parameters, what it returns and what it raises.

python scripts/check_docstrings.py
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # also without an installation

import visformer as vf  # noqa: E402

MODULES = [name for name in vf.__all__ if inspect.ismodule(getattr(vf, name))]


def public_names(package: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and definition of everything that ``import visformer as vf`` offers, and of what it returns."""
    for name in vf.__all__:
        if name not in MODULES:
            yield f"vf.{name}", package[name]
            continue
        module = package[name].final_target if package[name].is_alias else package[name]
        exported = getattr(getattr(vf, name), "__all__", None)
        for member in exported or [m for m in module.members if not m.startswith("_")]:
            definition = module.members[member]
            if exported or not definition.is_alias:
                yield f"vf.{name}.{member}", definition
    returned = {"adapters.base": ("TracedModel", "ModelInfo"), "model.decoding": ("Decoding", "Step", "Beam")}
    for module, names in returned.items():
        yield from ((name, package[module].members[name]) for name in names)


def documented(name: str, definition: Any) -> Iterator[tuple[str, Any]]:
    """Yield a class or function, and the public methods of a class."""
    definition = definition.final_target if definition.is_alias else definition
    if definition.is_class or definition.is_function:
        yield name, definition
    if definition.is_class:
        for member, inner in definition.members.items():
            if not inner.is_alias and inner.is_function and not member.startswith("_"):
                yield f"{name}.{member}", inner


def gaps(name: str, definition: Any) -> Iterator[str]:
    """Yield a sentence for each gap in a docstring."""
    if not definition.docstring:
        yield f"{name} has no docstring"
    elif definition.is_function:
        sections = {section.kind.value: section.value for section in definition.docstring.parsed}
        parameters = [p.name for p in definition.parameters if p.name not in ("self", "cls")]
        described = [p.name.lstrip("*") for p in sections.get("parameters", ())]
        if described != parameters:
            yield f"{name} has the parameters {parameters} and describes {described}"
        if str(definition.returns) not in ("None", "NoReturn") and not {"returns", "yields"} & sections.keys():
            yield f"{name} does not say what it returns"
        missing = raised(definition) - {str(r.annotation) for r in sections.get("raises", ())}
        if missing:
            yield f"{name} does not say that it raises {sorted(missing)}"


def raised(function: Any) -> set[str]:
    """Return the names of the exceptions that the body itself raises."""
    tree = ast.parse(inspect.cleandoc("\n" + function.source))
    calls = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)
    return {
        call.func.id
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id[0].isupper()
    }


def main() -> int:
    """Print each gap; return 1 if there is one."""
    package = griffe.load("visformer", search_paths=[ROOT], docstring_parser="google")
    found = [pair for name, definition in public_names(package) for pair in documented(name, definition)]
    functions = sum(definition.is_function for _, definition in found)
    assert functions > 50, f"only {functions} functions were found"
    wrong = [gap for name, definition in found for gap in gaps(name, definition)]
    print("\n".join(wrong) or f"{functions} public functions are documented")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
