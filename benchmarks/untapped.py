"""The model without its taps, generated from its source, to measure what idle taps cost."""

import ast
import importlib
import inspect
import sys
from types import ModuleType

import torch

from visformer.model.transformer import Transformer

_PACKAGE = "visformer.model."
_COPIES = "benchmarks.untapped."
_TAP = "tap"


def without_taps(model: Transformer) -> torch.nn.Module:
    """Return a copy that shares the weights and calls no tap: same modules, same arithmetic, in evaluation mode."""
    copy = _copy("transformer").Transformer(model.config)
    copy.load_state_dict(model.state_dict(), assign=True)
    untapped: torch.nn.Module = copy.eval()
    return untapped


def source_without_taps(name: str) -> str:
    """Return the source of ``visformer.model.<name>`` with everything about taps removed."""
    tree = ast.parse(inspect.getsource(importlib.import_module(_PACKAGE + name)))
    tree.body = [_imported_from_copy(statement) for statement in tree.body]
    tree = _Untap().visit(tree)
    tree.body = [statement for statement in tree.body if not _names_tap(statement)]  # functions only about taps
    return ast.unparse(ast.fix_missing_locations(tree))


def _copy(name: str) -> ModuleType:
    """Return the module ``visformer.model.<name>`` without taps; it imports copies of its siblings."""
    if _COPIES + name not in sys.modules:
        source = source_without_taps(name)
        module = sys.modules[_COPIES + name] = ModuleType(_COPIES + name)
        exec(compile(source, f"<{name} without taps>", "exec"), module.__dict__)
    return sys.modules[_COPIES + name]


def _imported_from_copy(statement: ast.stmt) -> ast.stmt:
    """Redirect an import at the top of a module to the sibling's copy, and make that copy."""
    if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(_PACKAGE):
        name = str(statement.module).removeprefix(_PACKAGE)
        if name != "taps":
            statement.module = _copy(name).__name__
    return statement


def _names_tap(tree: ast.AST) -> bool:
    """Whether a variable ``tap`` is read or written."""
    if isinstance(tree, ast.ClassDef):
        return False
    return any(isinstance(node, ast.Name) and node.id == _TAP for node in ast.walk(tree))


def _is_tap(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == _TAP


class _Untap(ast.NodeTransformer):
    """Replaces ``tap(name, x)`` by ``x``, and removes parameters, arguments and variables called tap."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _is_tap(node.func):
            value: ast.expr = self.visit(node.args[1])
            return value
        if not (isinstance(node.func, ast.Name) and node.func.id == "getattr"):  # reads from the tap, calls nothing
            node.args = [argument for argument in node.args if not _is_tap(argument)]
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != _TAP]
        self.generic_visit(node)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        required = len(node.args) - len(node.defaults)
        kept = [(arg, i) for i, arg in enumerate(node.args) if arg.arg != _TAP]
        node.defaults = [node.defaults[i - required] for _, i in kept if i >= required]
        node.args = [arg for arg, _ in kept]
        keyword_only = [pair for pair in zip(node.kwonlyargs, node.kw_defaults, strict=True) if pair[0].arg != _TAP]
        node.kwonlyargs = [arg for arg, _ in keyword_only]
        node.kw_defaults = [default for _, default in keyword_only]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        if any(_is_tap(target) for target in node.targets):
            return None
        self.generic_visit(node)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """Remove ``if _wants(tap, ...)`` and ``if tap.wants(...)``: without taps they are false."""
        asks = any(isinstance(part, ast.Call) and "wants" in ast.unparse(part.func) for part in ast.walk(node.test))
        if not asks:
            if _names_tap(node.test):
                raise ValueError(f"the copy without taps cannot decide `if {ast.unparse(node.test)}`")
            self.generic_visit(node)
            return node
        return [self.visit(statement) for statement in node.orelse]
