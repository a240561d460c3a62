"""The engine that translates in the browser, held against Python's model and tokenizer."""

import base64
import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

import visformer as vf
from benchmarks.messages import decode, read_message
from tests.browser.conftest import serving_files
from tests.browser.engine_page import EnginePage, array_of, as_json, folder_with
from visformer.adapters.checkpoints import folder_of
from visformer.adapters.generating import displayed
from visformer.adapters.recording import available
from visformer.edits import Block, Open, Silence, Zero
from visformer.errors import TextError
from visformer.model.tokenizer import detect_language
from visformer.pictures.map import RECORD
from visformer.trace.names import all_names
from visformer.training import grammar
from visformer.web import engine as host
from visformer.web.map import pack_map
from visformer.web.payload import pack

NEAR = 2e-5  # float32 sums in another order
SENTENCES = (
    "I went to Northeastern University.",
    "我在东北大学学习。",
    "She doesn't like the river, but 3 of her friends do!",
    "龘",
    "  Hello   \U0001f600 world…\n",
)


@pytest.fixture(scope="module")
def model():
    return vf.load("en-zh")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving_files(folder_with(tmp_path_factory.mktemp("engine"))) as address:
        yield address


@pytest.fixture(scope="module")
def page(chromium, site):
    """A page of its own, without messages on the console."""
    context, problems = chromium.new_context(), []
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{site}/index.html")
    yield page
    context.close()
    assert not problems


@pytest.fixture(scope="module")
def engine(page):
    engine = EnginePage(page)
    *progress, ready = engine.load()
    assert ready["kind"] == "ready"
    loaded = [each["loaded"] for each in progress]
    assert loaded == sorted(loaded)
    assert loaded[-1] == progress[0]["size"] == (folder_of("en-zh") / "model.safetensors").stat().st_size
    return engine


def assert_alike(ours, trace):
    """Compare a Trace of the engine with Python's: ids, labels, and each tensor by name, in order."""
    for part in ("tokens", "special", "words"):
        assert ours[part] == {side: list(row) for side, row in getattr(trace, part).items()}, part
    wanted = {name: trace.meta[name] for name in ours["meta"]}
    assert ours["meta"] == wanted
    assert [*ours["tensors"]] == [*trace.tensors]
    for name, value in ours["tensors"].items():
        expected = trace[name].value
        assert value.dtype == expected.dtype, name
        assert value.shape == expected.shape, name
        # Weights and masks to the stated bound; other numbers are larger, and the bound grows with them.
        bound = 0 if name.endswith("mask") else NEAR if name.endswith("pattern") else NEAR * max(1, abs(expected).max())
        assert abs(value.astype(np.float64) - expected).max(initial=0) <= bound, name


@pytest.mark.parametrize("source", SENTENCES)
def test_every_tensor_is_pythons(engine, model, source):
    names = [*all_names(3, 3)]
    ours, confidence = engine.trace(source, record=["*"])
    trace = model.trace(source, record=names)
    assert_alike(ours, trace)
    assert [*ours["tensors"]] == names
    assert confidence == pytest.approx(trace.confidence, rel=1e-4)


@pytest.mark.parametrize(
    ("source", "target"),
    [("I went to school.", "我去了学校。"), ("他喜欢这条河。", "He hates rivers."), ("Thanks!", "谢谢")],
)
def test_a_typed_target_is_read(engine, model, source, target):
    ours, confidence = engine.trace(source, target=target, record=["*.pattern", "logits"])
    assert_alike(ours, model.trace(source, target, record=("*.pattern", "logits")))
    assert confidence is None


EDITS = {
    "heads": [Silence("decoder.1.cross_attn", (0, 3)), Silence("encoder.*", 2, scale=0.5)],
    "a source token that nobody reads": [Block("*.cross_attn", key=2), Block("encoder.*", key=2)],
    "cells": [
        Block("decoder.*.self_attn", head=(1, 4), query=(2, 5), key=0),
        Zero("encoder.0.self_attn", query=1, key=(0, 2)),
    ],
    "a row that reads nothing": [Block("decoder.0.cross_attn", query=1)],
    "a mask without a triangle": [Open("decoder.*.self_attn")],
    "two later tokens": [Open("decoder.0.self_attn", head=0, query=1, key=(2, 4)), Silence("decoder.2.self_attn", 7)],
    "weights that are left out": [Zero("decoder.*.cross_attn", head=5, query=(0, 3))],
}


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("source", SENTENCES[:2])
def test_edits_change_what_they_change_in_python(engine, model, source, edits):
    kept = ("*.mask", "*.pattern", "*.heads", "*.resid_post")
    ours, confidence = engine.trace(source, edits=as_json(edits), record=kept)
    trace = model.trace(source, record=kept, edits=edits)
    assert_alike(ours, trace)
    assert confidence == pytest.approx(trace.confidence, rel=1e-4)


def test_another_token_is_continued_as_in_python(engine, model):
    source, edits = SENTENCES[0], [Silence("decoder.0.cross_attn", 1)]
    first = model.translate(source)
    for step, edited in ((0, ()), (1, ()), (1, edits), (len(first.ids) - 1, ())):
        other = first.steps[step].candidates[1].id
        prefix = [*first.ids[:step], other]
        ((answer,),) = engine.ask(
            {"kind": "translate", "source": source, "how": {"prefix": prefix, "edits": as_json(edited)}}
        )
        ours, expected = answer["decoding"], model.translate(source, prefix=prefix, edits=edited)
        assert ours["ids"] == list(expected.ids)
        assert (ours["text"], ours["tokens"]) == (expected.text, list(expected.tokens))
        assert ours["finished"] == expected.finished
        assert len(ours["steps"]) == len(expected.steps)
        for mine, step_of in zip(ours["steps"], expected.steps, strict=True):
            for each, candidate in zip(
                [*mine["candidates"], mine["chosen"]], [*step_of.candidates, step_of.chosen], strict=True
            ):
                assert (each["id"], each["token"]) == (candidate.id, candidate.token)
                assert each["probability"] == pytest.approx(candidate.probability, rel=1e-4)


def test_what_never_ends_is_cut_off_where_python_cuts_it_off(engine, model):
    edits = [Silence("*", tuple(range(8)), scale=-1.0)]
    ours, _ = engine.trace("Hi.", edits=as_json(edits))
    trace = model.trace("Hi.", edits=edits)
    assert_alike(ours, trace)
    assert len(trace.tokens["next"]) == 2 * len(trace.tokens["src"]) + 20, "it is no longer cut off"
    ((answer,),) = engine.ask({"kind": "translate", "source": "Hi.", "how": {"edits": as_json(edits)}})
    assert not answer["decoding"]["finished"]


def test_the_messages_that_views_draw_come_with_the_trace(engine, model):
    """Their bytes are compared in tests/js/test_engine_messages.py; here they are made of the engine's own numbers."""
    record = available((*all_names(3, 3),), RECORD)
    first, source = model.trace("Thanks!", record=record), SENTENCES[1]
    templates = {"attention": pack(first), "map": pack_map(first)}
    draw = {kind: {"template": read_message(message)[0]} for kind, message in templates.items()}
    draw["map"]["said"] = host.map_texts()
    message = {"kind": "trace", "source": source, "how": {"record": list(record)}, "draw": draw}
    ((answer, _),) = engine.ask(message)
    trace = model.trace(source, record=record)
    for kind, expected in {"attention": pack(trace), "map": pack_map(trace)}.items():
        ours, (header, numbers) = answer["messages"][kind], read_message(expected)
        assert len(base64.b64decode(ours["numbers"])) == len(numbers)
        assert ours.keys() - {"numbers"} == header.keys()
        for name in ("tokens", "special", "words", "text", "sentence", "chunks", "joined", "asks", "forced"):
            assert ours.get(name) == header.get(name), name
        codes = np.frombuffer(base64.b64decode(ours["numbers"])[ours["chunks"][0]["at"] :], np.uint16)
        wanted = np.frombuffer(numbers[header["chunks"][0]["at"] :], np.uint16)
        assert abs(decode(codes[:2000]) - decode(wanted[:2000])).max() < 1e-4
        for mine, step in zip(ours.get("steps", ()), header.get("steps", ()), strict=True):
            assert (mine["tokens"], mine["chosen"]) == (step["tokens"], step["chosen"])
            assert mine["probabilities"] == pytest.approx(step["probabilities"], rel=2e-3)


def sentences(n):
    """Draw sentences of the grammar, held out from training too, and their translations, in turn."""
    drawn = [s for held in (False, True) for s in grammar.sample(grammar.load(), n // 2, seed=11, held_out=held)]
    return [sentence.en if i % 2 else sentence.zh for i, sentence in enumerate(drawn)]


@pytest.mark.parametrize("n", [40, pytest.param(500, marks=pytest.mark.full)])
def test_the_same_tokens(engine, model, n):
    texts = sentences(n)
    ours = engine.page.evaluate(
        """async (texts) => {
          const all = []
          for (const source of texts) all.push(await engine.ask([{ kind: "translate", source }]))
          return all.map(([[{ decoding }]]) => decoding.text)
        }""",
        texts,
    )
    assert ours == [decoding.text for decoding in model.translate_many(texts)]


@pytest.mark.parametrize(
    ("source", "how", "expected"),
    [
        ("", {}, ("blank", {})),
        (" \u3000\x1c\n", {}, ("blank", {})),
        ("Hi.", {"target": " "}, ("blank", {})),
        ("a" * 1001, {}, ("characters", {"given": 1001, "limit": 1000})),
        ("😀" * 1001, {}, ("characters", {"given": 1001, "limit": 1000})),
        ("1" * 256, {}, ("tokens", {"given": 257, "limit": 256})),
        ("Hi.", {"target": "1" * 256}, ("tokens", {"given": 257, "limit": 256})),
        ("Hi.", {"to": "fr"}, ("language", {"to": "fr"})),
        (
            "Hi.",
            {"edits": as_json([Block("encoder.0.self_attn", key=3)])},
            ("cell", {"name": "encoder.0.self_attn.mask", "axis": "key", "size": 3, "index": 3}),
        ),
        (
            "Hi.",
            {"edits": as_json([Silence("encoder.0.self_attn", 8)])},
            ("cell", {"name": "encoder.0.self_attn.heads", "axis": "head", "size": 8, "index": 8}),
        ),
    ],
)
def test_what_python_refuses_is_a_code_with_values(engine, source, how, expected):
    assert engine.error("trace", source, **how) == expected


@pytest.mark.parametrize(
    "edit", [{"edit": "Silence", "where": "encoder.9.*", "head": 0}, {"edit": "toString", "where": "*"}]
)
def test_an_edit_that_reaches_nothing_is_refused(engine, edit):
    assert engine.error("trace", "Hi.", edits=[edit])[0] == "edit"


def test_half_a_character_is_refused_where_python_refuses_it(engine, model):
    with pytest.raises(TextError) as refused:
        model.tokenize("😀 \ud83d!")
    answers = engine.page.evaluate("engine.ask([{ kind: 'trace', source: '\\ud83d\\ude00 \\ud83d!' }])")
    assert answers[0][0]["code"] == "surrogate"
    assert answers[0][0]["values"] == refused.value.params


# The tokenizer --------------------------------------------------------------------------------------------------------

UNICODE = st.text(
    st.characters(exclude_categories=("Cs", "Cn")), max_size=12
)  # what Python's Unicode has characters for
NEAR_TEXT = st.text(st.sampled_from("aI'mst dé東北大学々，。 　１1²_-!\t\n\x85\u200b\ufeff龘😀é́ﷺ"), max_size=16)


def drawn(strategy, n):
    """Return examples of a strategy, which a test that goes to the browser and back once needs at once."""
    found = []

    @settings(max_examples=n, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(text):
        found.append(text)

    collect()
    return found


def test_the_tokenizer_is_pythons(page, model):
    tokenizer = model.tokenizer
    texts = [*SENTENCES, *drawn(UNICODE, 200), *drawn(NEAR_TEXT, 300)]
    ours = page.evaluate(
        """async (texts) => {
          const { Tokenizer, detectLanguage } = await import("./tokenizer.js")
          const tokenizer = new Tokenizer(await (await fetch("tokenizer.json")).text())
          return texts.map((text) => {
            const ids = tokenizer.encode(text)
            const [shown] = tokenizer.displayed([ids])
            const decoded = [tokenizer.decode(ids), tokenizer.decode(ids.slice(1))]
            return [ids, shown, tokenizer.words(ids), ...decoded, detectLanguage(text)]
          })
        }""",
        texts,
    )
    for text, found in zip(texts, ours, strict=True):
        ids = tokenizer.encode(text)
        shown = displayed(tokenizer, [ids])[0]
        again = tokenizer.decode(ids), tokenizer.decode(ids[1:])
        assert found == [ids, list(shown), list(tokenizer.words(ids)), *again, detect_language(text)], repr(text)


# The files ------------------------------------------------------------------------------------------------------------


def test_the_digest_is_sha_256(page):
    lengths = [0, 1, 55, 56, 63, 64, 65, 1000]
    ours = page.evaluate(
        """async (lengths) => {
          const { sha256 } = await import("./weights.js")
          return lengths.map((n) => sha256(Uint8Array.from({ length: n }, (_, i) => i)))
        }""",
        lengths,
    )
    assert ours == [hashlib.sha256(bytes(i % 256 for i in range(n))).hexdigest() for n in lengths]


def test_every_float16_is_the_float32_of_its_value(page):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    answer = page.evaluate(
        """async (file) => {
          const { readSafetensors } = await import("./weights.js")
          const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0))
          return spelled(readSafetensors(bytes.buffer).tensors.get("all"))
        }""",
        base64.b64encode(save({"all": halves})).decode(),
    )
    ours, expected = array_of(answer), halves.astype(np.float32)
    isnan = np.isnan(expected)
    assert np.array_equal(np.isnan(ours), isnan)
    assert np.array_equal(ours[~isnan].view(np.uint32), expected[~isnan].view(np.uint32)), "also the sign of 0"


EMPTY = (2).to_bytes(8, "little") + b"{}"
LOST = {
    "a flipped bit": ("weights", lambda file: file[:-1] + bytes([file[-1] ^ 1])),
    "a file that ends early": ("weights", lambda file: file[:-1]),
    "a file that goes on": ("weights", lambda file: file + b"!"),
    "another vocabulary": ("tokenizer", lambda file: file.replace(b"the", b"eht")),
}
SEALED = {
    "a page in its place": ("weights", b"<!doctype html>", "broken"),
    "a length beyond the end": ("weights", (2**40).to_bytes(8, "little") + b"{}", "broken"),
    "a tensor beyond the end": ("weights", save({"w": np.zeros(8, np.float16)})[:-2], "broken"),
    "no configuration": ("weights", EMPTY, "unsupported"),
    "no vocabulary": ("tokenizer", b"{}", "tokenizer"),
}


@pytest.fixture
def loading(chromium, tmp_path):
    """Load the engine from a folder in which files are replaced, and return the last answer."""
    context = chromium.new_context()

    def load(message, **files):
        with serving_files(folder_with(tmp_path, **files)) as address:
            page = context.new_page()
            page.goto(f"{address}/index.html")
            (answers,) = EnginePage(page).ask(message)
            return answers[-1]

    yield load
    context.close()


@pytest.mark.parametrize("fault", LOST)
def test_a_file_that_is_not_the_one_meant_is_refused(loading, fault):
    key, change = LOST[fault]
    folder = folder_of("en-zh")
    answer = loading(host.load_message(folder), **{key: change((folder / host.FILES[key]).read_bytes())})
    assert (answer["kind"], answer["code"]) == ("error", "digest")


@pytest.mark.parametrize("fault", SEALED)
def test_a_file_that_is_no_model_is_refused(loading, fault):
    key, content, code = SEALED[fault]
    message = host.load_message(folder_of("en-zh"))
    message[key] |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    answer = loading(message, **{key: content})
    assert (answer["kind"], answer["code"]) == ("error", code)


@pytest.mark.parametrize("address", ["none.safetensors", "http://127.0.0.1:9/model.safetensors"])
def test_a_file_that_cannot_be_had_is_refused(loading, address):
    message = host.load_message(folder_of("en-zh"))
    message["weights"]["url"] = address
    answer = loading(message)
    assert (answer["kind"], answer["code"], answer["values"]["url"]) == ("error", "network", address)


def test_bytes_may_come_with_the_message_and_only_the_last_of_several_traces_is_computed(page, engine):
    """A page that is one file has no address to fetch from. Here the engine runs in the page: all is asked at once."""
    answers = page.evaluate(
        """async (message) => {
          for (const file of [message.weights, message.tokenizer]) {
            file.bytes = await (await fetch(file.url)).arrayBuffer()
            delete file.url
          }
          const { serve } = await import("./serve.js")
          return new Promise((resume) => {
            const heard = []
            const postMessage = ({ kind, id }) => { heard.push([kind, id]); if (kind === "decoding") resume(heard) }
            const scope = { postMessage }
            serve(scope)
            scope.onmessage({ data: { ...message, id: 0 } })
            const how = { target: "好" }
            for (const id of [1, 2, 3]) scope.onmessage({ data: { kind: "trace", source: "One.", how, id } })
            scope.onmessage({ data: { kind: "translate", source: "One.", id: 4 } })
          })
        }""",
        host.load_message(folder_of("en-zh")),
    )
    assert answers == [["ready", 0], ["overtaken", 1], ["overtaken", 2], ["trace", 3], ["decoding", 4]]


def test_a_question_before_the_model_is_there_is_answered(loading):
    assert loading({"kind": "trace", "source": "Hi."})["code"] == "unloaded"
