"""The pictures of an atlas show its numbers, on one scale, and only what there is."""

from dataclasses import replace

import numpy as np
import pytest

import visformer as vf
from visformer.analysis.atlas import Atlas, distances, histogram, roles
from visformer.errors import DataError, VisformerError
from visformer.pictures.atlas import HEAD, HEADS, of_head
from visformer.pictures.registry.setting import Source
from visformer.system import limits

PLACE = {"stack": "decoder.self_attn", "layer": 0, "head": 2}


def drawn(picture, **values):
    return picture.make(Source(), {"atlas": "mini-gpt", **values})


def test_the_map_has_the_statistic_of_each_head_and_outlines_the_selected_one():
    (panel,) = drawn(HEADS, statistic="previous", **PLACE)
    heads = Atlas.bundled("mini-gpt").heads
    assert panel.values.shape == (4, 6)
    assert panel.values.ravel().tolist() == heads["previous"].tolist()
    assert panel.limit == heads["previous"].max() and panel.scale == "unsigned"
    assert np.argwhere(panel.outlined).tolist() == [[0, 2]]


def test_attentions_of_which_a_statistic_is_not_told_are_left_out():
    names = [panel.name for panel in drawn(HEADS, atlas="en-zh", statistic="previous")]
    assert names == ["encoder.self_attn", "decoder.self_attn"]
    assert [panel.name for panel in drawn(HEADS, atlas="en-zh", statistic="alignment")] == ["decoder.cross_attn"]
    assert drawn(HEADS, atlas="en-zh", statistic="distance")[0].scale == "signed"
    with pytest.raises(VisformerError, match="statistic is 'alignment'"):
        drawn(HEADS, statistic="alignment")


def test_filters_empty_cells_and_change_no_colour():
    (every,), (some,) = drawn(HEADS, statistic="first"), drawn(HEADS, statistic="first", role="first")
    found = roles(Atlas.bundled("mini-gpt"))
    having = found[found["statistic"] == "first"]
    assert np.isfinite(some.values).sum() == len(having) < 24
    assert some.limit == every.limit
    assert [*zip(*np.nonzero(np.isfinite(some.values)), strict=True)] == sorted(
        zip(having["layer"], having["head"], strict=True)
    )


def test_a_head_is_drawn_beside_the_others_of_its_attention():
    figure = drawn(HEAD, **PLACE)
    table = of_head(HEAD.setting(Source(), {"atlas": "mini-gpt", **PLACE}))
    head = Atlas.bundled("mini-gpt").heads.query("layer == 0 and head == 2").iloc[0]
    assert [*figure.data[-1].x] == table["value"].tolist() == [head[name] for name in table["statistic"]]
    assert all(len(others) == 23 for others in table["others"])
    by_distance = drawn(HEAD, chart="distance", **PLACE)
    shares = distances(Atlas.bundled("mini-gpt"), **PLACE).set_index("offset")["share"]
    assert [*by_distance.data[1].x] == [*range(-16, 1)], "a decoder never reads ahead"
    assert [*by_distance.data[1].y] == [shares[offset] for offset in range(-16, 1)]
    cross = {"atlas": "en-zh", "stack": "decoder.cross_attn", "layer": 2, "head": 1}
    assert drawn(HEAD, chart="distance", **cross).layout.xaxis.title.text == "position of the row"


def test_the_texts_of_a_head_are_drawn_by_their_values_with_the_mean():
    figure = drawn(HEAD, chart="texts", statistic="previous", **PLACE)
    found = histogram(Atlas.bundled("mini-gpt"), "previous", *PLACE.values())
    bars, others = figure.data
    assert [*bars.y] == (found["texts"] / 2000).tolist() and sum(bars.y) == pytest.approx(1)
    assert [*bars.x] == pytest.approx([*np.arange(0.025, 1, 0.05)])
    assert [*others.y][:-1] == found["others"].tolist()
    assert figure.layout.shapes[0].x0 == found.attrs["mean"]
    assert figure.layout.annotations[0].text == f"mean of the texts: {found.attrs['mean']:.3f}"
    entropy = drawn(HEAD, chart="texts", **PLACE)
    assert entropy.layout.xaxis.title.text == "Entropy: share of the largest possible"
    distance = drawn(HEAD, chart="texts", statistic="distance", **PLACE)
    assert [*distance.layout.xaxis.range] == [-9.5, 10.5]
    with pytest.raises(DataError, match="no distribution of “Effect of silencing” over the texts"):
        drawn(HEAD, chart="texts", statistic="effect", **PLACE)


@pytest.mark.parametrize(("mean", "count"), [(np.nan, 0), (1e300, 2**62), (0.5, -1)])
def test_whatever_a_histogram_says_it_is_drawn(mean, count):
    atlas = Atlas.bundled("mini-gpt")
    table = atlas.histograms.assign(mean=mean, **{name: count for name in atlas.histograms if name.startswith("bin_")})
    source = Source(atlas=lambda _name: replace(atlas, histograms=table), atlases=("own",))
    assert HEAD.make(source, {"chart": "texts", "statistic": "first", **PLACE}).to_json()


def test_an_atlas_without_effects_offers_no_such_statistic():
    one = Atlas.bundled("mini-gpt")
    empty = {"a": replace(one, effects=one.effects.iloc[:0])}
    with pytest.raises(VisformerError, match="statistic is 'effect'"):
        HEADS.make(Source(atlas=empty.__getitem__, atlases=("a",)), {"statistic": "effect"})


def test_of_many_other_heads_some_are_drawn_in_even_steps(monkeypatch):
    monkeypatch.setattr(limits, "ATLAS_BESIDE", 5)
    others = of_head(HEAD.setting(Source(), {"atlas": "mini-gpt", **PLACE})).set_index("statistic")["others"]["first"]
    every = sorted(Atlas.bundled("mini-gpt").heads.query("not (layer == 0 and head == 2)")["first"])
    assert others == [every[i] for i in (0, 5, 11, 16, 22)]


def test_a_figure_takes_the_path_of_an_atlas(tmp_path):
    with pytest.raises(DataError, match="There is no atlas in"):
        vf.figures.atlas(atlas=str(tmp_path))
    assert len(vf.figures.atlas(atlas="mini-gpt", lang="zh").data) == 1
