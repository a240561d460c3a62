"""nginx with the shipped configuration: limits for one address, and nothing is written to disk or into logs."""

import http.client
import subprocess
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.load.replicas import ROOT, free_port, nginx
from tests.waiting import until

UPLOAD = "/_stcore/upload_file/session/file"


class Upstream(BaseHTTPRequestHandler):
    """A server behind nginx that keeps bodies, and holds streams open until ``ended`` is set."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        chunked = "Transfer-Encoding" in self.headers
        body = b"".join(iter(self._chunk, b"")) if chunked else self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        self._answer(b"received")

    def do_GET(self):
        self.server.extensions.append(self.headers["Sec-WebSocket-Extensions"])
        if self.path == "/_stcore/stream":
            self.server.opened.release()
            self.server.ended.wait()
        self._answer(b"x" * 20_000_000 if self.path == "/large" else b"page")

    def _answer(self, body):
        self.send_response(200)
        self.send_header("Content-Security-Policy", "default-src 'none'")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self):
        chunk = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return chunk

    def log_message(self, *_):
        pass


@pytest.fixture
def upstream():
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        server.extensions = []
        server.bodies, server.opened, server.ended = [], threading.Semaphore(0), threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.ended.set()
        server.shutdown()


class Client:
    def __init__(self, port):
        self.port = port

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def status(self, path, **request):
        """Return the status of a request; with a body it is a PUT."""
        connection = self.connect()
        try:
            connection.request("PUT" if "body" in request else "GET", path, **request)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture
def start(upstream, tmp_path):
    """Start nginx with parts of its configuration replaced; return a client."""
    running = []

    def started(replacements=()):
        client, text = Client(free_port()), (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        local = {"listen 8080;": f"listen 127.0.0.1:{client.port};", "error.log emerg": "error.log info"}
        for old, new in (local | dict(replacements)).items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "nginx.conf").write_text(text, encoding="utf-8")
        (tmp_path / "replicas.conf").write_text(f"server 127.0.0.1:{upstream.server_address[1]};", encoding="utf-8")
        command = [nginx(), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

        def answers():
            with suppress(OSError):
                return client.status("/healthz")

        until(answers)
        return client

    yield started
    for process in running:
        process.terminate()
        process.wait(timeout=120)


def test_bodies_of_requests_and_responses_are_not_written_to_disk(start, upstream, tmp_path):
    client = start()
    body = b"secret " * (2**20 // 7)
    assert client.status(UPLOAD, body=body) == client.status("/anywhere", body=body) == 200
    assert client.status(UPLOAD, body=(body[i : i + 5] for i in range(0, 500_000, 5)), encode_chunked=True) == 200
    assert upstream.bodies == [body, body, body[:500_000]]
    assert client.status(UPLOAD, body=body + body) == 413
    slow = client.connect()
    slow.request("GET", "/large")
    response = slow.getresponse()
    assert response.read(10) == b"x" * 10
    assert client.status("/") == 200, "while the large response waits for its reader"
    assert len(response.read()) == 20_000_000 - 10
    slow.close()
    assert "temporary file" not in (tmp_path / "error.log").read_text(encoding="utf-8")
    assert not [path for path in tmp_path.glob("tmp_*/**/*") if path.is_file()]


def test_names_of_sessions_and_files_are_not_logged(start, tmp_path):
    client = start()
    assert client.status(UPLOAD, body=b"a") == client.status("/media/secret.csv") == 200
    assert client.status("/tokens?text=secret") == 200
    log = tmp_path / "access.log"
    logged = ["PUT /_stcore/upload_file/ 200 ", "GET /media/ 200 ", "GET /tokens 200 "]
    # Each of nginx's processes logs a request after answering it.
    until(lambda: all(line in log.read_text(encoding="utf-8") for line in logged))
    assert not any(name in log.read_text(encoding="utf-8") for name in ("secret", UPLOAD))


def test_visitors_get_the_headers_of_the_app_but_neither_health_nor_metrics(start):
    client = start()
    for path, status in {"/": 200, "/healthz": 404, "/metrics": 404, "/_stcore/metrics": 404}.items():
        assert client.status(path) == status, path
    connection = client.connect()
    connection.request("GET", "/")
    assert connection.getresponse().headers["Content-Security-Policy"] == "default-src 'none'"
    connection.close()


def test_websockets_are_not_compressed(start, upstream):
    upstream.ended.set()
    assert start().status("/_stcore/stream", headers={"Sec-WebSocket-Extensions": "permessage-deflate"}) == 200
    assert upstream.extensions == [None]


def test_the_number_of_sessions_of_an_address_is_limited(start, upstream):
    client = start({"sessions 1000;": "sessions 3;"})
    threads = [threading.Thread(target=client.status, args=["/_stcore/stream"]) for _ in range(3)]
    for thread in threads:
        thread.start()
        assert upstream.opened.acquire(timeout=120)
    assert client.status("/_stcore/stream") == 429
    assert client.status("/") == 200, "open sessions are not affected"
    upstream.ended.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("burst", "path", "upload"),
    [("burst=20000", "/", {}), ("burst=600", "/_stcore/stream", {}), ("burst=100", UPLOAD, {"body": b"a"})],
)
def test_the_rate_of_requests_of_an_address_is_limited(start, upstream, burst, path, upload):
    upstream.ended.set()
    rates = {"rate=1000r/s": "rate=1r/m", "rate=20r/s": "rate=1r/m", "rate=5r/s": "rate=1r/m"}
    client = start({**rates, burst: "burst=3"})
    assert [client.status(path, **upload) for _ in range(5)] == [200] * 4 + [429]
