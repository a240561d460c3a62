"""The bytes that the canvas draws."""

import numpy as np
import pytest

from tests.canvas.support import exact, made_up_trace, read_payload
from visformer.canvas.payload import EXACT_BYTES, THUMB_SIDE, Focus, focus_from, pack, thumbnails

STACKS = ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")


def test_short_sentences_travel_exactly():
    trace = made_up_trace()
    header, numbers = read_payload(pack(trace))
    assert [stack["name"] for stack in header["stacks"]] == list(STACKS)
    for name in STACKS:
        part, kind = name.split(".")
        assert np.array_equal(exact(header, numbers, name), trace.stack(part, kind).value)
    assert header["tokens"] == {side: list(tokens) for side, tokens in trace.tokens.items()}


def test_axes_come_from_the_trace():
    header, _ = read_payload(pack(made_up_trace()))
    axes = [(stack["rows"], stack["columns"], stack["predicts"]) for stack in header["stacks"]]
    assert axes == [("src", "src", None), ("tgt", "tgt", "next"), ("tgt", "src", "next")]


def test_thumbnails_are_on_a_square_root_scale():
    pattern = made_up_trace().stack("encoder").value
    assert np.abs(thumbnails(pattern).astype(float) / 255 - np.sqrt(pattern)).max() <= 0.5 / 255 + 1e-6


def test_thumbnails_of_long_sentences_stay_small_and_keep_the_largest():
    pattern = np.zeros((1, 1, 250, 250), dtype=np.float32)
    pattern[0, 0, 123, 200] = 1.0
    small = thumbnails(pattern)
    assert small.shape == (1, 1, THUMB_SIDE, THUMB_SIDE)
    assert small.max() == 255
    assert np.count_nonzero(small) == 1


def test_long_sentences_bring_the_head_in_focus_only():
    trace = made_up_trace(n_src=200, n_tgt=150)
    focus = Focus("decoder.cross_attn", 1, 2)
    data = pack(trace, focus=focus)
    header, numbers = read_payload(data)
    assert len(data) < EXACT_BYTES
    assert all(stack["exact"] is None for stack in header["stacks"])
    held = header["stacks"][2]["focus"]
    assert (held["layer"], held["head"]) == (1, 2)
    weights = np.frombuffer(numbers, "<f4", 150 * 200, held["at"]).reshape(150, 200)
    assert np.array_equal(weights, trace["decoder.1.cross_attn.pattern"].value[2])
    assert header["stacks"][0]["focus"]["head"] == 0


def test_revision_names_the_payload_and_trace_the_sentence():
    one, other = made_up_trace(n_src=200, n_tgt=150), made_up_trace(n_src=200, n_tgt=150, seed=1)
    first = read_payload(pack(one))[0]
    assert first == read_payload(pack(one))[0]
    elsewhere = read_payload(pack(one, focus=Focus("encoder.self_attn", 1, 1)))[0]
    assert elsewhere["trace"] == first["trace"]
    assert elsewhere["revision"] != first["revision"]
    assert read_payload(pack(other))[0]["trace"] != first["trace"]


def test_a_focus_out_of_range_is_brought_back():
    header, _ = read_payload(pack(made_up_trace(n_src=200, n_tgt=150), focus=Focus("encoder.self_attn", 99, -5)))
    assert (header["stacks"][0]["focus"]["layer"], header["stacks"][0]["focus"]["head"]) == (1, 0)


@pytest.mark.parametrize(
    "sent", [{}, {"focus": None}, {"focus": 3}, {"focus": {"stack": 1, "layer": "a", "head": None}}]
)
def test_a_browser_may_send_anything(sent):
    assert focus_from(sent) is None


def test_tokens_without_a_shape_are_written_as_their_codes():
    header, _ = read_payload(pack(made_up_trace(tokens=["\u200b", "\u202egood", "<script>", "\x07"])))
    assert header["tokens"]["src"] == ["U+200B", "U+202Egood", "<script>", "U+0007", "</s>"]
