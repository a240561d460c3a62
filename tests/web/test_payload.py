"""The explorer's two messages, compared with their Trace."""

import gc
import json
import re
import weakref
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.messages import read_message
from tests.web.support import digits, heads_of, made_up_trace, shapes_of, with_gaps
from visformer.analysis.heads import SCORES, head_scores
from visformer.system import limits
from visformer.system.limits import MAX_WANTED
from visformer.trace import Trace
from visformer.web.chunks import FOCUS_BYTES, RESIDENT_BYTES, SMALL_BYTES, Focus, Plan, focus_from, wanted_from
from visformer.web.payload import OVERVIEW_BYTES, HeadNotes, pack, pack_rest, thumbnail_side, thumbnails

STACKS = ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")


def pattern_of(trace, stack, layer):
    part, kind = stack.split(".")
    return trace[f"{part}.{layer}.{kind}.pattern"].value


def every_head(shapes, layers):
    return {
        (stack, layer, head) for stack, (_, h, *_) in shapes.items() for layer in layers[stack] for head in range(h)
    }


sizes = st.fixed_dictionaries(
    {
        "n_src": st.integers(1, 12) | st.integers(60, 90),
        "n_tgt": st.integers(1, 12) | st.integers(60, 90),
        "n_layers": st.integers(1, 4),
        "n_decoder_layers": st.integers(1, 3),
        "n_heads": st.integers(1, 9),
        "seed": st.integers(0, 9),
    }
)


@settings(max_examples=12)
@given(sizes, st.booleans(), st.sampled_from(STACKS), st.integers(0, 3), st.integers(0, 8))
def test_the_two_messages_have_every_head_once_to_four_digits(size, has_gaps, stack, layer, head):
    trace, focus = made_up_trace(**size), Focus(stack, layer, head)
    trace = with_gaps(trace) if has_gaps else trace
    header, numbers = read_message(pack(trace, focus=focus))
    shapes = shapes_of(header)
    assert header["resident"]
    assert tuple(shapes) == STACKS
    assert all(shape == trace.stack(name).shape for name, shape in shapes.items())
    heads = heads_of(header, numbers, shapes)
    rest = pack_rest(trace, focus=focus)
    assert (rest is None) == (2 * sum(map(prod, shapes.values())) <= SMALL_BYTES)
    if rest is not None:
        later = heads_of(*read_message(rest), shapes)
        assert not heads.keys() & later.keys()
        heads |= later
    layers = {stack["name"]: stack["layers"] for stack in header["stacks"]}
    assert layers == {name: [*trace.layers(name)] for name in STACKS}
    assert heads.keys() == every_head(shapes, layers)
    for (name, i, j), weights in heads.items():
        assert digits(weights) == digits(pattern_of(trace, name, i)[j])


sizes_of_plans = st.dictionaries(
    st.sampled_from(STACKS),
    st.tuples(st.integers(1, 12), st.integers(1, 16), st.integers(1, 1500), st.integers(1, 1500)),
    min_size=1,
)


@given(
    sizes_of_plans,
    st.sampled_from([1, 3]),
    st.none() | st.builds(Focus, st.sampled_from((*STACKS, "?")), st.integers(), st.integers()),
)
def test_a_plan_has_every_head_once_and_stays_within_its_budget(shapes, step, focus):
    layers = {stack: dict.fromkeys(range(0, step * shape[0], step), shape[1]) for stack, shape in shapes.items()}
    plan = Plan(shapes, layers, focus)
    heads = [(c.stack, c.layer, c.head + i) for c in (*plan.first, *plan.missing) for i in range(c.n)]
    assert sorted(heads) == sorted(every_head(shapes, layers))
    total = 2 * sum(map(prod, shapes.values()))
    first = sum(2 * chunk.n * prod(shapes[chunk.stack][2:]) for chunk in plan.first)
    one_head = 2 * prod(shapes[plan.focus.stack][2:])
    if total <= SMALL_BYTES:
        assert not plan.missing
    else:
        assert first <= max(FOCUS_BYTES, one_head)
    assert any(
        (c.stack, c.layer) == (plan.focus.stack, plan.focus.layer) and 0 <= plan.focus.head - c.head < c.n
        for c in plan.first
    )
    assert plan.resident == (total <= RESIDENT_BYTES or not plan.missing)
    assert plan.rest(()) == (plan.missing if plan.resident else ())


def test_the_mean_of_a_layer_is_sent_although_its_first_head_was():
    plan = Plan({"encoder.self_attn": (2, 8, 400, 400)}, {"encoder.self_attn": {0: 8, 1: 8}})
    (first,) = plan.first
    chunks = plan.rest([f"encoder.self_attn/0/{head}" for head in (0, 1, "mean")])
    assert (first.n, [(chunk.head, chunk.over) for chunk in chunks]) == (1, [(1, None), (0, "mean")])


def test_the_first_header_describes_tokens_stacks_scores_and_start():
    trace = made_up_trace()
    header, _ = read_message(pack(trace, gettext=lambda text: f"<{text}>", lang="xx", start={"layer": 2}))
    assert header["tokens"] == {side: list(tokens) for side, tokens in trace.tokens.items()}
    assert header["words"] == {side: list(numbers) for side, numbers in trace.words.items()}
    axes = [(stack["rows"], stack["columns"], stack["predicts"]) for stack in header["stacks"]]
    assert axes == [("src", "src", None), ("tgt", "tgt", "next"), ("tgt", "src", "next")]
    assert header["start"] == {"layer": 2}
    assert read_message(pack(trace))[0]["start"] is None
    assert [score["name"] for score in header["scores"]] == [score.name for score in SCORES]
    assert header["scores"][0]["label"] == f"<{SCORES[0].label}>"
    assert header["stacks"][0]["label"] == "<Encoder>"


def test_the_scores_of_heads_have_four_digits():
    trace = made_up_trace(n_decoder_layers=3)
    header, _ = read_message(pack(trace))
    cross = header["stacks"][2]
    expected = head_scores(
        trace.stack("decoder.cross_attn"),
        queries=trace.tokens["tgt"],
        keys=trace.tokens["src"],
        special=trace.special["src"],
        cross=True,
    )
    assert cross["values"].keys() == expected.keys()
    assert "distance" in header["stacks"][0]["values"]
    for name, values in expected.items():
        assert digits(cross["values"][name]) == digits(values)


def test_a_head_that_is_masked_everywhere_has_no_score():
    trace = made_up_trace()
    pattern = trace["encoder.0.self_attn.pattern"]
    value = pattern.value.copy()
    value[1] = 0
    masked = replace(trace, tensors={**trace.tensors, pattern.name: replace(pattern, value=value)})
    values = read_message(pack(masked))[0]["stacks"][0]["values"]
    assert all(table[0][1] is None and table[0][0] is not None for table in values.values())


def test_at_128_tokens_the_first_message_has_one_layer_and_the_second_the_rest():
    """With 72 heads, as in the bundled model."""
    trace, focus = made_up_trace(128, 128, 3, 8), Focus("decoder.cross_attn", 1, 2)
    first, rest = pack(trace, focus=focus), pack_rest(trace, focus=focus)
    assert len(first) + len(rest) <= 2_600_000
    assert len(first) <= 600_000
    header, _ = read_message(first)
    (chunk,) = header["chunks"]
    assert (chunk["stack"], chunk["layer"], chunk["head"], chunk["n"]) == ("decoder.cross_attn", 1, 0, 8)
    assert header["resident"]
    assert [stack["thumb"] for stack in header["stacks"]] == [[50, 50]] * 3
    later = read_message(rest)[0]
    assert sum(chunk["n"] for chunk in later["chunks"]) == 64
    assert "values" not in later


@pytest.fixture(scope="module")
def long_trace():
    """Too long to send all codes, or scores in the first message."""
    return made_up_trace(n_src=250, n_tgt=300, n_layers=2, n_heads=6)


def test_of_a_long_sentence_only_the_focused_layer_and_requested_heads_are_sent(long_trace):
    focus = Focus("decoder.cross_attn", 1, 2)
    header, numbers = read_message(pack(long_trace, focus=focus))
    shapes = shapes_of(header)
    assert not header["resident"]
    assert all(stack["values"] is None for stack in header["stacks"])
    assert heads_of(header, numbers, shapes).keys() == {("decoder.cross_attn", 1, head) for head in range(6)}

    stack = "encoder.self_attn"
    valid = [f"{stack}/0/3", f"{stack}/1/mean", f"{stack}/1/max", f"{stack}/0/03"]
    already_sent = "decoder.cross_attn/1/5"
    invalid = [f"{stack}/2/0", f"{stack}/0/6", "other/0/0", "encoder", "x" * 99]
    later, more = read_message(pack_rest(long_trace, focus=focus, wanted=[*valid, already_sent, *invalid]))
    assert later["trace"] == header["trace"]
    heads = heads_of(later, more, shapes)
    assert heads.keys() == {(stack, 0, 3), (stack, 1, "mean"), (stack, 1, "max")}
    layer = pattern_of(long_trace, stack, 1)
    assert digits(heads[stack, 0, 3]) == digits(pattern_of(long_trace, stack, 0)[3])
    assert digits(heads[stack, 1, "max"]) == digits(layer.max(axis=0))
    np.testing.assert_allclose(heads[stack, 1, "mean"], layer.astype(float).mean(axis=0), rtol=5.1e-4)
    assert later["values"].keys() == shapes.keys()
    assert len(later["values"][stack]["entropy"]) == 2


@given(
    st.lists(st.tuples(st.integers(1, 24), st.integers(1, 16), st.integers(1, 2000), st.integers(1, 2000)), max_size=3)
)
def test_thumbnails_are_as_large_as_their_budget_allows(shapes):
    side = thumbnail_side(shapes)
    assert 16 <= side <= 64

    def total(side):
        return sum(n * h * min(side, q) * min(side, k) for n, h, q, k in shapes)

    assert total(side) <= OVERVIEW_BYTES or side == 16
    assert side == 64 or total(side + 1) > OVERVIEW_BYTES


def test_thumbnails_are_on_a_square_root_scale():
    layers = [layer.value for layer in made_up_trace().layers("encoder.self_attn").values()]
    assert np.abs(thumbnails(layers, side=64).astype(float) / 255 - np.sqrt(np.stack(layers))).max() <= 0.5 / 255 + 1e-6


@given(st.integers(1, 200), st.integers(1, 200), st.integers(16, 64), st.data())
def test_the_strongest_cell_is_visible_at_its_position(rows, columns, side, data):
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    pattern = np.zeros((1, rows, columns), dtype=np.float32)
    pattern[0, row, column] = 1.0
    ((small,),) = thumbnails([pattern], side=side)
    assert small.shape == (min(rows, side), min(columns, side))
    ((found_row, found_column),) = np.argwhere(small)
    assert small[found_row, found_column] == 255
    assert abs((found_row + 0.5) / small.shape[0] - (row + 0.5) / rows) <= 1 / small.shape[0]
    assert abs((found_column + 0.5) / small.shape[1] - (column + 0.5) / columns) <= 1 / small.shape[1]


def test_every_trace_has_an_id_and_every_message_a_revision():
    trace, equal = made_up_trace(60, 60, 3, 8), made_up_trace(60, 60, 3, 8)
    first = read_message(pack(trace))[0]
    assert first == read_message(pack(trace))[0]
    focused = read_message(pack(trace, focus=Focus("encoder.self_attn", 1, 1)))[0]
    assert focused["trace"] == first["trace"] == read_message(pack_rest(trace))[0]["trace"]
    assert focused["revision"] != first["revision"]
    assert read_message(pack(equal))[0]["trace"] != first["trace"]


def test_messages_are_cached_as_long_as_their_trace_exists(monkeypatch):
    trace = made_up_trace(60, 60, 3, 8)
    first, rest = pack(trace), pack_rest(trace)
    assert pack(trace, focus=Focus("encoder.self_attn", 0, 5)) is first, "the same layer"
    assert pack_rest(trace) is rest
    assert pack(trace, lang="zh") is not first
    assert pack(trace, start={"head": 1}) is not first
    assert pack(trace) is first
    monkeypatch.setattr(limits, "MESSAGE_BYTES", len(first) + 1)
    pack(trace, lang="de")
    assert pack(trace) is not first, "the oldest was evicted"
    reference = weakref.ref(trace)
    del trace
    gc.collect()
    assert reference() is None


def test_malformed_requests_are_dropped():
    for sent, valid in (
        ({}, ()),
        ({"wanted": None}, ()),
        ({"wanted": "encoder.self_attn/0/0"}, ()),
        ({"wanted": {"encoder.self_attn/0/0": 1}}, ()),
        ({"wanted": [3, None, ["x"], "a/b/c", "encoder.self_attn/0/-1", "encoder.self_attn/0/0\n", "a/٣/0"]}, ()),
        ({"wanted": ["encoder.self_attn/0/0", 3, "decoder.cross_attn/11/max"]},
         ("encoder.self_attn/0/0", "decoder.cross_attn/11/max")),
        ({"wanted": [f"encoder.self_attn/0/{i}" for i in range(99)]},
         tuple(f"encoder.self_attn/0/{i}" for i in range(MAX_WANTED))),
    ):  # fmt: skip
        assert wanted_from(sent) == valid, sent


def test_the_focus_is_read_from_a_complete_start_only():
    valid = {"stack": STACKS[0], "layer": 1, "head": 2}
    assert focus_from(valid) == Focus(STACKS[0], 1, 2)
    for start in (None, {}, 3, {**valid, "stack": 1}, {**valid, "head": None}):
        assert focus_from(start) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_nothing_that_a_browser_sends_is_an_error(value):
    state = json.loads(json.dumps({"wanted": value}))
    assert focus_from(state["wanted"]) is None
    assert len(wanted_from(state)) <= MAX_WANTED


def test_invisible_tokens_are_shown_as_code_points():
    header, _ = read_message(pack(made_up_trace(tokens=["\u200b", "\u202egood", "<script>", "\x07"])))
    assert header["tokens"]["src"] == ["U+200B", "U+202Egood", "<script>", "U+0007", "</s>"]


def test_only_self_attention_has_windows_and_shared_keys():
    plain = made_up_trace(n_heads=4)
    n_layers, n_heads = plain.stack("decoder.self_attn").shape[:2]
    windows = [3, *[None] * (n_layers - 1)]
    trace = replace(plain, meta={**plain.meta, "n_kv_heads": n_heads // 2, "windows": windows})
    header, _ = read_message(pack(trace))
    kinds = {stack["name"]: (stack["share"], stack["windows"]) for stack in header["stacks"]}
    assert kinds["decoder.self_attn"] == (2, windows)
    assert kinds["decoder.cross_attn"] == (1, None)


def test_windows_are_those_of_the_recorded_layers():
    trace = replace(with_gaps(made_up_trace()), meta={"windows": [None, 3, None, 5]})
    header, _ = read_message(pack(trace))
    assert {tuple(stack["layers"]) for stack in header["stacks"]} == {(1, 3)}
    assert [stack["windows"] for stack in header["stacks"]] == [[3, 5], [3, 5], None]


def test_a_layer_with_fewer_heads_sends_those_that_it_has():
    trace = made_up_trace()
    name = "encoder.1.self_attn.pattern"
    ragged = replace(trace, tensors={**trace.tensors, name: replace(trace[name], value=trace[name].value[:2])})
    header, numbers = read_message(pack(ragged))
    whole, all_numbers = read_message(pack(trace))
    (stack,) = (each for each in header["stacks"] if each["name"] == "encoder.self_attn")
    (other,) = (each for each in whole["stacks"] if each["name"] == "encoder.self_attn")
    assert stack["heads"] == [n - (i == 1) for i, n in enumerate(other["heads"])]
    chunks = [chunk for chunk in header["chunks"] if chunk["stack"] == "encoder.self_attn"]
    assert {(chunk["layer"], chunk["n"]) for chunk in chunks} == {*enumerate(stack["heads"])}
    shape = (*stack["shape"][:2], *stack["thumb"])  # (layer, head, row, column)
    thumbs, before = (
        np.frombuffer(bytes(sent), np.uint8, prod(shape), each["thumbs"]).reshape(shape).copy()
        for sent, each in ((numbers, stack), (all_numbers, other))
    )
    assert not thumbs[1, 2].any()
    before[1, 2] = 0
    np.testing.assert_array_equal(thumbs, before)
    assert stack["values"]["entropy"][1][2] is None and other["values"]["entropy"][1][2] is not None


@pytest.mark.parametrize("meta", [{}, {"n_kv_heads": None}, {"n_kv_heads": 0}, {"n_kv_heads": "2"}, {"windows": [1]}])
def test_invalid_windows_and_shared_keys_are_ignored(meta):
    header, _ = read_message(pack(replace(made_up_trace(), meta=meta)))
    assert {(stack["share"], stack["windows"]) for stack in header["stacks"]} == {(1, None)}


MAPS = {
    "signed": np.random.default_rng(0).normal(size=(2, 3, 70, 70)) * 5,
    "unsigned": np.random.default_rng(1).integers(0, 1000, size=(2, 3, 70, 70)),
}


def sent(message, shape):
    """Return the float32 numbers of a message, by (layer, head)."""
    header, numbers = read_message(message)
    size = shape[0] * shape[1]
    return {
        (chunk["layer"], chunk["head"] + i): np.frombuffer(numbers, "<f4", size, chunk["at"] + 4 * i * size).reshape(
            shape
        )
        for chunk in header["chunks"]
        for i in range(chunk["n"])
    }


@pytest.mark.parametrize("kind", MAPS)
def test_the_numbers_of_maps_are_sent_exactly_with_their_scale(kind):
    maps = MAPS[kind].astype(np.float32)
    trace = Trace.from_maps([f"t{i}" for i in range(70)], maps)
    header, numbers = read_message(pack(trace))
    ends = [-np.abs(maps).max(), 0, np.abs(maps).max()] if kind == "signed" else [0, maps.max() / 2, maps.max()]
    assert (header["scale"]["kind"], header["scale"]["limit"]) == (kind, float(ends[-1]))
    ticks = [float(text.replace("−", "-")) for text, _ in header["scale"]["ticks"]]
    assert ticks == [float(f"{end:.3g}") for end in ends]
    heads = sent(pack(trace), (70, 70)) | sent(pack_rest(trace) or pack(trace), (70, 70))
    assert heads.keys() == {(layer, head) for layer in range(2) for head in range(3)}
    assert all((heads[place] == maps[place]).all() for place in heads)
    (stack,) = header["stacks"]
    assert stack["values"] is None
    assert header["scores"] == []
    height, width = stack["thumb"]
    steps = np.frombuffer(numbers, np.uint8, 6 * height * width, stack["thumbs"]).reshape(2, 3, height, width)
    edges = [i * 70 // height for i in range(height)] + [70]
    for place in np.ndindex(2, 3, height, width):
        *head, row, column = place
        cell = maps[tuple(head)][edges[row] : edges[row + 1], edges[column] : edges[column + 1]].ravel()
        share = cell[np.abs(cell).argmax()] / ends[-1]
        assert abs(steps[place] - 255 * ((1 + share) / 2 if kind == "signed" else share)) <= 0.51


def test_the_words_of_a_map_claim_nothing_that_is_true_of_weights_only():
    trace = Trace.from_maps(["a", "b"], np.array([[[[1.0, -2.0], [0.0, 0.5]]]]), quantity="effect {x}")
    header, _ = read_message(pack(trace))
    assert header["text"]["sums"] == header["text"]["legend"] == "effect {x}: colours from −2 to 2."
    hidden = ("limit", "hidden", "renorm", "window")  # texts of controls that maps do not have
    said = {name: re.sub(r"{\w+}", "", text) for name, text in header["text"].items() if not name.startswith(hidden)}
    assert not [name for name, text in said.items() if re.search(r"weights?\b|\breads?\b", text.lower())]
    assert header["stacks"][0]["about"] == "Encoder · effect {x}"


def test_maps_take_twice_the_bytes_of_weights_in_every_budget():
    """12 heads of 300 tokens are 2.2 MB as weights, which are sent without a request, and 4.3 MB as maps."""
    tokens = [f"t{i}" for i in range(300)]
    shape = (2, 6, 300, 300)
    traces = (Trace.from_attention(tokens, np.full(shape, 1 / 300)), Trace.from_maps(tokens, np.ones(shape)))
    headers = [read_message(pack(trace))[0] for trace in traces]
    assert [header["resident"] for header in headers] == [True, False]
    assert [header["chunks"][0]["n"] for header in headers] == [1, 1]


def test_what_is_known_of_heads_is_sent_with_those_that_the_trace_has():
    trace = Trace.from_attention(["a", "b"], np.full((2, 2, 2, 2), 0.5))
    notes = HeadNotes(
        effects=(("encoder.self_attn", 1, 0, 0.25), ("encoder.self_attn", 9, 0, 1.0), ("decoder.self_attn", 0, 0, 2.0)),
        labels=(
            ("encoder.self_attn", 0, 1, "Positional head", 0.5, "found"),
            ("decoder.self_attn", 0, 0, "x", 1.0, "y"),
            ("encoder.self_attn", 9, 0, "of an atlas of another model", 1.0, "y"),
            ("encoder.self_attn", 0, 9, "of an atlas of another model", 1.0, "y"),
        ),
    )
    header, _ = read_message(pack(trace, notes=notes))
    (stack,) = header["stacks"]
    assert stack["values"]["effect"] == [[None, None], [0.25, None]] and "entropy" in stack["values"]
    assert stack["labels"] == [{"layer": 0, "head": 1, "label": "Positional head", "score": 0.5, "about": "found"}]
    assert [score["name"] for score in header["scores"]][-1] == "effect"
    plain, _ = read_message(pack(trace))
    assert "effect" not in plain["stacks"][0]["values"] and "labels" not in plain["stacks"][0]
