"""What is asked of a prediction: tokens, labels and pairs of them, against plain torch on models of transformers."""

import copy

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.support import tiny_gpt
from visformer.analysis import (
    attention_gradient,
    attribution,
    direct_attribution,
    gradient_x_input,
    head_effects,
    logit_lens,
    masking,
    patching,
    patching_pair,
    pruning,
    shuffle_effect,
    weight_effects,
)
from visformer.analysis.answers import asked, spoken
from visformer.errors import MissingTensor, TextError, VisformerError
from visformer.trace import Trace

TEXT, OTHER = "I went to the river", "I saw to the school"
LABELS = {0: "bad", 1: "so-so", 2: "good"}
HEADS = {
    "sequence": (AutoModelForSequenceClassification, ("good", "bad"), None),
    "tokens": (AutoModelForTokenClassification, ("good", "bad"), 2),
    "question": (AutoModelForQuestionAnswering, "end", 3),
}
"""The class, what is asked of it, and the row."""


def classifier(name, family="bert"):
    """An untrained classifier whose weights are large enough for heads to matter."""
    config = copy.deepcopy(tiny_module(family).config)
    config.id2label = {i: label for i, label in LABELS.items() if name != "question" or i < 2}
    torch.manual_seed(1)
    module = HEADS[name][0].from_config(config, attn_implementation="eager").eval()
    for weight in module.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.3)
    return module


def number(name, output):
    """What HEADS asks of an output of transformers."""
    if name == "question":
        return output.end_logits[0, 3]
    logits = output.logits[0] if name == "sequence" else output.logits[0, 2]
    return logits[2] - logits[0]


def ids_of(text):
    return torch.tensor([tokenizer()(text)["input_ids"]])


@pytest.mark.parametrize("name", HEADS)
def test_the_heads_of_a_classifier_are_ranked_by_what_its_label_loses(name):
    """A head is zero at the input of the output projection, and its gate's gradient is autograd's."""
    module, (_, answer, row) = classifier(name), HEADS[name]
    dense = [layer.attention.output.dense for layer in module.bert.encoder.layer]
    n_heads, inputs = module.config.num_attention_heads, []
    width = module.config.hidden_size // n_heads

    def run(layer=None, head=None):
        def silenced(_, args):
            inputs.append(args[0])
            if dense[layer or 0] is _ and head is not None:
                changed = args[0].clone()
                changed[..., head * width : (head + 1) * width] = 0
                return (changed,)
            return None

        inputs.clear()
        hooks = [each.register_forward_pre_hook(silenced) for each in dense]
        found = number(name, module(ids_of(TEXT)))
        for hook in hooks:
            hook.remove()
        return found

    clean = run()
    gradients = torch.autograd.grad(clean, list(inputs))
    slopes = [(x * g)[0].reshape(-1, n_heads, width).sum((0, 2)) for x, g in zip(inputs, gradients, strict=True)]
    model = vf.wrap(module, tokenizer())
    how = {"answer": answer, "row": -1 if row is None else row}
    for method, wanted in (
        ("zero", lambda layer, head: (clean - run(layer, head)).item()),
        ("gradient", lambda layer, head: abs(slopes[layer][head].item())),
    ):
        table = head_effects(model, [TEXT], method=method, **how)
        assert len(table) == len(dense) * n_heads
        for _, layer, head, effect in table[["stack", "layer", "head", "effect"]].itertuples(index=False):
            assert effect == pytest.approx(wanted(layer, head), abs=1e-4)
        assert table["effect"].max() > 0.05


def test_pruning_ends_with_what_is_left_of_a_label_without_any_head():
    """The other half of the texts ranks the heads, which makes no difference once all are gone."""
    module, texts = classifier("sequence"), [TEXT, OTHER]
    with torch.no_grad():
        clean = {text: number("sequence", module(ids_of(text))).item() for text in texts}
        hooks = [
            layer.attention.output.dense.register_forward_pre_hook(lambda _, args: (0 * args[0],))
            for layer in module.bert.encoder.layer
        ]
        bare = {text: number("sequence", module(ids_of(text))).item() for text in texts}
    for hook in hooks:
        hook.remove()
    n_heads = module.config.num_attention_heads * module.config.num_hidden_layers
    model = vf.wrap(module, tokenizer())
    table = pruning(model, texts, answer=("good", "bad"), counts=[0, n_heads], draws=1, seed=1)
    assert table.attrs["answer"] == ("good", "bad")
    held_out = texts[np.random.default_rng(1).permutation(2)[1]]
    lost = clean[held_out] - bare[held_out]
    assert abs(lost) > 0.05
    np.testing.assert_allclose(table["rise"], [0, lost] * 2, atol=1e-4)


@pytest.mark.parametrize("name", HEADS)
def test_the_methods_explain_a_label(name):
    module, (_, answer, row) = classifier(name), HEADS[name]
    model, ids = vf.wrap(module, tokenizer()), ids_of(TEXT)
    how = {"answer": answer, "row": -1 if row is None else row}
    with torch.no_grad():
        clean = number(name, module(ids))
        hidden = torch.ones(ids.shape[1], ids.shape[1]) - torch.eye(ids.shape[1])  # (hidden token, token)
        drops = [float(clean - number(name, module(ids, attention_mask=seen[None]))) for seen in hidden]
    np.testing.assert_allclose(masking(model, TEXT, **how), [drops], atol=1e-4)

    embedded = module.get_input_embeddings()(ids).detach().requires_grad_()
    output = module(inputs_embeds=embedded, output_attentions=True)
    found = torch.autograd.grad(number(name, output), [embedded, *output.attentions])
    wanted = (found[0] * embedded)[0].sum(-1).detach().numpy()
    np.testing.assert_allclose(gradient_x_input(model, TEXT, **how), [wanted], atol=1e-4)

    relevance = torch.eye(ids.shape[1])
    for weights, gradient in zip(output.attentions, found[1:], strict=True):
        relevance = relevance + (weights * gradient)[0].clamp(min=0).mean(0) @ relevance
    read = relevance[0 if row is None else row].detach().numpy()  # BERT's head reads [CLS]
    np.testing.assert_allclose(attention_gradient(model, TEXT, **how), [read], atol=1e-4)

    told = attribution(model, TEXT, method="masking", **how)
    assert (told.row, told.stack) == ("answer", "encoder.self_attn")
    assert told.query_tokens == (" − ".join(answer) if isinstance(answer, tuple) else answer,)


@pytest.mark.parametrize("name", HEADS)
def test_weights_and_patches_move_a_label_as_the_model_says(name):
    module, (_, answer, row) = classifier(name), HEADS[name]
    model = vf.wrap(module, tokenizer())
    how = {"answer": answer, "row": -1 if row is None else row}
    path = "encoder.1.self_attn"
    exact = weight_effects(model, TEXT, path=path, head=1, cells=[(0, 2)], **how)
    with torch.no_grad():
        clean, other = (float(number(name, module(ids_of(text)))) for text in (TEXT, OTHER))
    from visformer.edits import Zero

    logits = torch.tensor(model.trace(TEXT, record="logits", edits=Zero(path, 1, 0, 2))["logits"].value)
    of_row = logits if row is None else logits[row]
    changed = float(of_row[1] if name == "question" else of_row[2] - of_row[0])
    assert exact.values[0, 2] == pytest.approx(changed - clean, abs=1e-4)
    assert (exact.predicts, exact.answer) == ("answer", answer if isinstance(answer, tuple) else (answer,))
    found = patching(model, TEXT, OTHER, **how)
    assert (found.clean, found.corrupt) == pytest.approx((clean, other), abs=1e-4)
    assert found.tokens[0] == model.trace(TEXT).tokens["src"], "all tokens, also those after the row"
    assert patching_pair(model, TEXT, OTHER, row=how["row"]).model == model.info.name


def test_the_distributions_of_a_span_are_over_its_tokens():
    module = classifier("question")
    model, path = vf.wrap(module, tokenizer()), "encoder.0.self_attn"
    found = shuffle_effect(model, TEXT, path=path, weights="uniform")
    with torch.no_grad():
        clean = module(ids_of(TEXT))
    changed = torch.tensor(model.trace(TEXT, record="logits", edits=vf.edits.Uniform(path))["logits"].value)
    wanted = [
        float((changed[:, i].softmax(0) - own[0].softmax(0)).abs().sum() / 2)
        for i, own in enumerate((clean.start_logits, clean.end_logits))
    ]
    np.testing.assert_allclose(found.draws, [wanted], atol=1e-5)


def test_a_pair_is_the_difference_of_both_everywhere():
    """Of a decoder; gradients and lost logits are linear in what is asked for."""
    model, text = tiny_gpt(), "I like you."
    place = {"path": "decoder.1.self_attn", "head": 1}
    for function, how in (
        (gradient_x_input, {}),
        (masking, {}),
        (lambda *given, **asks: weight_effects(*given, **place, **asks).values, {}),
        (lambda *given, **asks: weight_effects(*given, **place, method="gradient", **asks).values, {}),
    ):
        pair, a, b = (function(model, text, answer=answer, row=2, **how) for answer in ((7, 9), 7, 9))
        np.testing.assert_allclose(pair, a - b, atol=1e-5)
        assert abs(pair).max() > 1e-6


def test_an_answer_is_an_id_a_token_as_displayed_or_its_text():
    model = vf.load("mini-gpt")
    trace = model.trace("Tom", record="logits")
    logits = trace["logits"].value[-1]
    first = trace.meta["likeliest"][-1][0]
    assert asked(trace, None).ids == asked(trace, first).ids == (int(logits.argmax()),)
    pair = asked(trace, ("is", "are"), model=model)
    assert pair.ids == (model.token_id("is"), model.token_id("are")) and pair.name == "is − are"
    assert pair(trace["logits"].value) == logits[pair.ids[0]] - logits[pair.ids[1]]
    assert model.text.decode([model.token_id("are")]) == "are"
    for given, row, message in (
        ("are", 9, r"row=9 is not in 0 to 1"),
        (10**6, -1, r"answer=1000000 is not in 0 to \d+"),
        (("is", "is"), -1, "a pair of two that differ"),
        (("is", "are", "was"), -1, "a pair of two that differ"),
        (3.5, -1, r"answer=3.5 is not in 0 to \d+"),
    ):
        with pytest.raises(VisformerError, match=message):
            asked(trace, given, row, model=model)
    with pytest.raises(VisformerError, match="does not know which token 'zebra' is"):
        asked(trace, "zebra")
    with pytest.raises(TextError, match="is not one token of this model"):
        model.token_id("unbelievably")
    with pytest.raises(MissingTensor):
        asked(Trace.from_attention(["a", "b"], np.full((1, 1, 2, 2), 0.5)), 0)


def test_a_label_that_is_none_is_told_with_those_there_are():
    model = vf.wrap(classifier("sequence"), tokenizer())
    with pytest.raises(VisformerError, match="answer='superb' is none of the labels bad, so-so, good"):
        masking(model, TEXT, answer="superb")
    for read in (logit_lens, lambda trace: direct_attribution(trace, 0, answer="good")):
        with pytest.raises(VisformerError, match="this one predicts labels"):
            read(model.trace(TEXT, record="logits"))
    with pytest.raises(VisformerError, match="say which label with answer="):
        head_effects(model, [TEXT])
    with pytest.raises(VisformerError, match="Text 1, counted from 0, has no row 6: it has 3"):
        head_effects(vf.wrap(classifier("tokens"), tokenizer()), [TEXT, "I"], answer="good", row=6)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("is", "is"), (" ", None), (" is − are ", ("is", "are")), ("a - b", ("a", "b")), ("B-PER", "B-PER")],
)
def test_what_a_person_writes(text, answer):
    assert spoken(text) == answer
