"""visformer doctor: each fault, made here on purpose, is reported with its remedy."""

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from visformer.cli import checks, main
from visformer.system.checksums import SUMS, write_sums
from visformer.system.settings import SETTINGS

BUNDLED = checks.HERE / "model" / "checkpoints" / "en-zh"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """Make a copy of what doctor examines, for tests to damage."""
    shutil.copytree(BUNDLED, tmp_path / "visformer" / "model" / "checkpoints" / "en-zh")
    for name in checks.HERE.parent.glob("requirements*.txt"):
        shutil.copy(name, tmp_path)
    monkeypatch.setattr(checks, "HERE", tmp_path / "visformer")
    return tmp_path


def findings_of(about):
    """Run this check alone, as all of them take half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "CHECKS", [check for check in checks.CHECKS if check.__name__.startswith(f"_{about}")])
        return [finding for finding in checks.examine() if finding.about == about]


def finding_of(about):
    (finding,) = findings_of(about)
    return finding


def test_all_is_well_here():
    people, program = (CliRunner().invoke(main, ["doctor", *more]) for more in ([], ["--json"]))
    report = json.loads(program.stdout)
    assert (people.exit_code, program.exit_code, report["ok"]) == (0, 0, True), people.output
    assert people.output.splitlines()[-1] == "All good."
    about = {finding["about"] for finding in report["findings"]}
    assert about >= {*"python packages checkpoint fonts browser threads port writing hub settings".split()}
    for finding in report["findings"]:
        assert (finding["state"] == "ok") == (finding["remedy"] == ""), finding
        assert "\n" not in finding["found"] + finding["remedy"]


def test_settings_are_listed_with_their_values(monkeypatch):
    monkeypatch.setenv("VISFORMER_MODELS", "gpt2,/models/x")
    monkeypatch.setenv("VISFORMER_PROCESSES", "two")
    monkeypatch.delenv("VISFORMER_MODEL", raising=False)
    lines = [finding.found for finding in findings_of("settings")]
    assert len(lines) == len(SETTINGS)
    assert lines[:2] == ["VISFORMER_MODEL: en-zh", "VISFORMER_MODELS: gpt2,/models/x, default: none"]
    (wrong,) = [finding for finding in findings_of("settings") if finding.state == "fix"]
    assert wrong.found == "VISFORMER_PROCESSES=two: expected a whole number: 0, 1, 2 …"
    assert "default: " in wrong.remedy


def test_limits_are_listed_with_their_reasons():
    people, program = (CliRunner().invoke(main, ["doctor", *more]) for more in (["--limits"], ["--json"]))
    report = json.loads(program.stdout)
    assert [line.split()[0] for line in people.output.splitlines()] == [each["name"] for each in report["limits"]]
    assert {"name": "MAX_TOKENS", "value": 256, "unit": "tokens"}.items() <= report["limits"][1].items()
    assert all(each["what"] and each["reason"] for each in report["limits"])
    assert [each["name"] for each in report["settings"]] == [setting.name for setting in SETTINGS]


def test_other_programs_read_the_checksums(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    write_sums(tmp_path)
    done = subprocess.run(["sha256sum", "-c", SUMS], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "a.json: OK\n"


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage", "what"),
    [
        ("model.safetensors", truncate, "is damaged"),
        ("tokenizer.json", flip, "is damaged"),
        ("example.safetensors", Path.unlink, "is missing"),
        ("curve.csv", truncate, "is damaged"),
    ],
)
def test_a_damaged_file_is_reported(installation, name, damage, what):
    path = installation / "visformer" / "model" / "checkpoints" / "en-zh" / name
    damage(path)
    finding = finding_of("checkpoint")
    assert finding.state == "fix"
    assert finding.found.startswith(f"{path} {what}")
    assert f"git checkout -- {path}" in finding.remedy


@pytest.mark.parametrize("content", [None, b"\xff", b"no digest"])
def test_checksums_that_cannot_be_read_are_damage_too_and_exit_code_1(installation, content):
    path = installation / "visformer" / "model" / "checkpoints" / "en-zh" / SUMS
    path.unlink() if content is None else path.write_bytes(content)
    assert (finding_of("checkpoint").state, SUMS in finding_of("checkpoint").found) == ("fix", True)
    people, program = (CliRunner().invoke(main, ["doctor", *more]) for more in ([], ["--json"]))
    assert (people.exit_code, program.exit_code) == (1, 1)
    assert people.output.splitlines()[-1] == "1 to fix."
    assert json.loads(program.stdout)["ok"] is False


def test_versions_are_compared_with_the_pins(installation):
    pins = installation / "requirements.txt"
    pins.write_text(pins.read_text().replace("click==", "click==0.") + "no-such-package==1.0\n")
    ours, *_ = findings_of("packages")
    assert ours.state == "fix"
    assert "no-such-package is not installed; click " in ours.found
    assert "instead of 0." in ours.found
    assert ours.remedy == "pip install -r requirements.txt"


def test_missing_extras_are_no_fault(installation):
    (installation / "requirements-hf.txt").write_text("no-such-package==1.0\n")
    _, theirs, _ = findings_of("packages")
    assert (theirs.state, theirs.remedy) == ("note", "pip install -r requirements-hf.txt")


def test_without_a_clone_the_pins_come_from_the_metadata(installation):
    for name in installation.glob("requirements*.txt"):
        name.unlink()
    assert "streamlit" in checks._pins("requirements.txt")
    assert "transformers" not in checks._pins("requirements.txt")
    assert "transformers" in checks._pins("requirements-hf.txt")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Let only programs that the test adds be found."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name, script):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    return put


@pytest.mark.parametrize(
    ("about", "name", "script", "state", "said"),
    [
        ("fonts", "fc-list", "echo 'One,Eins'; echo Two", "ok", "One, Two"),
        ("fonts", "fc-list", "true", "fix", "fonts-noto-cjk"),
        ("fonts", "nothing", "", "note", "fonts-noto-cjk"),
        ("browser", "chromium", "echo Chromium 1", "ok", "Chromium 1"),
        ("browser", "chromium", "exit 1", "note", "chromium does not start"),
        ("browser", "nothing", "", "note", "none of chromium"),
    ],
)
def test_programs_that_are_asked(programs, about, name, script, state, said):
    programs(name, script)
    finding = finding_of(about)
    assert finding.state == state
    assert said in f"{finding.found} {finding.remedy}"


@pytest.mark.parametrize("given", ["0", "many", "-1", "100000"])
def test_an_invalid_number_of_threads(monkeypatch, given):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    finding = finding_of("threads")
    assert (finding.state, given in finding.found) == ("fix", True)
    assert "unset OMP_NUM_THREADS" in finding.remedy


def test_a_container_with_fewer_cores_than_the_machine(monkeypatch):
    monkeypatch.setattr(checks, "_quota", lambda: 0.5)
    assert finding_of("threads").remedy.startswith("set OMP_NUM_THREADS=1:")


def test_a_broken_torch_is_a_finding(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libgomp.so.1: cannot open')")
    done = subprocess.run(
        [sys.executable, "-m", "visformer", "doctor"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{checks.HERE.parent}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "torch cannot be imported: libgomp.so.1: cannot open" in done.stdout
    assert done.stderr == ""


def test_a_port_in_use(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(checks, "PORT", taken.getsockname()[1])
        assert finding_of("port").state == "note"
    assert finding_of("port").state == "ok"


def test_folders_that_cannot_be_written_to(monkeypatch):
    monkeypatch.chdir("/proc")  # not even root may
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    here, temporary = findings_of("writing")
    assert (here.state, "this folder /proc cannot be written to" in here.found) == ("note", True)
    assert (temporary.state, "set TMPDIR" in temporary.remedy) == ("fix", True)


class Hub(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_error(403)

    def log_message(self, *_):
        pass


def test_whether_the_hub_answers(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    with http.server.HTTPServer(("127.0.0.1", 0), Hub) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        answered = finding_of("hub")
        thread.join()
    silent = finding_of("hub")
    assert [(found.state, "HF_ENDPOINT" in found.remedy) for found in (answered, silent)] == [
        ("ok", False),
        ("note", True),
    ]
    monkeypatch.setenv("HF_ENDPOINT", "mirror.example")
    assert (finding_of("hub").state, "mirror.example" in finding_of("hub").found) == ("fix", True)


def test_the_cache_is_where_huggingface_hub_has_it():
    from huggingface_hub import constants

    assert str(checks._hub_cache()) == constants.HF_HUB_CACHE


def test_a_check_that_raises_does_not_stop_the_others(monkeypatch):
    def _odd():
        raise RuntimeError("odd")

    monkeypatch.setattr(checks, "CHECKS", (_odd, checks._port))
    broken, after = checks.examine()
    assert (broken.about, broken.state, "odd" in broken.found, after.about) == ("odd", "fix", True, "port")
