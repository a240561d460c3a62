"""visformer lesson: check lists each fault with its line, export writes one file."""

from html import unescape

import pytest
from click.testing import CliRunner

from tests.app.lessons.test_lesson_file import GOOD
from visformer.cli import main


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, ("lesson", *arguments))))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "names.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_the_shipped_lesson_has_no_faults():
    result = run("check")
    assert result.exit_code == 0, result.output
    assert result.output == "From a sentence to its translation: 12 steps, no mistakes\n"


def test_faults_of_the_file_and_of_the_model_are_listed_with_their_lines(file):
    file.write_text(GOOD.replace("layer: 3,", "layer: 9,"), encoding="utf-8")
    result = run("check", file)
    assert result.exit_code == 1
    assert result.output.splitlines() == [f"Error: {file}", "line 6: layer: 9: the layers of this attention are 1–3."]
    file.write_text(GOOD.replace("try: Click.", "tried: Click."), encoding="utf-8")
    chinese = run("check", file, "--lang", "zh")
    assert chinese.exit_code == 1
    assert chinese.output.splitlines()[1].startswith("第 9 行: tried: 这里没有这个名称")


def test_a_missing_file_is_an_error(tmp_path):
    result = run("check", tmp_path / "none.yaml")
    assert (result.exit_code, "No such file" in result.output) == (1, True)


def test_a_lesson_is_exported_to_one_file(file, tmp_path):
    out = tmp_path / "lesson.html"
    result = run("export", file, "--out", out, "--lang", "zh")
    assert result.exit_code == 0, result.output
    text = unescape(out.read_text(encoding="utf-8"))
    assert all(words in text for words in ('<html lang="zh">', "再看这里。", "目录"))
