"""Commands that start other programs, and the help of the command line."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import visformer
from visformer.cli import main, running
from visformer.system import settings


@pytest.fixture
def started(monkeypatch):
    """Record the processes that would have been started."""
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command, **how: calls.append((command, how)) or 0)
    return calls


@pytest.fixture
def served(monkeypatch):
    """Record what would have been served, with the folder and the model."""
    calls = []
    for name in ("VISFORMER_MODEL", "VISFORMER_HOSTS"):
        monkeypatch.setenv(name, "")  # what a test sets is put back
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(
        "visformer.app.serving.server.serve",
        lambda script, **options: calls.append((script, options, os.environ["VISFORMER_MODEL"])),
    )
    return calls


def test_run_starts_the_app_of_this_repository(served):
    result = CliRunner().invoke(main, ["run", "--port", "8600", "--headless", "--model", "en-zh"])
    assert result.exit_code == 0, result.output
    [(script, options, model)] = served
    assert script.samefile(Path(visformer.__file__).parents[1] / "app.py")
    assert sys.argv == [str(script)]
    assert options == {"address": "localhost", "headless": True, "port": 8600}
    assert model == "en-zh"


@pytest.mark.parametrize(
    ("set_before", "address", "hosts"),
    [
        ("", "localhost", ("localhost",)),
        ("", "::", ("localhost",)),
        ("", "box.local", ("localhost", "box.local")),
        ("demo.example", "box.local", ("demo.example", "box.local")),
    ],
)
def test_the_name_that_the_server_listens_under_is_served(served, monkeypatch, set_before, address, hosts):
    monkeypatch.setenv("VISFORMER_HOSTS", set_before)
    result = CliRunner().invoke(main, ["run", "--address", address])
    assert result.exit_code == 0, result.output
    assert settings.HOSTS() == hosts


def test_bench_passes_its_arguments_on(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["bench", "model", "--quick", "--json", "b.json"])
    assert result.exit_code == 0, result.output
    assert started[0][0][1:] == ["-m", "benchmarks", "model", "--quick", "--json", str(tmp_path / "b.json")]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_port_in_use_is_one_line(served, by):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = {"args": ["run", "--port", port]} if by == "option" else {"args": ["run"]}
        result = CliRunner().invoke(main, **said, env={"STREAMLIT_SERVER_PORT": port if by == "environment" else None})
    assert (result.exit_code, served) == (1, [])
    [line] = result.output.splitlines()
    assert line.startswith(f"Error: Port {port} of localhost cannot be used (Address already in use): choose another")
    assert "with --port" in line


def test_the_app_starts_without_write_access_and_network(tmp_path):
    """Neither the working folder nor the home is writable, and the proxy does not answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    app = subprocess.Popen(
        [sys.executable, "-m", "visformer", "run", "--headless", "--port", str(port)],
        cwd="/proc",  # not writable even for root
        env={**os.environ, "PYTHONPATH": str(running.HERE), "HOME": "/proc", **nowhere},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        said = []
        for line in app.stdout:
            said.append(line.strip())
            if "URL:" in line:
                break
        app.terminate()  # only the command: the server must end with it
        app.communicate(timeout=20)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(app.pid, signal.SIGKILL)
    assert said[-1] == f"URL: http://localhost:{port}"
    assert not [line for line in said if "rror" in line or "arning" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("command", "remedy"), [("run", "Reinstall it: README.md"), ("bench", "clone it, then pip install -e .")]
)
def test_without_the_repository_the_error_names_the_remedy(monkeypatch, tmp_path, command, remedy):
    monkeypatch.setattr(running, "HERE", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda _: [])
    result = CliRunner().invoke(main, [command])
    assert result.exit_code == 1
    assert remedy in result.output


def test_an_installed_package_starts_the_app_that_came_with_it(monkeypatch, tmp_path, served):
    site, app = tmp_path / "site-packages", tmp_path / "share" / "visformer"
    (app / "pages" / "see").mkdir(parents=True)
    (app / "app.py").touch()
    entry = metadata.PackagePath("../share/visformer/app.py")
    entry.dist = metadata.Distribution.at(site / "visformer-0.1.0.dist-info")
    monkeypatch.setattr(running, "HERE", site)
    monkeypatch.setattr(metadata, "files", lambda _: [metadata.PackagePath("visformer/__init__.py"), entry])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").touch()
    result = CliRunner().invoke(main, ["run", "--model", "mine"])
    assert result.exit_code == 0, result.output
    [(script, _options, model)] = served
    assert script == app / "app.py"
    assert model == str(tmp_path / "mine")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("/nowhere/at/all", "There is no model '/nowhere/at/all': no such folder."),
        ("runs/en-zh/none", "There is no model 'runs/en-zh/none': no such folder."),
        ("nope", "There is no model 'nope': the bundled one is en-zh, no folder has that name, and the hub"),
        (
            "untrained-9",
            "'untrained-9' is not the name of an untrained Transformer: write untrained-128x4-enc2-dec2-ff512",
        ),
        (".", "The folder . holds no model"),
    ],
)
@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_missing_model_is_an_error_before_anything_is_served(served, tmp_path, monkeypatch, model, said, by):
    def offline(*_, **__):
        raise ConnectionError

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", offline)
    monkeypatch.chdir(tmp_path)
    by_option = by == "option"
    monkeypatch.setenv("VISFORMER_MODEL", "" if by_option else model)
    result = CliRunner().invoke(main, ["run", *(["--model", model] if by_option else [])])
    assert (result.exit_code, served) == (1, [])
    assert said in result.output


def test_a_wheel_contains_the_whole_app():
    """Every tracked file of the app is named in pyproject.toml."""
    settings = tomllib.loads((running.HERE / "pyproject.toml").read_text())["tool"]["setuptools"]
    shipped = {file for globs in settings["data-files"].values() for glob in globs for file in running.HERE.glob(glob)}
    app = {
        running.HERE / "app.py",
        running.HERE / ".streamlit" / "config.toml",
        *(running.HERE / "pages").rglob("*.py"),
    }
    assert shipped == app
    for target, globs in settings["data-files"].items():
        inside = target.removeprefix("share/visformer").strip("/")
        assert {str(Path(glob).parent) for glob in globs} == {inside or "."}


@pytest.mark.parametrize(
    ("code", "ours", "said"), [(2, 2, ""), (3, 1, "Error: The benchmarks failed with exit code 3.")]
)
def test_a_failure_of_the_benchmarks_is_reported_except_wrong_usage(monkeypatch, code, ours, said):
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: code)
    result = CliRunner().invoke(main, ["bench", "--bogus"])
    assert (result.exit_code, result.output.strip()) == (ours, said)


def test_ctrl_c_ends_a_command_as_shells_expect(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("visformer.adapters.load.load", interrupted)
    result = CliRunner().invoke(main, ["trace", "I"])
    assert result.exit_code == 130


def test_a_closed_pipe_is_no_error():
    """As in ``visformer trace ... | head -1``."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "visformer", "models"], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write)
    assert done.stderr == b""


def test_models_are_listed():
    people, program = (CliRunner().invoke(main, ["models", *more]) for more in ([], ["--json"]))
    info, untrained = json.loads(program.stdout)
    assert (untrained["name"], untrained["source"]) == ("untrained-256x8-enc3-dec3-ff1024", "random weights, seed 0")
    assert (info["name"], info["kind"], info["licence"]) == ("en-zh", "encoder-decoder", "Apache-2.0")
    assert "untrained-256x8-enc3-dec3-ff1024: random weights" in people.output
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
