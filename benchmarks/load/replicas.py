"""Replicas of the app behind a real nginx, with the shipped configuration."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TIMEOUT = 240
"""Seconds until a server that is not ready counts as failed."""

UNPACKED = Path(sys.prefix) / "nginx" / "usr" / "sbin"  # where scripts/nginx.sh puts it


def wait_until_ready(address: str) -> None:
    """Wait until the model behind an address is loaded."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/healthz", timeout=5).close()
            return
        except urllib.error.HTTPError as early:
            early.close()
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"{address} is not ready after {TIMEOUT} s")


_RESERVED: list[socket.socket] = []


def free_port() -> int:
    """Return a port that nothing listens on, and which no other program is given while this process lives.

    The socket stays bound without listening: a server that is told the port can listen on it, again and again, as
    servers set ``SO_REUSEADDR``; the system gives it neither to a client nor to a server that leaves the choice to it.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _RESERVED.append(reserved)
    return int(reserved.getsockname()[1])


class Replica:
    """One process of the app."""

    def __init__(self, log: Path, **environment: str) -> None:
        """Start it; ``log``: file for its output; ``environment``: environment variables to add."""
        self.log, self.port = log, free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        options = ("--room", "--headless", "--address=127.0.0.1", f"--port={self.port}")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
        with log.open("w", encoding="utf-8") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "visformer", "run", *options],
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """Kill it without a chance to shut down, like a machine that fails."""
        self.process.kill()
        self.process.wait()


class Site:
    """nginx and its two replicas."""

    def __init__(self, folder: Path) -> None:
        """Start them; ``folder``: for configuration and logs."""
        self.folder = folder
        self.replicas = [Replica(folder / f"replica{i}.log") for i in (1, 2)]
        self.address = f"http://127.0.0.1:{self._write(free_port())}"
        command = [nginx(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        with (folder / "nginx.log").open("w", encoding="utf-8") as out:
            self.nginx = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def wait(self) -> None:
        """Wait until all of them answer."""
        for replica in self.replicas:
            wait_until_ready(replica.address)
        for _ in range(2400):
            try:
                urllib.request.urlopen(self.address, timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"nginx did not start:\n{(self.folder / 'nginx.log').read_text(encoding='utf-8')}")

    def _write(self, port: int) -> int:
        shipped = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
        local = shipped.replace("listen 8080;", f"listen 127.0.0.1:{port};")
        assert local != shipped
        (self.folder / "nginx.conf").write_text(local, encoding="utf-8")
        servers = (ROOT / "deploy" / "replicas.conf").read_text(encoding="utf-8")
        for shipped_port, replica in zip(("8501", "8502"), self.replicas, strict=True):
            assert f":{shipped_port} " in servers
            servers = servers.replace(f":{shipped_port} ", f":{replica.port} ")
        (self.folder / "replicas.conf").write_text(servers, encoding="utf-8")
        return port

    def cookie(self) -> str:
        """Return the cookie that a browser gets on its first visit."""
        with urllib.request.urlopen(self.address, timeout=30) as response:
            return str(response.headers["Set-Cookie"]).split(";")[0]

    def replica_of(self, cookie: str) -> Replica:
        """Return the replica that nginx sends this visitor to, according to its log."""
        before = len(self._health_requests())  # nginx logs a request after answering it, so the last line may be older
        request = urllib.request.Request(f"{self.address}/_stcore/health", headers={"Cookie": cookie})
        urllib.request.urlopen(request, timeout=30).close()
        for _ in range(6000):
            lines = self._health_requests()
            if len(lines) > before:
                return next(replica for replica in self.replicas if f":{replica.port} 200" in lines[-1])
            time.sleep(0.02)
        raise SystemExit("nginx does not say which replica answered")

    def _health_requests(self) -> list[str]:
        log = (self.folder / "access.log").read_text(encoding="utf-8")
        return [line for line in log.split("\n")[:-1] if "/_stcore/health" in line]

    def logs(self) -> dict[str, bytes]:
        """Return the content of every log."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.suffix == ".log"}

    def close(self) -> None:
        """Stop all of them."""
        self.nginx.terminate()
        self.nginx.wait(timeout=120)
        for replica in self.replicas:
            replica.process.terminate()
            replica.process.wait(timeout=120)


def nginx() -> str:
    """Return the path of nginx."""
    program = shutil.which("nginx", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", str(UNPACKED)]))
    if program is None:
        raise SystemExit("there is no nginx: sh scripts/nginx.sh fetches Debian's without installing it")
    return program
