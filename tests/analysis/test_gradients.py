"""Methods that follow gradients, against torch.autograd through the bare module and the rules written out in NumPy."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.huggingface.test_heads import with_head
from tests.analysis.models import TEXT, model_of, texts_of
from tests.support import tiny_gpt, tiny_translator
from visformer.analysis import attention_gradient, gradient_x_input
from visformer.errors import BudgetError, VisformerError
from visformer.model.masks import causal_mask
from visformer.system import limits


def in_full(*kinds):
    """Return rows of the full run; the blocks of these kinds are like those of others."""
    return [pytest.param(kind, marks=pytest.mark.full) for kind in kinds]


def ids_of(model, source, target):
    if target is None and model.info.kind == "encoder-decoder":
        target = model.translate(source).ids
    trace = model.trace(source, target)
    return {side: torch.tensor([ids]) for side, ids in trace.meta["ids"].items()}


def log_p(logits, following):
    return logits[0].double().log_softmax(-1)[range(len(following)), following]


def of_embeddings(model, ids):
    """Logits from the embeddings alone, through the module without any tap; and these embeddings."""
    module = model.module
    if model.info.name == "en-zh":
        table = module.src_embedding
        e = (table.token(ids["src"]) * table.scale).detach().requires_grad_()
        n = e.shape[1]
        x = e + vf.sinusoidal_encoding(n, e.shape[2])
        memory = module.encoder(x)
        y = module.tgt_embedding.token(ids["tgt"]) * module.tgt_embedding.scale
        y = y + vf.sinusoidal_encoding(y.shape[1], y.shape[2])
        return module.output(module.decoder(y, memory, self_mask=causal_mask(y.shape[1]))), e
    if model.info.name == "mini-gpt":
        e = module.embedding.token(ids["tgt"]).detach().requires_grad_()
        n = e.shape[1]
        return module.output(module.decoder(e + module.embedding.position[:n], mask=causal_mask(n))), e
    module = vf.wrap(module, tokenizer()).module
    if model.info.kind == "decoder":
        e = module.get_input_embeddings()(ids["tgt"]).detach().requires_grad_()
        return module(inputs_embeds=e).logits, e
    e = module.get_encoder().embed_tokens(ids["src"]).detach().requires_grad_()  # BART scales it there
    return module(inputs_embeds=e, decoder_input_ids=ids["tgt"]).logits, e


@pytest.mark.parametrize("kind", ["en-zh", "mini-gpt", "llama", "t5", *in_full("gpt2", "bart", "mbart")])
def test_gradient_x_input_is_that_of_autograd_through_the_bare_module(kind):
    model = model_of(kind)
    source, target = texts_of(kind)
    value = gradient_x_input(model, source, target)
    ids = ids_of(model, source, target)
    logits, e = of_embeddings(model, ids)
    for row, one in enumerate(log_p(logits, ids["next"][0])):
        (gradient,) = torch.autograd.grad(one, e, retain_graph=True)
        expected = (gradient * e)[0].detach().double().sum(-1).numpy()
        np.testing.assert_allclose(value[row], expected, atol=1e-5 * max(1, abs(expected).max()))
    assert abs(value).max() > 1e-3


def test_the_directional_derivative_is_that_of_finite_differences():
    """Log p along e_k (1 + t), by two passes with edited embeddings, without any gradient."""
    model, source = tiny_translator(), "I like school."
    ids = model.translate(source, max_new_tokens=6).ids
    value = gradient_x_input(model, source, ids)
    model.module.double()
    for k in range(value.shape[1]):
        ends = []
        for t in (-1e-3, 1e-3):

            def scaled(name, tensor, k=k, t=t):
                if name == "src.embed":
                    tensor[:, k] *= 1 + t
                return tensor

            trace = model.trace(source, ids, record="logits", edits=scaled)
            logits = trace["logits"].value.astype(float)
            rows = range(len(logits)), trace.meta["ids"]["next"]
            ends.append(logits[rows] - np.logaddexp.reduce(logits, axis=-1))
        np.testing.assert_allclose(value[:, k], (ends[1] - ends[0]) / 2e-3, atol=0.02, rtol=0.02)


def gradients_of_patterns(model, ids):
    """(A, dy/dA) of each attention by its path, for each row, by autograd; A is replaced by itself plus a zero."""
    zeros = {}

    def plus_zero(name, tensor):
        if name.endswith(".pattern"):
            zeros[name] = torch.zeros_like(tensor, requires_grad=True), tensor.detach()
            return tensor + zeros[name][0]
        return tensor

    from visformer.model import taps

    with taps.session(plus_zero, wanted=lambda name: name.endswith(".pattern")):
        module = model.module
        logits = module(ids["src"], ids["tgt"]) if "src" in ids else module(ids["tgt"])
    for row, following in enumerate(ids["next"][0]):
        found = torch.autograd.grad(logits[0, row, following], [zero for zero, _ in zeros.values()], retain_graph=True)
        yield {
            name.removesuffix(".pattern"): (weights[0].double().numpy(), gradient[0].double().numpy())
            for (name, (_, weights)), gradient in zip(zeros.items(), found, strict=True)
        }


def relevance(layers, path):
    weights, gradient = layers[path]
    return np.mean([np.clip(w * g, 0, None) for w, g in zip(weights, gradient, strict=True)], axis=0)


def hat(relevance):
    """R-bar: rows of R - I over their sums, plus I."""
    result = np.eye(len(relevance))
    for i, row in enumerate(relevance - np.eye(len(relevance))):
        if row.sum() != 0:
            result[i] += row / row.sum()
    return result


@pytest.mark.parametrize(("make", "target"), [(lambda: model_of("en-zh"), None), (tiny_translator, "我喜欢你。")])
def test_attention_x_gradient_follows_the_rules_for_an_encoder_and_a_decoder(make, target):
    model, source = make(), "I like school."
    value, ids = attention_gradient(model, source, target), ids_of(model, source, target)
    n_src, n_tgt = ids["src"].shape[1], ids["tgt"].shape[1]
    for row, layers in enumerate(gradients_of_patterns(model, ids)):
        r_ii, r_qq, r_qi = np.eye(n_src), np.eye(n_tgt), np.zeros((n_tgt, n_src))
        for layer in range(model.info.n_encoder_layers):
            r_ii = r_ii + relevance(layers, f"encoder.{layer}.self_attn") @ r_ii
        for layer in range(model.info.n_decoder_layers):
            own = relevance(layers, f"decoder.{layer}.self_attn")
            r_qi = r_qi + own @ r_qi
            r_qq = r_qq + own @ r_qq
            r_qi = r_qi + hat(r_qq).T @ relevance(layers, f"decoder.{layer}.cross_attn") @ hat(r_ii)
        np.testing.assert_allclose(value[row], r_qi[row], atol=1e-6 * max(1, r_qi.max()))
    assert (value.max(axis=1) > 1e-4).all()


@pytest.mark.parametrize("make", [lambda: model_of("mini-gpt"), tiny_gpt])
def test_attention_x_gradient_follows_the_rule_for_a_decoder_alone(make):
    model, source = make(), "I like school."
    value, ids = attention_gradient(model, source), ids_of(model, source, None)
    for row, layers in enumerate(gradients_of_patterns(model, ids)):
        r = np.eye(ids["tgt"].shape[1])
        for layer in range(model.info.n_decoder_layers):
            r = r + relevance(layers, f"decoder.{layer}.self_attn") @ r
        np.testing.assert_allclose(value[row], r[row], atol=1e-6 * max(1, r.max()))
        assert not value[row, row + 1 :].any()


@pytest.mark.parametrize("kind", ["gpt2", "t5", *in_full("bart", "mini-gpt")])
def test_frozen_weights_change_nothing_and_no_weight_gets_a_gradient(kind):
    model = model_of(kind)
    source, target = texts_of(kind)
    before = [method(model, source, target) for method in (gradient_x_input, attention_gradient)]
    assert all(weight.grad is None for weight in model.module.parameters())
    model.module.requires_grad_(False)
    try:
        after = [method(model, source, target) for method in (gradient_x_input, attention_gradient)]
    finally:
        model.module.requires_grad_(True)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])


def test_the_recorded_pass_is_that_of_trace():
    model = model_of("en-zh")
    text = texts_of("en-zh")[0]
    found = model.gradients(text, at=("src.embed", "*.cross_attn.pattern"))
    trace = model.trace(text, model.translate(text).ids, record=("*.cross_attn.pattern", "logits"))
    assert list(found.values) == ["src.embed", *(f"decoder.{layer}.cross_attn.pattern" for layer in range(3))]
    for name in trace:
        np.testing.assert_array_equal(found.trace[name], trace[name])
        if name in found.values:
            assert found.values[name].shape == (len(trace.tokens["tgt"]), *trace[name].shape)


def test_what_has_no_gradient_is_refused(monkeypatch):
    encoder = model_of("bert")
    for method in (gradient_x_input, attention_gradient):
        with pytest.raises(VisformerError, match="is an encoder: it predicts no next word"):
            method(encoder, TEXT)
    copied = vf.wrap(tiny_module("gpt2"), tokenizer())
    visit = type(copied)._visit

    def severed(output):
        output.patterns.update({f"decoder.{i}.self_attn": torch.full((1, 4, 7, 7), 1 / 7) for i in range(3)})
        return visit(output)

    monkeypatch.setattr(copied, "_visit", severed)  # weights beside the graph, as fused attention has them
    with pytest.raises(VisformerError, match=r"No gradient reaches decoder\.0\.self_attn\.pattern"):
        attention_gradient(copied, TEXT)
    with pytest.raises(VisformerError, match="of='loss' must be one of log_probability, logit"):
        model_of("mini-gpt").gradients("I like school.", at="tgt.embed", of="loss")
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 3_000_000)
    with pytest.raises(BudgetError):
        attention_gradient(model_of("mini-gpt"), "I like school. " * 20)


def test_the_gradient_of_a_number_of_ones_own_is_one_pass_back():
    """A difference of two logits is the difference of their gradients, and of a classifier it is one of its labels."""
    model = tiny_gpt()
    a, b = 5, 9
    found = model.gradients(TEXT, at="tgt.embed", of=lambda logits: logits[-1, a] - logits[-1, b])
    each = [model.gradients(TEXT, at="tgt.embed", of=lambda logits, at=at: logits[-1, at]) for at in (a, b)]
    wanted = each[0].values["tgt.embed"] - each[1].values["tgt.embed"]
    np.testing.assert_allclose(found.values["tgt.embed"], wanted, atol=1e-5)
    assert found.values["tgt.embed"].shape == (1, *found.trace["tgt.embed"].shape)
    rows = model.gradients(TEXT, at="tgt.embed", of="logit")
    likeliest = rows.trace.meta["ids"]["next"][-1]
    last = model.gradients(TEXT, at="tgt.embed", of=lambda logits: logits[-1, likeliest])
    np.testing.assert_allclose(last.values["tgt.embed"][0], rows.values["tgt.embed"][-1], atol=1e-6)
    classifier = vf.wrap(with_head("bert", AutoModelForSequenceClassification), tokenizer())
    label = classifier.gradients(TEXT, at="src.embed", of=lambda logits: logits[2])
    assert abs(label.values["src.embed"]).max() > 0


@pytest.mark.parametrize("of", [lambda logits: logits[-1], lambda logits: 3.0, lambda logits: logits[0, 0].detach()])
def test_what_is_no_number_of_the_logits_is_refused(of):
    with pytest.raises(VisformerError, match="return a single number that is computed from the logits"):
        tiny_gpt().gradients(TEXT, at="tgt.embed", of=of)
