"""Whole files or none: on a disk that fills up in the middle, which a limit on the size of files is like."""

import errno
import os
import resource
import subprocess
import sys

import pytest

from tests.support import tiny_tokenizer, tiny_translator
from tests.web.support import made_up_trace
from visformer.export import save
from visformer.model.checkpoints import save_checkpoint
from visformer.system.files import called, whole, write_whole

ENDINGS = ("html", "svg", "png", "csv", "json", "safetensors")


@pytest.fixture
def small_disk():
    """No file may grow beyond 1,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_half_written_remains(tmp_path, small_disk, ending):
    there = tmp_path / f"there.{ending}"
    there.write_text("before")
    trace = made_up_trace()
    for path in (there, tmp_path / f"new.{ending}"):
        with pytest.raises(OSError) as caught:  # noqa: PT011 (the number is what matters)
            save(trace, path)
        assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert [path.name for path in tmp_path.iterdir()] == [there.name]
    assert there.read_text() == "before"


def test_what_libraries_write_says_the_same(tmp_path, small_disk):
    for write in (
        lambda: tiny_tokenizer().save(tmp_path / "tokenizer.json"),
        lambda: save_checkpoint(tmp_path, tiny_translator().module, tiny_tokenizer()),
    ):
        with pytest.raises(OSError, match="File too large"):
            write()
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


def test_the_command_line_says_it_in_one_line(tmp_path):
    made_up_trace().save(tmp_path / "t.safetensors")
    out = tmp_path / "o.safetensors"
    done = subprocess.run(
        [sys.executable, "-m", "visformer", "export", "--trace", str(tmp_path / "t.safetensors"), "-o", str(out)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {out}: File too large\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.safetensors"]
