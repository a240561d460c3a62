"""Starting Streamlit's server, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

STARTED = """
import sys, threading
from streamlit import config
from streamlit.web import bootstrap, skills
from visformer.app.serving import server
from visformer.app.streamlit_private import warm_start

warm_start.send_at_once = lambda: print("sends at once")
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


def test_at_startup_nagles_algorithm_is_off_and_the_app_is_imported_without_torch(tmp_path):
    (tmp_path / ".claude").mkdir()  # the home of somebody who has a coding agent
    run = subprocess.run(
        [sys.executable, "-c", STARTED],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split("\n")
    assert "sends at once" in lines
    assert {"app", "no torch"} <= set(lines)
    assert "agents" not in run.stdout
    assert "offers nothing" in lines
