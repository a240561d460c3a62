"""Streamlit's private parts: each still there, in one of two folders, and each says what a visitor would lose.

When Streamlit changes, these fail before anything else does, and say which purpose is hit. What the browser's side finds in
Streamlit's page is looked for in ``tests/browser/test_streamlit_private.py``.
"""

import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest
from streamlit import runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.session_manager import SessionManager
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import user_key_from_element_id
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat
from streamlit.web import skills
from streamlit.web.server import server_util

from visformer.app import streamlit_private

ROOT = Path(__file__).parents[1]
BROWSER = ROOT / "visformer" / "web" / "static" / "streamlit_private"
MODULES = {
    one.name: f"{streamlit_private.__name__}.{one.name}" for one in pkgutil.iter_modules(streamlit_private.__path__)
}
LOSES = re.compile(r"A visitor loses: .{20}", re.DOTALL)


def lost(purpose):
    """What is told where a part is gone."""
    return f"{purpose} no longer holds: {import_module(MODULES[purpose]).__doc__}"


def takes(function, *names):
    return set(names) <= set(inspect.signature(function).parameters)


PARTS = {
    "addresses": lambda: (
        hasattr(PagesManager, "uses_pages_directory")
        and isinstance(PagesManager.intended_page_name, property)
        and "pages_manager" in ScriptRunContext.__dataclass_fields__
    ),
    "advice": lambda: takes(skills.nudge_suppression_reason, "app_dir") and callable(skills.are_skills_installed),
    "first_page": lambda: all(
        mark in (Path(server_util.__file__).parents[2] / "static" / "index.html").read_text(encoding="utf-8")
        for mark in ('<html lang="en">', "<title>Streamlit</title>")
    ),
    "logs": lambda: "get_logger(__name__)" in inspect.getsource(import_module("streamlit.error_util")),
    "other_sessions": lambda: (
        hasattr(SessionManager, "get_active_session_info")
        and takes(AppSession.request_rerun, "client_state")
        and isinstance(Runtime.stats_mgr, property)
        and issubclass(GaugeStat, object)
        and bool(ACTIVE_SESSIONS_FAMILY)
        and not runtime.exists()
    ),
    "reconnect": lambda: (
        callable(SessionState.get_widget_states)
        and user_key_from_element_id("$$ID-abc-source") == "source"
        and "session_state" in ScriptRunContext.__dataclass_fields__
    ),
    "words": lambda: True,  # what Streamlit says is in its scripts: the browser's test walks through it
}


@pytest.mark.parametrize("purpose", MODULES)
def test_a_private_part_is_still_there(purpose):
    assert PARTS[purpose](), lost(purpose)


@pytest.mark.parametrize("path", [*BROWSER.iterdir(), *Path(streamlit_private.__path__[0]).glob("[!_]*.py")], ids=str)
def test_each_says_what_a_visitor_loses(path):
    assert LOSES.search(path.read_text(encoding="utf-8"))


def test_there_are_few():
    purposes = {path.stem for path in BROWSER.iterdir()} | set(MODULES)
    assert len(purposes) <= 15, purposes


DOCUMENTED = r"import streamlit as st|from streamlit\.(?:web\.cli|testing\.v1) import"
PRIVATE = {
    ".py": re.compile(
        rf"^(?!{DOCUMENTED})(?:from|import) streamlit\b|\._session_mgr|\.runtime\.|get_script_run_ctx", re.MULTILINE
    ),
    ".js": re.compile(r"data-testid|\bst[A-Z]\w+|\.dvn-|testConnectionState"),
    ".css": re.compile(r"data-testid|\.st[A-Z]\w+|\.modebar"),
}


def test_nothing_private_stands_anywhere_else():
    files = [path for folder in ("visformer", "pages") for path in (ROOT / folder).rglob("*.*")] + [*ROOT.glob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        if path.suffix in PRIVATE and "streamlit_private" not in path.parts
        for match in PRIVATE[path.suffix].finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
