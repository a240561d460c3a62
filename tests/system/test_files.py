"""Files are written completely or not at all, even when the disk is full, as simulated by a limit on file size."""

import errno
import json
import os
import resource
import subprocess
import sys
from functools import partial

import pytest

from tests.web.support import made_up_trace
from visformer.export.formats import FORMATS
from visformer.system.files import called, whole, write_whole

ENDINGS = [one.ending for one in FORMATS]


def run_on_a_full_disk(*arguments):
    """Run Python with files limited to 1,000 bytes, in a child process because pytest writes files, too."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1000, 1000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


SAVE = """
import json, sys
from tests.web.support import made_up_trace
from visformer.export import save

trace = made_up_trace()
for path in sys.argv[1:]:
    try:
        save(trace, path)
    except OSError as error:
        print(json.dumps([error.errno, error.filename]))
"""


def test_a_failed_export_leaves_the_old_file_or_none(tmp_path):
    old = [tmp_path / f"old{ending}" for ending in ENDINGS]
    for path in old:
        path.write_text("before")
    paths = [*old, *(tmp_path / f"new{ending}" for ending in ENDINGS)]
    done = run_on_a_full_disk("-c", SAVE, *paths)
    assert list(map(json.loads, done.stdout.splitlines())) == [[errno.EFBIG, str(path)] for path in paths], done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {path.name: "before" for path in old}


SAVE_MODEL = """
import sys
from pathlib import Path
from tests.support import tiny_tokenizer, tiny_translator
from visformer.model.checkpoints import save_checkpoint

folder = Path(sys.argv[1])
for write in (
    lambda: tiny_tokenizer().save(folder / "tokenizer.json"),
    lambda: save_checkpoint(folder, tiny_translator().module, tiny_tokenizer()),
):
    try:
        write()
    except OSError as error:
        print(error.strerror)
"""


def test_files_that_libraries_fail_to_write_raise_the_same_error_and_leave_none(tmp_path):
    done = run_on_a_full_disk("-c", SAVE_MODEL, tmp_path)
    assert done.stdout == "File too large\n" * 2, done.stderr
    assert list(tmp_path.iterdir()) == []


def interrupted_write(path):
    with whole(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def test_an_interrupted_write_leaves_no_file(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted_write(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_writing_to_a_link_or_a_device_does_not_replace_it(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
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


def test_the_command_line_reports_a_full_disk_in_one_line(tmp_path):
    made_up_trace().save(tmp_path / "t.safetensors")
    out = tmp_path / "o.safetensors"
    done = run_on_a_full_disk("-m", "visformer", "export", "--trace", tmp_path / "t.safetensors", "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {out}: File too large\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.safetensors"]
