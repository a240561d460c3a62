"""visformer doctor: each fault, caused here on purpose, is reported with its remedy."""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from visformer.cli import doctor, main, packages
from visformer.system.files import SUMS, write_sums
from visformer.system.settings import SETTINGS

CHECKPOINT = Path("visformer", "model", "checkpoints", "en-zh")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """A copy of what doctor examines, for tests to damage."""
    shutil.copytree(doctor.HERE.parent / CHECKPOINT, tmp_path / CHECKPOINT)
    shutil.copy(doctor.HERE.parent / "pyproject.toml", tmp_path)
    for module in (doctor, packages):
        monkeypatch.setattr(module, "HERE", tmp_path / "visformer")
    return tmp_path


def run(*options):
    return CliRunner().invoke(main, ["doctor", *options])


def findings_of(about):
    """Run one check, as all of them take half a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "CHECKS", [check for check in doctor.CHECKS if check.__name__.startswith(f"_{about}")])
        return [finding for finding in doctor.examine() if finding.about == about]


def finding_of(about):
    (finding,) = findings_of(about)
    return finding


def test_this_installation_has_no_faults():
    text, machine_readable = run(), run("--json")
    report = json.loads(machine_readable.stdout)
    assert (text.exit_code, machine_readable.exit_code, report["ok"]) == (0, 0, True), text.output
    assert text.output.splitlines()[-1] == "All good."
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
    report = json.loads(run("--json").stdout)
    lines = run("--limits").output.splitlines()
    assert [line.split()[0] for line in lines] == [each["name"] for each in report["limits"]]
    assert {"name": "MAX_TOKENS", "value": 256, "unit": "tokens"}.items() <= report["limits"][2].items()
    assert all(each["what"] and each["reason"] for each in report["limits"])
    assert [each["name"] for each in report["settings"]] == [setting.name for setting in SETTINGS]


def test_sha256sum_accepts_the_checksums(tmp_path):
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
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
    ("name", "damage", "fault"),
    [
        ("model.safetensors", truncate, "is damaged"),
        ("tokenizer.json", flip, "is damaged"),
        ("example.safetensors", Path.unlink, "is missing"),
        ("curve.csv", truncate, "is damaged"),
    ],
)
def test_a_damaged_file_is_reported(installation, name, damage, fault):
    path = installation / CHECKPOINT / name
    damage(path)
    finding = finding_of("checkpoint")
    assert finding.state == "fix"
    assert finding.found.startswith(f"{path} {fault}")
    assert f"git checkout -- {path}" in finding.remedy


def test_unreadable_checksums_are_a_fault_and_exit_code_1(installation):
    path = installation / CHECKPOINT / SUMS
    for content in (None, b"\xff", b"no digest"):
        path.unlink() if content is None else path.write_bytes(content)
        assert (finding_of("checkpoint").state, SUMS in finding_of("checkpoint").found) == ("fix", True), content
    text, machine_readable = run(), run("--json")
    assert (text.exit_code, machine_readable.exit_code) == (1, 1)
    assert text.output.splitlines()[-1] == "1 to fix."
    assert json.loads(machine_readable.stdout)["ok"] is False


def found_with(installation, package, *others):
    """Return what is found of the packages of each extra if others are declared in the place of one."""
    file = installation / "pyproject.toml"
    text, n = re.subn(rf'"{package}[=>].*?"', ", ".join(f'"{other}"' for other in others), file.read_text("utf-8"))
    assert n == 1
    file.write_text(text, encoding="utf-8")
    return dict(zip(packages.declared(), findings_of("packages"), strict=True))


def test_versions_are_compared_with_the_ranges(installation):
    own = found_with(installation, "click", "click<8", "no-such-package>=1")[""]
    assert (own.state, own.remedy) == ("fix", "pip install visformer")
    assert re.fullmatch(r"no-such-package is not installed; click [\d.]+ instead of <8", own.found)


def test_missing_extras_are_only_a_note(installation):
    extra = found_with(installation, "jieba", "no-such-package>=1")["train"]
    assert (extra.state, extra.remedy) == ("note", 'pip install "visformer[train]"')


def test_without_a_clone_the_ranges_come_from_the_metadata(installation, monkeypatch):
    source = packages.declared()
    (installation / "pyproject.toml").unlink()
    lines = [line if not extra else f'{line}; extra == "{extra}"' for extra, lines in source.items() for line in lines]
    monkeypatch.setattr(metadata, "requires", {"visformer": lines}.get)
    assert packages.declared() == source
    assert {"", "app", "hf", "pdf", "ray", "train"} == {*source}


@pytest.mark.parametrize(
    ("about", "name", "script", "state", "message"),
    [
        ("fonts", "fc-list", "echo 'One,Eins'; echo Two", "ok", "One, Two"),
        ("fonts", "fc-list", "true", "fix", "fonts-noto-cjk"),
        ("fonts", "nothing", "", "note", "fonts-noto-cjk"),
        ("browser", "chromium", "echo Chromium 1", "ok", "Chromium 1"),
        ("browser", "chromium", "exit 1", "note", "chromium does not start"),
        ("browser", "nothing", "", "note", "none of chromium"),
    ],
)
def test_fonts_and_browsers_are_found_by_running_a_program(tmp_path, monkeypatch, about, name, script, state, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (tmp_path / name).chmod(0o755)
    finding = finding_of(about)
    assert finding.state == state
    assert message in f"{finding.found} {finding.remedy}"


@pytest.mark.parametrize("number", ["0", "many", "-1", "100000"])
def test_an_invalid_number_of_threads_is_a_fault(monkeypatch, number):
    monkeypatch.setenv("OMP_NUM_THREADS", number)
    finding = finding_of("threads")
    assert (finding.state, number in finding.found) == ("fix", True)
    assert "unset OMP_NUM_THREADS" in finding.remedy


def test_a_container_with_fewer_cores_than_the_machine_needs_a_number_of_threads(monkeypatch):
    monkeypatch.setattr(doctor, "_quota", lambda: 0.5)
    assert finding_of("threads").remedy.startswith("set OMP_NUM_THREADS=1:")


def test_a_torch_that_cannot_be_imported_is_a_fault(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libgomp.so.1: cannot open')", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "visformer", "doctor"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{doctor.HERE.parent}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "torch cannot be imported: libgomp.so.1: cannot open" in done.stdout
    assert done.stderr == ""


def test_a_port_in_use_is_a_note(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(doctor, "PORT", taken.getsockname()[1])
        assert finding_of("port").state == "note"
    assert finding_of("port").state == "ok"


def test_folders_without_write_access_are_reported(monkeypatch):
    monkeypatch.chdir("/proc")  # not even root can write there
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    here, temporary = findings_of("writing")
    assert (here.state, "this folder /proc cannot be written to" in here.found) == ("note", True)
    assert (temporary.state, "set TMPDIR" in temporary.remedy) == ("fix", True)


class Hub(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_error(403)

    def log_message(self, *_):
        pass


def test_a_hub_that_does_not_answer_is_a_note_and_an_invalid_address_a_fault(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    with http.server.HTTPServer(("127.0.0.1", 0), Hub) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert finding_of("hub").state == "ok"
        thread.join()
    assert (finding_of("hub").state, "HF_ENDPOINT" in finding_of("hub").remedy) == ("note", True)
    monkeypatch.setenv("HF_ENDPOINT", "mirror.example")
    assert (finding_of("hub").state, "mirror.example" in finding_of("hub").found) == ("fix", True)


def test_the_cache_is_that_of_huggingface_hub():
    from huggingface_hub import constants

    assert str(doctor._hub_cache()) == constants.HF_HUB_CACHE


def test_a_check_that_raises_does_not_stop_the_others(monkeypatch):
    def _broken():
        raise RuntimeError("the reason")

    monkeypatch.setattr(doctor, "CHECKS", (_broken, doctor._port))
    broken, port = doctor.examine()
    assert (broken.about, broken.state, "the reason" in broken.found) == ("broken", "fix", True)
    assert port.about == "port"
