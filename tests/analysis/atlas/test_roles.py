"""Roles, profiles and differences of heads, by hand on small tables and with planted heads."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.analysis.atlas.planted import INDUCTION, PREVIOUS, planted_gpt
from visformer.analysis.atlas import MEASURES, build, difference, distances, interval, roles, similar_heads, with_token
from visformer.errors import DataError


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    path = tmp_path_factory.mktemp("atlas")
    words = np.random.default_rng(0).choice(["I", "went", "to", "school", "She", "likes", "the"], size=(60, 9))
    (path / "texts.txt").write_text("".join(" ".join(row) + "\n" for row in words))
    return build(planted_gpt(), str(path / "texts.txt"), path / "out")


def test_planted_heads_have_their_roles(atlas):
    found = roles(atlas).set_index(["layer", "head", "label"])
    for place, label, statistic in ((PREVIOUS, "previous token", "previous"), (INDUCTION, "induction", "induction")):
        row = found.loc[(*place, label)]
        head = atlas.heads[(atlas.heads["layer"] == place[0]) & (atlas.heads["head"] == place[1])].iloc[0]
        half = 1.959964 * head[f"{statistic}_sd"] / head[f"{statistic}_texts"] ** 0.5
        assert row["score"] == head[statistic]
        assert [row["low"], row["high"]] == pytest.approx([head[statistic] - half, head[statistic] + half])
        assert row["low"] >= 0.3 and row["low"] > row["null_high"] > row["null"]
        assert row["n"] == head[f"{statistic}_texts"]
    assert not len(roles(atlas, least=1.1))


def test_a_statistic_that_most_heads_share_is_no_role(atlas):
    alike = atlas.heads.assign(previous=0.9, previous_sd=0.0)
    found = roles(replace(atlas, heads=alike))
    assert "previous token" not in {*found["label"]}


def test_the_weight_by_distance_sums_to_1_and_is_that_of_the_tables(atlas):
    found = distances(atlas, "decoder.self_attn", *PREVIOUS)
    assert found["share"].sum() == pytest.approx(1) and found["others"].sum() == pytest.approx(1)
    best = found.loc[found["share"].idxmax()]
    assert best["offset"] == -1 and best["share"] > 0.6 > best["others"]
    with pytest.raises(DataError, match=r"has no head 9 in layer 0 of decoder.self_attn"):
        distances(atlas, "decoder.self_attn", 0, 9)


def test_a_head_is_most_like_its_copy_and_says_what_differs(atlas):
    stack = "decoder.self_attn"
    found = similar_heads(atlas, stack, *PREVIOUS, other=atlas, n=100)
    assert (found.loc[0, "layer"], found.loc[0, "head"], found.loc[0, "similarity"]) == (*PREVIOUS, 1.0)
    assert len(similar_heads(atlas, stack, *PREVIOUS, n=100)) == len(found) - 1, "the head itself is left out"
    shares = [measure.name for measure in MEASURES if measure.name not in ("entropy", "distance")]
    heads = atlas.heads[atlas.heads["stack"] == stack].set_index(["layer", "head"])[shares]
    spread = {place: distances(atlas, stack, *place)["share"].to_numpy() for place in heads.index}
    for row in found.itertuples():
        differs = (heads.loc[(row.layer, row.head)] - heads.loc[PREVIOUS]).abs().dropna().to_dict()
        differs["offsets"] = np.abs(spread[row.layer, row.head] - spread[PREVIOUS]).sum() / 2
        assert 1 - row.similarity == pytest.approx(max(differs.values()))
        assert differs[row.differs] == pytest.approx(max(differs.values()))
    assert found["similarity"].is_monotonic_decreasing and found["similarity"].between(0, 1).all()


def test_no_array_is_wider_than_the_offsets_that_are_compared(atlas):
    """A table can name any offsets, each once: they would be columns."""
    stack, n = "decoder.self_attn", 200_000
    far = pd.DataFrame(
        {"stack": stack, "layer": 0, "head": 0, "offset": range(100, 100 + n), "weight": 0.5, "cells": 1}
    )
    wide = replace(atlas, offsets=pd.concat([atlas.offsets, far]))
    tracemalloc.start()
    try:
        found = similar_heads(wide, stack, *PREVIOUS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    pd.testing.assert_frame_equal(found, similar_heads(atlas, stack, *PREVIOUS))
    assert peak < 100 * n, "a few numbers for each row of the table, not a row of them for each head"


def test_differences_have_the_interval_of_two_means(atlas):
    moved = atlas.heads.assign(first=atlas.heads["first"] + 0.125)
    other = replace(atlas, heads=moved)
    found = difference(atlas, other, "first")
    low, high = interval(atlas, "first")
    assert found["difference"].tolist() == pytest.approx([0.125] * len(found))
    assert (found["high"] - found["low"]).tolist() == pytest.approx(((high - low) * 2**0.5).tolist())


def test_heads_are_found_by_a_token_of_their_examples(atlas):
    one = atlas.examples.iloc[0]
    found = with_token(atlas, f" {one.key_token.upper()} ")
    places = atlas.heads.loc[found, ["stack", "layer", "head"]]
    assert (one["stack"], one["layer"], one["head"]) in [*places.itertuples(index=False, name=None)]
    assert not with_token(atlas, "none of these").any()
    assert isinstance(found, pd.Series)
