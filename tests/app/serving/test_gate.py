"""Which requests are served: by their host, the origin of the page that sends them, and their path."""

from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from visformer.app.serving.middleware.gate import Gate, is_allowed


def serve(_request):
    return PlainTextResponse("served")


async def connect(socket):
    await socket.accept()
    await socket.close()


APP = Starlette(
    routes=[Route("/{path:path}", serve), WebSocketRoute("/{path:path}", connect)], middleware=[Middleware(Gate)]
)
SERVED, REFUSED = [200, 101], [403]


def statuses(path="/_stcore/stream", **headers):
    """Return the status of a request, and of a websocket if it is accepted."""
    client = TestClient(APP)
    found = [client.get(path, headers=headers).status_code]
    with suppress(WebSocketDisconnect), client.websocket_connect(path, headers=headers):
        found.append(101)
    return found


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8501", "localhost.", "127.0.0.1:8501", "[::1]:8501", "10.0.0.7"]
)
def test_localhost_and_ip_addresses_are_served(host):
    assert statuses(host=host) == SERVED


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil-localhost", "", "localhost:x", "[", "127.0.0.1.evil.example"],
)
def test_other_hosts_are_refused(host):
    assert statuses(host=host, origin=f"http://{host}") == REFUSED
    assert statuses(host=host) == REFUSED


def test_the_operator_sets_the_hosts_that_are_served(monkeypatch):
    monkeypatch.setenv("VISFORMER_HOSTS", "Demo.example.org, *.school.example")
    hosts = ["demo.example.org", "a.school.example", "b.a.school.example", "127.0.0.1"]
    others = ["localhost", "school.example", "evilschool.example", "example.org"]
    assert [name for name in hosts + others if is_allowed(name)] == hosts
    monkeypatch.setenv("VISFORMER_HOSTS", "*")
    assert statuses(host="evil.example") == SERVED


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8501", "localhost:8501"),
        ("http://localhost", "localhost"),
        ("https://localhost", "localhost:443"),  # behind a proxy that has TLS
        ("http://LOCALHOST:80", "localhost"),
    ],
)
def test_requests_of_the_servers_own_pages_are_served(origin, host):
    assert statuses(origin=origin, host=host) == SERVED


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
def test_requests_of_pages_from_another_host_or_port_are_refused(origin):
    assert statuses(origin=origin, host="localhost:8501") == REFUSED


@pytest.mark.parametrize("path", ["health", "host-config", "stream", "upload_file/session/file"])
def test_streamlits_paths_that_the_page_needs_are_served(path):
    assert statuses(f"/_stcore/{path}", host="localhost")[0] == 200


@pytest.mark.parametrize("path", ["metrics", "metrics/", "agent/interact", "script-health-check", "", "streams"])
def test_streamlits_other_paths_are_not_found(path):
    for prefix in ("", "/below"):
        assert statuses(f"{prefix}/_stcore/{path}", host="localhost") == [404]


def test_the_apps_own_paths_are_served():
    assert statuses("/metrics", host="localhost") == SERVED
