"""Calls on neighbouring lines of the script can be swapped without a difference on screen."""

import ast
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from tests.app.pages.seen import script_of
from visformer.app.serving import workbench
from visformer.app.serving.server import SCRIPT
from visformer.app.session import url_state

SOURCE = SCRIPT.read_text(encoding="utf-8")
[DRAWING] = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.With)]
[ASKED] = [node for node in DRAWING.body if isinstance(node, ast.If)]
CALLS = [node for node in ASKED.orelse if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
PAIRS = [(one, two) for one, two in pairwise(CALLS) if two.lineno == one.end_lineno + 1]
VISITS = {
    "masks": ("see/masks", {"masks_view": "edit", "masks_switched": "o0.0.0.0"}),
    "lesson": ("", {"lesson": url_state.SHIPPED, "step": "4"}),
    "lab": ("understand/lab", {"nothing": "1"}),
    "no text": ("see/embedding", {"text": " "}),
}


def swapped(source, one, two):
    """Return the source with two neighbouring statements swapped."""
    lines = source.splitlines(keepends=True)
    first, second = (lines[node.lineno - 1 : node.end_lineno] for node in (one, two))
    return "".join([*lines[: one.lineno - 1], *second, *first, *lines[two.end_lineno :]])


def screen(node):
    """Return what is on screen, as nested blocks."""
    proto = getattr(node, "proto", None)
    if hasattr(proto, "deferred_file_id"):
        proto.ClearField("deferred_file_id")  # of a file that is made on a click: another one on each run
    inside = [screen(child) for _, child in sorted(getattr(node, "children", {}).items())]
    return type(node).__name__, proto and proto.SerializeToString(deterministic=True), inside


@pytest.fixture
def visit(model_name, monkeypatch, tmp_path):
    """Open a version of the script, type a sentence, and return screen and address before and after."""
    monkeypatch.setattr(workbench, "MODEL", model_name)

    def visited(source, name):
        (tmp_path / "main.py").write_text(source, encoding="utf-8")
        page, link = VISITS[name]
        app = AppTest.from_file(tmp_path / "main.py", default_timeout=60)
        app.query_params.update(link)
        if page:
            app.switch_page(script_of(page))
        states = []
        for _ in range(2):
            app.run()
            assert not app.exception
            states.append((screen(app._tree), dict(app.query_params)))
            for box in app.text_input:
                if box.key == "source":
                    box.set_value("I like cats.")
        return states

    return visited


@pytest.mark.parametrize("name", VISITS)
def test_swapping_neighbouring_calls_changes_nothing_on_screen(visit, name):
    visit(SOURCE, name)  # fills the caches
    expected = visit(SOURCE, name)
    assert len(PAIRS) >= 5
    for pairs in (PAIRS[::2], PAIRS[1::2]):  # the pairs of each have no call in common
        source = SOURCE
        for one, two in pairs:
            source = swapped(source, one, two)
        assert source != SOURCE
        assert visit(source, name) == expected, [ast.unparse(one) for one, _ in pairs]
