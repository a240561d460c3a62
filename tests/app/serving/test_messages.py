"""Messages that the app's page never sends: other kinds of Streamlit's protocol, and invalid values of widgets."""

import asyncio
import json
import math
import threading
from unittest.mock import Mock

import pandas as pd
from streamlit.elements.widgets import data_editor
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import Serialized, WStates

from visformer.app.serving import server  # noqa: F401  it installs the checks when it is imported
from visformer.app.streamlit_private.messages import Messages
from visformer.system import limits

SERVED = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat", "deferred_file"}


def messages():
    """Yield a message of each kind."""
    for kind in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields:
        message = BackMsg()
        if kind.name == "backend_operation_request":
            for payload in kind.message_type.oneofs_by_name["payload"].fields:
                message = BackMsg()
                getattr(message.backend_operation_request, payload.name).SetInParent()
                yield payload.name, message.SerializeToString()
        elif kind.message_type:
            getattr(message, kind.name).SetInParent()
            yield kind.name, message.SerializeToString()
        else:
            setattr(message, kind.name, True)
            yield kind.name, message.SerializeToString()


def passed_on(*sent):
    """Return the messages of a websocket that reach an app behind the middleware."""
    messages = iter([*sent, {"type": "websocket.disconnect"}])
    received = []

    async def receive():
        return next(messages)

    async def app(_scope, receive, _send):
        while not received or received[-1]["type"] != "websocket.disconnect":
            received.append(await receive())

    asyncio.run(Messages(app)({"type": "websocket"}, receive, None))
    return received[:-1]


def widgets_passed_on(message):
    (received,) = passed_on({"type": "websocket.receive", "bytes": message.SerializeToString()})
    return BackMsg.FromString(received["bytes"]).rerun_script.widget_states.widgets


def test_only_the_messages_that_the_app_needs_are_passed_on():
    kinds = dict(messages())
    assert {*kinds} > SERVED
    for kind, data in kinds.items():
        message = {"type": "websocket.receive", "bytes": data}
        assert passed_on(message) == ([message] if kind in SERVED else []), kind


def test_what_is_not_a_message_is_dropped():
    connect = {"type": "websocket.connect"}
    for rest in ({"bytes": b"\xff\xff"}, {"bytes": b""}, {"text": "{}"}, {"bytes": None, "text": "x"}):
        assert passed_on(connect, {"type": "websocket.receive", **rest}) == [connect], rest


def test_a_long_message_is_dropped_unread():
    message = BackMsg()
    widget = message.rerun_script.widget_states.widgets.add(id="$$ID-a-source")
    for length, is_read in ((limits.SENT_BYTES - 100, True), (limits.SENT_BYTES, False)):
        widget.string_value = "x" * length
        sent = {"type": "websocket.receive", "bytes": message.SerializeToString()}
        assert passed_on(sent) == ([sent] if is_read else [])


def test_each_file_that_is_asked_for_has_a_thread_to_wait_in():
    """Streamlit makes files in the loop's own threads, of which there are six on two cores."""
    everybody = threading.Barrier(limits.QUEUE + 1)

    async def app(_scope, _receive, _send):
        await asyncio.gather(*(asyncio.to_thread(everybody.wait, 60) for _ in range(everybody.parties)))

    asyncio.run(Messages(app)({"type": "lifespan"}, None, None))
    assert not everybody.broken


def test_too_many_widgets_are_left_out():
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id="$$ID-a-attention", json_value="{}")
    for i in range(20_000):
        message.rerun_script.widget_states.widgets.add(id=f"$$ID-a-{i}", bool_value=True)
    first, *others = widgets_passed_on(message)
    assert (first.id, first.json_value) == ("$$ID-a-attention", "{}")
    assert [widget.id for widget in others] == [f"$$ID-a-{i}" for i in range(limits.WIDGETS - 1)]


def test_a_part_of_a_page_that_was_left_does_not_run():
    """Another page may be opened from anywhere."""
    for part, page, is_run in (("a", "masks", True), ("a", "head", False), ("", "head", True)):
        session = Mock()
        session._pages_manager.current_page_script_hash = "masks"
        AppSession.request_rerun(session, ClientState(fragment_id=part, page_script_hash=page))
        has_run = session._create_scriptrunner.called or session._scriptrunner.request_rerun.called
        assert has_run == is_run, (part, page)


def value_after(value_type, deserialize, **sent):
    """Return the value of a widget of this type after a browser has sent this."""
    states = WStates()
    states.set_widget_metadata(WidgetMetadata("widget", deserialize, lambda value: value, value_type))
    states.states["widget"] = Serialized(WidgetState(id="widget", **sent))
    value = states["widget"]
    assert states.widget_metadata["widget"].value_type == value_type
    return value


def same(value):
    return value


def test_a_valid_value_is_the_value_of_its_widget():
    for value_type, deserialize, sent, value in (
        ("string_value", same, {"string_value": "a"}, "a"),
        ("string_value", same, {}, None),  # it was cleared
        ("double_value", same, {"double_value": 2.5}, 2.5),
        ("double_value", same, {"int_value": 8}, 8),  # of st.number_input, if it is whole
        ("string_array_value", lambda array: array and [*array], {"string_array_value": {"data": ["a"]}}, ["a"]),
        ("json_value", same, {"json_value": '{"layer": 1}'}, {"layer": 1}),
        ("string_value", json.loads, {"string_value": '{"edited_rows": {"0": {}}}'}, {"edited_rows": {"0": {}}}),
    ):
        assert value_after(value_type, deserialize, **sent) == value, (value_type, sent)


def test_after_an_invalid_value_a_widget_has_its_default():
    json_values = ["{", "[", "[]", '"a"', "NaN"]
    json_values.append('{"a":' * 300 + "1" + "}" * 300)  # json reads it, copy.deepcopy does not
    for sent in (
        *({"json_value": value} for value in json_values),
        {"string_value": "{}"},
        {"bool_value": True},
        {"double_value": math.nan},
        {"double_array_value": {"data": [1e308]}},
        {"int_value": -1},
    ):
        assert value_after("json_value", lambda state: state or {"default": 1}, **sent) == {"default": 1}, sent
    assert value_after("double_value", lambda sent: 7 if sent is None else int(sent), double_value=math.nan) == 7


def test_only_names_of_widgets_are_kept():
    kept = ["$$ID-a-source", "$$STREAMLIT_INTERNAL_KEY_a__events"]
    states = WStates()
    for name in (*kept, "", "source", "\0", "$$GENERATED_WIDGET_ID-x", "inside"):
        states.set_widget_from_proto(WidgetState(id=name, string_value="x"))
    assert [*states.states] == kept


TABLE = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["0", "1"])


def edited(table=TABLE, **edits):
    """Return the content of a table after a browser has sent these edits."""
    edits = {"edited_rows": {}, "added_rows": [], "deleted_rows": [], **edits}
    index = data_editor.INDEX_IDENTIFIER
    schema = dict.fromkeys(table, data_editor.ColumnDataKind.FLOAT) | {index: data_editor.ColumnDataKind.INTEGER}
    return data_editor._apply_dataframe_edits(table.copy(), edits, schema).to_numpy().tolist()


def test_valid_edits_of_a_table_are_made():
    assert edited(edited_rows={0: {"1": 7}}, deleted_rows=[1]) == [[1, 7]]
    assert edited(added_rows=[{"0": 5, "1": None}])[:2] == TABLE.to_numpy().tolist()
    assert len(edited(added_rows=[{}])) == 3


def test_invalid_edits_of_a_table_are_left_out(caplog):
    for edits in (
        {"edited_rows": {0: 5}},
        {"edited_rows": {0: {"2": 5}}},
        {"edited_rows": {2: {"0": 5}}},
        {"edited_rows": {-1: {"0": 5}}},
        *({"edited_rows": {0: {"0": value}}} for value in ("x", [1], {"a": 1}, math.nan, math.inf, 10**400)),
        {"edited_rows": {0: {"_index": "q"}}},
        {"edited_rows": {0: {"_index": 1}}},
        *({"added_rows": value} for value in (5, {}, [5], [{"a": 1}], [{}] * 100_000)),
        *({"deleted_rows": value} for value in (4, [2], [-1], ["a"])),
    ):
        shown = str(edits)[:60]
        assert edited(**edits) == TABLE.to_numpy().tolist(), shown
        assert not caplog.records, shown
