"""Commands that start something else, and what the command line says of itself."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import visformer
from visformer.cli import main, running


@pytest.fixture
def started(monkeypatch):
    """What would have been started."""
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command, **how: calls.append((command, how)) or 0)
    return calls


def test_run_starts_the_app_of_this_repository(started):
    result = CliRunner().invoke(main, ["run", "--port", "8600", "--headless", "--model", "en-zh"])
    assert result.exit_code == 0, result.output
    [(command, how)] = started
    assert command[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert os.path.samefile(command[4], os.path.join(os.path.dirname(visformer.__file__), "..", "app.py"))
    assert command[-2:] == ["--server.port", "8600"]
    assert how["env"]["VISFORMER_MODEL"] == "en-zh"
    assert os.path.exists(os.path.join(how["cwd"], ".streamlit", "config.toml"))


def test_bench_hands_its_arguments_on(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["bench", "model", "--quick", "--json", "b.json"])
    assert result.exit_code == 0, result.output
    assert started[0][0][1:] == ["-m", "benchmarks", "model", "--quick", "--json", str(tmp_path / "b.json")]


@pytest.mark.parametrize("command", ["run", "bench"])
def test_what_is_started_and_fails_is_told(monkeypatch, command):
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: 3)
    result = CliRunner().invoke(main, [command])
    assert (result.exit_code, "exit code 3" in result.output) == (1, True)


@pytest.mark.parametrize("command", ["run", "bench"])
def test_without_the_repository_the_remedy_is_named(monkeypatch, tmp_path, command):
    monkeypatch.setattr(running, "HERE", tmp_path)
    result = CliRunner().invoke(main, [command])
    assert result.exit_code == 1
    assert "clone it, then pip install -e ." in result.output


def test_models_are_listed():
    people, program = (CliRunner().invoke(main, ["models", *more]) for more in ([], ["--json"]))
    [info] = json.loads(program.stdout)
    assert (info["name"], info["kind"], info["licence"]) == ("en-zh", "encoder-decoder", "Apache-2.0")
    assert people.output.startswith("en-zh: encoder-decoder, 3 + 3 layers, 8 heads, d_model 256")


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands)])
def test_every_help_has_an_example(command):
    result = CliRunner().invoke(main, [*command, "--help"])
    assert result.exit_code == 0
    assert f"  visformer {' '.join(command)}" in result.output.split("Example", 1)[1]


def test_commands_complete():
    environment = {
        **os.environ,
        "_VISFORMER_COMPLETE": "bash_complete",
        "COMP_WORDS": "visformer e",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "visformer"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert [line.split(",")[1] for line in done.stdout.split()] == ["evaluate", "export"]


def test_help_needs_no_torch():
    code = "import sys, visformer.cli; print([m for m in ('torch', 'streamlit', 'plotly') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
