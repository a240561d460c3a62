"""Everything public says what it takes, what it gives and what it raises."""

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


def named_functions(thing, path):
    """The public functions and methods behind a public name."""
    thing = thing.final_target if thing.is_alias else thing
    if thing.is_function:
        yield path, thing
    elif thing.is_class:
        for name, member in thing.members.items():
            if not name.startswith("_") and not member.is_alias:
                yield from named_functions(member, f"{path}.{name}")


def public(package):
    """(name, object) of everything that ``import visformer as vf`` offers."""
    for name in vf.__all__:
        if name not in MODULES:
            yield f"vf.{name}", package[name]
            continue
        module = package[name].final_target if package[name].is_alias else package[name]
        given = getattr(getattr(vf, name), "__all__", None)
        for member in given or [m for m in module.members if not m.startswith("_")]:
            found = module.members[member]
            if given or not found.is_alias:
                yield f"vf.{name}.{member}", found
    for name in ("TracedModel", "ModelInfo"):
        yield name, package["adapters.base"].members[name]
    for name in ("Decoding", "Step", "Beam"):
        if name in package["model.decoding"].members:
            yield name, package["model.decoding"].members[name]


def sections(function):
    return {section.kind.value: section.value for section in function.docstring.parsed if section.kind.value != "text"}


def what_is_missing(path, function):
    """Sentences, one for each gap."""
    if function.docstring is None:
        yield f"{path} has no docstring"
        return
    said = sections(function)
    taken = [p.name for p in function.parameters if p.name not in ("self", "cls")]
    told = [p.name.lstrip("*") for p in said.get("parameters", ())]
    if told != taken:
        yield f"{path} takes {taken} and tells of {told}"
    if str(function.returns) not in ("None", "NoReturn") and not {"returns", "yields"} & said.keys():
        yield f"{path} does not say what it returns"
    missing = raised(function) - {str(r.annotation) for r in said.get("raises", ())}
    if missing:
        yield f"{path} does not say that it raises {sorted(missing)}"


def raised(function):
    """Names of what the body itself raises."""
    tree = ast.parse(inspect.cleandoc("\n" + function.source))
    calls = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)
    return {
        call.func.id
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id[0].isupper()
    }


def test_every_public_name_has_a_docstring(package):
    silent = [path for path, thing in public(package) if (thing.is_class or thing.is_function) and not thing.docstring]
    assert not silent


def test_every_public_function_says_what_it_takes_gives_and_raises(package):
    functions = [found for path, thing in public(package) for found in named_functions(thing, path)]
    assert len(functions) > 50
    gaps = [gap for path, function in functions for gap in what_is_missing(path, function)]
    assert not gaps, "\n".join(gaps)
