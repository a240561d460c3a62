"""A local server that answers huggingface_hub's requests, and can refuse or interrupt downloads."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "1" * 40


class LocalHub:
    """Serves folders as models. While ``gate`` is not set, downloads of weights stop after ``before_gate`` bytes.

    ``requests`` has method and path of each request; ``refused`` has the status and error code to answer for a model.
    """

    def __init__(self):
        self.models, self.refused, self.requests = {}, {}, []
        self.gate, self.before_gate = threading.Event(), 2**20
        self.gate.set()
        self.address = ""

    def add(self, name, folder):
        """Add a model with this name."""
        self.models[name] = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}

    def downloads(self, file):
        """Return how often a download of this file was started."""
        return sum(method == "GET" and path.endswith(f"/{file}") for method, path in self.requests)

    @contextmanager
    def running(self):
        """Serve the hub at ``address``."""
        handler = type("Handler", (_Handler,), {"hub": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            self.address = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield self
            finally:
                self.gate.set()
                server.shutdown()
                thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: LocalHub

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def _answer(self, *, with_body):
        path = self.path.split("?")[0]
        self.hub.requests.append((self.command, path))
        for_info = path.startswith("/api/models/")
        name, _, file = path.removeprefix("/api/models" if for_info else "").strip("/").partition("/resolve/main/")
        if name in self.hub.refused and not (for_info and self.hub.refused[name][0] == 403):
            code, reason = self.hub.refused[name]
            self._head(code, {"X-Error-Code": reason, "X-Error-Message": reason, "Content-Length": "0"})
        elif name not in self.hub.models:
            self._head(404, {"X-Error-Code": "RepoNotFound", "Content-Length": "0"})
        elif for_info:
            self._send(json.dumps(self._info(name)).encode(), {"Content-Type": "application/json"}, with_body=with_body)
        else:
            body = self.hub.models[name][file]
            tags = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
            self._send(body, tags, with_body=with_body, gated=file.endswith(".safetensors"))

    def _info(self, name):
        files = [{"rfilename": file, "size": len(body)} for file, body in self.hub.models[name].items()]
        return {"id": name, "modelId": name, "sha": COMMIT, "siblings": files, "cardData": {"license": "mit"}}

    def _head(self, code, headers):
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def _send(self, body, headers, *, with_body, gated=False):
        self._head(200, {**headers, "Content-Length": str(len(body))})
        if not with_body:
            return
        end = self.hub.before_gate if gated and not self.hub.gate.is_set() else len(body)
        try:
            self.wfile.write(body[:end])
            self.wfile.flush()
            if end < len(body) and self.hub.gate.wait(30):
                self.wfile.write(body[end:])
        except OSError:
            pass  # the client has closed the connection
