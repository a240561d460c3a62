"""A sentence in, a file out: what the files hold, and what a mistake says."""

import csv
import io
import json

import pytest
from click.testing import CliRunner

from tests.adapters.hub import tiny_module, tokenizer
from tests.support import tiny_tokenizer, tiny_translator
from visformer.checkpoints import save_checkpoint
from visformer.cli import main
from visformer.trace import Trace


@pytest.fixture
def model(tmp_path):
    save_checkpoint(tmp_path / "m", tiny_translator().module, tiny_tokenizer())
    return ["--model", str(tmp_path / "m")]


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_trace_is_summed_up_and_kept(tmp_path, model):
    out = tmp_path / "t.safetensors"
    result = run("trace", "I went to school.", "--target", "我去学校。", *model, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    told, kept = json.loads(result.stdout), Trace.load(out)
    assert told["tokens"]["tgt"] == list(kept.tokens["tgt"])
    assert told["meta"]["target"] == "我去学校。"
    assert told["tensors"] == {name: list(kept[name].shape) for name in kept}
    people = run("trace", "I went to school.", *model, "--record", "*.scores")
    assert "encoder.0.self_attn.scores  (2, " in people.output
    assert "pattern" not in people.output


@pytest.mark.parametrize("ending", ["html", "svg", "png", "csv", "json", "safetensors"])
def test_every_format_from_a_sentence_and_from_a_file(tmp_path, model, ending):
    kept = tmp_path / "t.safetensors"
    assert run("trace", "I 去", "--target", "我", *model, "-o", kept).exit_code == 0
    for number, which in enumerate((("I 去", "--target", "我", *model), ("--trace", kept))):
        out = tmp_path / f"{number}.{ending}"
        result = run("export", *which, "-o", out)
        assert result.exit_code == 0, result.output
    again = Trace.load(kept)
    texts = [(tmp_path / f"{number}.{ending}").read_bytes() for number in (0, 1)]
    if ending == "csv":
        rows = list(csv.DictReader(io.StringIO(texts[1].decode("utf-8-sig"))))
        assert len(rows) == sum(again[name].value.size for name in again)
    if ending in ("csv", "json", "svg", "png"):
        assert texts[0] == texts[1]
    if ending == "safetensors":
        assert Trace.load(tmp_path / "1.safetensors").tokens == again.tokens


def test_layers_and_heads_count_from_1_as_on_screen(tmp_path, model):
    out = tmp_path / "head.svg"
    place = ("--stack", "cross", "--layer", 3, "--head", 2)
    assert run("export", "I", *model, "-o", out, *place, "--lang", "zh").exit_code == 0
    assert "第 3 层" in out.read_text(encoding="utf-8")
    result = run("export", "I", *model, "-o", out, "--stack", "cross", "--layer", 4)
    assert result.exit_code == 1
    assert "decoder.cross_attn has no layer 3: there are 3, counted from 0." in result.output


@pytest.mark.parametrize(("family", "side"), [("bert", "src"), ("gpt2", "tgt")])
def test_a_model_of_transformers_is_kept_the_same_way(tmp_path, family, side):
    folder, kept, out = tmp_path / "theirs", tmp_path / "t.safetensors", tmp_path / "x.svg"
    tiny_module(family).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    assert run("trace", "the cat", "--model", folder, "-o", kept).exit_code == 0
    assert set(Trace.load(kept).tokens) == ({"src"} if side == "src" else {"tgt", "next"})
    stack = "encoder" if side == "src" else "decoder"
    result = run("export", "--trace", kept, "-o", out, "--stack", stack, "--layer", 1, "--head", 1)
    assert result.exit_code == 0, result.output
    wrong = run("export", "--trace", kept, "-o", out, "--stack", "cross")
    assert wrong.exit_code == 1
    assert f"no attention named decoder.cross_attn; there is {stack}.self_attn" in wrong.output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["trace"], 2, "Missing argument 'TEXT'"),
        (["trace", "I", "-o", "x.svg"], 2, "x.svg does not end in any of .safetensors, .json, .csv"),
        (["trace", "I", "--model", "nowhere"], 1, "There is no model 'nowhere'"),
        (["export", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "I", "--trace", "x", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "--trace", "nowhere.safetensors", "-o", "x.svg"], 1, "nowhere.safetensors cannot be read"),
        (["export", "I", "-o", "x.gif"], 1, "x.gif does not end in any of .html, .svg, .png, .csv"),
        (["export", "I", "-o", "x.svg", "--head", "0"], 2, "0 is not in the range x>=1"),
        (["export", "I", "-o", "no/such/folder/x.svg"], 1, "no/such/folder/x.svg: No such file or directory"),
        (["export", "I", "-o", "no/such/folder/x.safetensors"], 1, "x.safetensors: No such file or directory"),
        (["trace", "", "-o", "x.csv"], 1, "There is no text"),
        (["sing"], 2, "No such command 'sing'"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(tmp_path, model, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    with_model = "--model" not in arguments and len(arguments) > 1
    result = run(*arguments, *(model if with_model else []))
    assert result.exit_code == code, result.output
    assert message in result.output
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
