"""Streamlit's private parts exist in the installed version, and are used in two folders only.

After an update of Streamlit, these tests fail first and name what a visitor would lose.
"""

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import streamlit
from streamlit import config, runtime
from streamlit.elements.widgets import data_editor
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from streamlit.runtime import memory_media_file_storage
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.session_manager import SessionManager
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import WidgetMetadata, user_key_from_element_id
from streamlit.runtime.state.session_state import WStates
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat
from streamlit.web import skills
from streamlit.web.server.starlette import starlette_server

from visformer.app import streamlit_private
from visformer.app.streamlit_private.first_page import inline_scripts
from visformer.app.streamlit_private.messages import SERVED
from visformer.app.streamlit_private.words import ICONS, WORDS

ROOT = Path(__file__).parents[1]
BROWSER = sorted((ROOT / "visformer" / "web" / "static" / "streamlit_private").iterdir())
PYTHON = sorted(Path(streamlit_private.__path__[0]).glob("[!_]*.py"))
STATIC = Path(streamlit.__file__).parent / "static"
LOSES = re.compile(r"A visitor loses: [^.]{12,}\.")

NOT_IN_SCRIPTS = {
    *("1 option available.", "{what} options available.", "Press Enter to apply"),
    *("1MB per file", "30MB per file"),
    "Failed to generate file for download",
}
"""Words that Streamlit's scripts assemble from pieces, and one that its server sends (see test_logs.py)."""


@cache
def scripts():
    """Return all scripts and styles of Streamlit's page as one text."""
    files = [path for path in (STATIC / "static").rglob("*") if path.suffix in (".js", ".css")]
    return "".join(path.read_text(encoding="utf-8") for path in files)


def is_in_scripts(word):
    return all(part in scripts() for part in re.split(r"\{\w+\}", word.removesuffix(" icon")))


def has_parameters(function, *names):
    return set(names) <= set(inspect.signature(function).parameters)


def first_page_can_be_edited():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    parts = ('<html lang="en">', "<title>Streamlit</title>", "<head>")
    return all(part in page for part in parts) and "BACKEND_BASE_URL" in scripts() and len(inline_scripts()) == 2


PARTS = {
    "files": lambda: (
        has_parameters(MemoryUploadedFileManager.add_file, "session_id", "file")
        and {"file_storage", "_total_bytes"} <= {*vars(MemoryUploadedFileManager("/"))}
        and callable(MemoryUploadedFileManager.remove_session_files)
        and callable(MediaFileManager.remove_orphaned_files)
        and "file_id = _calculate_file_id(" in inspect.getsource(memory_media_file_storage)
        and "_files_by_id" in vars(memory_media_file_storage.MemoryMediaFileStorage("/"))
    ),
    "first_page": first_page_can_be_edited,
    "logs": lambda: all(
        "get_logger(__name__)" in inspect.getsource(import_module(f"streamlit.{name}"))
        for name in ("error_util", "runtime.backend_operation_handler")
    ),
    "messages": lambda: (
        {*SERVED} <= {*BackMsg.DESCRIPTOR.fields_by_name, *BackendOperationRequest.DESCRIPTOR.fields_by_name}
        and has_parameters(AppSession.request_rerun, "client_state")
        and "self._pages_manager = PagesManager(" in inspect.getsource(AppSession)
        and isinstance(PagesManager.current_page_script_hash, property)
        and callable(WStates.set_widget_from_proto)
        and {"value_type", "deserializer"} <= {*WidgetMetadata.__dataclass_fields__}
        and " = _apply_dataframe_edits(data_df, widget_state.value, dataframe_schema)" in inspect.getsource(data_editor)
    ),
    "other_sessions": lambda: (
        hasattr(SessionManager, "get_active_session_info")
        and has_parameters(AppSession.request_rerun, "client_state")
        and has_parameters(Runtime.is_active_session, "session_id")
        and isinstance(Runtime.stats_mgr, property)
        and isinstance(GaugeStat, type)
        and bool(ACTIVE_SESSIONS_FAMILY)
        and not runtime.exists()
    ),
    "run_context": lambda: (
        {"pages_manager", "is_history_navigation", "session_state"} <= {*ScriptRunContext.__dataclass_fields__}
        and isinstance(PagesManager.intended_page_name, property)
        and callable(SessionState.get_widget_states)
        and user_key_from_element_id("$$ID-abc-source") == "source"
    ),
    "server_options": lambda: (
        hasattr(config, "_main_script_path")
        and has_parameters(skills.nudge_suppression_reason, "app_dir")
        and inspect.getsource(starlette_server).count(" = _get_uvicorn_config_kwargs()") == 2
    ),
    "words": lambda: all(map(is_in_scripts, {*WORDS, *ICONS} - NOT_IN_SCRIPTS)),
}
"""File of a purpose to whether the parts that it uses exist."""

NAMES = re.compile(r"\bst[A-Z]\w+|\bdvn-\w+|\bmodebar\b|\bmain-svg\b|\bdata-stale\b|dataset\.(\w+)")


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.stem)
def test_a_private_part_still_exists(path):
    assert PARTS[path.stem](), f"{path.stem} no longer works. {LOSES.search(path.read_text(encoding='utf-8'))[0]}"


@pytest.mark.parametrize("path", BROWSER, ids=lambda path: path.name)
def test_selectors_on_streamlits_page_are_in_its_scripts(path):
    text = path.read_text(encoding="utf-8")
    found = [re.sub("([A-Z])", r"-\1", match[1]).lower() if match[1] else match[0] for match in NAMES.finditer(text)]
    gone = [name for name in found if name not in scripts()]
    assert not gone, f"{path.stem} no longer works. {LOSES.search(text)[0]}"


@pytest.mark.parametrize("path", [*BROWSER, *PYTHON], ids=lambda path: path.name)
def test_each_file_says_what_a_visitor_loses(path):
    assert LOSES.search(path.read_text(encoding="utf-8"))


def test_there_are_at_most_17_purposes():
    assert len({path.stem for path in [*BROWSER, *PYTHON]}) <= 17


DOCUMENTED = r"import streamlit as st|from streamlit\.(?:web\.cli|testing\.v1) import"
PRIVATE = {
    ".py": re.compile(rf"^(?!{DOCUMENTED})(?:from|import) streamlit\b|\._session_mgr|get_script_run_ctx", re.MULTILINE),
    ".js": re.compile(r"data-testid|\bst[A-Z]\w+|\.dvn-|testConnectionState"),
    ".css": re.compile(r"data-testid|\.st[A-Z]\w+|\.modebar"),
}


def test_private_parts_are_used_nowhere_else():
    files = [path for folder in ("visformer", "pages") for path in (ROOT / folder).rglob("*.*")] + [*ROOT.glob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        if path.suffix in PRIVATE and "streamlit_private" not in path.parts
        for match in PRIVATE[path.suffix].finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
