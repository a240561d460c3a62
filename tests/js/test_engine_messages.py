"""The engine's messages: made of Python's tensors by a template of another sentence, they are Python's messages."""

import base64

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message
from visformer.edits import Block
from visformer.pictures.embedding import sums
from visformer.pictures.head import Place
from visformer.pictures.map import RECORD
from visformer.pictures.style import visible
from visformer.web import codes, places
from visformer.web.map import pack_map, pack_place
from visformer.web.panels import pack_panels
from visformer.web.payload import HeadNotes, pack
from visformer.web.places import Zoom

TEMPLATE = "Thanks!"
OF_MAP = tuple(glob for glob in RECORD if glob != "*.map")
SENTENCES = {
    "a translation": "I went to Northeastern University.",
    "the other direction": "我在东北大学学习，她也喜欢那条河。",
    "tokens that recur, marks, bytes, a space": "no, no, no: the the 龘 \U0001f600  \t!",
    "one token": "!",
}
NOTES = HeadNotes(
    effects=(("encoder.self_attn", 1, 2, 0.123),), labels=(("decoder.cross_attn", 0, 3, "aligns", 0.5, "why"),)
)

READ = """
  const arrays = { float32: Float32Array, bool: Uint8Array }
  const read = ({ shape, dtype, base64 }) => {
    const bytes = Uint8Array.from(Buffer.from(base64, "base64"))
    return { shape, values: new arrays[dtype](bytes.buffer) }
  }
  const tensors = Object.fromEntries(Object.entries(args.trace.tensors).map(([name, tensor]) => [name, read(tensor)]))
  const trace = { ...args.trace, tensors }
"""
WRITE = "return { header, numbers: Buffer.from(numbers).toString('base64') }"


@pytest.fixture(scope="module")
def model():
    return vf.load("en-zh")


def as_json(trace):
    """Return a Trace as the engine has it, its arrays as base64."""
    tensors = {
        name: {"shape": each.shape, "dtype": each.value.dtype.name, "base64": encoded(each.value)}
        for name, each in trace.tensors.items()
    }
    sides = {
        part: {side: list(row) for side, row in getattr(trace, part).items()} for part in ("tokens", "special", "words")
    }
    meta = {
        name: trace.meta[name]
        for name in ("model", "source", "target", "forced", "ids", "likeliest")
        if name in trace.meta
    }
    return {**sides, "tensors": tensors, "meta": meta}


def encoded(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def made(node, function, template, trace, *more):
    """Return header and numbers of a message of the engine."""
    header, _ = read_message(template)
    call = f"const {{ numbers, ...header }} = m.{function}(args.template, trace, 'r', ...args.more)"
    args = {"template": header, "trace": as_json(trace), "more": more}
    answer = node.run("engine/messages.js", READ + call + "\n" + WRITE, args)
    return answer["header"], base64.b64decode(answer["numbers"])


def assert_same(ours, message):
    """Compare with Python's message; scores, float32 sums there, to three digits."""
    (header, numbers), (expected, wanted) = ours, read_message(message)
    for one in (header, expected):
        for name in ("revision", "trace"):
            del one[name]
    for stack, other in zip(header["stacks"], expected["stacks"], strict=True):
        assert stack["values"].keys() == other["values"].keys()
        for name, rows in stack.pop("values").items():
            values, others = (np.array(table, dtype=float) for table in (rows, other["values"][name]))
            assert np.allclose(values, others, rtol=1e-3, atol=1e-6, equal_nan=True), name
        del other["values"]
    assert header == expected
    assert numbers == wanted


@pytest.mark.parametrize("source", SENTENCES.values(), ids=SENTENCES)
def test_the_explorers_message(node, model, source):
    how = {"notes": NOTES, "file": "en-zh", "start": {"view": "arcs"}, "gettext": str.upper, "lang": "zh"}
    trace = model.trace(source)
    ours = made(node, "attentionMessage", pack(model.trace(TEMPLATE), **how), trace)
    assert_same(ours, pack(trace, **how))


@pytest.mark.parametrize("source", SENTENCES.values(), ids=SENTENCES)
def test_the_whole_models_message(node, model, source):
    trace = model.trace(source, record=OF_MAP)
    expected = pack_map(trace)
    header, _ = read_message(expected)
    said = {name: header[name] for name in ("asks", "joined")}
    ours = made(node, "mapMessage", pack_map(model.trace(TEMPLATE, record=OF_MAP)), trace, said)
    assert_same(ours, expected)


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("source", SENTENCES.values(), ids=SENTENCES)
def test_the_message_of_what_enters_the_first_layer(node, model, source, side):
    record = (f"{side}.embed", f"{side}.position", f"{side}.input")
    first, trace = (model.trace(text, record=record) for text in (TEMPLATE, source))
    header, numbers = made(node, "embeddingMessage", pack_panels(sums(first, side)), trace, side)
    expected, wanted = read_message(pack_panels(sums(trace, side)))
    assert {**header, "revision": expected["revision"]} == expected
    assert numbers == wanted


MASKED = {
    "one": "The mask sets this score to −∞.",
    "none": "No key is masked for this query.",
    "others": "This key is not masked, others are.",
}


@pytest.mark.parametrize(
    "zoom",
    [
        "decoder.2.cross_attn.3.1.2",
        "decoder.1.self_attn.8.3.2",
        "decoder.1.self_attn.1.2.4",
        "encoder.3.self_attn.5.6.1",
    ],
)
@pytest.mark.parametrize("source", ["I went to school with my friends, and then to the river.", "Hi, I am here."])
def test_the_sum_behind_a_cell(node, model, source, zoom):
    place = Zoom.read(zoom)
    record = [glob.format(path=place.path) for glob in places.RECORD if not glob.endswith(("bias", "sink"))]
    trace = model.trace(source, record=record)
    cell = places.cell(trace, Place(place.path, place.head, place.query), place.key)
    header, numbers = placed(node, zoom, trace)
    expected, _ = read_message(pack_place(zoom, cell=cell))
    del expected["revision"]
    assert header == expected
    assert not numbers


@pytest.mark.parametrize("zoom", ["encoder.1.ffn", "decoder.3.ffn"])
def test_the_inside_of_a_network(node, model, zoom):
    place = Zoom.read(zoom)
    names = [f"{place.path}.hidden", f"{place.path}.out", f"{place.stack}.{place.layer}.resid_*"]
    trace = model.trace("I went to the river. " * 12, "我去了河边。" * 28, record=names)
    header, numbers = placed(node, zoom, trace)
    expected, wanted = read_message(pack_place(zoom, inside=places.inside(trace, place, "post")))
    del expected["revision"]
    assert header == expected
    assert numbers == wanted
    if place.stack == "decoder":
        assert len(trace.tokens["tgt"]) > header["inside"]["rows"]["hidden"]["shape"][0], "all fits in"


def placed(node, zoom, trace):
    body = READ + "const { numbers, ...header } = m.placeMessage(args.zoom, trace, args.masked)\n" + WRITE
    answer = node.run("engine/messages.js", body, {"zoom": zoom, "trace": as_json(trace), "masked": MASKED})
    return answer["header"], base64.b64decode(answer["numbers"])


def test_rows_that_read_nothing(node, model):
    edits = [Block("decoder.*.cross_attn", query=1), Block("encoder.*", head=2)]
    trace = model.trace(SENTENCES["a translation"], edits=edits)
    assert_same(made(node, "attentionMessage", pack(model.trace(TEMPLATE)), trace), pack(trace))


def test_a_long_text_has_all_weights_at_once_and_thumbnails_of_pythons_size(node, model):
    trace = model.trace("I went to the river. " * 12, "我去了河边。" * 15)
    template, expected = pack(model.trace(TEMPLATE)), pack(trace)
    (header, numbers), (other, wanted) = made(node, "attentionMessage", template, trace), read_message(expected)
    assert len(other["chunks"]) < len(header["chunks"]), "Python sends these in two messages"
    end = header["chunks"][0]["at"]
    assert [stack["thumb"] for stack in header["stacks"]] == [stack["thumb"] for stack in other["stacks"]]
    assert numbers[:end] == wanted[:end], "the thumbnails"
    for chunk in header["chunks"]:
        part, kind = chunk["stack"].split(".")
        weights = trace[f"{part}.{chunk['layer']}.{kind}.pattern"].value
        codes_of = codes.encode(weights).tobytes()
        assert numbers[chunk["at"] : chunk["at"] + len(codes_of)] == codes_of


def test_codes_are_pythons(node):
    rng = np.random.default_rng(0)
    edges = np.array([10.0**power for power in range(-40, 1)], dtype=np.float32)
    near = np.concatenate([np.nextafter(edges, np.float32(side)) for side in (0, 2)])
    ties = np.arange(1, 2000, 2, dtype=np.float32) / 2**11  # five digits that end in 5
    drawn = 10 ** rng.uniform(-12, 0, 5000).astype(np.float32)
    weights = np.clip(np.concatenate([[0, 1, -1e-9], edges, near, ties, drawn]), -1, 1).astype(np.float32)
    body = "return [...m.encode(Float32Array.from(args))]"
    assert node.run("engine/messages.js", body, weights.astype(float).tolist()) == codes.encode(weights).tolist()


def test_visible_is_pythons(node):
    tokens = [
        "",
        " ",
        "  ",
        "a b",
        "\t",
        "\u200b",
        "a\u200bb",
        "\u200d\u200b",
        "e\u0301",
        "\u0301",
        "\u202ea",
        "\x00x",
        "\U000e0001",
        "龘₁",
    ]
    assert node.run("engine/messages.js", "return args.map(m.visible)", tokens) == [*map(visible, tokens)]
