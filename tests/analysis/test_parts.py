"""Norm-weighted attention and the parts of a sublayer, recomputed term by term."""

import numpy as np
import pytest
from numpy.linalg import norm

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.analysis.models import KINDS, model_of, paths_of, texts_of, trace_of
from tests.support import tiny_translator
from visformer.analysis import needed, norm_weighted, parts
from visformer.edits import Silence
from visformer.errors import MissingTensor, ShapeError, TraceError
from visformer.trace import Trace

ELSEWHERE = "not followed by a residual sum with one layer norm"
EPS = {"en-zh": 1e-5, "bert": 1e-12, "bart": 1e-5}


def terms(trace, path):
    """f of each head, (head, query, key, d_model), with one loop for each index."""
    pattern, v, w_o = (
        np.float64(each) for each in (trace[f"{path}.pattern"], trace[f"{path}.v"], trace.params[f"{path}.w_o"])
    )
    n_heads, n_queries, n_keys = pattern.shape
    width = len(w_o) // n_heads
    result = np.empty((n_heads, n_queries, n_keys, w_o.shape[1]))
    for h, q, k in np.ndindex(pattern.shape):
        own = w_o[h * width : (h + 1) * width]
        result[h, q, k] = pattern[h, q, k] * (v[h * len(v) // n_heads, k] @ own)
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_norms_equal_those_of_the_terms_that_attention_sums(kind):
    trace = trace_of(kind)
    for path in paths_of(trace):
        f = terms(trace, path)
        np.testing.assert_allclose(norm_weighted(trace, path), norm(f.sum(axis=0), axis=-1), atol=1e-6)
        for head in range(len(f)):
            np.testing.assert_allclose(norm_weighted(trace, path, head=head), norm(f[head], axis=-1), atol=1e-6)
        bias = trace.params[f"{path}.b_o"].value if f"{path}.b_o" in trace.params else 0
        np.testing.assert_allclose(f.sum(axis=(0, 2)) + bias, trace[f"{path}.out"], atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_those_of_the_definition_and_sum_to_the_output(kind):
    trace = trace_of(kind)
    for path in paths_of(trace):
        split, at = parts(trace, path), path.rpartition(".")[0]
        which = path.rpartition(".")[2].removesuffix("_attn")
        y = trace[f"{at}.resid_{which}"].value
        np.testing.assert_array_equal(split.y, y)
        largest = max(1, abs(y).max())
        np.testing.assert_allclose(split.keys.sum(axis=1) + split.residual + split.bias, y, atol=1e-5 * largest)

        f, x = terms(trace, path).sum(axis=0), np.float64(trace[f"{at}.resid_{'pre' if which == 'self' else 'self'}"])
        b_o = np.float64(trace.params[f"{path}.b_o"]) if f"{path}.b_o" in trace.params else np.zeros(x.shape[1])
        if kind in EPS:
            gamma, beta = (np.float64(trace.params[f"{at}.norm_{which}.{part}"]) for part in ("gamma", "beta"))
            std = np.sqrt((x + f.sum(axis=1) + b_o).var(axis=-1) + EPS[kind])  # biased

            def normed(t, std, gamma=gamma):
                return gamma * (t - t.mean(axis=-1, keepdims=True)) / std

            f, x, b_o = normed(f, std[:, None, None]), normed(x, std[:, None]), normed(b_o, std[:, None]) + beta
        np.testing.assert_allclose(split.keys, f, atol=1e-6 * largest)
        np.testing.assert_allclose(split.residual, x, atol=1e-6 * largest)
        np.testing.assert_allclose(split.bias, np.broadcast_to(b_o, split.bias.shape), atol=1e-6 * largest)


@pytest.mark.parametrize(
    ("family", "changes", "reason"),
    [
        *((name, {}, ELSEWHERE) for name in ("gemma2", "glm4", "olmo2", "gptj", "cohere")),
        ("granite", {"residual_multiplier": 0.5}, ELSEWHERE),
    ],
)
def test_families_with_norms_elsewhere_or_an_unknown_factor_of_the_residual_sum_are_refused(family, changes, reason):
    model = vf.wrap(tiny_module(family, **changes), tokenizer())
    trace = model.trace(texts_of("gpt2")[0], record=needed(model, "parts"))
    with pytest.raises(TraceError, match=reason):
        parts(trace, "decoder.0.self_attn")
    assert norm_weighted(trace, "decoder.0.self_attn").diagonal().all(), "norms need no residual stream"


def test_what_was_not_recorded_is_named_with_the_way_to_record_it():
    model = tiny_translator()
    trace = model.trace("I like school.", record=("*.pattern", "*.v"))
    expected = r"lacks decoder\.0\.cross_attn\.w_o, which norm needs.*needed\(model, 'norm'\)"
    with pytest.raises(MissingTensor, match=expected):
        norm_weighted(trace, "decoder.0.cross_attn")
    trace = model.trace("I like school.", record=needed(model, "norm", "decoder.0.cross_attn"))
    assert norm_weighted(trace, "decoder.0.cross_attn").shape == (len(trace.tokens["tgt"]), len(trace.tokens["src"]))
    assert paths_of(trace) == ["decoder.0.cross_attn"]
    with pytest.raises(MissingTensor, match=r"decoder\.0\.resid_self, decoder\.0\.resid_cross"):
        parts(trace, "decoder.0.cross_attn")


def test_a_missing_bias_and_an_edited_head_are_refused():
    model = tiny_translator()
    wanted = needed(model, "parts")
    with pytest.raises(TraceError, match="a bias was not recorded"):
        parts(
            model.trace("I like school.", record=[each for each in wanted if not each.endswith("b_o")]),
            "encoder.0.self_attn",
        )
    silenced = model.trace("I like school.", record=wanted, edits=Silence("encoder.0.self_attn", 0))
    with pytest.raises(TraceError, match="an edit changes it"):
        parts(silenced, "encoder.0.self_attn")


def test_what_does_not_exist_is_refused():
    trace = trace_of("en-zh")
    with pytest.raises(TraceError, match=r"'decoder\.cross' is not the path of an attention"):
        parts(trace, "decoder.cross")
    with pytest.raises(ShapeError, match="8 heads; 8 is not in 0 to 7"):
        norm_weighted(trace, "decoder.0.cross_attn", head=8)
    with pytest.raises(TraceError, match="'shap' is none of the methods raw, norm, alti"):
        needed(model_of("en-zh"), "shap")
    plain = Trace.from_attention(["a", "b"], np.full((1, 1, 2, 2), 0.5))
    with pytest.raises(TraceError, match="does not say how its model is built"):
        parts(plain, "encoder.0.self_attn")


def test_a_family_without_readable_weights_is_refused():
    model = vf.wrap(tiny_module("qwen3_next"), tokenizer())
    with pytest.raises(MissingTensor, match="family whose weights cannot be read"):
        norm_weighted(model.trace(texts_of("gpt2")[0], record=needed(model, "norm")), "decoder.1.self_attn")
