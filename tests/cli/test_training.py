"""visformer train, train-gpt, train-caption and evaluate."""

import json
import re
import shutil
from importlib import metadata
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import visformer as vf
from tests.support import SENTENCES, tiny_tokenizer
from visformer.cli import main
from visformer.model.tokenizer import Tokenizer
from visformer.system import shipped

SUPPLEMENT = Path(__file__).parents[2] / "supplement"


JUDGED = ("held_out.tsv", "alignment.tsv", "judged/everyday.tsv", "judged/minimal_pairs.tsv")
FIRST = tuple(f"first_sentences/{name}.tsv" for name in ("held_out/first", "held_out/copies", "held_out/phrases",
                                                         "taught/first", "taught/phrases"))  # fmt: skip
LEARNED = ("everyday.tsv", "everyday_words.tsv")


@pytest.fixture(scope="module")
def supplement(tmp_path_factory):
    """The supplement, with the first rows of some tables."""
    folder = shutil.copytree(SUPPLEMENT, tmp_path_factory.mktemp("short") / "supplement")
    for names, count in ((JUDGED, 4), (FIRST, 3), (LEARNED, 30)):
        for name in names:
            rows = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / name).write_text("".join(rows[:count]), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def _few_sentences(monkeypatch):
    monkeypatch.setattr("visformer.training.mixture.GRAMMAR_TEXTS", 50)
    monkeypatch.setattr("visformer.training.evaluation.alignment.GRAMMAR_SENTENCES", 5)


@pytest.fixture
def pairs(tmp_path):
    rows = [f"{SENTENCES[i % 2]}\t{SENTENCES[2 + i % 3]}" for i in range(8)]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def held_out(tmp_path):
    path = tmp_path / "valid.tsv"
    path.write_text("A cat sat there.\t猫坐着。\n" * 2 + "I see a dog.\t我看见狗。\n" * 2, encoding="utf-8")
    return path


def fails(*arguments, code=1):
    """Run a command that has to fail with an error of one line; returns it."""
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    *_, error = result.stderr.splitlines()
    assert error.startswith("Error: ")
    return error.removeprefix("Error: ")


def run(*arguments):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_train_then_evaluate(tmp_path, pairs, held_out, supplement):
    """On a few rows; tests/training tests the figures."""
    out = tmp_path / "run"
    sizes = ["--epochs", 2, "--epoch-pairs", 20, "--vocab", 700, "--d-model", 16, "--layers", 1, "--keep-moments", 3]
    files = ["--pairs", pairs, "--supplement", supplement]
    run("train", *files, "--valid", held_out, "--out", out, *sizes)
    assert vf.moments(out / "checkpoint").moment.tolist() == [0, 1, 2]
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
    assert {row["n"] for row in figures["first sentences"].values()} == {2} and len(figures["first sentences"]) == 5
    assert figures["calibration"] is None, "nothing is right"
    assert {kind: told["en-zh"]["pairs"] for kind, told in figures["alignment"].items()} == {"by hand": 3, "grammar": 5}
    assert 0 < figures["alignment"]["by hand"]["en-zh"]["uniform"] < 1


@pytest.mark.full
def test_a_training_begins_with_a_trained_model(tmp_path, command):
    known, again = tmp_path / "run", tmp_path / "again"
    run(*command)
    command = [again if part == known else part for part in command]
    assert fails(*command, "--start", known / "checkpoint", "--layers", 2) == (
        f"{known / 'checkpoint'} has other sizes than --d-model 16 --layers 2: give its own."
    )
    run(*command, "--start", known / "checkpoint", "--learning-rate", 1e-9)
    tokenizers = [(folder / "tokenizer.json").read_bytes() for folder in (known, again)]
    assert tokenizers[0] == tokenizers[1]
    before, after = (load_file(folder / "checkpoint" / "model.safetensors") for folder in (known, again))
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)


@pytest.mark.full
def test_train_gpt(tmp_path, pairs, held_out, supplement):
    sizes = ["--epochs", 2, "--epoch-pairs", 30, "--vocab", 700, "--d-model", 16, "--heads", 2, "--layers", 2]
    files = ["--pairs", pairs, "--valid", held_out, "--supplement", supplement, "--out", tmp_path / "run"]
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


@pytest.mark.full
def test_train_caption(tmp_path, monkeypatch):
    monkeypatch.setattr("visformer.training.captions.SCORED", 12)
    monkeypatch.setattr("visformer.training.captions.CHOSEN_ON", 6)
    command = ["train-caption", "--out", tmp_path / "run", "--epoch-batches", 2, "--batch-scenes", 4, "--layers", 1]
    command += ["--d-model", 16, "--heads", 2, "--keep-moments", 3, "--epochs", 2]
    printed = run(*command)
    figures = json.loads((tmp_path / "run" / "checkpoint" / "evaluation.json").read_text(encoding="utf-8"))
    assert json.dumps(figures, indent=2) in printed
    assert figures["accuracy"]["zh"]["scenes"]["n"] == figures["alignment"]["scenes"] == 12
    assert 0 <= figures["alignment"]["low"] <= figures["alignment"]["on"] <= figures["alignment"]["high"] <= 1
    with (tmp_path / "run" / "checkpoint" / "curve.csv").open(encoding="utf-8") as file:
        assert file.readline().strip().endswith("seconds,right_en,right_zh")
    before = load_file(tmp_path / "run" / "checkpoint" / "model.safetensors")
    run(*command)  # resumed after its end
    after = load_file(tmp_path / "run" / "checkpoint" / "model.safetensors")
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert "--batch-scenes was 4 and is 5" in fails(*command, "--batch-scenes", 5)


TINY = ["--epochs", 1, "--epoch-pairs", 20, "--vocab", 700, "--d-model", 16, "--layers", 1, "--no-autocast"]


@pytest.fixture
def command(tmp_path, pairs, held_out, supplement):
    """A training of seconds."""
    files = ["--pairs", pairs, "--valid", held_out, "--supplement", supplement]
    return ["train", *files, "--out", tmp_path / "run", *TINY]


@pytest.mark.full
def test_a_run_is_resumed_with_its_own_settings_only(tmp_path, pairs, command):
    out = tmp_path / "run"
    assert "tokens, more than --vocab 700" in run(*command)
    other = fails(*command, "--d-model", 24, "--epochs", 3, "--autocast")
    assert other == (
        f"{out} holds a run with other settings: --epochs was 1 and is 3; --d-model was 16 and is 24; "
        "--autocast was off and is on. Give the old ones to resume it, or another --out."
    )
    files = {"model.safetensors", "tokenizer.json", "curve.csv"}
    for name in files:  # as the error of a damaged file advises
        (out / "checkpoint" / name).unlink()
    tokenizer = (out / "tokenizer.json").read_bytes()
    (out / "tokenizer.json").unlink()
    run(*command)
    assert (out / "tokenizer.json").read_bytes() == tokenizer
    assert {path.name for path in (out / "checkpoint").iterdir()} == files
    pairs.write_text(pairs.read_text(encoding="utf-8").replace("school", "work"), encoding="utf-8")
    assert re.search(r": --pairs was data with sha256 \w{12} and is data with sha256 \w{12}\. Give", fails(*command))
    (out / "settings.json").write_text("{", encoding="utf-8")
    assert "cannot be resumed without its settings.json, which is missing or damaged" in fails(*command)


@pytest.mark.full
def test_a_run_without_a_state_begins_anew_with_other_settings(tmp_path, command, monkeypatch):
    """Its tokenizer, too: that of other data or another size would stay unnoticed."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    def interrupted_run(*arguments):
        result = CliRunner().invoke(main, list(map(str, arguments)))
        assert result.exit_code == 130
        return result.stderr, (tmp_path / "run" / "tokenizer.json").read_bytes()

    monkeypatch.setattr("visformer.training.train.validation_loss", interrupted)
    told, before = interrupted_run(*command)
    assert "Interrupted." not in told, "there is nothing to resume"
    told, after = interrupted_run(*command, "--vocab", 4000)
    assert len(after) > len(before)
    (tmp_path / "run" / "state.safetensors").touch()
    monkeypatch.setattr("visformer.training.train._resume", interrupted)
    told, same = interrupted_run(*command, "--vocab", 4000)
    assert "Interrupted. The same command resumes after the last whole epoch." in told
    assert same == after


def test_a_tokenizer_that_was_put_there_is_used_and_kept(tmp_path, held_out, command):
    """As the README advises for two seeds at once. Held-out pairs that are trained on are counted."""
    with held_out.open("a", encoding="utf-8") as file:
        file.write(f"{SENTENCES[0]}\t{SENTENCES[2]}\n")
    out = tmp_path / "run"
    out.mkdir()
    tiny_tokenizer().save(out / "tokenizer.json")
    result = CliRunner().invoke(main, list(map(str, command)))
    assert result.exit_code == 0, result.output
    assert f"1 pairs of {held_out} are trained on" in result.stderr
    assert (out / "checkpoint" / "tokenizer.json").read_bytes() == (out / "tokenizer.json").read_bytes()
    assert len(Tokenizer.load(out / "checkpoint" / "tokenizer.json")) == len(tiny_tokenizer())
    other = Tokenizer.train(["went"] * 9, vocab_size=len(tiny_tokenizer()))
    other.save(out / "tokenizer.json")
    assert "other settings: tokenizer.json was data with sha256" in fails(*command)


@pytest.mark.parametrize("command", ["train", "train-gpt"])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--epochs", value) for value in (-1, 0)),
        *(("--epoch-pairs", value) for value in (-1, 0, 9)),
        *(("--vocab", value) for value in (-1, 354)),
        *(("--d-model", value) for value in (-16, 0)),
        *(("--layers", value) for value in (-1, 0)),
        *(("--dropout", value) for value in (-0.1, 1, "nan")),
        *(("--learning-rate", value) for value in (-1, 0, "nan", "inf")),
        *(("--batch-tokens", value) for value in (-1, 0)),
        ("--keep-moments", -1),
        *(("--seed", value) for value in (-1, 2**31)),
    ],
)
def test_a_number_out_of_range_is_wrong_usage(tmp_path, command, option, value):
    files = ["--pairs", "no.tsv", "--valid", "no.tsv", "--out", tmp_path / "run"]
    error = fails(command, *files, option, value, code=2)
    assert re.match(rf"Invalid value for '{option}': \S+ is not (in the range|a finite number)", error)
    assert not (tmp_path / "run").exists()


def test_the_smallest_vocabulary_is_that_of_every_tokenizer():
    [option] = [option for option in main.commands["train"].params if option.name == "vocab_size"]
    assert option.type.min == len(Tokenizer.train([], vocab_size=0))


@pytest.mark.parametrize(
    ("command", "sizes", "remedy"),
    [
        ("train", ["--d-model", 100], "100 cannot be divided among 8 heads: choose a multiple, such as 96 or 104."),
        ("train", ["--d-model", 4], "4 cannot be divided among 8 heads: choose a multiple, such as 8."),
        ("train-gpt", ["--d-model", 100, "--heads", 3], "100 cannot be divided among 3 heads: choose a multiple, "),
    ],
)
def test_the_heads_share_d_model(command, sizes, remedy):
    assert remedy in fails(command, "--pairs", "no.tsv", "--valid", "no.tsv", *sizes, code=2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "valid.tsv is empty"),
        ("Hi.\t你好。\n", "valid.tsv has one pair: give at least two"),
        (
            f"{SENTENCES[0]}\t{SENTENCES[2]}\n" * 2,
            "All pairs of {file} are trained on: give --valid pairs that are not",
        ),
    ],
)
def test_pairs_that_hold_nothing_out_are_refused(tmp_path, pairs, held_out, rows, message, monkeypatch):
    """Outside the repository, with the supplement that comes with visformer."""
    monkeypatch.chdir(tmp_path)
    held_out.write_text(rows, encoding="utf-8")
    error = fails("train", "--pairs", pairs, "--valid", held_out, "--out", tmp_path / "run", *TINY)
    assert message.format(file=held_out) in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["train", "train-gpt", "evaluate"])
def test_without_the_supplement_the_error_names_the_remedy(tmp_path, pairs, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "HERE", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda _: [])
    files = ["--names"] if command == "evaluate" else ["--pairs", pairs, "--valid", pairs, "--out", tmp_path / "run"]
    assert "no folder supplement with the supplement, which comes with visformer: give --supplement" in fails(
        command, *files
    )


def test_evaluating_pairs_needs_no_supplement(tmp_path, pairs, model, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shipped, "HERE", tmp_path)
    monkeypatch.setattr(metadata, "files", lambda _: [])
    printed = run("evaluate", *model, "--pairs", pairs, "--half")
    assert "bleu:\n  all:\n    pairs: 4\n    en-zh:\n      bleu: " in printed, "indented lines"


def test_a_file_without_pairs_is_not_evaluated(tmp_path, model):
    empty = tmp_path / "empty.tsv"
    empty.touch()
    assert "empty.tsv is empty" in fails("evaluate", *model, "--pairs", empty)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate"], "Nothing to evaluate: give --pairs FILE, --names, --judged or --alignment."),
        (["evaluate", "--names", "--seen", "a.tsv"], "--seen makes no difference without --pairs FILE."),
        (["evaluate", "--judged", "--against", "en-zh"], "--against makes no difference without --pairs FILE."),
        (["evaluate", "--model", "./nowhere", "--names"], "There is no model './nowhere'"),
        (["train-gpt", "--pairs", "no.tsv", "--valid", "no.tsv", "--context", "9"], "9 is not in the range x>=72"),
        (["evaluate", "--model", "mini-gpt", "--names"], "mini-gpt is no translator of visformer's"),
        (["train", "--pairs", "no.tsv", "--valid", "no.tsv", "--out", __file__], "test_training.py' is a file."),
        (["train", "--pairs", "no.tsv", "--valid", "no.tsv"], "no.tsv cannot be read: No such file or directory\n"),
    ],
)
def test_a_usage_error_has_a_message_and_an_exit_code(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output
