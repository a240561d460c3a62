"""No text for a visitor is written into the code without a mark for the translators."""

import ast
from pathlib import Path

import pytest

from tests.pseudo import bare

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "visformer" / "app").rglob("*.py")]
MARKS = frozenset(("_", "N_"))

POSITIONS = dict.fromkeys(
    """
    badge button caption checkbox error header info link_button markdown metric multiselect number_input popover
    radio segmented_control selectbox select_slider slider spinner subheader success text text_area text_input title
    toast toggle warning write expander dialog status file_uploader download_button tabs
    view pills feedback
    """.split(),
    1,
)
"""What draws text, and how many of its first arguments are text."""

NAMED = frozenset(("label", "help", "placeholder", "title", "page_title", "body", "text"))
ERRORS = ROOT / "visformer" / "errors.py"


def literals(node):
    """The texts in an expression that no mark is around; of an f-string what stands between its values."""
    if isinstance(node, ast.Call):
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if called in MARKS or called not in ("format", "join"):
            return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
        return
    if isinstance(node, ast.Subscript | ast.Compare | ast.Dict | ast.Lambda | ast.FormattedValue):
        return  # a key, not a text
    for inner in ast.iter_child_nodes(node):
        yield from literals(inner)


def shown(call):
    """The expressions of a call that are drawn as text."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called in POSITIONS:
        yield from call.args[: POSITIONS[called]]
    if isinstance(call.func, ast.Attribute | ast.Name):
        yield from (keyword.value for keyword in call.keywords if keyword.arg in NAMED)


def unmarked(tree):
    """(line, text) of everything that is drawn and not marked."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for expression in shown(call):
            yield from ((one.lineno, one.value) for one in literals(expression) if bare(one.value))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_text_is_drawn_that_is_not_marked(path):
    assert not list(unmarked(ast.parse(path.read_text(encoding="utf-8"))))


def kinds_of_errors():
    tree = ast.parse(ERRORS.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name != "Message"}


def test_every_error_message_is_marked():
    kinds, found = kinds_of_errors(), []
    for path in (ROOT / "visformer").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in kinds and node.args:
                found += [(path.name, one.lineno, one.value) for one in literals(node.args[0])]
    assert len(kinds) > 10
    assert not found


@pytest.mark.parametrize(
    "code",
    [
        'st.button("Press")',
        'left.caption(f"{n} heads")',
        'st.text(" ".join(["These", said]))',
        'st.slider(_("Layer"), help="Which one")',
        'st.text("yes" if a else _("no"))',
        'st.selectbox(_("Layer"), a, placeholder="Choose " + what)',
    ],
)
def test_such_a_text_would_be_found(code):
    assert list(unmarked(ast.parse(code)))
