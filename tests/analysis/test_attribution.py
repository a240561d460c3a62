"""The one door to all methods: it returns what each method does, with the tokens along both axes."""

import numpy as np
import pytest

from tests.analysis.models import model_of, texts_of, trace_of
from visformer.analysis import (
    METHODS,
    alti,
    alti_plus,
    attention_gradient,
    attribution,
    gradient_x_input,
    masking,
    norm_weighted,
    rollout,
)
from visformer.errors import VisformerError

MODEL, TEXT = model_of("en-zh"), texts_of("en-zh")[0]
RUN = {"attention x gradient": attention_gradient, "gradient": gradient_x_input, "masking": masking}


@pytest.mark.parametrize("stack", ["encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"])
@pytest.mark.parametrize(("layer", "head"), [(None, None), (0, 3)])
def test_methods_of_an_attention_have_its_tokens(stack, layer, head):
    trace = trace_of("en-zh")
    part, kind = stack.split(".")
    path = f"{part}.{2 if layer is None else layer}.{kind}"
    pattern = trace[f"{path}.pattern"].value
    expected = {
        "raw": pattern.mean(axis=0) if head is None else pattern[head],
        "norm": norm_weighted(trace, path, head=head),
    }
    if head is None:
        expected["alti"] = alti(trace, path)
    queries = trace.tokens["src" if part == "encoder" else "tgt"]
    keys = trace.tokens["tgt" if stack == "decoder.self_attn" else "src"]
    for method, value in expected.items():
        told = attribution(MODEL, TEXT, method=method, stack=stack, layer=layer, head=head)
        np.testing.assert_allclose(told.value, value, atol=1e-6)
        assert told.value.shape == (len(told.query_tokens), len(told.key_tokens))
        assert told.query_tokens == queries
        assert told.key_tokens == keys + (("residual",) if method == "alti" and kind == "cross_attn" else ())
        assert (told.row, told.layer, told.head) == ("input", 2 if layer is None else layer, head)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.of in ("shares", "model")])
def test_methods_of_the_whole_model_go_from_source_tokens_to_predicted_words(method):
    trace = trace_of("en-zh")
    value = RUN[method](MODEL, TEXT) if method in RUN else (alti_plus if method == "alti+" else rollout)(trace)[0]
    for stack in ("decoder.cross_attn", None):
        told = attribution(MODEL, TEXT, method=method, stack=stack)
        np.testing.assert_allclose(told.value, value, atol=1e-6)
        assert (told.query_tokens, told.key_tokens) == (trace.tokens["next"], trace.tokens["src"])
        assert (told.row, told.stack) == ("prediction", "decoder.cross_attn")
        assert METHODS[method].about in told.about
        assert METHODS[method].limit in told.about


@pytest.mark.parametrize("method", ["alti+", "rollout"])
def test_shares_of_the_target_and_within_the_encoder(method):
    trace, whole = trace_of("en-zh"), alti_plus if method == "alti+" else rollout
    target = attribution(MODEL, TEXT, method=method, stack="decoder.self_attn")
    np.testing.assert_allclose(target.value, whole(trace)[1], atol=1e-6)
    assert target.key_tokens == trace.tokens["tgt"]
    encoder = attribution(MODEL, TEXT, method=method, stack="encoder.self_attn")
    np.testing.assert_allclose(encoder.value.sum(axis=1), 1, atol=1e-6)
    assert encoder.query_tokens == encoder.key_tokens == trace.tokens["src"]
    alone = attribution(model_of("bert"), TEXT, method=method)
    np.testing.assert_allclose(alone.value.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_decoder_alone_reads_its_own_tokens(method):
    model, text = model_of("mini-gpt"), texts_of("mini-gpt")[0]
    told = attribution(model, text, method=method)
    assert told.stack == "decoder.self_attn"
    assert told.key_tokens == trace_of("mini-gpt").tokens["tgt"]
    assert not np.triu(told.value, 1).any()


def test_what_a_method_does_not_know_is_refused_with_what_it_does():
    for arguments, message in (
        ({"method": "shap"}, "method='shap' is none of raw, norm, alti"),
        ({"method": "raw", "stack": "cross"}, "stack='cross': raw can be had for encoder.self_attn, decoder.self_attn"),
        ({"method": "gradient", "stack": "encoder.self_attn"}, "gradient can be had for decoder.cross_attn"),
        ({"method": "raw", "answer": "我"}, "answer='我': raw is the same whatever is predicted; leave answer out"),
        ({"method": "alti", "head": 0}, "head=0: alti is of all of them together; leave head out"),
        ({"method": "rollout", "layer": 0}, "layer=0: rollout is of all of them together; leave layer out"),
        ({"method": "raw", "layer": 3}, "layer=3: there are 0, 1, 2"),
        ({"method": "raw", "head": 8}, "head=8: there are 8, counted from 0"),
    ):
        with pytest.raises(VisformerError, match=message):
            attribution(MODEL, TEXT, **arguments)
    with pytest.raises(VisformerError, match=r"rollout can be had for decoder\.self_attn"):
        attribution(model_of("mini-gpt"), TEXT, method="rollout", stack="encoder.self_attn")
