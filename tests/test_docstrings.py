"""Every public function documents its parameters, what it returns and what it raises."""

import ast
import inspect
from pathlib import Path

import griffe
import pytest

import visformer as vf

MODULES = [name for name in vf.__all__ if inspect.ismodule(getattr(vf, name))]
ROOT = Path(vf.__file__).parent.parent


@pytest.fixture(scope="module")
def package():
    return griffe.load("visformer", search_paths=[ROOT], docstring_parser="google")


def public_names(package):
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


def documented(name, definition):
    """Yield a class or function, and the public methods of a class."""
    definition = definition.final_target if definition.is_alias else definition
    if definition.is_class or definition.is_function:
        yield name, definition
    if definition.is_class:
        for member, inner in definition.members.items():
            if not inner.is_alias and inner.is_function and not member.startswith("_"):
                yield f"{name}.{member}", inner


def gaps(name, definition):
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


def raised(function):
    """Return the names of the exceptions that the body itself raises."""
    tree = ast.parse(inspect.cleandoc("\n" + function.source))
    calls = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)
    return {
        call.func.id
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id[0].isupper()
    }


@pytest.mark.full
def test_every_public_name_documents_what_it_takes_returns_and_raises(package):
    found = [pair for name, definition in public_names(package) for pair in documented(name, definition)]
    assert sum(definition.is_function for _, definition in found) > 50
    assert not [gap for name, definition in found for gap in gaps(name, definition)]
