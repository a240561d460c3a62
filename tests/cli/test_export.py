"""visformer trace and visformer export: the content of the files, and error messages."""

import cProfile
import csv
import inspect
import io
import json
import re
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import click
import numpy as np
import pytest
from click.testing import CliRunner

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.support import end_at_once
from tests.web.test_page import messages
from visformer import pictures
from visformer.adapters.learning.tasks import TASKS
from visformer.analysis import effect_sentences
from visformer.cli import main
from visformer.export.formats import FORMATS
from visformer.pictures import charts, heads
from visformer.pictures.lab import examples
from visformer.pictures.registry import picture as registry
from visformer.pictures.registry.setting import Setting
from visformer.pictures.worked import compute
from visformer.trace import Trace

REGISTERED = registry.pictures()
NUMBERS = [one.ending for one in FORMATS if one.content == "numbers"]


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def assert_error(result, code, message):
    assert (result.exit_code, message in result.output) == (code, True), result.output


def test_a_trace_is_summarized_and_saved(tmp_path, model):
    out = tmp_path / "t.safetensors"
    result = run("trace", "I went to school.", "--target", "我去学校。", *model, "-o", out, "--json")
    assert result.exit_code == 0, result.output
    summary, saved = json.loads(result.stdout), Trace.load(out)
    assert summary["tokens"]["tgt"] == list(saved.tokens["tgt"])
    assert summary["meta"]["target"] == "我去学校。"
    assert summary["tensors"] == {name: list(saved[name].shape) for name in saved}
    assert "confidence" not in run("trace", "I went to school.", "--target", "我去学校。", *model).output
    text = run("trace", "I went to school.", *model, "--record", "*.scores").output
    assert f"\nconfidence: {vf.load(model[1]).translate('I went to school.').confidence:.0%}\n" in text
    assert "encoder.0.self_attn.scores  (2, " in text
    assert "pattern" not in text


def test_an_empty_translation_is_said_to_be_empty(model, monkeypatch):
    end_at_once(monkeypatch)
    assert "\ntranslation: (empty: the model ends the sentence at once)\n" in run("trace", "I", *model).output
    assert "(empty" not in run("trace", "I", "--target", "我", *model).output


def test_every_format_is_the_same_from_a_sentence_and_from_a_saved_trace(tmp_path, model):
    saved = tmp_path / "t.safetensors"
    assert run("trace", "I 去", "--target", "我", *model, "-o", saved).exit_code == 0
    for ending in (one.ending for one in FORMATS):
        outs = [tmp_path / f"{number}{ending}" for number in (0, 1)]
        for out, source in zip(outs, (("I 去", "--target", "我", *model), ("--trace", saved)), strict=True):
            result = run("export", *source, "-o", out)
            assert result.exit_code == 0, result.output
        if ending not in (".html", ".safetensors"):  # a page holds the id of its message, a file the model's path
            assert outs[0].read_bytes() == outs[1].read_bytes()
    trace = Trace.load(saved)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "1.csv").read_text(encoding="utf-8-sig"))))
    assert len(rows) == sum(trace[name].value.size for name in trace)
    assert Trace.load(tmp_path / "1.safetensors").tokens == trace.tokens


def test_layers_and_heads_count_from_1_as_on_screen(tmp_path, model):
    out = tmp_path / "head.svg"
    place = ("--stack", "decoder.cross_attn", "--layer", 3, "--head", 2)
    assert run("export", "I", *model, "-o", out, *place, "--lang", "zh").exit_code == 0
    assert "第 3 层" in out.read_text(encoding="utf-8")


UNREAD = {
    "all-heads": {"head"},  # not declared: it reads stack, layer and head together
    "methods": {"of", "answer"},
    "patching": {"of"},
    "lens": {"row"},
}
"""Options that a picture does not read here: those of an answer only with one, or by a method that runs the model."""

TRAINED = {
    "patching": "en-zh",
    "parts": "mini-gpt",
    **dict.fromkeys(("compare-models", "compare-moments", "history"), "mini-gpt"),
    **dict.fromkeys(("picture-words", "picture-heads", "picture-patches", "picture-block"), "mini-caption"),
}
"""Pictures that an untrained post-norm model does not have: there are no pairs for it, no path adds linearly, and it
has no second training, no other moment, and no picture."""


@pytest.fixture(autouse=True)
def _little_work(monkeypatch):
    """Measure heads on four sentences of the bundled list, and train for ten steps: nobody reads the numbers here."""
    monkeypatch.setattr(heads, "effect_sentences", lambda name: effect_sentences(name)[:4])
    monkeypatch.setitem(TASKS, "repeat", replace(TASKS["repeat"], steps=10))


DRAWN = re.compile(r"Panel|Figure")
UNNAMED = {
    "atlas.by_position": "another chart of 'atlas-head'",
    "atlas.over_texts": "another chart of 'atlas-head'",
    "masks.editable": "a mask to click; unedited, it is in 'mask'",
    "masks.next_tokens": "compares with an edit, which needs a page or Python",
    "head.factors": "heads to click, all with the factor 1 by default",
    "panels.attention_head": "the heatmap of a head: export without --picture",
    "panels.attention_heads": "the heatmaps of all heads: export without --picture",
    "panels.matrix": "any panel as a heatmap of plotly",
    "guesses.guess_bars": "what a room guessed, which only a room has",
}
"""Functions that draw but belong to no registered picture, and why."""


def modules_of(package):
    return [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]


class Watched(Setting):
    """A setting that notes which options are read."""

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


@pytest.mark.full
def test_every_picture_is_exported_reads_exactly_its_options_and_owns_what_draws_it(tmp_path, model, monkeypatch):
    functions = {}
    for module in (*modules_of(pictures), *modules_of(charts)):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            returns = str(function.__annotations__.get("return"))
            if not name.startswith("_") and function.__module__ == module.__name__ and DRAWN.search(returns):
                functions[function.__code__] = f"{module.__name__.rpartition('.')[2]}.{name}"
    assert len(functions) > 30
    called, options_read = set(), {}

    def watched(picture):
        def draw(setting):
            setting = Watched(setting.source, picture.needs, setting)
            setting.read = options_read[picture.name] = set()
            profile = cProfile.Profile()
            try:
                return profile.runcall(picture.draw, setting)
            finally:
                called.update(entry.code for entry in profile.getstats())

        return replace(picture, draw=draw)

    watched_pictures = {name: watched(picture) for name, picture in REGISTERED.items()}
    monkeypatch.setattr(registry, "pictures", lambda: watched_pictures)
    for name, picture in REGISTERED.items():
        out = tmp_path / f"{name}.{'html' if picture.live else 'svg'}"
        stack = ("--stack", "decoder.self_attn") if "stack" in picture.names else ()
        sentence = (
            () if picture.alone else ("a red circle in the middle" if TRAINED.get(name) == "mini-caption" else "I 去",)
        )
        used = ("--model", TRAINED[name]) if name in TRAINED else model
        result = run("export", *sentence, *used, "-o", out, "--picture", name, *stack, "--lang", "zh")
        assert result.exit_code == 0, (name, result.output, result.exception)
        assert out.stat().st_size > 150, name
        assert options_read[name] ^ {*picture.names} == UNREAD.get(name, set()), name
    assert {name for code, name in functions.items() if code not in called} == UNNAMED.keys()


def test_a_worked_example_is_exported_by_its_name(tmp_path):
    """It needs neither a sentence nor a model; sample and head are selected as on the page."""
    out, first = tmp_path / "x.json", ((), {"sample": 0, "head": 0})
    another = ("--sample", 2, "--head", 3), {"sample": 1, "head": 2}
    for example in examples().values():
        for options, at in (first, another) if example.name == "shapes" else (first,):
            result = run("export", "-o", out, "--picture", "lab", "--example", example.name, *options)
            if example.instead:  # the shapes do not fit: there is no picture, as on the page
                assert_error(result, 1, "the product needs as many columns")
                continue
            assert result.exit_code == 0, result.output
            if example.curves is not None:  # drawn as a figure
                assert json.loads(out.read_text("utf-8"))["title"] == example.title
                continue
            found = {panel["name"]: panel["values"] for panel in json.loads(out.read_text("utf-8"))["panels"]}
            for name, values in compute(example, example.inputs).items():
                assert np.array_equal(found[name], values[example.place(name, at)]), (example.name, name)


def test_pictures_of_decoding_end_with_the_selected_step(tmp_path, model):
    out = tmp_path / "x.json"
    for picture in ("growing", "mask-steps"):
        for options in (("--step", 2), ()):
            command = ("export", "I", "--target", "我去。", *model, "-o", out, "--picture", picture, *options)
            assert run(*command).exit_code == 0
            [panel] = json.loads(out.read_text("utf-8"))["panels"]
            has_values = [row[0] is not None for row in panel["values"]]
            assert len(has_values) > 2
            assert has_values == [at < 2 or not options for at in range(len(has_values))]


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
    assert_error(run("export", "I", "-o", tmp_path / "x.svg", *arguments), 2, message)


def test_the_whole_model_is_a_page_with_the_head_in_focus_and_the_names_of_candidates(tmp_path, model):
    place = ("--stack", "decoder.cross_attn", "--layer", 2, "--head", 1)
    out = tmp_path / "map.html"
    result = run("export", "I 去", *model, "-o", out, "--picture", "map", *place, "--lang", "zh")
    assert result.exit_code == 0, result.output
    header, _ = read_message(messages(out.read_text(encoding="utf-8"))["model"])
    assert header["focus"] == {"stack": "decoder.cross_attn", "layer": 1, "head": 0}
    assert header["text"]["lang"] == "zh"
    assert all(step["tokens"] for step in header["steps"])
    wrong = run("export", "I 去", *model, "-o", out, "--picture", "map", "--layer", 9)
    assert_error(wrong, 2, "--layer: 9: there are 1")


def test_many_sentences_with_the_whole_model_are_pages(tmp_path, model):
    arguments = ["export", "-", *map(str, model), "-o", str(tmp_path / "maps"), "--picture", "map"]
    assert CliRunner().invoke(main, arguments, input="I\n去\n").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == ["1.html", "2.html"]


def test_a_saved_trace_has_the_pictures_whose_tensors_it_holds(tmp_path, model):
    saved, out = tmp_path / "t.safetensors", tmp_path / "x.svg"
    assert run("trace", "I 去", *model, "--record", "*.resid_*", "--record", "*.norm_*", "-o", saved).exit_code == 0
    assert run("export", "--trace", saved, "-o", out, "--picture", "similarity").exit_code == 0
    decoded = run("export", "--trace", saved, "-o", out, "--picture", "beams")
    assert_error(decoded, 1, "give a sentence, not a saved trace")
    missing = run("export", "--trace", saved, "-o", out, "--picture", "mask")
    assert_error(missing, 1, "No 'decoder.0.self_attn.scores' in this trace")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("I", "--picture", "candidates", "--step", 999), "--step: 999: there are "),
        (
            ("I", "--stack", "decoder.cross_attn", "--layer", 4, "--head", 1),
            "--layer: 4: there are 1–3, counted from 1.",
        ),
        (("I", "--picture", "mask", "--head", 999), "--head: 999: there are 1–2, counted from 1."),
        (("I", "--layer", 1, "--head", 1, "--view", "tokens", "--query", 99), "--query: 99: there are "),
        (("--picture", "lab", "--example", "mended", "--head", 2), "--head: 2: there are 1, counted from 1."),
        (("--picture", "position-circle", "--i", 8), "--i: 8: there are 0–7, counted from 0."),
    ],
)
def test_a_place_out_of_range_is_refused(tmp_path, model, arguments, message):
    assert_error(run("export", *model, "-o", tmp_path / "x.svg", *arguments), 2, f"Invalid value for {message}")


@pytest.mark.parametrize(
    ("family", "has", "lacks"),
    [("bert", "encoder.self_attn", "decoder.self_attn"), ("gpt2", "decoder.self_attn", "encoder.self_attn")],
)
def test_pictures_of_a_model_from_transformers_default_to_a_stack_that_it_has(tmp_path, family, has, lacks):
    wrapped = vf.wrap(tiny_module(family), tokenizer())
    refused = {*TRAINED, *({"weight-effects", "shuffle-effects"} if family == "bert" else ())}
    drawn = [one for name, one in REGISTERED.items() if "stack" in one.names and name not in refused and not one.alone]
    assert {"similarity", "embedding", "stream", "mask", "query", "all-heads"} <= {one.name for one in drawn}
    for one in drawn:
        source = vf.figures.source_of(wrapped, "the cat")
        assert one.setting(source, {})["stack"] == has
        assert one.make(source), one.name
    folder, saved, out = tmp_path / "model", tmp_path / "t.safetensors", tmp_path / "x.svg"
    wrapped.module.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    options = ("--model", folder, "-o", out, "--picture")
    assert run("export", "the cat", *options, "mask", "--stack", has).exit_code == 0
    wrong = run("export", "the cat", *options, "mask", "--stack", lacks)
    assert_error(wrong, 2, f"--stack: {lacks}: the model has no such attention, only {has}.")
    growing = run("export", "the cat", *options, "growing")
    assert (growing.exit_code, "is an encoder" in growing.output) == ((1, True) if family == "bert" else (0, False))
    assert run("trace", "the cat", "--model", folder, "-o", saved).exit_code == 0
    assert set(Trace.load(saved).tokens) == ({"src"} if family == "bert" else {"tgt", "next"})
    assert run("export", "--trace", saved, "-o", out, "--stack", has, "--layer", 1, "--head", 1).exit_code == 0
    wrong = run("export", "--trace", saved, "-o", out, "--stack", "decoder.cross_attn")
    assert_error(wrong, 1, f"stack='decoder.cross_attn' is unknown: choose one of {has}")


@pytest.mark.parametrize(
    ("encoding", "notes"), [("", []), ("-learned", ["This model: a learned vector for each position"])]
)
def test_a_picture_of_the_papers_positional_encoding_notes_that_the_model_has_another(tmp_path, encoding, notes):
    name, out = f"untrained-16x2-enc1-dec1-ff16{encoding}", tmp_path / "p.svg"
    kinds = {"positions", "position-similarity", "position-circle", "waves"}
    assert kinds <= {one.name for one in REGISTERED.values() if one.formula}
    result = run("export", "-o", out, "--picture", "waves", "--model", name)
    assert result.exit_code == 0, result.output
    assert [line.partition(" is added")[0] for line in result.stderr.splitlines()] == notes
    saved = tmp_path / "t.safetensors"
    assert run("trace", "I", "--target", "我", "--model", name, "-o", saved).exit_code == 0
    assert run("export", "--trace", saved, "-o", out, "--picture", "waves").stderr == result.stderr
    assert run("export", "-o", out, "--picture", "lab", "--model", name).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["trace"], 2, "Missing argument 'TEXT'"),
        (["trace", "I", "-o", "x.svg"], 2, f"x.svg does not end in any of {', '.join(NUMBERS)}"),
        (["trace", "I", "--model", "./nowhere"], 1, "There is no model './nowhere'"),
        (["export", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "I", "--trace", "x", "-o", "x.svg"], 2, "Give either a sentence or --trace FILE."),
        (["export", "--trace", "nowhere.safetensors", "-o", "x.svg"], 1, "nowhere.safetensors cannot be read"),
        (["export", "I", "-o", "x.gif"], 2, "x.gif does not end in any of .png, .svg, .pdf, .html, .csv"),
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
        (["export", "I", "-o", "x.svg", "--picture", "map"], 2, "--picture map is drawn by a browser: -o x.html"),
        (["export", "I", "-o", "x.html", "--picture", "map", "--query", "1"], 2, "It takes --stack, --layer, --head."),
        (["sing"], 2, "No such command 'sing'"),
    ],
)
def test_a_usage_error_has_a_message_and_an_exit_code(tmp_path, model, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    with_model = not {"--model", "--trace"} & {*arguments} and len(arguments) > 1
    result = run(*arguments, *(model if with_model else []))
    assert_error(result, code, message)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_line_break_in_a_token_is_escaped_in_the_summary(monkeypatch):
    trace = Trace.from_attention(["a\nb"], np.ones((1, 1, 1, 1)))
    monkeypatch.setattr(vf.adapters.own.Translator, "trace", lambda *_, **__: trace)
    assert run("trace", "a").stdout.splitlines()[0] == "source: aU+000Ab"


@pytest.mark.parametrize("command", ["run", "trace", "export"])
def test_the_shell_completes_models_that_need_no_network(command):
    [option] = [option for option in main.commands[command].params if "--model" in option.opts]
    context = click.Context(main.commands[command])

    def completed(start):
        return [(item.value, item.type) for item in option.shell_complete(context, start)]

    assert ("en-zh", "plain") in completed("")
    assert completed("en") == [("en-zh", "plain")]
    assert completed("runs/") == [("runs/", "dir")]


def test_the_description_of_a_picture_has_model_and_sentence_but_no_path(tmp_path, model):
    out = tmp_path / "x.svg"
    assert run("export", "I 去", *model, "-o", out, "--picture", "stream").exit_code == 0
    assert "<desc>m: I 去</desc>" in out.read_text(encoding="utf-8")
    assert run("export", *model, "-o", out, "--picture", "waves").exit_code == 0
    assert "<desc>" not in out.read_text(encoding="utf-8")
