"""Which requests are served: by their host, the origin of the page that sends them, and their path."""

from contextlib import suppress

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from visformer.app.serving.middleware import Gate, is_allowed


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


def test_localhost_and_ip_addresses_are_served():
    for host in ("localhost", "LOCALHOST:8501", "localhost.", "127.0.0.1:8501", "[::1]:8501", "10.0.0.7"):
        assert statuses(host=host) == SERVED, host


def test_other_hosts_are_refused():
    evil = ["evil.example", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example"]
    for host in (*evil, "", "localhost:x", "["):
        assert statuses(host=host, origin=f"http://{host}") == REFUSED, host
        assert statuses(host=host) == REFUSED, host


def test_the_operator_sets_the_hosts_that_are_served(monkeypatch):
    monkeypatch.setenv("VISFORMER_HOSTS", "Demo.example.org, *.school.example")
    hosts = ["demo.example.org", "a.school.example", "b.a.school.example", "127.0.0.1"]
    others = ["localhost", "school.example", "evilschool.example", "example.org"]
    assert [name for name in hosts + others if is_allowed(name)] == hosts
    monkeypatch.setenv("VISFORMER_HOSTS", "*")
    assert statuses(host="evil.example") == SERVED


def test_requests_of_the_servers_own_pages_are_served():
    for origin, host in (
        ("http://localhost:8501", "localhost:8501"),
        ("http://localhost", "localhost"),
        ("https://localhost", "localhost:443"),  # behind a proxy that has TLS
        ("http://LOCALHOST:80", "localhost"),
    ):
        assert statuses(origin=origin, host=host) == SERVED, (origin, host)


def test_requests_of_pages_from_another_host_or_port_are_refused():
    others = ["http://evil.example", "http://localhost:8000", "http://localhost", "http://127.0.0.1:8501"]
    for origin in (*others, "null", "", "http://[", "file://"):
        assert statuses(origin=origin, host="localhost:8501") == REFUSED, origin


def test_streamlits_paths_are_served_as_far_as_the_page_needs_them():
    for path in ("health", "host-config", "stream", "upload_file/session/file"):
        assert statuses(f"/_stcore/{path}", host="localhost")[0] == 200, path
    for path in ("metrics", "metrics/", "agent/interact", "script-health-check", "", "streams"):
        for prefix in ("", "/below"):
            assert statuses(f"{prefix}/_stcore/{path}", host="localhost") == [404], prefix + path


def test_the_apps_own_paths_are_served():
    assert statuses("/metrics", host="localhost") == SERVED
