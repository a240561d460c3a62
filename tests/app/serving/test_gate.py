"""Who is let in, by the name in the request, the page it comes from, and what it asks for."""

from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from visformer.app.serving.gate import Gate, is_allowed


def served(_request):
    return PlainTextResponse("served")


async def connected(socket):
    await socket.accept()
    await socket.close()


APP = Starlette(
    routes=[Route("/{path:path}", served), WebSocketRoute("/{path:path}", connected)], middleware=[Middleware(Gate)]
)


def statuses(path="/_stcore/stream", **headers):
    """Of a request, and of a websocket where it is accepted."""
    client = TestClient(APP)
    found = [client.get(path, headers=headers).status_code]
    with suppress(WebSocketDisconnect), client.websocket_connect(path, headers=headers):
        found.append(101)
    return found


LET_IN, REFUSED = [200, 101], [403]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8501", "localhost.", "127.0.0.1:8501", "[::1]:8501", "10.0.0.7"]
)
def test_localhost_and_addresses_in_digits_are_served(host):
    assert statuses(host=host) == LET_IN


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil-localhost", "", "localhost:x", "[", "127.0.0.1.evil.example"],
)
def test_another_name_is_refused(host):
    assert statuses(host=host, origin=f"http://{host}") == REFUSED
    assert statuses(host=host) == REFUSED


def test_the_operator_says_which_names_are_served(monkeypatch):
    monkeypatch.setenv("VISFORMER_HOSTS", "Demo.example.org, *.school.example")
    served_names = ["demo.example.org", "a.school.example", "b.a.school.example", "127.0.0.1"]
    others = ["localhost", "school.example", "evilschool.example", "example.org"]
    assert [name for name in served_names + others if is_allowed(name)] == served_names
    monkeypatch.setenv("VISFORMER_HOSTS", "*")
    assert statuses(host="evil.example") == LET_IN


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8501", "localhost:8501"),
        ("http://localhost", "localhost"),
        ("https://localhost", "localhost:443"),  # behind a proxy that has TLS
        ("http://LOCALHOST:80", "localhost"),
    ],
)
def test_a_page_of_the_same_server_is_served(origin, host):
    assert statuses(origin=origin, host=host) == LET_IN


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:8000",
        "http://localhost",
        "http://127.0.0.1:8501",
        "null",
        "",
        "http://[",
        "file://",
    ],
)
def test_a_page_of_another_server_or_port_is_refused(origin):
    assert statuses(origin=origin, host="localhost:8501") == REFUSED


@pytest.mark.parametrize("path", ["health", "host-config", "stream", "upload_file/session/file"])
def test_what_the_page_asks_streamlit_for_is_served(path):
    assert statuses(f"/_stcore/{path}", host="localhost")[0] == 200


@pytest.mark.parametrize("path", ["metrics", "metrics/", "agent/interact", "script-health-check", "", "streams"])
def test_the_rest_of_streamlit_is_not(path):
    for prefix in ("", "/below"):
        assert statuses(f"{prefix}/_stcore/{path}", host="localhost") == [404]


def test_the_app_s_own_addresses_are_served():
    assert statuses("/metrics", host="localhost") == LET_IN
