"""visformer train and visformer evaluate."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from tests.support import SENTENCES, tiny_tokenizer, tiny_translator
from visformer.cli import main
from visformer.model.checkpoints import load_checkpoint, save_checkpoint

SUPPLEMENT = Path(__file__).parents[2] / "supplement"


@pytest.fixture
def pairs(tmp_path):
    rows = [f"{SENTENCES[i % 2]}\t{SENTENCES[2 + i % 3]}" for i in range(8)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_train_then_evaluate(tmp_path, pairs):
    """On a few rows; tests/training/test_evaluation.py tests the figures."""
    out, supplement = tmp_path / "run", shutil.copytree(SUPPLEMENT, tmp_path / "supplement")
    for name in ("held_out.tsv", "alignment.tsv"):
        rows = (supplement / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (supplement / name).write_text("".join(rows[:4]), encoding="utf-8")
    sizes = ["--epochs", 1, "--vocab", 700, "--d-model", 16, "--layers", 1, "--supplement-pairs", 20]
    run("train", "--pairs", pairs, "--valid", pairs, "--out", out, *sizes)
    assert (out / "curve.csv").exists()
    files = ["--model", out / "checkpoint", "--pairs", pairs, "--supplement", supplement]
    figures = json.loads(run("evaluate", *files, "--names", "--alignment", "--json"))
    assert figures["bleu"]["pairs"] == 8
    assert figures["names"]["all"]["sentences"] == 3
    assert 0 < figures["alignment"]["en-zh"]["aer of uniform"] < 1


def test_training_can_start_from_a_checkpoint(tmp_path, pairs):
    start = tiny_translator(tie_embeddings=True).module
    save_checkpoint(tmp_path / "start", start, tiny_tokenizer())
    files = ["--pairs", pairs, "--valid", pairs, "--init", tmp_path / "start", "--out", tmp_path / "run"]
    run("train", *files, "--epochs", 1, "--learning-rate", 0, "--dropout", 0, "--supplement-pairs", 5)
    trained, tokenizer = load_checkpoint(tmp_path / "run" / "checkpoint")
    for before, after in zip(start.parameters(), trained.parameters(), strict=True):
        assert torch.equal(before.half().float(), after)
    assert len(tokenizer) == len(tiny_tokenizer())


def test_evaluate_prints_figures_as_indented_lines(tmp_path, pairs):
    save_checkpoint(tmp_path / "m", tiny_translator().module, tiny_tokenizer())
    printed = run("evaluate", "--model", tmp_path / "m", "--pairs", pairs, "--half")
    assert "bleu:\n  en_zh: " in printed
    assert "pairs: 4" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "Nothing to evaluate: give --pairs FILE, --names or --alignment."),
        (["evaluate", "--model", "nowhere", "--names"], "There is no model 'nowhere'"),
        (["train", "--pairs", "no.tsv", "--valid", "no.tsv"], "no.tsv cannot be read: No such file or directory\n"),
    ],
)
def test_a_usage_error_has_a_message_and_an_exit_code(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output
