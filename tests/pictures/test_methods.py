"""Methods side by side: each panel is the public function's result, and what a family does not allow is said."""

import json

import numpy as np
import pytest

import visformer as vf
from tests.kinds import model_of
from visformer import analysis
from visformer.analysis import METHODS
from visformer.pictures.effects import METHODS as PICTURE
from visformer.pictures.experiments import methods

TEXT = "I like school."
CROSS, DECODER, ENCODER = "decoder.cross_attn", "decoder.self_attn", "encoder.self_attn"
OF_TRACE = [name for name, method in METHODS.items() if method.of != "model"]


def drawn(kind, stack):
    return PICTURE.make(vf.figures.source_of(model_of(kind), TEXT), {"stack": stack})


@pytest.mark.parametrize(
    ("kind", "stack", "where", "names"),
    [
        ("en-zh", CROSS, "cross", [*METHODS]),
        ("mini-gpt", DECODER, "decoder", [*METHODS]),
        ("bert", ENCODER, "encoder", OF_TRACE),
        pytest.param("en-zh", ENCODER, "encoder", OF_TRACE, marks=pytest.mark.full),
        pytest.param("en-zh", DECODER, "decoder", OF_TRACE, marks=pytest.mark.full),
        pytest.param("gpt2", DECODER, "decoder", [*METHODS], marks=pytest.mark.full),
    ],
)
def test_panels_are_what_the_methods_give(kind, stack, where, names):
    model = model_of(kind)
    panels = [panel for panel in drawn(kind, stack) if panel.name != "shares"]
    assert [panel.name for panel in panels] == names
    for panel in panels:
        method = METHODS[panel.name]
        found = analysis.attribution(
            model, TEXT, method=panel.name, stack=where if method.of != "model" else "total"
        ).value
        wanted = found / found.sum(axis=1, keepdims=True) if panel.name == "norm" else found
        np.testing.assert_allclose(panel.values, wanted, atol=1e-5)
        assert panel.note.startswith(f"{methods.FORMULAS[panel.name]}. ")
        assert f"{method.about} {method.limit}" in panel.note, "its paper, and what it cannot say"
        assert (panel.scale == "signed") == method.signed


def test_source_and_prefix_share_each_word():
    *_, shares = drawn("en-zh", CROSS)
    assert shares.columns.texts == ("source", "prefix")
    np.testing.assert_allclose(shares.values.sum(axis=1), 1, atol=1e-5)
    assert shares.rows.after == model_of("en-zh").trace(TEXT).tokens["next"], "each row names what it predicts"


def test_what_a_family_does_not_allow_is_left_out_with_its_reason():
    panels = drawn("gptj", DECODER)  # attention beside feed-forward
    assert {"alti", "alti+"}.isdisjoint(panel.name for panel in panels)
    assert "alti: " in panels[0].note
    assert "alti+: " in panels[0].note


@pytest.mark.parametrize("to", ["zh", "en"])
def test_the_measures_are_those_of_the_record(to):
    sizes, found = methods.measures(to)
    assert sizes == {"by hand": 50, "grammar": 500}
    assert {one.method for one in found} == {*METHODS, "random"}
    rows = json.loads(methods.SCORES.read_text())
    (error,) = [
        row["error"]
        for row in rows["alignment"]
        if (row["set"], row["to"], row["method"], row["row"]) == ("by hand", to, "alti+", "prediction")
    ]
    (plus,) = [one for one in found if one.method == "alti+"]
    assert plus.values["by hand prediction"][0] == error
    for one in found:
        assert all(low <= value <= high for value, low, high in one.values.values())
        assert {"deletion", "insertion"} <= {*one.values}
