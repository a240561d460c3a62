"""visformer atlas: from a file to a folder of tables; interrupted, resumed, refused."""

import errno
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support import tiny_gpt, tiny_tokenizer
from tests.waiting import until
from visformer.analysis.atlas import Atlas, pack
from visformer.cli import main
from visformer.model.checkpoints import save_checkpoint

WORDS = "I went to school . She likes the school .".split()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "m"
    save_checkpoint(folder, tiny_gpt().module, tiny_tokenizer())
    return str(folder)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path / "texts.tsv", 40)


def written(path, n):
    rng = random.Random(0)
    path.write_text("".join(f"{' '.join(rng.choices(WORDS, k=8))}\t{i}\n" for i in range(n)), encoding="utf-8")
    return str(path)


def run(*arguments, stdin=None):
    return CliRunner().invoke(main, ["atlas", *map(str, arguments)], input=stdin)


def shards(folder):
    return {path.name: path.read_bytes() for path in Path(folder).rglob("*.parquet")}


def test_a_table_becomes_an_atlas(data, model):
    result = run("--data", data, "--model", model, "--out", "atlas", "--shard", 15)
    assert result.exit_code == 0, result.output
    opens = f"To open it: visformer run --model {model} --atlas atlas\n"
    assert result.stdout == f"Atlas(m: 4 heads, 40 texts, 0 skipped)\nWritten to atlas\n{opens}"
    assert "40/40" in result.stderr
    assert "rows/s" in result.stderr
    atlas = Atlas.read("atlas")
    assert atlas.about["data"] == data
    assert len(atlas.heads) == 4


def test_silencing_heads_shows_how_far_it_is(data, model):
    result = run("--data", data, "--model", model, "--out", "atlas", "--effects", 3)
    assert result.exit_code == 0, result.output
    assert "3/3" in result.stderr.splitlines()[-1]
    assert "texts/s" in result.stderr
    assert len(Atlas.read("atlas").effects) == 4


def test_one_file_is_written_beside_the_tables(data, model):
    arguments = ("--data", data, "--model", model, "--out", "atlas")
    assert run(*arguments).exit_code == 0 and not Path("atlas/atlas.zip").exists()
    result = run(*arguments, "--zip")
    assert re.fullmatch(r"As one file: atlas/atlas\.zip, 0\.0[56] MB", result.stdout.splitlines()[2])
    assert Path("atlas/atlas.zip").read_bytes() == pack("atlas")
    assert Atlas.read("atlas/atlas.zip").heads.equals(Atlas.read("atlas").heads)


def test_the_bar_is_full_at_the_end_whatever_was_estimated(data, model):
    text = Path(data).read_text(encoding="utf-8")
    Path(data).write_text(f"text\tn\n\n{text}", encoding="utf-8")  # a header and a blank line
    assert "40/40" in run("--data", data, "--model", model, "--out", "atlas").stderr.splitlines()[-1]


def test_standard_input_and_a_limit(model, data):
    result = run("--data", "-", "--model", model, "--out", "atlas", "--limit", 3, stdin="I went\n\nto\nschool\nI\n")
    assert result.exit_code == 0, result.output
    assert Atlas.read("atlas").heads["texts"].max() == 3


def test_broken_rows_are_named_and_the_exit_code_is_that_of_success(model, data):
    lines = Path(data).read_text(encoding="utf-8").splitlines()
    lines[4] = "school " * 50
    Path(data).write_text("\n".join([*lines, *("\tno text" for _ in range(12))]), encoding="utf-8")
    result = run("--data", data, "--model", model, "--out", "atlas")
    assert result.exit_code == 0, result.output
    assert f"Skipped {data}, line 5: The text is 51 tokens long and the limit is 32" in result.stderr
    assert f"Skipped {data}, line 41: no text" in result.stderr
    assert "... 13 rows were skipped; atlas/broken.parquet names all." in result.stderr
    strict = run("--data", data, "--model", model, "--out", "strict", "--strict")
    assert strict.exit_code == 1
    assert strict.stderr.splitlines()[-1].startswith(f"Error: {data}, line 41: no text")  # read before line 5 is run


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--data", "none.txt"), 1, "none.txt."),
        (("--data", "texts.tsv", "--text", "words"), 1, "texts.tsv has no column words: it has "),
        (("--data", "texts.tsv", "--pair", "2"), 1, "m takes no pair: only an encoder does."),
        (("--data", "texts.tsv", "--shard", "0"), 2, "Invalid value for '--shard'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments, code, message, model, data):
    result = run(*arguments, "--model", model, "--out", "atlas")
    assert result.exit_code == code
    assert message in result.stderr.splitlines()[-1]
    assert not Path("atlas").exists()


def test_a_folder_with_another_atlas_is_left_as_it_is(model, data, tmp_path):
    assert run("--data", data, "--model", model, "--out", "atlas").exit_code == 0
    before = shards("atlas")
    save_checkpoint(tmp_path / "n", tiny_gpt(seed=3).module, tiny_tokenizer())
    result = run("--data", data, "--model", tmp_path / "n", "--out", "atlas")
    assert result.exit_code == 1
    assert "is of another model (m): choose another folder with --out" in result.stderr.splitlines()[-1]
    assert shards("atlas") == before


@pytest.mark.parametrize(("code", "message"), [(errno.ENOSPC, "No space left on device"), (errno.EACCES, "Permission")])
def test_a_full_disk_and_a_lack_of_permission_leave_whole_shards(code, message, model, data, monkeypatch):
    written, write = [], Path.write_bytes

    def fails(path, content):
        written.append(path)
        if len(written) > 2:
            write(path, content[:100])
            raise OSError(code, os.strerror(code), str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", fails)
    result = run("--data", data, "--model", model, "--out", "atlas", "--shard", 10)
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "00002.parquet" in last
    assert message in last
    monkeypatch.undo()
    assert sorted(path.name for path in Path(data).parent.joinpath("atlas").rglob("*.p*")) == [
        "00000.parquet",
        "00001.parquet",
    ]


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.full)])
def test_a_run_that_was_stopped_resumes_with_the_same_bytes(how, model, tmp_path, monkeypatch):
    """It waits for more texts on standard input, so that it cannot be done before it is stopped."""
    monkeypatch.chdir(tmp_path)
    texts = Path(written(tmp_path / "texts.tsv", 90)).read_text(encoding="utf-8")
    arguments = ["--data", "-", "--model", model, "--shard", "20", "--out"]
    running = subprocess.Popen(
        [sys.executable, "-m", "visformer", "atlas", *arguments, "a"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # pytest may have been told to ignore it
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running.stdin.write(texts.partition("\t70\n")[0])
    running.stdin.flush()
    until(lambda: Path("a/shards/00002.parquet").exists() or running.poll() is not None, seconds=120)
    running.send_signal(how)
    assert running.wait(timeout=120) == (130 if how == signal.SIGINT else -how)
    with running.stderr as told:
        if how == signal.SIGINT:
            said = told.read().splitlines()[-1]
            assert said == "Interrupted. The same command resumes after the last whole shard."
    running.stdin.close()
    assert sorted(shards("a")) == ["00000.parquet", "00001.parquet", "00002.parquet"]
    for out in "ab":
        assert run(*arguments, out, stdin=texts).exit_code == 0
    assert shards("a") == shards("b")
    assert len(shards("a")) > 5


def test_without_ray_it_says_how_to_install_it(model, data, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which the command sets
    monkeypatch.setattr("visformer.cli.atlas.find_spec", lambda name: None)
    result = run("--data", data, "--model", model, "--out", "atlas", "--engine", "ray")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == 'Error: Ray is not installed: pip install "visformer[ray]"'
    result = run("--data", data, "--model", model, "--out", "atlas", "--workers", "2")
    assert result.exit_code == 2
    assert "--address and --workers are for --engine ray." in result.stderr
