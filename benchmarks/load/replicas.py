"""Replicas of the app behind a real nginx, with the configuration that is shipped."""

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
TIMEOUT = 60
"""Seconds until a server that is not ready counts as failed."""

UNPACKED = Path(sys.prefix) / "nginx" / "usr" / "sbin"  # where scripts/nginx.sh puts it


def wait_until_ready(address: str) -> None:
    """Until the model behind an address is loaded."""
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


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Replica:
    """One process of the app."""

    def __init__(self, log: Path, **environment: str) -> None:
        """Started at once; ``log``: what it says is kept there; ``environment``: variables to add."""
        self.log, self.port = log, free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        options = ("--server.headless=true", "--server.address=127.0.0.1", f"--server.port={self.port}")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", "asgi.py", *options],
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """As a machine dies: without a word."""
        self.process.kill()
        self.process.wait()


class Site:
    """nginx and its two replicas."""

    def __init__(self, folder: Path) -> None:
        """Started at once; ``folder``: for configuration and logs."""
        self.folder = folder
        self.replicas = [Replica(folder / f"replica{i}.log") for i in (1, 2)]
        self.address = f"http://127.0.0.1:{self._write(free_port())}"
        command = [nginx(), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
        with (folder / "nginx.log").open("w") as out:
            self.nginx = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def wait(self) -> None:
        """Until all of them answer."""
        for replica in self.replicas:
            wait_until_ready(replica.address)
        for _ in range(200):
            try:
                urllib.request.urlopen(self.address, timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"nginx did not start:\n{(self.folder / 'nginx.log').read_text()}")

    def _write(self, port: int) -> int:
        shipped = (ROOT / "deploy" / "nginx.conf").read_text()
        here = shipped.replace("listen 8080;", f"listen 127.0.0.1:{port};")
        assert here != shipped
        (self.folder / "nginx.conf").write_text(here)
        servers = (ROOT / "deploy" / "replicas.conf").read_text()
        for shipped_port, replica in zip(("8501", "8502"), self.replicas, strict=True):
            assert f":{shipped_port} " in servers
            servers = servers.replace(f":{shipped_port} ", f":{replica.port} ")
        (self.folder / "replicas.conf").write_text(servers)
        return port

    def cookie(self) -> str:
        """What a browser gets on its first visit."""
        with urllib.request.urlopen(self.address, timeout=30) as answer:
            return str(answer.headers["Set-Cookie"]).split(";")[0]

    def replica_of(self, cookie: str) -> Replica:
        """Where nginx sends this visitor, by its log."""
        before = len(self._asked_for_health())  # nginx writes a line after it has answered, so the newest may be older
        request = urllib.request.Request(f"{self.address}/_stcore/health", headers={"Cookie": cookie})
        urllib.request.urlopen(request, timeout=30).close()
        for _ in range(500):
            lines = self._asked_for_health()
            if len(lines) > before:
                return next(replica for replica in self.replicas if f":{replica.port} 200" in lines[-1])
            time.sleep(0.02)
        raise SystemExit("nginx does not say which replica answered")

    def _asked_for_health(self) -> list[str]:
        log = (self.folder / "access.log").read_text()
        return [line for line in log.split("\n")[:-1] if "/_stcore/health" in line]

    def logs(self) -> dict[str, bytes]:
        """Everything that anything has written down."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.suffix == ".log"}

    def close(self) -> None:
        """End all of them."""
        self.nginx.terminate()
        self.nginx.wait(timeout=20)
        for replica in self.replicas:
            replica.process.terminate()
            replica.process.wait(timeout=20)


def nginx() -> str:
    """The program's path."""
    found = shutil.which("nginx", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", str(UNPACKED)]))
    if found is None:
        raise SystemExit("there is no nginx: sh scripts/nginx.sh fetches Debian's without installing it")
    return found
