"""Masking and its curves, against the model with a mask function put in its place."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.analysis.models import TEXT, model_of, texts_of
from tests.support import tiny_translator
from visformer.analysis import attention_gradient, curve_scores, deletion, gradient_x_input, insertion, masking
from visformer.errors import ShapeError, VisformerError

SOURCE, TARGET = "I like school.", "我喜欢你。"


def log_p(logits, ids):
    return logits[0].double().log_softmax(-1)[range(len(ids)), ids].detach().numpy()


def hidden_by_hand(monkeypatch, model, source, target, keys):
    """Log p of each row with these keys hidden: the module's own mask functions are replaced, and no tap is open."""
    target = model.translate(source).ids if target is None and model.info.kind == "encoder-decoder" else target
    ids = model.trace(source, target).meta["ids"]
    tgt, following = torch.tensor([ids["tgt"]]), ids["next"]
    if "src" in ids:
        seen = torch.ones(1, 1, 1, len(ids["src"]), dtype=torch.bool)
        seen[..., list(keys)] = False
        with monkeypatch.context() as patch:
            patch.setattr("visformer.model.transformer.key_mask", lambda _: seen)
            return log_p(model.module(torch.tensor([ids["src"]]), tgt), following)
    causal = torch.ones(len(following), len(following), dtype=torch.bool).tril()
    causal[:, list(keys)] = False
    with monkeypatch.context() as patch:
        patch.setattr("visformer.model.gpt.decoder_mask", lambda *_: causal)
        return log_p(model.module(tgt), following)


@pytest.mark.parametrize("kind", ["en-zh", "mini-gpt"])
def test_masking_is_the_drop_of_log_p_with_a_key_masked_by_hand(kind, monkeypatch):
    model = model_of(kind)
    source, target = texts_of(kind)
    value, whole = masking(model, source, target), hidden_by_hand(monkeypatch, model, source, target, ())
    for key in range(value.shape[1]):
        drop = whole - hidden_by_hand(monkeypatch, model, source, target, (key,))
        np.testing.assert_allclose(value[:, key], drop, atol=1e-4)
    assert value.max() > 1
    assert (value < 0).any(), "masking is signed"
    if kind == "mini-gpt":
        assert not np.triu(value, 1).any()


def test_a_model_of_transformers_is_masked_by_its_own_attention_mask():
    model = model_of("gpt2")
    value, ids = masking(model, TEXT), model.trace(TEXT).meta["ids"]
    for key in range(1, value.shape[1]):  # with key 0 hidden, row 0 has nothing to read
        mask = torch.ones(1, len(ids["tgt"]))
        mask[0, key] = 0
        positions = torch.arange(len(ids["tgt"]))[None]
        logits = [
            model.module(torch.tensor([ids["tgt"]]), attention_mask=each, position_ids=positions).logits
            for each in (torch.ones_like(mask), mask)
        ]
        drop = log_p(logits[0], ids["next"]) - log_p(logits[1], ids["next"])
        np.testing.assert_allclose(value[:, key], drop, atol=1e-4)


@pytest.mark.parametrize("method", [deletion, insertion])
def test_curves_hide_or_return_tokens_in_order_of_their_values(method, monkeypatch):
    model = tiny_translator()
    rows, keys = masking(model, SOURCE, TARGET).shape
    values = np.random.default_rng(0).integers(0, 4, size=(rows, keys)).astype(float)  # with ties
    curves = method(model, SOURCE, TARGET, values=values)
    assert curves.shape == (rows, keys + 1)
    for row in range(rows):
        order = sorted(range(keys), key=lambda key: (-values[row, key], key))
        for n in range(keys + 1):
            hidden = order[:n] if method is deletion else order[n:]
            assert curves[row, n] == pytest.approx(
                hidden_by_hand(monkeypatch, model, SOURCE, TARGET, hidden)[row], abs=1e-4
            )


@settings(max_examples=4)
@given(st.integers(0, 99))
def test_masking_names_the_token_whose_deletion_costs_most_at_once(seed):
    model = tiny_translator(seed=seed % 4)
    value = masking(model, SOURCE, TARGET)
    other = np.random.default_rng(seed).random(value.shape)
    first, best = (deletion(model, SOURCE, TARGET, values=each)[:, :2] for each in (other, value))
    assert (np.diff(best)[:, 0] <= np.diff(first)[:, 0] + 1e-9).all()
    np.testing.assert_allclose(-np.diff(best)[:, 0], value.max(axis=1), atol=1e-9)


def test_curves_end_where_the_others_begin():
    model = tiny_translator()
    value = masking(model, SOURCE, TARGET)
    out, back = (method(model, SOURCE, TARGET, values=value) for method in (deletion, insertion))
    np.testing.assert_allclose(out[:, -1], back[:, 0], atol=1e-9)
    np.testing.assert_allclose(out[:, 0], back[:, -1], atol=1e-9)


def test_what_cannot_be_hidden_is_refused():
    with pytest.raises(VisformerError, match="is an encoder: it predicts no next word, which masking explains"):
        masking(model_of("bert"), TEXT)
    patterns_only = vf.wrap(tiny_module("openai-gpt"), tokenizer())
    for method in (masking, gradient_x_input, attention_gradient):
        with pytest.raises(VisformerError, match="only patterns and logits can be read, not what lies between"):
            method(patterns_only, TEXT)
    with pytest.raises(ShapeError, match=r"values has the shape \(2, 2\); rows and source tokens are"):
        deletion(tiny_translator(), SOURCE, values=np.zeros((2, 2)))


def test_scores_are_the_mean_heights_of_the_curves_over_the_pairs():
    model, pairs = tiny_translator(), [(SOURCE, TARGET), ("We like it.", TARGET)]
    table = curve_scores(model, pairs, method="alti+").set_index("curve")
    for name, curve in (("deletion", deletion), ("insertion", insertion)):
        heights = [
            curve(model, *pair, values=vf.analysis.attribution(model, *pair, method="alti+").value).mean()
            for pair in pairs
        ]
        found = table.loc[name]
        assert found["height"] == pytest.approx(np.mean(heights), rel=1e-9)
        assert (found["low"], found["high"]) == pytest.approx((min(heights), max(heights)), rel=1e-9)
        assert found["n"] == 2
