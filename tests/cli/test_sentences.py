"""visformer trace - and visformer export -: sentences on standard input, one a line."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from visformer.cli import main, running
from visformer.trace import Trace

LONG = "I " * 600


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments, stdin):
    return CliRunner().invoke(main, list(map(str, arguments)), input=stdin)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_each_line_is_what_it_is_as_an_argument(tmp_path, model):
    lines = "\ufeffI went to school.\r\n\n  She likes school.  \nI".encode()
    result = run("trace", "-", *model, "-o", "traces", stdin=lines)
    assert result.exit_code == 0, result.output
    assert names(tmp_path / "traces") == ["1.safetensors", "3.safetensors", "4.safetensors"]
    for number, sentence in ((1, "I went to school."), (3, "She likes school."), (4, "I")):
        alone = run("trace", sentence, *model, "-o", f"traces/{number}.safetensors", stdin="").stdout
        assert f"line {number}\n{alone}\n" in result.stdout
        assert Trace.load(tmp_path / "traces" / f"{number}.safetensors").meta["source"] == sentence


def test_json_is_one_line_a_sentence(model):
    result = run("trace", "-", *model, "--json", stdin="I went to school.\n\nI\n")
    first, second = map(json.loads, result.stdout.splitlines())
    alone = json.loads(run("trace", "I", *model, "--json", stdin="").stdout)
    assert (first["line"], second) == (1, {"line": 3, **alone})


@pytest.mark.parametrize(
    ("out", "written"),
    [
        (["pages"], ["pages/1.html", "pages/2.html"]),
        (["."], ["1.html", "2.html"]),
        (["beams", "--picture", "beams"], ["beams/1.svg", "beams/2.svg"]),
        (["no-{n}.svg", "--stack", "decoder.cross_attn"], ["no-1.svg", "no-2.svg"]),
        (["{n}.csv", "--picture", "candidates"], ["1.csv", "2.csv"]),
    ],
)
def test_a_folder_or_a_name_with_n_takes_a_file_for_each_sentence(tmp_path, model, out, written):
    result = run("export", "-", *model, "-o", *out, stdin="I went to school.\nI\n")
    assert (result.exit_code, result.stdout) == (0, "".join(f"Written to {path}\n" for path in written))
    assert all((tmp_path / path).stat().st_size for path in written)


def test_one_sentence_may_go_to_one_file_and_several_may_not(tmp_path, model):
    assert run("export", "-", *model, "-o", "a.svg", stdin="I\n").exit_code == 0
    assert names(tmp_path) == ["a.svg"]
    result = run("export", "-", *model, "-o", "b.svg", stdin="I\nI went\n")
    assert result.exit_code == 2
    assert "2 sentences for b.svg: give a folder, or a name such as b-{n}.svg." in result.stderr
    assert names(tmp_path) == ["a.svg"]


def test_a_line_that_fails_is_named_and_the_others_are_written(tmp_path, model):
    lines = f"I went to school.\n{LONG}\n".encode() + b"\xff\xfe\nShe likes school.\n"
    result = run("trace", "-", *model, "-o", "t-{n}.json", stdin=lines)
    assert result.exit_code == 1
    too_long, not_unicode, total = result.stderr.splitlines()
    assert too_long.startswith("Line 2: The text is ") and too_long.endswith("and the limit is 512: shorten it.")
    assert not_unicode == "Line 3: not UTF-8: save the text in that encoding."
    assert total == "Error: 2 of 4 lines failed."
    assert names(tmp_path) == ["t-1.json", "t-4.json"]


def test_a_place_that_one_sentence_lacks_is_named_with_its_line(tmp_path, model):
    lines = "I\nI went to school today.\n"
    result = run("export", "-", *model, "-o", "q", "--picture", "query", "--query", 5, stdin=lines)
    assert result.exit_code == 1
    assert result.stderr.startswith("Line 1: Invalid value for --query: 5: there are 1–2, counted from 1.\n")
    assert names(tmp_path / "q") == ["2.svg"]


@pytest.mark.parametrize("stdin", ["", "\n  \n"])
@pytest.mark.parametrize("command", [["trace"], ["export", "-o", "pages"]])
def test_no_sentence_is_an_error_of_one_line(model, command, stdin):
    name, *out = command
    result = run(name, "-", *model, *out, stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: There is no sentence on standard input: write one a line.\n"


@pytest.mark.parametrize("arguments", [["trace", "I", "-o", "folder"], ["export", "I", "-o", "{n}"]])
def test_a_sentence_as_an_argument_goes_to_a_file(model, arguments):
    result = run(*arguments, *model, stdin="")
    assert result.exit_code == 2
    assert "does not end in any of" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trace", "-o", "there.json/t"], "there.json/t: Not a directory"),
        (["export", "-o", "nowhere/pages"], "nowhere/pages: No such file or directory"),
        (["export", "-o", "nowhere/{n}.svg"], "there is no folder nowhere. Create it first."),
        (["trace", "-o", "{n}.svg"], "{n}.svg does not end in any of .csv, .json, .safetensors"),
        (["trace", "-o", "file"], "file does not end in any of .csv, .json, .safetensors"),
        (["trace", "--model", "./none"], "There is no model './none': no such folder."),
    ],
)
def test_what_is_wrong_with_every_line_is_told_once(tmp_path, model, arguments, message):
    for name in ("there.json", "file"):
        (tmp_path / name).touch()
    name, *more = arguments
    result = run(name, "-", *model, *more, stdin="I\nI\n")
    assert result.exit_code in (1, 2)
    assert result.stderr.count("Error: ") == 1 and "Line" not in result.stderr
    assert message in result.stderr


def test_a_terminal_is_read_until_ctrl_d(model):
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "visformer", "trace", "-", *model, "--json"]
    pipes = {"stdin": terminal, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=running.HERE, **pipes) as process:
        os.close(terminal)
        os.write(controller, b"I went to school.\n")
        assert json.loads(process.stdout.readline())["line"] == 1, "before the next sentence"
        os.write(controller, b"I\n\x04")
        assert json.loads(process.stdout.read())["line"] == 2
        assert b"Type sentences, one a line. Ctrl+D ends" in process.stderr.read()
    os.close(controller)
    assert process.returncode == 0
