"""Starting the server, and its sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from visformer.system.sockets import send_at_once

ROOT = Path(__file__).parents[3]

STARTED = """
import signal, sys, threading
from pathlib import Path
import click
from streamlit import config
from streamlit.web import skills
from visformer.app.serving import server

def end():
    for thread in threading.enumerate():
        if thread.name == "imports":
            thread.join()
    print("offers to install" if skills.should_show_skills_nudge() else "offers nothing")
    print("app" if "visformer.app.widgets.controls" in sys.modules else "no app")
    print("torch" if "torch" in sys.modules else "no torch", flush=True)
    signal.raise_signal(signal.SIGINT)

def launch(address):
    print("opens", address.replace(str(config.get_option("server.port")), "PORT"))
    threading.Thread(target=end).start()

server.send_at_once = lambda: print("sends at once")
click.launch = launch
server.serve(Path("app.py").resolve(), address="127.0.0.1", port=0, headless=False)
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
    lines = {*done.stdout.split("\n")}
    assert lines >= {"sends at once", "opens http://127.0.0.1:PORT", "app", "no torch", "offers nothing"}, done.stderr
    assert "agents" not in done.stdout


def test_accepted_connections_have_nagles_algorithm_off():
    """The socket is bound as Streamlit does, without naming the protocol, so that asyncio does not turn it off."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        send_at_once()
        with socket.create_connection(listening.getsockname()) as caller:
            accepted, _ = listening.accept()
            with accepted, caller:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
