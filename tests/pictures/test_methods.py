"""Methods side by side: each panel is the public function's result, and what a family does not allow is said."""

import json

import numpy as np
import pytest

import visformer as vf
from tests.kinds import model_of
from visformer import analysis
from visformer.analysis import METHODS
from visformer.errors import VisformerError
from visformer.pictures import effects
from visformer.pictures.effects import METHODS as PICTURE

TEXT = "I like school."
CROSS, DECODER, ENCODER = "decoder.cross_attn", "decoder.self_attn", "encoder.self_attn"
OF_TRACE = [name for name, method in METHODS.items() if method.of != "model"]


def drawn(kind, stack, method):
    return PICTURE.make(vf.figures.source_of(model_of(kind), TEXT), {"stack": stack, "method": method})


@pytest.mark.parametrize(
    ("kind", "stack", "names"),
    [
        ("en-zh", CROSS, [*METHODS]),
        ("mini-gpt", DECODER, [*METHODS]),
        ("bert", ENCODER, OF_TRACE),
        pytest.param("en-zh", ENCODER, OF_TRACE, marks=pytest.mark.full),
        pytest.param("en-zh", DECODER, OF_TRACE, marks=pytest.mark.full),
        pytest.param("gpt2", DECODER, [*METHODS], marks=pytest.mark.full),
    ],
)
def test_a_picture_is_what_the_method_gives(kind, stack, names):
    model = model_of(kind)
    assert [*effects.allowed_methods(PICTURE.setting(vf.figures.source_of(model, TEXT), {"stack": stack}))] == names
    for name in names:
        panel, *_shares = drawn(kind, stack, name)
        method = METHODS[name]
        found = analysis.attribution(model, TEXT, method=name, stack=stack).value
        wanted = found / found.sum(axis=1, keepdims=True) if name == "norm" else found
        np.testing.assert_allclose(panel.values, wanted, atol=1e-5)
        assert panel.note.startswith(f"{method.plain}. ")
        assert f"{method.about} {method.limit}" in panel.note, "its paper, and what it cannot say"
        assert (panel.scale == "signed") == method.signed


def test_source_and_prefix_share_each_word():
    _panel, shares = drawn("en-zh", CROSS, "alti+")
    assert shares.columns.texts == ("source", "prefix")
    np.testing.assert_allclose(shares.values.sum(axis=1), 1, atol=1e-5)
    assert shares.rows.after == model_of("en-zh").trace(TEXT).tokens["next"], "each row names what it predicts"


def test_what_a_family_does_not_allow_is_refused_with_its_reason():
    for method in ("alti", "alti+"):
        with pytest.raises(VisformerError, match="its parts are not known to sum to its output"):
            drawn("gptj", DECODER, method)  # attention beside feed-forward


@pytest.mark.parametrize("to", ["zh", "en"])
def test_the_measures_are_those_of_the_record(to):
    sizes, found = effects.method_measures(to)
    assert sizes == {"by hand": 50, "grammar": 500}
    assert {one.method for one in found} == {*METHODS, "random"}
    rows = json.loads(effects.SCORES.read_text())
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
