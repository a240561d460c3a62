"""The peers' own environment, created on first use under ``.benchmarks/``, which git ignores."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import LIBRARIES

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".benchmarks" / "peers"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
PYTHON = HOME / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

THREADS = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


class TookTooLong(Exception):
    """A tool did not finish within its time limit."""


class Failed(Exception):
    """A tool ended with an error."""


def install() -> None:
    """Install what is missing; a second call installs nothing."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes() + repr(LIBRARIES).encode()).hexdigest()
    stamp = HOME / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing the peers into {HOME}", flush=True)
    HOME.mkdir(parents=True, exist_ok=True)
    _install_packages()
    _fetch_libraries()
    stamp.write_text(wanted)


def _install_packages() -> None:
    """Install the peers, and make torch and the rest of visformer's environment visible through a .pth file.

    So torch is not downloaded twice, both sides use the same build of it, and yet nothing of the peers gets into
    visformer's environment. (``--system-site-packages`` would add the base Python's packages, not those of the
    environment that this one was created from.)
    """
    venv.create(HOME / "env", clear=True, with_pip=True)
    paths = sysconfig.get_paths(vars={"base": str(HOME / "env"), "platbase": str(HOME / "env")})
    (Path(paths["purelib"]) / "visformer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)]
    subprocess.run(command, check=True)


def _fetch_libraries() -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("BertViz loads three libraries from a CDN; their local copies need npm: install Node.js.")
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [npm, "pack", "--silent", library.package], cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
                member = package.extractfile(f"package/{library.file}")
                assert member is not None
                copy = HOME / "cdn" / library.address.lstrip("/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(member.read())


def run_worker(command: str, job: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """Run one command of ``worker.py`` in the peers' environment.

    Raises:
        TookTooLong: it was ended after ``timeout`` seconds.
        Failed: it ended with an error, for example out of memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        try:
            done = subprocess.run(
                [str(PYTHON), "-m", "benchmarks.peers.worker", command, str(file)],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": THREADS},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise TookTooLong(f"no page within {timeout:.0f} s") from None
        if done.returncode:
            raise Failed(f"exit {done.returncode}: {(done.stderr.strip().splitlines() or ['killed'])[-1]}")
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return result


if __name__ == "__main__":
    install()
    print(f"ready: {PYTHON}", file=sys.stderr)
