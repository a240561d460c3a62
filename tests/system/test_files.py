"""Files are written completely or not at all, even when the disk is full, as simulated by a limit on file size."""

import errno
import json
import os
import resource
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from tests.web.support import made_up_trace
from visformer.export.formats import FORMATS
from visformer.system.files import called, whole, write_whole

ENDINGS = [one.ending for one in FORMATS]
WRITE = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
from tests.support import tiny_tokenizer, tiny_translator
from tests.web.support import made_up_trace
from visformer.cli import main
from visformer.export import save
from visformer.model.checkpoints import save_checkpoint

exports, models, trace = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
writes = {path: lambda path=path: save(made_up_trace(), exports / path) for path in json.loads(sys.argv[4])}
writes["tokenizer"] = lambda: tiny_tokenizer().save(models / "tokenizer.json")
writes["checkpoint"] = lambda: save_checkpoint(models, tiny_translator().module, tiny_tokenizer())
errors = {}
for name, write in writes.items():
    try:
        write()
    except OSError as error:
        errors[name] = [error.errno, error.strerror, error.filename]
command = CliRunner().invoke(main, ["export", "--trace", trace, "-o", str(models / "o.safetensors")])
errors["command"] = [command.exit_code, command.stdout, command.stderr]
print(json.dumps(errors))
"""
"""Writes all kinds of files, and prints the errors."""


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """A folder ``exports`` with old files, one ``models``, and the ``errors`` of writing new files into both.

    Python writes them with files limited to 1,000 bytes, in a child process because pytest writes files, too.
    """
    folder = tmp_path_factory.mktemp("full")
    (exports := folder / "exports").mkdir()
    (models := folder / "models").mkdir()
    for ending in ENDINGS:
        (exports / f"old{ending}").write_text("before", encoding="utf-8")
    made_up_trace().save(folder / "t.safetensors")
    names = [f"{age}{ending}" for age in ("old", "new") for ending in ENDINGS]
    done = subprocess.run(
        [sys.executable, "-c", WRITE, exports, models, folder / "t.safetensors", json.dumps(names)],
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1000, 1000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return SimpleNamespace(exports=exports, models=models, names=names, errors=json.loads(done.stdout))


def test_a_failed_export_leaves_the_old_file_or_none(full_disk):
    for name in full_disk.names:
        number, _, path = full_disk.errors[name]
        assert (number, path) == (errno.EFBIG, str(full_disk.exports / name)), name
    left = {path.name: path.read_text(encoding="utf-8") for path in full_disk.exports.iterdir()}
    assert left == {f"old{ending}": "before" for ending in ENDINGS}


def test_files_that_libraries_fail_to_write_raise_the_same_error_and_leave_none(full_disk):
    assert [full_disk.errors[name][1] for name in ("tokenizer", "checkpoint")] == ["File too large"] * 2
    assert list(full_disk.models.iterdir()) == []


def test_the_command_line_reports_a_full_disk_in_one_line(full_disk):
    out = full_disk.models / "o.safetensors"
    assert full_disk.errors["command"] == [1, "", f"Error: {out}: File too large\n"]
    assert not out.exists()


def interrupted_write(path):
    with whole(path) as partial:
        partial.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt


def test_an_interrupted_write_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted_write(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_writing_to_a_link_or_a_device_does_not_replace_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"
    (tmp_path / "full.csv").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(tmp_path / "full.csv", "x")
    write_whole("/dev/null", b"x")
    assert not os.path.isfile("/dev/null")


def test_text_is_written_as_utf_8_with_its_line_endings(tmp_path):
    write_whole(tmp_path / "x", "我\r\n")
    assert (tmp_path / "x").read_bytes() == "我\r\n".encode()


def test_the_name_of_a_folder_includes_the_parent_if_it_is_too_general(tmp_path):
    (folder := tmp_path / "minilm" / "model").mkdir(parents=True)
    (link := tmp_path / "mine").symlink_to(folder)
    assert [called(folder), called(link), called(folder / ".." / "model")] == ["minilm/model", "mine", "minilm/model"]
