"""Places of the whole model as texts, and whether a Trace has them."""

import json
import re
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.messages import read_message
from tests.kinds import trace_of
from visformer.errors import LinkError
from visformer.web.places.message import pack_place
from visformer.web.places.zoom import Zoom

WRITTEN = re.compile(r"(en|de)coder\.[1-9](\.ffn|\.self_attn|(\.ffn|\.self_attn)\.[1-9](\.[1-9]\.[1-9])?)?")
numbers = st.integers(0, 998)
zooms = st.one_of(
    st.builds(Zoom, st.sampled_from(["encoder", "decoder"]), numbers),
    st.builds(Zoom, st.just("decoder"), numbers, st.sampled_from(["self_attn", "cross_attn", "ffn"])),
    st.builds(Zoom, st.just("decoder"), numbers, st.just("cross_attn"), numbers),
    st.builds(Zoom, st.just("decoder"), numbers, st.just("self_attn"), numbers, numbers, numbers),
)


@given(zooms)
def test_a_place_is_read_as_it_is_written(zoom):
    assert Zoom.read(str(zoom)) == zoom


def test_numbers_in_a_text_count_from_1():
    assert Zoom.read("decoder.2.cross_attn.3.4.5") == Zoom("decoder", 1, "cross_attn", 2, 3, 4)


@given(
    st.text(max_size=30) | st.from_regex(r"(encoder|decoder)\.[0-9]\.(self_attn|ffn|out)(\.[0-9]){0,4}", fullmatch=True)
)
def test_any_other_text_is_refused(text):
    refused = pytest.raises(LinkError, match=r"decoder\.2\.cross_attn\.3")
    with nullcontext() if WRITTEN.fullmatch(text) else refused:
        assert str(Zoom.read(text)) == text


def test_a_place_that_a_model_does_not_have_is_refused_with_what_it_has():
    for kind, text, said in (
        ("bert", "decoder.1", "no such stack"),
        ("en-zh", "decoder.4", "1–3"),
        ("lfm2", "decoder.7", "1–6"),
        ("mini-gpt", "decoder.1.cross_attn", "no such sublayer"),
        ("en-zh", "encoder.1.ffn.1", "no heads"),
        ("lfm2", "decoder.1.self_attn.1", "no heads"),
        ("en-zh", "decoder.2.cross_attn.9", "heads of a layer are 1 to 8"),
        ("en-zh", "decoder.2.cross_attn.8.99.1", "query tokens here are 1 to"),
        ("en-zh", "decoder.2.cross_attn.8.1.99", "key tokens here are 1 to"),
    ):
        with pytest.raises(LinkError, match=re.escape(said)):
            pytest.fail(f"{kind} has {text}: {Zoom.read(text).require_in(trace_of(kind))}")


def test_another_text_or_model_keeps_what_it_has_of_a_place():
    for kind, text, closest in (
        ("en-zh", "decoder.2.cross_attn.8.2.3", "decoder.2.cross_attn.8.2.3"),
        ("en-zh", "decoder.2.cross_attn.8.99.1", "decoder.2.cross_attn.8"),
        ("en-zh", "decoder.2.cross_attn.9.1.1", "decoder.2.cross_attn"),
        ("mini-gpt", "decoder.2.cross_attn.1", "decoder.2"),
        ("mini-gpt", "encoder.1.self_attn.1", None),
    ):
        found = Zoom.read(text).within(trace_of(kind))
        assert closest == (None if found is None else str(found)), (kind, text)


def test_the_message_of_a_place_without_a_cell_is_small():
    message = pack_place("encoder.1", opened=3, way={"label": "On", "href": "block"}, to="map")
    header, _ = read_message(message)
    assert (header["zoom"], header["opened"], header["cell"]) == ("encoder.1", 3, None)
    assert header["way"] == {"label": "On", "href": "block"}
    assert len(json.dumps(header)) < 200
