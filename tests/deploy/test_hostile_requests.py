"""Requests that the app's page never sends, to a real server: they affect no other visitor."""

import asyncio
from contextlib import suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import UUID

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed

from benchmarks.load.__main__ import Watch
from benchmarks.load.hostile import Hostile
from benchmarks.load.replicas import ROOT, free_port
from benchmarks.load.visitor import Phone, Presenter, Visitor, Wrong
from tests.deploy.conftest import ROOM, RUN, UVICORN, run, serving
from visformer.system import limits

WAYS = [
    pytest.param(RUN, id="run"),
    pytest.param(ROOM, id="room", marks=pytest.mark.full),
    pytest.param(UVICORN, id="uvicorn", marks=pytest.mark.full),
]
"""Ways to start a server, all of which have the same checks in front."""


@pytest.fixture(scope="module", params=WAYS)
def server(request, tmp_path_factory):
    """A server whose home is the folder of its log."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, request.param, HOME=str(folder), VISFORMER_HOSTS="") as started:
        yield started


WEBSOCKET = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def status(address, path="/", **headers):
    connection = HTTPConnection(urlsplit(address).netloc, timeout=120)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def websocket_status(address, **headers):
    return status(address, "/_stcore/stream", **WEBSOCKET, **headers)


def test_a_page_has_security_headers(server):
    with urlopen(server.address, timeout=120) as answer:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")


def test_requests_for_other_hosts_and_from_pages_of_other_origins_are_refused(server):
    address = server.address
    assert status(address) == status(address, Origin=address) == 200
    assert websocket_status(address, Origin=address) == 101
    for origin in (f"http://localhost:{free_port()}", "http://evil.example"):
        assert status(address, Origin=origin) == websocket_status(address, Origin=origin) == 403
    evil = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert status(address, **evil) == websocket_status(address, **evil) == 403
    assert status(address, "/_stcore/metrics") == 404


@pytest.mark.parametrize(
    "sent",
    [[[bytes(600_000)]], [[bytes(300_000), bytes(300_000)]], [b""] * 5_000],
    ids=["a long message", "a long message in parts", "too many"],
)
def test_who_sends_too_much_is_disconnected(server, sent):
    """And nothing is compressed, which the client offers: a few kB would become megabytes."""

    async def attack():
        visitor = Visitor(server.address)
        await visitor.open()
        assert not visitor._socket.protocol.extensions
        await visitor._socket.send(bytes(limits.SENT_BYTES))  # is read, and dropped
        assert (await visitor.enter("I see a cat.")).picture
        with suppress(ConnectionClosed):
            for each in sent:
                await visitor._socket.send(each)
        await asyncio.wait_for(visitor._socket.wait_closed(), 120)
        await visitor.close()

    run(attack())
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


async def made(visitor, name):
    """Ask for a file by its id; its address, or None."""
    message = BackMsg()
    request = message.backend_operation_request
    request.request_id, request.session_id, request.deferred_file.file_id = "file", visitor.session, name
    await visitor._socket.send(message.SerializeToString())
    async for data in visitor._socket:
        answer = ForwardMsg.FromString(data)
        if answer.WhichOneof("type") == "backend_operation_response":
            return answer.backend_operation_response.deferred_file.url or None


def test_the_id_of_a_file_cannot_be_guessed_and_ends_with_the_next_run_of_its_page(server):
    async def ask():
        visitor = Hostile(server.address, "")
        await visitor.open()
        await visitor.open_popovers()
        first = visitor._files["SVG"]
        assert await made(visitor, first)
        await visitor.enter("I see a cat.")
        async with asyncio.timeout(60):  # Streamlit forgets it after it has said that the run is finished
            while await made(visitor, first):
                pass
        assert await made(visitor, "made up\nto look like a line of the log") is None
        assert await made(visitor, visitor._files["SVG"])
        await visitor.close()
        return first, visitor._files["SVG"]

    one, other = run(ask())
    assert UUID(hex=one).version == UUID(hex=other).version == 4, "122 bits of the system's generator"
    assert one != other
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
    assert "made up" not in server.log.read_text(encoding="utf-8")


def cached_bytes(server):
    """Return the size of all cached Traces."""
    return Watch(server.address).read()["visformer_kept_bytes"]


def test_messages_that_act_on_the_server_have_no_effect(server):
    async def attack():
        visitors = [Hostile(server.address, "") for _ in range(2)]
        attacker = visitors[0]
        for visitor in visitors:
            await visitor.open()
        messages = [BackMsg(clear_cache=True)]
        for payload in ("dismiss_skills_nudge", "install_skills"):
            message = BackMsg()
            message.backend_operation_request.session_id = attacker.session
            getattr(message.backend_operation_request, payload).SetInParent()
            messages.append(message)
        for message in messages:
            await attacker._socket.send(message.SerializeToString())
        translations = [(await visitor.enter("I like tea.")).translation for visitor in visitors]
        for visitor in visitors:
            await visitor.close()
        return translations

    def files():
        return {path.name for path in ROOT.iterdir()}, {path.name for path in server.log.parent.iterdir()} - {".cache"}

    files_before, cached_before = files(), cached_bytes(server)
    assert run(attack()) == ["我喜欢茶。"] * 2
    assert files() == files_before
    assert cached_bytes(server) > cached_before or cached_before == -1  # the model and its processes still compute


def test_one_visitor_gives_few_answers_to_a_question_whatever_the_address_says(server):
    """He opens one connection after the other, with other ids and addresses; another network is not refused."""

    async def answer(code, headers, number):
        phone = Phone(server.address, f"{code}&guess={number}&guest={number}", headers=headers)
        await phone.scan()
        try:
            await phone.tap(number % 2)
        except Wrong:  # "a tap was not confirmed"
            return False
        finally:
            await phone.close()
        return True

    async def attack():
        presenter = Presenter(server.address)
        await presenter.open("text=I+went+to+Northeastern+University.")
        await presenter.invite()
        await presenter.press("guess_begin")
        await presenter.press("guess_ask")
        fake, real = ({"X-Forwarded-For": f"203.0.113.9, 198.51.100.{end}"} for end in (1, 2))
        given = [await answer(presenter.code, fake, number) for number in range(limits.GUESSES_ALONE + 4)]
        others = await answer(presenter.code, real, 0)
        await presenter.close()
        return given, others

    given, others = run(attack())
    assert given == [True] * limits.GUESSES_ALONE + [False] * 4
    assert others


INVALID_VALUES = [
    {"json_value": "{"},
    {"string_value": "x"},
    {"bool_value": True},
    {"double_value": float("nan")},
    {"int_value": -(2**62)},
    {"string_array_value": {"data": ["x"] * 9}},
    {"double_array_value": {"data": [1e308]}},
    {"json_value": '{"selection": 5, "click": {"row": -1}, "wanted": 5, "step": [1], "ask": {}}'},
    {"json_value": '{"have": NaN, "type": "x", "ask": "code", "room": "x.y", "open": 1e999, "zoom": 1e999}'},
    {"json_value": '{"have": 1e999, "type": {}, "step": 1, "act": {"what": "speed", "value": NaN}, "leave": 1}'},
    {"json_value": '{"have": -1, "type": "\\ud83d", "wanted": [1e999], "click": {"row": NaN, "column": 1e999}}'},
    {"json_value": '{"a":' * 300 + "1" + "}" * 300},
    {"string_value": '{"edited_rows": {"99": {"nope": 1e400}}, "added_rows": 5, "deleted_rows": ["a"]}'},
    {"bytes_value": b"\xff"},
]


def test_invalid_values_of_widgets_and_an_unknown_page_raise_no_exception(server):
    async def attack(page):
        visitor = Visitor(server.address)
        await visitor.open(page=page)
        for value in INVALID_VALUES:
            ids = [*visitor._widgets.values(), "source", "", "$$ID-a-source"]
            for _ in range(2):  # a trigger counts once, a state in each run; raises Wrong if the visitor sees one
                await visitor._run(*(WidgetState(id=id_, **value) for id_ in ids))
            visitor._states.clear()
        await visitor.close()

    async def open_unknown_page():
        visitor = Visitor(server.address)
        try:
            await visitor.open(page="../../etc")
        finally:
            await visitor.close()

    for page in ("", "lab", "decoding", "learning"):
        run(attack(page))
    with pytest.raises(Wrong, match="the page is not found"):
        run(open_unknown_page())
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
