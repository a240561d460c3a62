"""The message of the whole model, compared with its Trace."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.messages import read_message
from tests.kinds import KINDS, model_of, trace_of
from tests.web.support import heads_of, made_up_trace, shapes_of, without_names
from visformer.pictures import map as model_map
from visformer.pictures.style import visible
from visformer.trace.stacks import STACKS
from visformer.web import bundle
from visformer.web.chunks import Focus
from visformer.web.map import pack_map
from visformer.web.payload import pack

MODELS = [kind for kind in KINDS if kind not in ("attention", "decoder", "maps")]


def strict(message):
    """Read a message; its header is JSON that browsers read, too: no NaN."""

    def refuse(constant):
        pytest.fail(f"{constant} is no JSON")

    header, numbers = read_message(message)
    length = int.from_bytes(message[:4], "little")
    json.loads(message[4 : 4 + length], parse_constant=refuse)
    return header, numbers


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_can_be_packed_with_the_layers_lengths_and_heads_that_it_has(kind):
    trace = trace_of(kind)
    header, numbers = strict(pack_map(trace))
    unnamed, _ = strict(pack_map(without_names(trace)))
    assert unnamed["columns"] == header["columns"]
    packed = {column["stack"]: column for column in header["columns"]}
    stacks = {stack: model_map.layers(trace, stack) for stack in ("encoder", "decoder")}
    assert list(packed) == [stack for stack, layers in stacks.items() if layers]
    for stack, column in packed.items():
        assert column["side"] == {"encoder": "src", "decoder": "tgt"}[stack]
        assert [layer["number"] for layer in column["layers"]] == [layer.number for layer in stacks[stack]]
        for layer, wanted in zip(column["layers"], stacks[stack], strict=True):
            assert [one["kind"] for one in layer["sublayers"]] == [one.kind for one in wanted.sublayers]
            for one, lengths in zip(layer["sublayers"], wanted.sublayers, strict=True):
                assert (one["norms"] is None) == (lengths.norms is None)
                if lengths.norms is not None:
                    np.testing.assert_allclose(one["norms"], lengths.norms, rtol=5e-4)

    other, others = strict(pack(trace))
    assert shapes_of(header) == shapes_of(other)
    assert {stack["name"]: stack["layers"] for stack in header["stacks"]} == {
        stack.name: list(stack.layers(trace)) for stack in STACKS if stack.in_trace(trace)
    }
    assert all(header[name] == other[name] for name in ("tokens", "special", "scale")), "as in the explorer's message"
    if kind != "maps":
        heads, wanted = (heads_of(*each, shapes_of(header)) for each in ((header, numbers), (other, others)))
        assert heads.keys() == wanted.keys()
        assert all(np.array_equal(heads[place], wanted[place]) for place in heads)


def strips_of(header, numbers):
    """Yield side, entry and numbers (dimension, token) of each strip."""
    for column in header["columns"]:
        for strip in column["strips"]:
            values = np.frombuffer(numbers, "<f4", int(np.prod(strip["shape"])), strip["at"])
            yield column["side"], strip, values.reshape(strip["shape"])


def dimension_of(row, rows):
    """Return the only dimension of (token, d_model) with the numbers of this row, (token,)."""
    (found,) = np.flatnonzero((rows.astype(np.float32) == row[:, None]).all(axis=0))
    return int(found)


@pytest.mark.parametrize("kind", ["en-zh", "mini-gpt", "bert", "gptj", "bart"])
def test_a_strip_has_numbers_of_the_trace_from_evenly_spaced_dimensions(kind):
    trace = trace_of(kind)
    header, numbers = strict(pack_map(trace))
    strips = list(strips_of(header, numbers))
    assert [(side, strip["name"]) for side, strip, _ in strips] == [
        (side, name) for side in ("src", "tgt") for name in model_map.added(trace, side)
    ]
    for side, strip, values in strips:
        rows = trace[f"{side}.{strip['name']}"].value
        assert strip["d_model"] == rows.shape[1]
        assert strip["shape"] == [min(16, rows.shape[1]), len(trace.tokens[side])]
        if strip["name"] == "position":  # some of its dimensions are equal, or the same for some tokens
            continue
        places = [dimension_of(row, rows) for row in values]
        assert (places[0], places[-1]) == (0, rows.shape[1] - 1)
        gaps = np.diff(places)
        assert gaps.min() >= 1
        assert gaps.max() - gaps.min() <= 1
        if rows.shape[1] > 16:
            assert {place % 2 for place in places} == {0, 1}, "both sines and cosines"
            position = next((v for s, one, v in strips if (s, one["name"]) == (side, "position")), None)
            if position is not None:
                assert np.array_equal(position, trace[f"{side}.position"].value[:, places].T)


@pytest.mark.parametrize("kind", ["en-zh", "bert", "bart"])
def test_a_strip_says_between_what_its_numbers_are_and_where_its_colours_end(kind):
    trace = trace_of(kind)
    for side, strip, _ in strips_of(*strict(pack_map(trace))):
        rows = trace[f"{side}.{strip['name']}"].value
        assert (strip["low"], strip["high"]) == pytest.approx((rows.min(), rows.max()), rel=5e-4)
        assert np.quantile(np.abs(rows), 0.98) <= strip["limit"] <= np.abs(rows).max() or not rows.any()


def test_colours_of_a_strip_are_not_washed_out_by_one_outlier():
    trace = trace_of("en-zh")
    rows = trace["src.embed"].value.copy()
    rows[0, 0] = 1e6
    tensors = {**trace.tensors, "src.embed": replace(trace["src.embed"], value=rows)}
    _, strip, _ = next(strips_of(*strict(pack_map(replace(trace, tensors=tensors)))))
    assert (strip["name"], strip["high"]) == ("embed", 1e6)
    assert strip["limit"] < 100


@pytest.mark.parametrize("kind", KINDS)
def test_steps_have_names_and_probabilities_to_four_digits(kind):
    trace = trace_of(kind)
    header, _ = strict(pack_map(trace))
    wanted = model_map.steps(trace)
    assert [step["tokens"] for step in header["steps"]] == [[*map(visible, step.tokens)] for step in wanted]
    for step, numbers in zip(header["steps"], wanted, strict=True):
        np.testing.assert_allclose(step["probabilities"], numbers.probabilities, rtol=5e-4)
        assert step["following"] == pytest.approx(numbers.following, rel=5e-4)
    unnamed, _ = strict(pack_map(without_names(trace)))
    assert [step["tokens"] for step in unnamed["steps"]] == [[] for _ in wanted]


@pytest.mark.parametrize("kind", ["en-zh", "mini-gpt", "gpt2", "bart"])
def test_the_chosen_one_of_the_candidates_is_the_token_that_follows(kind):
    """None where a text was given that the model finds unlikely."""
    trace = trace_of(kind)
    header, _ = strict(pack_map(trace))
    best = [[*np.argsort(-row, kind="stable")[:5]] for row in trace["logits"].value]
    following = trace.meta["ids"]["next"]
    places = [ids.index(i) if i in ids else None for ids, i in zip(best, following, strict=True)]
    assert [step["chosen"] for step in header["steps"]] == places
    assert (set(places) == {0}) == (kind == "en-zh"), "greedily decoded; the others are given texts"


@pytest.mark.parametrize("kind", MODELS)
def test_names_are_those_of_the_vocabulary(kind):
    """Candidates exclude one another, so that no two of them make up a character."""
    model, trace = model_of(kind), trace_of(kind)
    header, _ = strict(pack_map(trace))
    for packed, step in zip(header["steps"], model_map.steps(trace), strict=True):
        assert len(packed["tokens"]) == len(set(packed["tokens"])) == len(step.ids)
        for token, i in zip(packed["tokens"], step.ids, strict=True):
            assert token.lstrip("␣") == visible(model.text.shown([i])[0]).lstrip("␣") or token.startswith("##")


def test_the_header_has_the_focus_the_file_and_whether_the_target_was_given():
    trace = trace_of("bart")
    header, _ = strict(pack_map(trace, focus=Focus("decoder.cross_attn", 2, 3), file="bart", to="map"))
    assert header["focus"] == {"stack": "decoder.cross_attn", "layer": 2, "head": 3}
    assert (header["kind"], header["to"], header["file"], header["forced"]) == ("map", "map", "bart", True)
    assert header["ramps"].keys() >= {"weight", "signed"}
    other, _ = strict(pack_map(trace_of("attention")))
    assert (other["focus"], other["forced"], other["file"]) == (None, False, "")


def test_the_head_in_focus_is_sent_where_not_all_fit():
    trace, focus = made_up_trace(n_src=90, n_tgt=90, n_layers=4, n_heads=9), Focus("decoder.self_attn", 3, 8)
    header, numbers = strict(pack_map(trace, focus=focus))
    heads = heads_of(header, numbers, shapes_of(header))
    assert len(heads) < 3 * 4 * 9
    wanted = trace["decoder.3.self_attn.pattern"].value[8]
    np.testing.assert_allclose(heads["decoder.self_attn", 3, 8], wanted, rtol=5e-4, atol=1e-6)


def test_every_word_is_translated():
    header, _ = strict(pack_map(trace_of("maps"), gettext=lambda text: f"<{text}>", lang="xx"))
    text = header["text"]
    assert text.pop("lang") == "xx"
    assert all(word.startswith("<") and word.endswith(">") for word in text.values())


def test_the_scripts_use_the_words_that_are_sent_and_no_others():
    sent = set(strict(pack_map(trace_of("maps")))[0]["text"])
    scripts = "\n".join(path.read_text() for path in (bundle._FOLDER / "map").glob("*.js"))
    used = set(re.findall(r"\btext\.(\w+)", scripts)) | {"lang"}
    assert not used - sent
    by_name = {"encoder", "decoder", "self_attn", "cross_attn", "ffn", "embed", "position", "input"}
    by_name |= {"encoder_does", "decoder_does"}
    assert {name for name in sent - used - by_name if not name.startswith("say_")} == {
        name for name in sent if name.endswith("_touch")
    }


def test_a_sentence_of_16_tokens_is_a_small_message():
    model = model_of("en-zh")
    text = "I have never seen such a big river in my life, he said."
    trace = model.trace(text, record=model.available(model_map.RECORD))
    assert len(trace.tokens["src"]) == 16
    assert len(pack_map(trace)) < 600_000


def test_of_a_long_sentence_the_message_has_the_thumbnails_and_the_head_in_focus():
    """What 72 heads of 128 tokens take: the goal for data and scripts together is 600 kB."""
    trace = made_up_trace(128, 2, n_layers=6, n_heads=12)
    trace = replace(trace, tensors={name: one for name, one in trace.tensors.items() if name.startswith("encoder")})
    message = pack_map(trace, focus=Focus("encoder.self_attn", 4, 7))
    header, _ = strict(message)
    (chunk,) = header["chunks"]
    assert (chunk["layer"], chunk["head"], chunk["n"]) == (4, 7, 1)
    assert len(message) < 300_000
