"""The message of two linked explorers: both pictures, partners among tokens and heads, and a number of each head."""

import numpy as np
import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.kinds import model_of
from tests.web.support import made_up_trace
from visformer.analysis import head_differences, match_heads
from visformer.errors import TraceError
from visformer.pictures.compare import SIDES, mapped
from visformer.pictures.registry.picture import picture
from visformer.pictures.sides import Sides
from visformer.web.pair import pack_pair, pack_rests

ONE, OTHER = "I went to school.", "She went to the old school."


def sides_of(name, model="en-zh", **options):
    setting = picture(name).setting(vf.figures.source_of(model_of(model), ONE), options)
    return mapped(setting, SIDES[picture(name).view](setting))


def test_both_pictures_are_in_the_message_with_the_partners_of_their_tokens():
    sides = sides_of("compare", other_text=OTHER)
    header, numbers = read_message(pack_pair(sides))
    pictures = [read_message(numbers[at : at + size])[0] for at, size in header["parts"]]
    for picture_of, trace in zip(pictures, (sides.first, sides.second), strict=True):
        assert picture_of["kind"] == "attention"
        assert len(picture_of["tokens"]["src"]) == len(trace.tokens["src"])
    union = header["unions"]["src"]
    tokens = [trace.tokens["src"] for trace in (sides.first, sides.second)]
    assert [tokens[1][j] for i, j in union if i is None] == ["the", "old"]
    assert all(tokens[0][i] == tokens[1][j] for i, j in union[1:] if None not in (i, j))
    assert header["heads"] is None
    assert [title[:3] for title in header["titles"]] == ["A: ", "B: "]


def test_the_map_of_each_attention_has_the_distance_of_each_head():
    sides = sides_of("compare", other_text=OTHER)
    header, numbers = read_message(pack_pair(sides))
    assert [*header["maps"]] == header["stacks"] == ["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"]
    for name, drawn in header["maps"].items():
        values = head_differences(sides.first, sides.second, name)
        at = np.frombuffer(numbers, "<f4", values.size, drawn["at"])
        assert at == pytest.approx(values.ravel())
        assert (len(drawn["layers"]), drawn["heads"]) == values.shape


def test_heads_of_two_models_are_sent_with_their_matches_in_both_directions():
    sides = sides_of("compare-models", "mini-gpt")
    header, _ = read_message(pack_pair(sides))
    there, back = header["heads"]["decoder.self_attn"]
    for table, (one, other) in ((there, (sides.first, sides.second)), (back, (sides.second, sides.first))):
        matched = match_heads(one, other, "decoder.self_attn")
        assert table == matched[["other_layer", "other_head"]].to_numpy().tolist()


def test_only_attentions_of_both_are_linked_and_without_any_there_is_a_sentence():
    translator, decoder = (model_of(name).trace(ONE) for name in ("en-zh", "mini-gpt"))
    header, _ = read_message(pack_pair(Sides(translator, decoder, ("", ""))))
    assert header["stacks"] == ["decoder.self_attn"]
    encoder = model_of("bert").trace(ONE)
    with pytest.raises(TraceError, match="no attention of the same kind"):
        pack_pair(Sides(encoder, decoder, ("", "")))


def test_what_does_not_fit_is_sent_for_each_side():
    short, long = made_up_trace(), made_up_trace(90, 90, n_layers=3, n_heads=8)
    first, second = pack_rests(Sides(short, long, ("", "")))
    assert first is None
    assert read_message(second)[0]["kind"] == "weights"
