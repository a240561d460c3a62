"""Methods side by side: each panel is the public function's result, and what a family does not allow is said."""

import numpy as np
import pytest

from tests.kinds import model_of
from visformer import analysis
from visformer.pictures import methods

TEXT = "I like school."
PARTS = [("en-zh", "encoder"), ("en-zh", "decoder"), ("mini-gpt", "decoder"), ("bert", "encoder"), ("gpt2", "decoder")]


def trace_of(kind):
    model = model_of(kind)
    return model.trace(TEXT, record=model.available(methods.RECORD))


@pytest.mark.parametrize(("kind", "part"), PARTS)
def test_panels_are_what_the_methods_give(kind, part):
    trace = trace_of(kind)
    where = "cross" if part == "decoder" and "src" in trace.tokens else part
    panels = methods.methods(trace, part)
    path = [name for name in trace if name.endswith("cross_attn.pattern" if where == "cross" else "pattern")
            and name.startswith(part)][-1].removesuffix(".pattern")  # fmt: skip
    src, tgt = analysis.rollout(trace)
    flows = [(src, tgt)[where == "decoder"], analysis.alti_plus(trace)[where == "decoder"]]
    if kind == "en-zh" and part == "encoder":
        flows = None  # those of a whole encoder-decoder end in the decoder
    lengths = analysis.norm_weighted(trace, path)
    wanted = [trace[f"{path}.pattern"].value.mean(axis=0), lengths / lengths.sum(axis=1, keepdims=True),
              analysis.alti(trace, path), *(flows or ())]  # fmt: skip
    for panel, values in zip(panels, wanted, strict=flows is not None):
        np.testing.assert_allclose(panel.values, values, atol=1e-6)
        assert panel.scale == "weight", "one scale"
        assert panel.note, "what it cannot say"
    assert len(panels) == 5


def test_rows_sum_to_one_but_for_what_comes_from_the_target():
    weights, lengths, alti, rollout, plus = methods.methods(trace_of("en-zh"), "decoder")
    for panel in (weights, lengths, alti):
        np.testing.assert_allclose(panel.values.sum(axis=1), 1, atol=1e-5)
    assert alti.columns.texts[-1] == "residual stream"
    assert max(rollout.values.sum(axis=1).max(), plus.values.sum(axis=1).max()) < 1
    assert weights.rows.after == trace_of("en-zh").tokens["next"], "each row names what it predicts"


def test_what_a_family_does_not_allow_is_left_out_with_its_reason():
    panels = methods.methods(trace_of("gptj"), "decoder")  # attention beside feed-forward
    assert len(panels) == 3
    assert "alti: " in panels[0].note
    assert "alti+: " in panels[0].note
