"""Every text that is shown to visitors is marked for translation."""

import ast
from pathlib import Path

import pytest

from tests.pseudo import unbracketed

ROOT = Path(__file__).parent.parent
DRAWING = {*(ROOT / "pages").rglob("*.py"), *(ROOT / "visformer" / "app").rglob("*.py")}

DRAW_FIRST_ARGUMENT = frozenset(
    """
    badge button caption checkbox error header info link_button markdown metric multiselect number_input popover
    radio segmented_control selectbox select_slider slider spinner subheader success text text_area text_input title
    toast toggle warning write expander dialog status file_uploader download_button tabs
    view pills feedback
    """.split()
)
DRAWN_KEYWORDS = frozenset(("label", "help", "placeholder", "title", "page_title", "body", "text"))


def name_of(called):
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")


def literals(node):
    """Yield the unmarked strings in an expression; of an f-string, what is between its values."""
    if isinstance(node, ast.Call) and name_of(node.func) not in ("format", "join"):
        return  # _("marked"), or data
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif not isinstance(node, ast.Subscript | ast.Compare | ast.Dict | ast.Lambda | ast.FormattedValue):  # keys, values
        for inner in ast.iter_child_nodes(node):
            yield from literals(inner)


def drawn(call):
    """Yield the arguments of a call that are drawn as text."""
    if name_of(call.func) in DRAW_FIRST_ARGUMENT:
        yield from call.args[:1]
    if isinstance(call.func, ast.Attribute | ast.Name):
        yield from (keyword.value for keyword in call.keywords if keyword.arg in DRAWN_KEYWORDS)


def unmarked(tree):
    """Yield line and text of everything that is drawn without a mark."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for argument in drawn(call):
            yield from ((one.lineno, one.value) for one in literals(argument) if unbracketed(one.value))


def test_every_text_that_is_drawn_and_every_error_message_is_marked():
    """Both in one test, as parsing the files takes longest."""
    errors = ast.parse((ROOT / "visformer" / "errors.py").read_text(encoding="utf-8"))
    classes = {node.name for node in ast.walk(errors) if isinstance(node, ast.ClassDef)} - {"Message"}
    assert len(classes) > 10
    found = []
    for path in {*DRAWING, *(ROOT / "visformer").rglob("*.py")}:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path in DRAWING:
            found += [f"{path}:{line}: {text}" for line, text in unmarked(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in classes and node.args:
                found += [f"{path}:{one.lineno}: {one.value}" for one in literals(node.args[0])]
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
def test_a_text_without_a_mark_is_found(code):
    assert list(unmarked(ast.parse(code)))
