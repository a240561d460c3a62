"""A sentence in, a file out: the content of the files, and the messages of errors."""

import csv
import inspect
import io
import json
import re
import sys
from importlib import import_module
from pkgutil import iter_modules

import click
import numpy as np
import pytest
from click.testing import CliRunner

import visformer as vf
from scripts.export_tables import DOCS, HEADS, table, written
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.support import tiny_tokenizer, tiny_translator
from visformer import pictures
from visformer.adapters.load import untrained
from visformer.cli import export, main
from visformer.export.formats import FORMATS
from visformer.model.checkpoints import save_checkpoint
from visformer.pictures import charts
from visformer.pictures.examples.worked import compute
from visformer.pictures.lab import examples
from visformer.pictures.registry import picture as registry
from visformer.pictures.registry.setting import Setting, Source
from visformer.trace import Trace

REGISTERED = registry.pictures()
NUMBERS = [one.ending for one in FORMATS if one.content == "numbers"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "m"
    save_checkpoint(folder, tiny_translator().module, tiny_tokenizer())
    return ["--model", str(folder)]


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_trace_is_summarized_and_saved(tmp_path, model):
    out = tmp_path / "t.safetensors"
    result = run("trace", "I went to school.", "--target", "我去学校。", *model, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    summary, saved = json.loads(result.stdout), Trace.load(out)
    assert summary["tokens"]["tgt"] == list(saved.tokens["tgt"])
    assert summary["meta"]["target"] == "我去学校。"
    assert summary["tensors"] == {name: list(saved[name].shape) for name in saved}
    people = run("trace", "I went to school.", *model, "--record", "*.scores")
    assert "encoder.0.self_attn.scores  (2, " in people.output
    assert "pattern" not in people.output


def test_every_format_from_a_sentence_and_from_a_file(tmp_path, model):
    saved = tmp_path / "t.safetensors"
    assert run("trace", "I 去", "--target", "我", *model, "-o", saved).exit_code == 0
    for ending in (one.ending for one in FORMATS):
        outs = [tmp_path / f"{number}{ending}" for number in (0, 1)]
        for out, which in zip(outs, (("I 去", "--target", "我", *model), ("--trace", saved)), strict=True):
            result = run("export", *which, "-o", out)
            assert result.exit_code == 0, result.output
        if ending not in (".html", ".safetensors"):  # a page holds the id of its message, a file the model's path
            assert outs[0].read_bytes() == outs[1].read_bytes()
    again = Trace.load(saved)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "1.csv").read_text(encoding="utf-8-sig"))))
    assert len(rows) == sum(again[name].value.size for name in again)
    assert Trace.load(tmp_path / "1.safetensors").tokens == again.tokens


def test_layers_and_heads_count_from_1_as_on_screen(tmp_path, model):
    out = tmp_path / "head.svg"
    place = ("--stack", "cross", "--layer", 3, "--head", 2)
    assert run("export", "I", *model, "-o", out, *place, "--lang", "zh").exit_code == 0
    assert "第 3 层" in out.read_text(encoding="utf-8")
    result = run("export", "I", *model, "-o", out, "--stack", "cross", "--layer", 4, "--head", 1)
    assert result.exit_code == 2
    assert "Invalid value for --layer: 4: there are 3, counted from 1." in result.output


@pytest.mark.parametrize("page", HEADS)
def test_the_docs_list_the_formats_and_the_pictures_with_their_options(page):
    text = (DOCS / page).read_text("utf-8")
    assert text == written(page), "run: python -m scripts.export_tables"
    assert table(page, "formats") in text
    for name in REGISTERED:
        assert f"`{name}`" in table(page, "pictures")


@pytest.mark.parametrize("picture", REGISTERED)
def test_the_options_of_a_picture_are_those_that_it_reads(picture):
    options_read = set()

    class Watched(Setting):
        def __getitem__(self, name):
            options_read.add(name)
            return super().__getitem__(name)

        def get(self, name, default=None):
            options_read.add(name)
            return super().get(name, default)

    declared = REGISTERED[picture]
    values = declared.setting(Source(**source_options()), {})
    declared.draw(Watched(values.source, declared.needs, values))
    idle = {"head"} if picture == "all-heads" else set()  # a part of a place that is read as a whole
    assert options_read - idle == {*declared.names}


def source_options():
    model = tiny_translator()
    return {
        "record": lambda record: model.trace("I", "我", record=("*",)),
        "speak": lambda **settings: model.translate("I", **settings),
        "read": model.trace,
        "untrained": lambda norm, record: untrained(model, norm=norm).trace("I", "我", record=record),
        "d_model": model.info.d_model,
    }


UNNAMED = {
    "masks.editable": "a mask to click; unedited, it is in 'mask'",
    "masks.next_tokens": "compares with an edit, which needs a page or Python",
    "head.factors": "heads to click, all with the factor 1 by default",
    "panels.attention_head": "the heatmap of a head: export without --picture",
    "panels.attention_heads": "the heatmaps of all heads: export without --picture",
    "panels.matrix": "any panel as a heatmap of plotly",
}
"""Functions that draw but have no name as a picture, and why."""


def test_every_picture_of_the_pages_has_a_name():
    """Every function that draws is called by a registered picture, or listed as an exception."""
    functions = {}
    for module in (*modules_of(pictures), *modules_of(charts)):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            returns = str(function.__annotations__.get("return"))
            if not name.startswith("_") and function.__module__ == module.__name__ and DRAWN.search(returns):
                functions[function.__code__] = f"{module.__name__.rpartition('.')[2]}.{name}"
    called = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code))
    try:
        for picture in REGISTERED.values():
            picture.make(Source(**source_options()))
    finally:
        sys.setprofile(None)
    assert len(functions) > 30
    assert {name for code, name in functions.items() if code not in called} == UNNAMED.keys()


DRAWN = re.compile(r"Panel|Figure")


def modules_of(package):
    return [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]


def test_a_worked_example_by_name(tmp_path):
    """It needs neither a sentence nor a model; sample and head are selected as on the page."""
    out, first = tmp_path / "x.json", ((), {"sample": 0, "head": 0})
    chosen = ("--sample", 2, "--head", 3), {"sample": 1, "head": 2}
    for example in examples().values():
        for options, at in (first, chosen) if example.name == "shapes" else (first,):
            result = run("export", "-o", out, "--picture", "lab", "--example", example.name, *options)
            if example.instead:  # shapes that do not fit, which have no picture on the page either
                assert "the product needs as many columns" in result.output
                continue
            assert result.exit_code == 0, result.output
            found = {panel["name"]: panel["values"] for panel in json.loads(out.read_text("utf-8"))["panels"]}
            for name, values in compute(example, example.inputs).items():
                assert np.array_equal(found[name], values[example.place(name, at)]), (example.name, name)


def test_pictures_of_steps_end_with_the_step(tmp_path, model):
    out = tmp_path / "x.json"
    for picture in ("growing", "mask-steps"):
        for options in (("--step", 2), ()):
            command = ("export", "I", "--target", "我去。", *model, "-o", out, "--picture", picture, *options)
            assert run(*command).exit_code == 0
            [panel] = json.loads(out.read_text("utf-8"))["panels"]
            written = [row[0] is not None for row in panel["values"]]
            assert len(written) > 2
            assert written == [at < 2 or not options for at in range(len(written))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--picture", "waves", "--layer", 2],
            "--layer makes no difference to --picture waves. It takes --positions, --d-model, --base, --dimensions.",
        ),
        (
            ["--picture", "sureness", "--query", 1],
            "--query makes no difference to --picture sureness. It takes --step.",
        ),
        (["--picture", "beams", "--view", "arcs"], "--view makes no difference to --picture beams."),
        (["--layer", 3], "Give both --layer and --head"),
        (["--head", 1, "--view", "arcs"], "Give both --layer and --head"),
        (["--view", "arcs"], "--view arcs shows one head: give --layer and --head, from 1."),
        (["--query", 1], "--query makes no difference to --view heatmap."),
        (["--step", 1], "--step makes no difference to --view heatmap."),
        (["-o", "x.csv", "--head", 1], "--head makes no difference to .csv, which holds all attention."),
        (["-o", "x.html", "--view", "arcs"], "--view makes no difference to a page."),
    ],
)
def test_an_option_without_effect_is_refused(tmp_path, arguments, message):
    result = run("export", "I", "-o", tmp_path / "x.svg", *arguments)
    assert (result.exit_code, message in result.output) == (2, True), result.output


@pytest.mark.parametrize("picture", REGISTERED)
def test_every_picture_of_the_pages(tmp_path, model, picture):
    out = tmp_path / "x.svg"
    stack = ("--stack", "decoder") if "stack" in REGISTERED[picture].names else ()
    sentence = () if picture == "lab" else ("I 去",)
    result = run("export", *sentence, *model, "-o", out, "--picture", picture, *stack, "--lang", "zh")
    assert result.exit_code == 0, result.output
    assert out.stat().st_size > 150


def test_a_picture_of_a_saved_trace(tmp_path, model):
    saved, out = tmp_path / "t.safetensors", tmp_path / "x.svg"
    assert run("trace", "I 去", *model, "--record", "*.resid_*", "--record", "*.norm_*", "-o", saved).exit_code == 0
    assert run("export", "--trace", saved, "-o", out, "--picture", "similarity").exit_code == 0
    spoken = run("export", "--trace", saved, "-o", out, "--picture", "beams")
    assert (spoken.exit_code, "give a sentence, not a saved trace" in spoken.output) == (1, True)
    missing = run("export", "--trace", saved, "-o", out, "--picture", "mask")
    assert (missing.exit_code, "No 'encoder.0.self_attn.scores' in this trace" in missing.output) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("I", "--picture", "candidates", "--step", 999), "--step: 999: there are "),
        (("I", "--picture", "mask", "--head", 999), "--head: 999: there are 2, counted from 1."),
        (("I", "--layer", 1, "--head", 1, "--view", "tokens", "--query", 99), "--query: 99: there are "),
        (("--picture", "lab", "--example", "mended", "--head", 2), "--head: 2: there are 1, counted from 1."),
        (("--picture", "position-circle", "--i", 8), "--i: 8: there are 8, counted from 0."),
    ],
)
def test_a_place_out_of_range(tmp_path, model, arguments, said):
    result = run("export", *model, "-o", tmp_path / "x.svg", *arguments)
    assert (result.exit_code, f"Invalid value for {said}" in result.output) == (2, True), result.output


@pytest.mark.parametrize(("family", "has", "lacks"), [("bert", "encoder", "decoder"), ("gpt2", "decoder", "encoder")])
def test_a_model_of_transformers_defaults_to_a_stack_that_it_has(tmp_path, family, has, lacks):
    theirs = vf.wrap(tiny_module(family), tokenizer())
    drawn = [one for name, one in REGISTERED.items() if "stack" in one.names and name != "norms"]
    assert {"similarity", "embedding", "stream", "mask", "query", "all-heads"} <= {one.name for one in drawn}
    for one in drawn:
        source = vf.figures.source_of(theirs, "the cat")
        assert one.setting(source, {})["stack"] == f"{has}.self_attn"
        assert one.make(source), one.name
    folder, saved, out = tmp_path / "theirs", tmp_path / "t.safetensors", tmp_path / "x.svg"
    theirs.module.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    which = ("--model", folder, "-o", out, "--picture")
    assert run("export", "the cat", *which, "mask", "--stack", has).exit_code == 0
    wrong = run("export", "the cat", *which, "mask", "--stack", lacks)
    assert (wrong.exit_code, f"--stack: {lacks}: the model has no such attention, only {has}." in wrong.output) == (
        2,
        1,
    )
    grown = run("export", "the cat", *which, "growing")
    assert (grown.exit_code, "is an encoder" in grown.output) == ((1, True) if has == "encoder" else (0, False))
    assert run("trace", "the cat", "--model", folder, "-o", saved).exit_code == 0
    assert set(Trace.load(saved).tokens) == ({"src"} if has == "encoder" else {"tgt", "next"})
    assert run("export", "--trace", saved, "-o", out, "--stack", has, "--layer", 1, "--head", 1).exit_code == 0
    wrong = run("export", "--trace", saved, "-o", out, "--stack", "cross")
    assert wrong.exit_code == 1
    assert f"no attention named decoder.cross_attn; there is {has}.self_attn" in wrong.output


@pytest.mark.parametrize(
    ("order", "said"), [("", []), ("-learned", ["This model: a learned vector for each position"])]
)
def test_a_picture_of_the_papers_encoding_notes_that_the_model_has_another(tmp_path, order, said):
    name, out = f"untrained-16x2-enc1-dec1-ff16{order}", tmp_path / "p.svg"
    kinds = {"positions", "position-angles", "position-similarity", "position-circle", "waves"}
    assert kinds <= {one.name for one in REGISTERED.values() if one.formula}
    result = run("export", "-o", out, "--picture", "waves", "--model", name)
    assert result.exit_code == 0, result.output
    assert [line.partition(" is added")[0] for line in result.stderr.splitlines()] == said
    saved = tmp_path / "t.safetensors"
    assert run("trace", "I", "--target", "我", "--model", name, "-o", saved).exit_code == 0
    assert run("export", "--trace", saved, "-o", out, "--picture", "waves").stderr == result.stderr
    assert run("export", "-o", out, "--picture", "lab", "--model", name).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["trace"], 2, "Missing argument 'TEXT'"),
        (["trace", "I", "-o", "x.svg"], 2, f"x.svg does not end in any of {', '.join(NUMBERS)}"),
        (["trace", "I", "--model", "nowhere"], 1, "There is no model 'nowhere'"),
        (["export", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "I", "--trace", "x", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "--trace", "nowhere.safetensors", "-o", "x.svg"], 1, "nowhere.safetensors cannot be read"),
        (["export", "I", "-o", "x.gif"], 2, "x.gif does not end in any of .html, .svg, .png, .csv"),
        (["export", "I", "-o", "x.svg", "--head", "0"], 2, "0 is not in the range x>=1"),
        (
            ["export", "I", "-o", "no/such/folder/x.svg"],
            1,
            "x.svg: there is no folder no/such/folder. Create it first.",
        ),
        (["export", "I", "-o", "no/such/folder/x.safetensors"], 1, "there is no folder no/such/folder"),
        (["trace", "", "-o", "x.csv"], 1, "There is no text"),
        (["export", "--trace", "x", "-o", "x.svg", "--model", "en-zh"], 2, "--model makes no difference to --trace"),
        (["export", "--trace", "x", "-o", "x.svg", "--to", "zh"], 2, "--to makes no difference to --trace"),
        (["export", "I", "-o", "x.svg", "--picture", "lab"], 2, "A sentence makes no difference to --picture lab"),
        (["export", "I", "-o", "x.csv", "--theme", "dark"], 2, "--theme makes no difference to .csv"),
        (["export", "I", "-o", "x.svg", "--scale", "2"], 2, "--scale makes no difference to .svg"),
        (["export", "I", "-o", "x.png", "--scale", "0"], 2, "'--scale'"),
        (["sing"], 2, "No such command 'sing'"),
    ],
)
def test_a_usage_error_is_one_sentence_and_an_exit_code(tmp_path, model, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    with_model = not {"--model", "--trace"} & {*arguments} and len(arguments) > 1
    result = run(*arguments, *(model if with_model else []))
    assert result.exit_code == code, result.output
    assert message in result.output
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_line_break_in_a_token_is_escaped_in_the_summary(monkeypatch):
    found = Trace.from_attention(["a\nb"], np.ones((1, 1, 1, 1)))
    monkeypatch.setattr(export, "_traced", lambda *_, **__: found)
    assert run("trace", "a").stdout.splitlines()[0] == "source: aU+000Ab"


@pytest.mark.parametrize("command", ["run", "trace", "export"])
def test_models_that_need_no_network_are_completed(command):
    [option] = [option for option in main.commands[command].params if "--model" in option.opts]
    context = click.Context(main.commands[command])

    def found(begun):
        return [(item.value, item.type) for item in option.shell_complete(context, begun)]

    assert ("en-zh", "plain") in found("")
    assert found("en") == [("en-zh", "plain")]
    assert found("runs/") == [("runs/", "dir")]


def test_a_picture_names_model_and_sentence_but_no_path(tmp_path, model):
    out = tmp_path / "x.svg"
    assert run("export", "I 去", *model, "-o", out, "--picture", "stream").exit_code == 0
    assert "<desc>m: I 去</desc>" in out.read_text(encoding="utf-8")
    assert run("export", *model, "-o", out, "--picture", "waves").exit_code == 0
    assert "<desc>" not in out.read_text(encoding="utf-8")
