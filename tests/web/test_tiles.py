"""Parts of heads of a long text against the weights themselves."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message as parse
from visformer.trace.stacks import STACKS
from visformer.trace.tokens import sentences_of
from visformer.web.codes import encode
from visformer.web.payload import pack, pack_rest
from visformer.web.tiles import SIDE, levels_of, part_of

N = 600
WORDS = "we saw the river . did you ?".split()


@cache
def traces():
    """The same text as an overview and whole."""
    model = vf.untrained(d_model=32, n_heads=4, n_encoder_layers=2, n_decoder_layers=1, d_ff=16, position="rotary")
    ids = [id for word in WORDS for id in model.tokenizer.encode(word)]
    text = (ids * N)[:N]
    return [model.trace(text, ids[:3], record=record) for record in ("overview", "*.pattern")]


def floats(part):
    return np.frombuffer(part, "<f4")


def pooled(weights, step, how):
    """Pool cells of step by step, the last ones smaller."""
    rows, columns = (range(0, size, step) for size in weights.shape)
    return np.array([[how(weights[r : r + step, c : c + step]) for c in columns] for r in rows], dtype=np.float32)


@pytest.mark.parametrize(("level", "row", "column"), [(0, 0, 0), (0, 2, 1), (1, 0, 1), (1, 1, 1), (2, 0, 0)])
def test_a_tile_has_the_largest_weight_and_the_mean_of_each_cell(level, row, column):
    trace, whole = traces()
    side, step = SIDE << level, 1 << level
    weights = whole["encoder.1.self_attn.pattern"].value[3]
    weights = weights[row * side : (row + 1) * side, column * side : (column + 1) * side]
    wanted = [weights] if level == 0 else [pooled(weights, step, np.max), pooled(weights, step, np.mean)]
    codes = np.frombuffer(part_of(trace, f"encoder.self_attn/1/3/tile/{level}/{row}/{column}"), "<u2")
    wanted = np.concatenate([encode(each).ravel() for each in wanted]).astype(int)
    assert abs(codes.astype(int) - wanted).max() <= 1  # a weight on the edge of two codes


@pytest.mark.parametrize("path", [
    "encoder.self_attn/1/3/tile/3/0/0", "encoder.self_attn/1/3/tile/0/3/0", "encoder.self_attn/1/3/tile/0/0",
    "encoder.self_attn/2/0/edges", "encoder.self_attn/1/4/edges", "decoder.9/0/0/edges",
    "encoder.self_attn/1/3/rows/5/5", "encoder.self_attn/1/3/rows/0/601", "../../etc/passwd",
    "encoder.self_attn/1/3/edges/1", "", "encoder.self_attn/1/3;without=/edges", "encoder.self_attn/1/3;all/edges",
])  # fmt: skip
def test_what_there_is_not_is_none(path):
    assert part_of(traces()[0], path) is None


def test_one_more_level_halves_the_tiles_until_there_is_one():
    assert [levels_of(n, 3) for n in (1, 256, 257, 512, 513, 4096)] == [1, 1, 2, 2, 3, 5]


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.name)
def test_edges_rows_and_sentences_are_sums_of_weights(stack):
    trace, whole = traces()
    weights = stack.layers(whole)[0].value[2].astype(np.float64)
    others = weights * (1 - np.eye(len(weights))) if stack.kind == "self_attn" else weights
    edges = np.concatenate([others.sum(axis=1), others.sum(axis=0)])
    np.testing.assert_allclose(floats(part_of(trace, f"{stack.name}/0/2/edges")), edges, atol=1e-4)
    rows = floats(part_of(trace, f"{stack.name}/0/2/rows/1/3"))
    np.testing.assert_allclose(rows, weights[1:3].sum(axis=0), atol=1e-5)
    # A sentence ends behind "." and "?"; the decoder's three tokens are one.
    ends = [i + 1 for i, token in enumerate(whole.tokens["src"]) if token in ".?"]
    parts = {"src": np.split(np.arange(N), [end for end in ends if end < N]), "tgt": [slice(None)]}
    rows, columns = (parts[side] for side in stack.sides)
    wanted = [[weights[q][:, k].sum(axis=1).mean() for k in columns] for q in rows]
    sentences = floats(part_of(trace, f"{stack.name}/0/2/sentences"))
    np.testing.assert_allclose(sentences.reshape(np.shape(wanted)), wanted, atol=1e-5)


@cache
def chats():
    """The same chat as an overview and whole: four messages and a template, some of whose tokens are special."""
    ids = np.random.default_rng(0).integers(10, 60, 540).tolist()
    roles = [None if i % 135 < 3 else ("system", "user", "assistant", "user")[i // 135] for i in range(540)]
    model = vf.untrained(d_model=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=2, d_ff=16, position="rotary")
    both = (model.trace(ids[:3], ids, record=record) for record in ("overview", "*.pattern"))
    roles += [None] * (len(model.trace(ids[:3], ids, record="overview").tokens["tgt"]) - len(roles))
    special = tuple(i % 135 == 0 for i in range(len(roles)))
    tokens = tuple("." if i % 50 == 49 else f"word{i}" for i in range(len(roles)))
    traces = [
        replace(
            trace,
            roles={"tgt": tuple(roles)},
            tokens={**trace.tokens, "tgt": tokens},
            special={**trace.special, "tgt": special},
        )
        for trace in both
    ]
    return traces, (np.array(roles), np.array(special))


HIDDEN = {
    ";hiding": lambda roles, special: special,
    ";without=system.template": lambda roles, special: np.isin(roles, ["system", None]),
    ";hiding;renormalising;without=user": lambda roles, special: special | (roles == "user"),
}


@pytest.mark.parametrize("hides", HIDDEN)
@pytest.mark.parametrize("held", ["overview", "whole"])
def test_what_is_left_where_tokens_are_hidden_is_pooled_and_summed_by_itself(hides, held):
    (overview, whole), (roles, special) = chats()
    kept = np.flatnonzero(~HIDDEN[hides](roles, special))
    weights = whole["decoder.1.self_attn.pattern"].value[1].astype(np.float64)[kept]
    left, total = weights[:, kept], weights.sum(axis=1)
    hidden = 1 - left.sum(axis=1) / total
    if "renormalising" in hides:
        left = left / left.sum(axis=1, keepdims=True)

    def part(path):
        return part_of(overview if held == "overview" else whole, f"decoder.self_attn/1/1{hides}/{path}")

    np.testing.assert_allclose(floats(part("hidden")), hidden, atol=1e-5)
    np.testing.assert_allclose(floats(part("rows/5/200")), left[5:200].sum(axis=0), atol=1e-4)
    others = left * (1 - np.eye(len(kept)))
    edges = np.concatenate([others.sum(axis=1), others.sum(axis=0)])
    np.testing.assert_allclose(floats(part("edges")), edges, atol=1e-4)
    numbers = np.array(sentences_of(whole.tokens["tgt"], whole.special["tgt"]))[kept]
    groups = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    assert len(groups) > 2
    sentences = [[left[np.ix_(q, k)].sum(axis=1).mean() for k in groups] for q in groups]
    np.testing.assert_allclose(floats(part("sentences")).reshape(np.shape(sentences)), sentences, atol=1e-5)
    last = levels_of(*left.shape) - 1
    assert part(f"tile/{last + 1}/0/0") is None, "fewer tokens have fewer levels"
    for path, block in ((f"tile/{last}/0/0", left), ("tile/0/0/0", left[:SIDE, :SIDE])):
        step = 1 << int(path.split("/")[1])
        wanted = [pooled(block, step, how) for how in (np.max, np.mean)[: 1 + (step > 1)]]
        codes = np.frombuffer(part(path), "<u2").astype(int)
        assert abs(codes - np.concatenate([encode(each).ravel() for each in wanted]).astype(int)).max() <= 1


def test_where_all_would_be_hidden_nothing_is():
    (overview, _), _ = chats()
    path = "decoder.self_attn/1/1{}/rows/0/540"
    everybody = ";without=assistant.system.template.user"
    assert part_of(overview, path.format(everybody)) == part_of(overview, path.format(""))


def test_a_trace_that_holds_all_weights_answers_the_same():
    for path in ("tile/1/0/1", "edges", "sentences", "rows/7/300"):
        ours, wanted = (part_of(trace, f"encoder.self_attn/0/1/{path}") for trace in traces())
        kind = "<u2" if path.startswith("tile") else "<f4"
        np.testing.assert_allclose(np.frombuffer(ours, kind), np.frombuffer(wanted, kind), rtol=2e-3, atol=1e-4)


def test_the_first_message_has_thumbnails_scores_and_the_way_to_the_rest():
    trace, whole = traces()
    header, _ = parse(pack(trace, parts="parts/key"))
    assert header["parts"] == "parts/key"
    assert header["chunks"] == []
    assert header["sentences"]["src"][:7] == [0, 0, 0, 0, 0, 1, 1]
    stack, full = header["stacks"][0], parse(pack(whole))[0]["stacks"][0]
    assert stack["tiles"] == {"side": SIDE}
    assert stack["thumb"] == [48, 48]
    for score, layers in parse(pack_rest(whole))[0]["values"]["encoder.self_attn"].items():
        np.testing.assert_allclose(stack["values"][score], layers, rtol=2e-3, atol=2e-4)
    assert full["shape"] == stack["shape"]


def test_parts_come_by_message_too_for_a_browser_that_could_not_fetch_them():
    trace, _ = traces()
    path = "encoder.self_attn/0/1/rows/0/2"
    header, numbers = parse(pack_rest(trace, wanted=[path, "encoder.self_attn/7/1/edges"]))
    (part,) = header["parts"]
    assert part["path"] == path
    assert numbers[part["at"] : part["at"] + part["n"]] == part_of(trace, path)
