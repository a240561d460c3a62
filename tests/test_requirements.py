"""What pyproject.toml declares: the ranges, the pins that tests run with, and what is imported."""

import ast
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.lowest import lower_ends, pins
from visformer.cli.packages import declared

ROOT = Path(__file__).parents[1]
HOMES = {
    "app": ("visformer/app/", "pages/", "app.py"),
    "hf": ("visformer/adapters/huggingface/",),
    "pdf": (),
    "train": ("visformer/training/",),
    "ray": (),
}
"""Extra to the places that need it; elsewhere it is imported only once it is used."""

THE_CALLERS = {"accelerate"}
"""Imported for models with which the caller has used it."""

SOURCES = [*ROOT.glob("*.py"), *(ROOT / "pages").rglob("*.py"), *(ROOT / "visformer").rglob("*.py")]


def file_of(extra):
    return "requirements.txt" if extra in ("", "app", "pdf") else f"requirements-{extra}.txt"


def names(extra):
    return {canonicalize_name(Requirement(line).name) for line in declared()[extra]}


def imports(tree, *, at_once):
    """Yield the modules that a file imports: all, or those that it imports when it is imported itself."""
    for node in ast.iter_child_nodes(tree):
        waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
        elif not (at_once and waits):
            yield from imports(node, at_once=at_once)


@cache
def distributions():
    """Module to the distributions that it comes from: a walk through all that is installed."""
    return packages_distributions()


@cache
def packages(path, *, at_once=False):
    """Return the packages of others that a file imports, as an index of packages names them."""
    found = {name.partition(".")[0] for name in imports(ast.parse(path.read_text("utf-8")), at_once=at_once)}
    of_others = found - {*sys.stdlib_module_names, "visformer"}
    return {canonicalize_name(each) for name in of_others for each in distributions().get(name, [name])}


def test_every_extra_has_its_place():
    assert {"", *HOMES} == {*declared()}


@pytest.mark.parametrize("file", sorted({file_of(extra) for extra in declared()}))
def test_each_pin_lies_in_its_range_and_each_range_has_a_pin(file):
    lines = [line for extra, lines in declared().items() if file_of(extra) == file for line in lines]
    ranges = {Requirement(line).name: Requirement(line).specifier for line in lines}
    assert {*pins(file)} == {*ranges}
    for name, version in pins(file).items():
        assert ranges[name].contains(version), name


def test_what_is_not_tested_at_its_lower_end_begins_with_its_pin():
    for extra in {*HOMES} - {"hf"}:
        for name in map(lambda line: Requirement(line).name, declared()[extra]):
            assert lower_ends().get(name) in (pins(file_of(extra))[name], None)


def test_everything_that_is_imported_is_declared():
    known = THE_CALLERS.union(*map(names, declared()))
    for path in SOURCES:
        assert packages(path) <= known, path


@pytest.mark.parametrize("extra", HOMES)
def test_only_what_needs_an_extra_imports_it_at_once(extra):
    others = names(extra) - names("")
    for path in SOURCES:
        if not str(path.relative_to(ROOT)).startswith(HOMES[extra]):
            assert not packages(path, at_once=True) & others, path
