"""What a package contains and is built from: pins with their hashes, licences, types; and the audit of the pins."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts import audit

ROOT = Path(__file__).parents[1]
LOCKED = re.compile(r"^([\w.-]+)==(\S+)(?: ; .+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def test_every_pin_is_locked_with_its_hashes():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = {(name.lower(), version) for name, version, _hashes in LOCKED.findall(lock)}
    assert len(locked) == len(re.findall(r"^[\w.-]+==", lock, re.MULTILINE)), "an entry has no hashes"
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)
    missing = {(re.sub("[-_.]+", "-", name).lower(), version) for name, version in pins} - locked
    assert {name for name, _version in missing} == {"torch"}, "run: make lock"
    assert not [name for name, _version in locked if name.startswith(("nvidia", "cuda", "triton"))]


def test_the_image_is_installed_from_the_lock():
    assert "--require-hashes -r requirements.lock" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "!requirements.lock" in (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")


def test_the_licences_of_what_the_data_come_from_are_in_every_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE"], "which setuptools puts into sdist and wheel"
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for part in ("https://tatoeba.org", "WordNet 3.0 Copyright 2006 by Princeton University", "Chinese Open Wordnet"):
        assert part in notice
    assert "Title to copyright in this software, database and\n  any associated documentation" in notice, "to its end"


def test_an_editable_install_adds_a_path_which_type_checkers_follow():
    """With any other mapping setuptools installs an import hook, which they do not run."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert setuptools["package-dir"] == {"": "."} and "py.typed" in setuptools["package-data"]["visformer"]
    assert (ROOT / "visformer" / "py.typed").exists()


def finished(stdout="", stderr=""):
    return lambda command, **_: subprocess.CompletedProcess(command, 1, stdout, stderr)


def timed_out(command, **_):
    raise subprocess.TimeoutExpired(command, audit.PATIENCE)


SKIPPED = '{"dependencies": [{"name": "torch", "skip_reason": "not on PyPI"}]}'


@pytest.mark.parametrize("run", [finished(stderr="a\nno route\n"), finished(), finished(SKIPPED), timed_out])
def test_an_audit_that_could_not_run_ends_with_not_audited(run, monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "run", run)
    assert audit.main() == 0
    assert capsys.readouterr().out.split("\n")[-2] == "not audited"


def test_a_known_vulnerability_fails(monkeypatch, capsys):
    found = '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}'
    monkeypatch.setattr(subprocess, "run", finished(found))
    assert audit.main() == 1
    assert "a 1: CVE-1, fixed in 2" in capsys.readouterr().out
