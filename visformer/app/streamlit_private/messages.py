"""Messages and values that the current page does not send: they are dropped, or the widget counts as untouched.

A visitor loses: the processes that compute for everybody, which a forged message could end; and the page, in place of
which Streamlit shows an error after a damaged message, and nothing after one from the page before.
"""

import asyncio
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.elements.lib.column_config_utils import INDEX_IDENTIFIER
from streamlit.elements.widgets import data_editor
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.common import GENERATED_ELEMENT_ID_PREFIX, WidgetMetadata, unpack_widget_state_value
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX, Serialized, Value, WStates

from visformer.system import limits

if TYPE_CHECKING:
    import pandas as pd

SERVED = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat", "deferred_file"}
"""Running and stopping a page, uploads, the heartbeat, downloads that are generated on request."""


class Messages:
    """ASGI middleware around a Streamlit app; messages of a browser that are not served are dropped."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a websocket on."""
        if scope["type"] == "lifespan":  # the server's: a requested file holds a thread until its turn comes
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * limits.QUEUE, "file"))

        async def served() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                if (data := _served(message.get("bytes") or b"")) is not None:
                    return {**message, "bytes": data}

        await self._app(scope, served if scope["type"] == "websocket" else receive, send)


def _served(data: bytes) -> bytes | None:
    """Return a message that is served, without the widgets beyond limits.WIDGETS; None: it is not served."""
    if len(data) > limits.SENT_BYTES:
        return None  # under a server that reads longer ones, see deploy.md
    try:
        sent = BackMsg.FromString(data)
    except DecodeError:
        return None
    kind = sent.WhichOneof("type")
    if kind == "backend_operation_request":
        kind = sent.backend_operation_request.WhichOneof("payload")
    if kind not in SERVED:
        return None
    widgets = sent.rerun_script.widget_states.widgets
    if len(widgets) <= limits.WIDGETS:
        return data
    del widgets[limits.WIDGETS :]
    cut: bytes = sent.SerializeToString()
    return cut


def ignore_pages_that_were_left() -> None:
    """Make Streamlit ignore a part of a page that is to rerun while another page is being drawn.

    Streamlit would run the part behind the other page, with the page before as the current one; the browser shows
    nothing then.
    """
    session_class: Any = AppSession
    rerun = session_class.request_rerun

    def rerun_current(session: Any, client_state: ClientState | None) -> None:
        shown = session._pages_manager.current_page_script_hash
        if client_state is None or not client_state.fragment_id or client_state.page_script_hash == shown:
            rerun(session, client_state)

    session_class.request_rerun = rerun_current


def ignore_invalid_values() -> None:
    """Make Streamlit ignore values that no widget could have sent."""
    states_class: Any = WStates
    editor: Any = data_editor
    keep, read, edit = WStates.set_widget_from_proto, WStates.__getitem__, editor._apply_dataframe_edits

    def keep_widget(states: WStates, sent: WidgetState) -> None:
        if sent.id.startswith((GENERATED_ELEMENT_ID_PREFIX, STREAMLIT_INTERNAL_KEY_PREFIX)):
            keep(states, sent)

    def read_valid(states: WStates, widget: str) -> Any:
        sent, known = states.states.get(widget), states.widget_metadata.get(widget)
        if isinstance(sent, Serialized) and known is not None:
            states.states[widget] = Value(_value(sent.value, known))
        return read(states, widget)

    def edit_if_valid(table: "pd.DataFrame", edits: Mapping[str, Any], schema: Any) -> "pd.DataFrame":
        return edit(table, edits, schema) if _are_valid(edits, table) else table

    states_class.set_widget_from_proto = keep_widget
    states_class.__getitem__ = read_valid
    editor._apply_dataframe_edits = edit_if_valid


def _value(sent: WidgetState, known: WidgetMetadata[Any]) -> Any:
    kind = sent.WhichOneof("value")
    if kind == "int_value" and known.value_type == "double_value":  # so browsers send what a box of whole numbers holds
        kind = known.value_type
    try:
        given = unpack_widget_state_value(sent)
        if kind == known.value_type and (kind != "json_value" or isinstance(given, dict)):
            value = known.deserializer(given)
            if _is_flat(value):
                return value
    except Exception:  # whatever a widget raises at what it cannot read
        pass
    return known.deserializer(None)  # as a widget that was cleared


def _is_flat(value: Any) -> bool:
    """Whether it is nested no deeper than limits.WIDGET_DEPTH: Streamlit copies it recursively."""
    level = [value]
    for _ in range(limits.WIDGET_DEPTH):
        inside = [each for each in level if isinstance(each, dict | list)]
        level = [one for each in inside for one in (each.values() if isinstance(each, dict) else each)]
    return not level


def _are_valid(edits: Mapping[str, Any], table: "pd.DataFrame") -> bool:
    """Whether these are edits of a table of numbers, in rows that it has."""
    edited, added, deleted = (edits[name] for name in ("edited_rows", "added_rows", "deleted_rows"))
    if not (isinstance(added, list) and isinstance(deleted, list) and len(added) <= limits.LAB_WIDTH):
        return False
    rows, cells = [*edited, *deleted], [*edited.values(), *added]
    return all(isinstance(row, int) and 0 <= row < len(table) for row in rows) and all(
        isinstance(row, dict) and all(_is_cell(name, value, table) for name, value in row.items()) for row in cells
    )


def _is_cell(name: str, value: Any, table: "pd.DataFrame") -> bool:
    if name == INDEX_IDENTIFIER:
        return isinstance(value, str) and table.index.inferred_type == "string"
    is_number = isinstance(value, int | float) and abs(value) <= sys.float_info.max
    return name in table and (value is None or is_number)
