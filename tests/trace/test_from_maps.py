"""Trace.from_maps: any finite numbers become a Trace, exactly as they are, or an error says where they do not fit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import visformer as vf
from visformer.errors import MissingTensor, TraceError

TOKENS = ("[CLS]", "我", "去", "[SEP]")
TARGET = ("<s>", "I", "go")

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(arrays(np.float32, (2, 3, 4, 4), elements=finite))
def test_any_finite_numbers_are_kept_bit_for_bit(maps):
    trace = vf.Trace.from_maps(TOKENS, maps)
    assert trace.names() == ("encoder.0.self_attn.map", "encoder.1.self_attn.map")
    assert all((trace[f"encoder.{i}.self_attn.map"].value == maps[i]).all() for i in range(2))
    np.testing.assert_array_equal(np.asarray(trace.stack("encoder.self_attn")), maps)


def test_a_mapping_keeps_the_numbers_of_its_layers():
    maps = np.arange(2 * 3 * 4 * 4.0).reshape(2, 3, 4, 4)
    trace = vf.Trace.from_maps(TOKENS, {5: maps[1], 2: torch.as_tensor(maps[:1])})
    assert trace.names() == ("encoder.2.self_attn.map", "encoder.5.self_attn.map")
    np.testing.assert_array_equal(trace.stack("encoder.self_attn"), maps)
    doubled = vf.Trace.from_maps(TOKENS, {layer: 2 * one for layer, one in trace.layers("encoder.self_attn").items()})
    np.testing.assert_array_equal(doubled["encoder.5.self_attn.map"], 2 * maps[1])
    even = np.full((2, 4, 4), 0.25)
    patterns = vf.Trace.from_attention(TOKENS, {7: even})
    assert vf.Trace.from_attention(TOKENS, patterns.layers("encoder.self_attn")).names() == (
        "encoder.7.self_attn.pattern",
    )
    unequal = vf.Trace.from_maps(TOKENS, {5: maps[1, :1], 2: maps[0]})
    assert [len(layer) for layer in unequal.layers("encoder.self_attn").values()] == [3, 1]
    with pytest.raises(TraceError, match=r"patterns\[7\].*\(from 0\) sums to 0.5"):
        vf.Trace.from_attention(TOKENS, {7: even / 2})


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 1, 3, 4, 4)])
@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor, list, np.ndarray.tolist])
def test_maps_take_the_shapes_that_attention_takes(shape, convert):
    maps = np.arange(2 * 3 * 4 * 4).reshape(shape)
    trace = vf.Trace.from_maps(TOKENS, convert(maps))
    np.testing.assert_array_equal(np.asarray(trace.stack("encoder.self_attn")), maps.reshape(2, 3, 4, 4))


def test_maps_of_all_stacks_with_their_quantity_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    own, cross = rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(2, 2, 3, 4)) * 1e6
    trace = vf.Trace.from_maps(TOKENS, target=TARGET, decoder=own, cross=cross, quantity="effect (nats)")
    trace.save(tmp_path / "maps.safetensors")
    again = vf.Trace.load(tmp_path / "maps.safetensors")
    assert (
        again.names()
        == trace.names()
        == tuple(f"decoder.{i}.{kind}.map" for kind in ("self_attn", "cross_attn") for i in range(2))
    )
    assert all((again[name].value == trace[name].value).all() for name in trace)
    assert again.meta["quantity"] == "effect (nats)"
    assert [axis.side for axis in again["decoder.1.cross_attn.map"].axes] == [None, "tgt", "src"]


def test_maps_are_no_patterns():
    with pytest.raises(MissingTensor, match=r"Recorded: encoder\.0\.self_attn\.map"):
        vf.Trace.from_maps(TOKENS, np.ones((1, 1, 4, 4)))["encoder.0.self_attn.pattern"]


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (-np.inf, "-inf"), (1e300, "inf")])
def test_numbers_that_are_not_finite_are_refused_with_their_place(value, shown):
    maps = np.zeros((2, 3, 4, 4))
    maps[1, 2, 3, 0] = value
    place = rf"maps\[1\], head 2, query 3, key 0 \(from 0\) is {shown} as float32: .* put 0 where there is no value"
    with pytest.raises(TraceError, match=place):
        vf.Trace.from_maps(TOKENS, maps)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"No maps were given: use from_maps\(tokens, maps\)"),
        ({"maps": np.ones((1, 1, 5, 5))}, r"maps\[0\] has shape \(1, 5, 5\); expected .* \(any, 4, 4\)"),
        ({"maps": np.ones((1, 1, 4, 4)), "quantity": 5}, "quantity is 5: give a text"),
        ({"maps": np.ones((1, 1, 4, 4)), "quantity": "\ud800"}, "quantity is '.ud800': give a text"),
        ({"maps": np.ones((1, 1, 4, 4)) + 1j}, "not an array of numbers"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_maps(TOKENS, **arguments)
