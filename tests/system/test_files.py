"""Whole files or none, when a disk fills up while writing, as simulated by a limit on file size."""

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


def on_a_small_disk(*arguments):
    """Run Python with file size limited to 1,000 bytes, in a child process because pytest writes files too."""
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


def test_nothing_half_written_remains(tmp_path):
    there = [tmp_path / f"there{ending}" for ending in ENDINGS]
    for path in there:
        path.write_text("before")
    paths = [*there, *(tmp_path / f"new{ending}" for ending in ENDINGS)]
    done = on_a_small_disk("-c", SAVE, *paths)
    assert list(map(json.loads, done.stdout.splitlines())) == [[errno.EFBIG, str(path)] for path in paths], done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {path.name: "before" for path in there}


SAVE_A_MODEL = """
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


def test_failed_writes_of_libraries_give_the_same_message(tmp_path):
    done = on_a_small_disk("-c", SAVE_A_MODEL, tmp_path)
    assert done.stdout == "File too large\n" * 2, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path):
    def interrupted():
        with whole(tmp_path / "x") as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_one_and_a_device_a_device(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    (tmp_path / "full.csv").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(tmp_path / "full.csv", "x")
    write_whole("/dev/null", b"x")
    assert not os.path.isfile("/dev/null")


def test_text_is_utf_8_and_its_line_ends_stay(tmp_path):
    write_whole(tmp_path / "x", "我\r\n")
    assert (tmp_path / "x").read_bytes() == "我\r\n".encode()


def test_a_folder_is_called_by_its_own_name_as_far_as_that_says_anything(tmp_path):
    (folder := tmp_path / "minilm" / "model").mkdir(parents=True)
    (link := tmp_path / "mine").symlink_to(folder)
    assert [called(folder), called(link), called(folder / ".." / "model")] == ["minilm/model", "mine", "minilm/model"]


def test_the_command_line_reports_it_in_one_line(tmp_path):
    made_up_trace().save(tmp_path / "t.safetensors")
    out = tmp_path / "o.safetensors"
    done = on_a_small_disk("-m", "visformer", "export", "--trace", tmp_path / "t.safetensors", "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {out}: File too large\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.safetensors"]
