"""Maps of effects and of known heads, and the curves of pruning."""

import numpy as np
import pandas as pd
import pytest

import visformer as vf
from tests.support import tiny_gpt, tiny_translator
from visformer.analysis import effect_sentences, head_effects, pruning
from visformer.errors import VisformerError
from visformer.pictures import heads
from visformer.pictures.charts.effects import pruning_curves
from visformer.pictures.heads import effect_maps, known_maps, place_of

COLUMNS = ["stack", "layer", "head", "effect", "low", "high"]
EFFECTS = [
    ("decoder.cross_attn", 2, 1, 0.3, 0.1, 0.5),
    ("encoder.self_attn", 0, 0, -0.2, -0.4, 0.1),
    ("encoder.self_attn", 0, 1, -0.1, -0.2, -0.05),
]


def test_each_head_has_its_cell_and_is_outlined_if_it_can_be_told_from_zero():
    encoder, cross = panels = effect_maps(pd.DataFrame(EFFECTS, columns=COLUMNS))
    assert (encoder.name, cross.name) == ("encoder.self_attn", "decoder.cross_attn")
    assert encoder.values.tolist() == [[-0.2, -0.1]] and encoder.outlined.tolist() == [[False, True]]
    np.testing.assert_array_equal(cross.values, [[np.nan, 0.3]])
    assert cross.outlined.tolist() == [[False, True]]
    assert {panel.scale for panel in panels} == {"signed"} and {panel.end for panel in panels} == {0.3}
    assert place_of(cross.name, 0, 1, panels) == {"stack": "decoder.cross_attn", "layer": 2, "head": 1}


def test_estimates_by_the_gradient_have_no_sign_and_no_outline():
    table = pd.DataFrame([(*row[:3], *map(abs, row[3:])) for row in EFFECTS], columns=COLUMNS)
    table.attrs["method"] = "gradient"
    for panel in effect_maps(table):
        assert panel.scale == "unsigned" and panel.outlined is None


def test_a_known_head_is_outlined_from_the_least_score_on():
    rows = [
        ("decoder.self_attn", 1, 0, "induction", 0.9),
        ("decoder.self_attn", 1, 2, "positional", 0.2),
        ("decoder.self_attn", 1, 2, "positional", 0.25),
    ]
    table = pd.DataFrame(rows, columns=["stack", "layer", "head", "label", "score"])
    table.attrs |= {"stacks": ["decoder.self_attn"], "n_layers": 2, "n_heads": 3}
    induction, positional = panels = known_maps(table)
    assert induction.title == "Induction head · Decoder" and induction.outlined.tolist() == [
        [False] * 3,
        [True, False, False],
    ]
    assert positional.outlined is None and positional.values[1, 2] == 0.25
    assert place_of(positional.name, 1, 2, panels) == {"stack": "decoder.self_attn", "layer": 1, "head": 2}


def test_without_a_score_above_the_null_the_maps_are_empty():
    table = pd.DataFrame([], columns=["stack", "layer", "head", "label", "score"])
    table.attrs |= {"stacks": ["encoder.self_attn", "decoder.self_attn"], "n_layers": 2, "n_heads": 3}
    for panel in known_maps(table):
        assert panel.values.shape == (2, 3) and np.isnan(panel.values).all()


def test_the_curves_are_those_of_the_table():
    table = pruning(tiny_gpt(), ["I went.", "You came.", "We left.", "They ran."], draws=2, counts=(0, 3))
    *random, ranked = pruning_curves(table).data
    assert len(random) == 2 and [curve.showlegend for curve in (*random, ranked)] == [True, False, True]
    for curve, (order, draw) in zip((*random, ranked), [("random", 0), ("random", 1), ("ranked", 0)], strict=True):
        rows = table[(table["order"] == order) & (table["draw"] == draw)]
        assert list(curve.x) == [0, 3] and list(curve.y) == rows["rise"].tolist()


def test_a_notebook_measures_on_the_bundled_list(monkeypatch):
    some, model = effect_sentences()[:5], tiny_translator()  # not all fifty
    monkeypatch.setattr(heads, "effect_sentences", {"tiny": some}.get)
    figure = vf.figures.head_effects(model, "I went.", target="我去。", effect="gradient")
    table = head_effects(model, some, method="gradient")
    assert sorted(np.concatenate([np.ravel(each.z) for each in figure.data])) == pytest.approx(sorted(table["effect"]))
    with pytest.raises(VisformerError, match="This picture needs a model"):
        vf.figures.head_effects(model.trace("I went.", "我去。"))
