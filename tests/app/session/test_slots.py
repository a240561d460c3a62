"""Slots are the only access to session state."""

import ast
from pathlib import Path

from tests.app.support import in_a_session
from visformer.app.session import slots
from visformer.app.session.slots import Slot

ROOT = Path(__file__).parents[3]
OWNER = ROOT / "visformer/app/session/slots.py"


def mentions_session_state(file):
    """Return whether a Python file uses or mentions Streamlit's session state."""
    source = file.read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(source))
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    return "st.session_state" in source or "session_state" in imported


def test_only_the_module_of_slots_mentions_session_state():
    files = [*ROOT.glob("pages/**/*.py"), *ROOT.glob("visformer/app/**/*.py")]
    assert len(files) > 60
    assert [file for file in files if mentions_session_state(file)] == [OWNER]


def test_a_slot_holds_a_value_until_it_is_cleared():
    slot = Slot("a", 1)
    with in_a_session({}) as session:
        assert (slot.get(), slot.is_set) == (1, False)
        slot.set(2)
        assert (slot.get(), slot.is_set, session) == (2, True, {"a": 2})
        assert slot.pop() == 2
        assert (slot.get(), session) == (1, {})
        slot.clear()  # although it is empty


def test_reset_clears_only_slots_that_reset(monkeypatch):
    monkeypatch.setattr(slots, "_RESETTING", set())
    with in_a_session({"stays": 1, "resets": 1}) as session:
        Slot("stays", 0)
        Slot("resets", 0, resets=True)
        slots.reset()
        assert session == {"stays": 1}


def test_widgets_are_forgotten_by_the_prefix_of_their_keys():
    with in_a_session({"head_query_3": 1, "head_query_7": 2, "head_layer_3": 1}) as session:
        slots.forget("head_query")
        assert session == {"head_layer_3": 1}


def test_a_renewed_widget_has_the_next_version():
    with in_a_session({}):
        assert slots.version("file") == 0
        slots.renew("file")
        assert slots.version("file") == 1
