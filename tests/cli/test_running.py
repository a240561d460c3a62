"""Commands that start other programs, and the help of the command line."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from setuptools.glob import glob

import visformer
from benchmarks.load.replicas import free_port
from visformer.cli import main, running
from visformer.system import limits, settings, shipped


@pytest.fixture
def started(monkeypatch):
    """The commands of processes that would have been started."""
    commands = []
    monkeypatch.setattr(subprocess, "call", lambda command, **_: commands.append(command) or 0)
    return commands


@pytest.fixture
def served(monkeypatch):
    """The arguments with which the app would have been served, with the working folder and the model."""
    calls = []
    for name in ("MODEL", "HOSTS", "MEMORY", "ATLASES", "PROCESSES"):
        monkeypatch.setenv(f"VISFORMER_{name}", "")  # restored after a test, even if the command changes it
    monkeypatch.setattr(
        "visformer.app.serving.server.serve",
        lambda script, **options: calls.append((script, options, os.environ["VISFORMER_MODEL"])),
    )
    return calls


def test_run_serves_the_app_of_this_repository(served):
    port = free_port()
    result = CliRunner().invoke(main, ["run", "--port", str(port), "--headless", "--model", "en-zh"])
    assert result.exit_code == 0, result.output
    [(script, options, model)] = served
    assert script.samefile(Path(visformer.__file__).parents[1] / "app.py")
    assert options == {"address": "localhost", "headless": True, "port": port}
    assert model == "en-zh"


@pytest.mark.usefixtures("served")
def test_run_shows_atlases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "heads.parquet").touch()
    result = CliRunner().invoke(main, ["run", "--atlas", "one", "--atlas", "other"])
    assert result.exit_code == 0, result.output
    assert settings.ATLASES() == (str(tmp_path / "one"), str(tmp_path / "other"))
    missing = CliRunner().invoke(main, ["run", "--atlas", "nowhere"])
    assert missing.exit_code == 1 and "There is no atlas in nowhere: visformer atlas makes one." in missing.output


@pytest.mark.usefixtures("served")
def test_ctrl_c_ends_run_successfully(monkeypatch):
    def interrupted(script, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("visformer.app.serving.server.serve", interrupted)
    assert CliRunner().invoke(main, ["run"]).exit_code == 0


@pytest.mark.parametrize(("set_before", "kept"), [("", limits.OWN_KEPT_BYTES), ("700", 700_000_000)])
@pytest.mark.usefixtures("served")
def test_run_keeps_large_models_in_memory_unless_told_otherwise(monkeypatch, set_before, kept):
    monkeypatch.setenv("VISFORMER_MEMORY", set_before)
    assert CliRunner().invoke(main, ["run"]).exit_code == 0
    assert settings.MEMORY() == kept


@pytest.mark.parametrize(("set_before", "processes"), [("", None), ("3", 3)])
@pytest.mark.usefixtures("served")
def test_run_for_a_room_computes_in_processes_and_shares_memory(monkeypatch, set_before, processes):
    monkeypatch.setenv("VISFORMER_PROCESSES", set_before)
    assert CliRunner().invoke(main, ["run", "--room"]).exit_code == 0
    assert (settings.PROCESSES(), settings.MEMORY()) == (processes, limits.KEPT_BYTES)


@pytest.mark.parametrize(
    ("set_before", "address", "hosts"),
    [
        ("", "localhost", ("localhost",)),
        ("", "::", ("localhost",)),
        ("", "box.local", ("localhost", "box.local")),
        ("demo.example", "box.local", ("demo.example", "box.local")),
    ],
)
def test_the_address_to_listen_on_is_an_allowed_host(served, monkeypatch, set_before, address, hosts):
    monkeypatch.setenv("VISFORMER_HOSTS", set_before)
    result = CliRunner().invoke(main, ["run", "--address", address])
    assert result.exit_code == 0, result.output
    assert settings.HOSTS() == hosts


def test_bench_passes_its_arguments_on(started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["bench", "model", "--quick", "--json", "b.json"])
    assert result.exit_code == 0, result.output
    assert started[0][1:] == ["-m", "benchmarks", "model", "--quick", "--json", str(tmp_path / "b.json")]


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_port_in_use_is_an_error_of_one_line(served, by):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments, variable = (["--port", port], None) if by == "option" else ([], port)
        result = CliRunner().invoke(main, ["run", *arguments], env={"STREAMLIT_SERVER_PORT": variable})
    assert (result.exit_code, served) == (1, [])
    [line] = result.output.splitlines()
    assert line.startswith(f"Error: Port {port} of localhost cannot be used (Address already in use): choose another")
    assert "with --port" in line


def test_the_app_starts_without_write_access_and_network(tmp_path):
    """Neither the working folder nor the home is writable, and the proxy does not answer."""
    port = free_port()
    no_network = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    app = subprocess.Popen(
        [sys.executable, "-m", "visformer", "run", "--headless", "--port", str(port)],
        cwd="/proc",  # not writable even for root
        env={**os.environ, "PYTHONPATH": str(running.HERE), "HOME": "/proc", **no_network},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        lines = []
        for line in app.stdout:
            lines.append(line.strip())
            if "URL:" in line:
                break
        app.terminate()  # the server must end with the command
        app.communicate(timeout=120)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(app.pid, signal.SIGKILL)
    assert lines[-1] == f"URL: http://localhost:{port}"
    assert not [line for line in lines if "rror" in line or "arning" in line or "Traceback" in line]


@pytest.mark.parametrize(
    ("command", "remedy"), [("run", "Reinstall it: README.md"), ("bench", "clone it, then pip install -e .")]
)
def test_without_the_repository_the_error_names_the_remedy(monkeypatch, tmp_path, command, remedy):
    monkeypatch.setattr(shipped, "HERE", tmp_path)
    monkeypatch.setattr(running, "HERE", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda _: [])
    result = CliRunner().invoke(main, [command])
    assert result.exit_code == 1
    assert remedy in result.output


@pytest.mark.parametrize(("missing", "extra"), [("streamlit", "app"), ("starlette", "app"), ("sacrebleu", "train")])
def test_without_an_extra_the_error_names_the_command_that_installs_it(missing, extra):
    command = ["run"] if extra == "app" else ["evaluate", "--pairs", "none.tsv"]
    code = f"import sys; sys.modules[{missing!r}] = None; from visformer.cli import main; main({command})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    told = rf'Error: The package {missing}[\w.]* is not installed: pip install "visformer\[{extra}\]"\n'
    assert re.fullmatch(told, done.stderr), done.stderr


def test_an_installed_package_serves_the_app_installed_with_it(monkeypatch, tmp_path, served):
    site, app = tmp_path / "site-packages", tmp_path / "share" / "visformer"
    (app / "pages" / "see").mkdir(parents=True)
    (app / "app.py").touch()
    entry = metadata.PackagePath("../share/visformer/app.py")
    entry.dist = metadata.Distribution.at(site / "visformer-0.2.0.dist-info")
    monkeypatch.setattr(shipped, "HERE", site)
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
    ("model", "message"),
    [
        ("/nowhere/at/all", "There is no model '/nowhere/at/all': no such folder."),
        ("runs/en-zh/none", "There is no model 'runs/en-zh/none': no such folder."),
        (
            "nope",
            "There is no model 'nope': the bundled ones are en-zh, mini-gpt, mini-gpt-2, mini-caption, no folder has "
            "that name, and the hub",
        ),
        (
            "untrained-9",
            "'untrained-9' is not the name of an untrained Transformer: write untrained-128x4-enc2-dec2-ff512",
        ),
        (".", "The folder . holds no model"),
    ],
)
@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_missing_model_is_an_error_before_anything_is_served(served, tmp_path, monkeypatch, model, message, by):
    def offline(*_, **__):
        raise ConnectionError

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", offline)
    monkeypatch.chdir(tmp_path)
    arguments, variable = (["--model", model], "") if by == "option" else ([], model)
    result = CliRunner().invoke(main, ["run", *arguments], env={"VISFORMER_MODEL": variable})
    assert (result.exit_code, served) == (1, [])
    assert message in result.output


def test_a_wheel_contains_the_whole_app_and_the_supplement():
    """Every file of them is named in pyproject.toml."""
    root = running.HERE
    files = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["data-files"]
    found = {file for globs in files.values() for glob in globs for file in root.glob(glob)}
    folders = [file for name in ("pages", "supplement") for file in (root / name).rglob("*.*") if file.suffix != ".pyc"]
    assert found == {root / "app.py", root / ".streamlit" / "config.toml", *folders}
    for target, globs in files.items():
        folder = target.removeprefix("share/visformer").strip("/")
        assert {str(Path(glob).parent) for glob in globs} == {folder or "."}


def test_a_wheel_contains_the_moments_of_a_model(tmp_path):
    """Also files that lie in a folder of the model's folder, as setuptools matches them."""
    pyproject = tomllib.loads((running.HERE / "pyproject.toml").read_text(encoding="utf-8"))
    moment = tmp_path / "model" / "checkpoints" / "en-zh" / "moments" / "step-0000003.z"
    moment.parent.mkdir(parents=True)
    moment.touch()
    globs = pyproject["tool"]["setuptools"]["package-data"]["visformer"]
    assert str(moment) in {file for each in globs for file in glob(str(tmp_path / each), recursive=True)}


@pytest.mark.parametrize(
    ("code", "exit_code", "message"), [(2, 2, ""), (3, 1, "Error: The benchmarks failed with exit code 3.")]
)
def test_a_failure_of_the_benchmarks_is_reported_except_wrong_usage(monkeypatch, code, exit_code, message):
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: code)
    result = CliRunner().invoke(main, ["bench", "--bogus"])
    assert (result.exit_code, result.output.strip()) == (exit_code, message)


def test_ctrl_c_ends_a_command_with_exit_code_130(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("visformer.adapters.load.load", interrupted)
    result = CliRunner().invoke(main, ["trace", "I"])
    assert result.exit_code == 130


def test_a_closed_pipe_is_no_error():
    """As in ``visformer trace ... | head -1``."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "visformer", "doctor", "--limits"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(write)
    assert done.stderr == b""


def test_models_are_listed():
    text, machine_readable = (CliRunner().invoke(main, ["models", *options]) for options in ([], ["--json"]))
    info, gpt, second, caption, untrained = json.loads(machine_readable.stdout)
    assert (untrained["name"], untrained["source"]) == ("untrained-256x8-enc3-dec3-ff1024", "random weights, seed 0")
    assert (info["name"], info["kind"], info["licence"]) == ("en-zh", "encoder-decoder", "Apache-2.0")
    for each, name in ((gpt, "mini-gpt"), (second, "mini-gpt-2")):
        assert (each["name"], each["kind"], each["licence"]) == (name, "decoder", "Apache-2.0")
    assert (caption["name"], caption["grid"]) == ("mini-caption", [8, 8]) and info["grid"] is None
    assert "untrained-256x8-enc3-dec3-ff1024: random weights" in text.output
    assert "mini-gpt: decoder, 4 layers, 6 heads, d_model 192" in text.output
    assert text.output.startswith("en-zh: encoder-decoder, 3 + 3 layers, 8 heads, d_model 256")


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands)])
def test_every_help_has_an_example(command):
    result = CliRunner().invoke(main, [*command, "--help"])
    assert result.exit_code == 0
    assert f"  visformer {' '.join(command)}" in result.output.split("Example", 1)[1]


def test_the_shell_completes_commands():
    environment = {**os.environ, "_VISFORMER_COMPLETE": "bash_complete", "COMP_WORDS": "visformer e", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "visformer"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert [line.split(",")[1] for line in done.stdout.split()] == ["evaluate", "export"]
