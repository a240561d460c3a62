"""nginx alone, with the configuration that is shipped: what one address may ask for, and that nothing goes to disk."""

import http.client
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.load.replicas import ROOT, free_port, nginx

UPLOAD = "/_stcore/upload_file/session/file"


class Behind(BaseHTTPRequestHandler):
    """What nginx passes requests on to: it keeps bodies, and holds streams open until it is ended."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        chunked = "Transfer-Encoding" in self.headers
        body = b"".join(iter(self._chunk, b"")) if chunked else self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        self._answer(b"taken")

    def do_GET(self):
        self.server.extensions.append(self.headers["Sec-WebSocket-Extensions"])
        if self.path == "/_stcore/stream":
            self.server.opened.release()
            self.server.ended.wait()
        self._answer(b"x" * 20_000_000 if self.path == "/large" else b"page")

    def _answer(self, body):
        self.send_response(200)
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
def behind():
    with ThreadingHTTPServer(("127.0.0.1", 0), Behind) as server:
        server.extensions = []
        server.bodies, server.opened, server.ended = [], threading.Semaphore(0), threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.ended.set()
        server.shutdown()


@pytest.fixture
def start(behind, tmp_path):
    """Starts nginx with parts of its configuration replaced; a function that asks it, and answers with the status."""
    running = []

    def started(replaced=()):
        port, text = free_port(), (ROOT / "deploy" / "nginx.conf").read_text()
        here = {"listen 8080;": f"listen 127.0.0.1:{port};", "error.log emerg": "error.log info"}
        for old, new in (here | dict(replaced)).items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "nginx.conf").write_text(text)
        (tmp_path / "replicas.conf").write_text(f"server 127.0.0.1:{behind.server_address[1]};")
        command = [nginx(), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

        def ask(path, **request):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            try:
                connection.request("PUT" if "body" in request else "GET", path, **request)
                return connection.getresponse().status
            finally:
                connection.close()

        ask.port = port
        for _ in range(200):
            try:
                ask("/healthz")
                return ask
            except OSError:
                time.sleep(0.02)
        pytest.fail("nginx did not start")

    yield started
    for one in running:
        one.terminate()
        one.wait(timeout=20)


def test_nothing_that_is_sent_or_answered_is_written_to_disk(start, behind, tmp_path):
    ask = start()
    whole = b"secret " * (2**20 // 7)
    assert ask(UPLOAD, body=whole) == ask("/anywhere", body=whole) == 200
    assert ask(UPLOAD, body=(whole[i : i + 5] for i in range(0, 500_000, 5)), encode_chunked=True) == 200
    assert behind.bodies == [whole, whole, whole[:500_000]]
    assert ask(UPLOAD, body=whole + whole) == 413
    slow = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=20)
    slow.request("GET", "/large")
    answer = slow.getresponse()
    assert answer.read(10) == b"x" * 10
    assert ask("/") == 200  # meanwhile the large one waits for its reader
    assert len(answer.read()) == 20_000_000 - 10
    slow.close()
    assert "temporary file" not in (tmp_path / "error.log").read_text()
    assert not [path for path in tmp_path.glob("tmp_*/**/*") if path.is_file()]


def test_the_names_of_a_session_and_of_its_files_are_not_logged(start, tmp_path):
    ask = start()
    assert ask(UPLOAD, body=b"a") == ask("/media/secret.csv") == ask("/tokens?text=secret") == 200
    log = tmp_path / "access.log"
    for _ in range(500):  # nginx logs a request after it is answered
        if log.read_text().count(" 200 ") >= 3:
            break
        time.sleep(0.02)
    assert [line.split()[2:5] for line in log.read_text().splitlines()][-3:] == [
        ["PUT", "/_stcore/upload_file/", "200"],
        ["GET", "/media/", "200"],
        ["GET", "/tokens", "200"],
    ]


def test_websockets_are_not_compressed(start, behind):
    behind.ended.set()
    assert start()("/_stcore/stream", headers={"Sec-WebSocket-Extensions": "permessage-deflate"}) == 200
    assert behind.extensions == [None]


def test_one_address_opens_so_many_sessions_at_once(start, behind):
    ask = start({"sessions 1000;": "sessions 3;"})
    threads = [threading.Thread(target=ask, args=["/_stcore/stream"]) for _ in range(3)]
    for thread in threads:
        thread.start()
        assert behind.opened.acquire(timeout=20)
    assert ask("/_stcore/stream") == 429
    assert ask("/") == 200, "who is in goes on"
    behind.ended.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("burst", "path", "request_"),
    [("burst=20000", "/", {}), ("burst=600", "/_stcore/stream", {}), ("burst=100", UPLOAD, {"body": b"a"})],
)
def test_one_address_asks_so_often(start, behind, burst, path, request_):
    behind.ended.set()
    rates = {"rate=1000r/s": "rate=1r/m", "rate=20r/s": "rate=1r/m", "rate=5r/s": "rate=1r/m"}
    ask = start({**rates, burst: "burst=3"})
    assert [ask(path, **request_) for _ in range(5)] == [200] * 4 + [429]
