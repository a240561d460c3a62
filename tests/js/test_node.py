"""The tests that need nothing of Python run in node's own runner."""

import subprocess

from tests.js.node import COMMAND, ENVIRONMENT, HERE


def test_the_tests_of_node_pass():
    command = [*COMMAND, "--test", "--test-reporter=spec", str(HERE / "*.test.js")]
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", env=ENVIRONMENT, check=False)
    assert ended.returncode == 0, f"\n{ended.stdout}{ended.stderr}"
    assert "tests 0" not in ended.stdout, "none was found"
