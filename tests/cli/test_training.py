"""visformer train, train-gpt and evaluate."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import visformer as vf
from tests.support import SENTENCES, tiny_tokenizer, tiny_translator
from visformer.cli import main
from visformer.model.checkpoints import save_checkpoint

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


def test_train_then_evaluate(tmp_path, pairs, monkeypatch):
    """On a few rows; tests/training tests the figures."""
    monkeypatch.setattr("visformer.training.mixture.GRAMMAR_TEXTS", 50)
    out, supplement = tmp_path / "run", shutil.copytree(SUPPLEMENT, tmp_path / "supplement")
    for name in ("held_out.tsv", "alignment.tsv", "judged/everyday.tsv", "judged/minimal_pairs.tsv"):
        rows = (supplement / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (supplement / name).write_text("".join(rows[:4]), encoding="utf-8")
    sizes = ["--epochs", 2, "--epoch-pairs", 20, "--vocab", 700, "--d-model", 16, "--layers", 1, "--keep-moments", 3]
    files = ["--pairs", pairs, "--supplement", supplement]
    run("train", *files, "--valid", pairs, "--out", out, *sizes)
    assert vf.moments(out / "checkpoint").moment.tolist() == [0, 1, 2]
    monkeypatch.setattr("visformer.training.evaluation.alignment.GRAMMAR_SENTENCES", 5)
    compared = ["--seen", pairs, "--against", out / "checkpoint"]
    everything = ["--names", "--judged", "--alignment", "--json"]
    figures = json.loads(run("evaluate", "--model", out / "checkpoint", *files, *compared, *everything))
    zero = dict.fromkeys(("difference", "low", "high"), 0)
    assert figures["model"]["d_model"] == 16
    scores = figures["bleu"]
    assert (scores["all"]["pairs"], scores["overlaps"], "unseen" in scores) == (8, {"equal": 8, "content": 0}, False)
    assert scores["all"]["en-zh"]["against"] == {"bleu": scores["all"]["en-zh"]["bleu"]} | zero
    assert figures["names"]["all"]["sentences"] == 3
    assert {kind: row["n"] for kind, row in figures["judged"].items()} == {"ordinary": 3, "pairs": 3}
    assert figures["calibration"] is None, "nothing is right"
    assert {kind: told["en-zh"]["pairs"] for kind, told in figures["alignment"].items()} == {"by hand": 3, "grammar": 5}
    assert 0 < figures["alignment"]["by hand"]["en-zh"]["uniform"] < 1


def test_train_gpt(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr("visformer.training.mixture.GRAMMAR_TEXTS", 50)
    held_out = tmp_path / "valid.tsv"
    held_out.write_text("A cat sat there.\t猫坐着。\n" * 2 + "I see a dog.\t我看见狗。\n" * 2, encoding="utf-8")
    sizes = ["--epochs", 2, "--epoch-pairs", 30, "--vocab", 700, "--d-model", 16, "--heads", 2, "--layers", 2]
    files = ["--pairs", pairs, "--valid", held_out, "--supplement", SUPPLEMENT, "--out", tmp_path / "run"]
    printed = run("train-gpt", *files, *sizes, "--context", 80, "--keep-moments", 3)
    figures = json.loads((tmp_path / "run" / "checkpoint" / "evaluation.json").read_text(encoding="utf-8"))
    assert json.dumps(figures, indent=2) in printed
    for language in ("en", "zh"):
        assert figures["perplexity"][language]["model"] > figures["perplexity"][language]["4-gram"] > 1
    found = figures["induction"]
    assert 0 < found["low"] < found["score"] < found["high"] < 1 and found["random_share"] == 0.5
    with (tmp_path / "run" / "checkpoint" / "curve.csv").open(encoding="utf-8") as file:
        assert file.readline().strip().endswith("seconds,induction")
    assert len(list((tmp_path / "run" / "checkpoint" / "moments").iterdir())) == 1


def test_evaluate_prints_figures_as_indented_lines(tmp_path, pairs):
    save_checkpoint(tmp_path / "m", tiny_translator().module, tiny_tokenizer())
    printed = run("evaluate", "--model", tmp_path / "m", "--pairs", pairs, "--half")
    assert "bleu:\n  all:\n    pairs: 4\n    en-zh:\n      bleu: " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "Nothing to evaluate: give --pairs FILE, --names, --judged or --alignment."),
        (["evaluate", "--names", "--seen", "a.tsv"], "--seen makes no difference without --pairs FILE."),
        (["evaluate", "--judged", "--against", "en-zh"], "--against makes no difference without --pairs FILE."),
        (["evaluate", "--model", "nowhere", "--names"], "There is no model 'nowhere'"),
        (["train-gpt", "--pairs", "no.tsv", "--valid", "no.tsv", "--context", "9"], "9 is not in the range x>=72"),
        (["train", "--pairs", "no.tsv", "--valid", "no.tsv"], "no.tsv cannot be read: No such file or directory\n"),
    ],
)
def test_a_usage_error_has_a_message_and_an_exit_code(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output
