"""Starting Streamlit's server."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from visformer.app.streamlit_private import warm_start

ROOT = Path(__file__).parents[3]

STARTED = """
import sys, threading
from streamlit import config
from streamlit.web import bootstrap, skills
from visformer.app.serving import server
from visformer.app.streamlit_private import warm_start

warm_start.send_at_once = lambda: print("Nagle's algorithm is off")
for name, value in {"headless": True, "address": "127.0.0.1", "port": 0}.items():
    config.set_option(f"server.{name}", value)
bootstrap.run("app.py", False, [], {}, stop_immediately_for_testing=True)
for thread in threading.enumerate():
    if thread.name == "imports":
        thread.join()
config.set_option("server.headless", False)  # a developer's machine
bootstrap._maybe_print_skills_recommendation()
print("offers to install" if skills.should_show_skills_nudge() else "offers nothing")
print("app" if "visformer.app.widgets.controls" in sys.modules else "no app")
print("torch" if "torch" in sys.modules else "no torch")
"""


def test_at_startup_the_app_is_imported_without_torch_and_no_agent_is_advertised(tmp_path):
    (tmp_path / ".claude").mkdir()  # the home of somebody who has a coding agent
    done = subprocess.run(
        [sys.executable, "-c", STARTED],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert {"Nagle's algorithm is off", "app", "no torch", "offers nothing"} <= {*done.stdout.split("\n")}
    assert "agents" not in done.stdout


def test_accepted_connections_have_nagles_algorithm_off():
    """The socket is bound as Streamlit does, without naming the protocol, so that asyncio does not turn it off."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        warm_start.send_at_once()
        with socket.create_connection(listening.getsockname()) as caller:
            accepted, _ = listening.accept()
            with accepted, caller:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
