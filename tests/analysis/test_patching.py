"""Patching, against hooks written by hand on a model of transformers; the bundled pairs."""

import numpy as np
import pytest
import torch

from tests.adapters.huggingface import hub
from tests.support import tiny_translator
from visformer.adapters.load import load, wrap
from visformer.analysis import patching, patching_pair, patching_pairs
from visformer.errors import VisformerError

CLEAN, CORRUPT = "I went to the river", "I saw to the school"


def differences(module, ids, a, b, *, hook=None):
    with torch.no_grad():
        if hook is None:
            logits = module(torch.tensor([ids])).logits[0, -1]
        else:
            handle = hook()
            try:
                logits = module(torch.tensor([ids])).logits[0, -1]
            finally:
                handle.remove()
    logs = logits.double().log_softmax(-1)
    return float(logs[a] - logs[b])


def setting():
    """A tiny GPT-2, both texts as ids, and two answers that tell them apart."""
    for seed in range(20):
        module = hub.tiny_module("gpt2", seed=seed)
        ids = [hub.tokenizer()(text, add_special_tokens=True)["input_ids"] for text in (CLEAN, CORRUPT)]
        logs = [module(torch.tensor([row])).logits[0, -1].log_softmax(-1) for row in ids]
        words = torch.arange(len(hub.SPECIALS), len(hub.SPECIALS) + len(hub.WORDS))
        gap = (logs[0] - logs[1])[words]
        a, b = words[gap.argmax()].item(), words[gap.argmin()].item()
        if gap.max() - gap.min() > 1:
            return module, ids, a, b
    raise AssertionError


def test_shares_are_those_of_hooks_by_hand():
    module, (clean, corrupt), a, b = setting()
    of_clean, of_corrupt = (differences(module, ids, a, b) for ids in (clean, corrupt))
    kept = {}

    def keep(name):
        def hook(_, args):
            kept[name] = args[0].clone()

        return hook

    handles = []
    for i, block in enumerate(module.transformer.h):
        handles.append(block.register_forward_pre_hook(keep(("resid", i))))
        handles.append(block.attn.c_proj.register_forward_pre_hook(keep(("heads", i))))
    with torch.no_grad():
        module(torch.tensor([clean]))
    for handle in handles:
        handle.remove()

    def at_token(layer, token):
        def replaced(_, args):
            x = args[0].clone()
            x[:, token] = kept["resid", layer][:, token]
            return (x, *args[1:])

        return lambda: module.transformer.h[layer].register_forward_pre_hook(replaced)

    def of_head(layer, head):
        width = module.config.n_embd // module.config.n_head

        def replaced(_, args):
            x = args[0].clone()
            x[..., head * width : (head + 1) * width] = kept["heads", layer][..., head * width : (head + 1) * width]
            return (x, *args[1:])

        return lambda: module.transformer.h[layer].attn.c_proj.register_forward_pre_hook(replaced)

    def share(hook):
        return (differences(module, corrupt, a, b, hook=hook) - of_corrupt) / (of_clean - of_corrupt)

    n_layers, n_heads = module.config.n_layer, module.config.n_head
    tokens = [[share(at_token(layer, t)) for t in range(len(clean))] for layer in range(n_layers)]
    heads = [[share(of_head(layer, head)) for head in range(n_heads)] for layer in range(n_layers)]
    model = wrap(module, hub.tokenizer())
    answers = tuple(hub.tokenizer().convert_ids_to_tokens([a, b]))
    found = patching(model, CLEAN, CORRUPT, answer=answers)
    np.testing.assert_allclose(found.share, tokens, atol=1e-4)
    assert (found.clean, found.corrupt) == pytest.approx((of_clean, of_corrupt), abs=1e-4)
    assert found.stack == "decoder" and found.tokens[0][1:3] == ("I", "went")
    by_head = patching(model, clean, corrupt, answer=(a, b), by="head")
    np.testing.assert_allclose(by_head.share, heads, atol=1e-4)
    assert by_head.stack == "decoder.self_attn" and abs(np.array(heads)).max() > 0.05
    alone = patching(model, CLEAN, CORRUPT, answer=answers[0])
    with torch.no_grad():
        wanted = [module(torch.tensor([ids])).logits[0, -1, a].item() for ids in (clean, corrupt)]
    assert (alone.clean, alone.corrupt) == pytest.approx(wanted, abs=1e-4)
    assert alone.answer == (answers[0],)


def watched(module, ids):
    """What enters each layer, and each output projection, in a pass of the module; and the last row's logits."""
    seen, handles = {"layer-token": [], "head": []}, []
    for block in module.transformer.h:
        for by, part in (("layer-token", block), ("head", block.attn.c_proj)):
            handles.append(part.register_forward_pre_hook(lambda _, args, by=by: seen[by].append(args[0])))
    logits = module(torch.tensor([ids])).logits[0, -1]
    for handle in handles:
        handle.remove()
    return seen, logits


@pytest.mark.parametrize("by", ["layer-token", "head"])
def test_estimates_are_the_change_times_the_gradient_of_autograd(by):
    module, (clean, corrupt), a, b = setting()
    (before, right), (after, wrong) = watched(module, clean), watched(module, corrupt)
    gradients = torch.autograd.grad(wrong[a] - wrong[b], after[by])
    terms = [((x - y) * g)[0] for x, y, g in zip(before[by], after[by], gradients, strict=True)]
    n_heads = module.config.n_head
    moved = [x.sum(-1) if by == "layer-token" else x.unflatten(-1, (n_heads, -1)).sum((0, 2)) for x in terms]
    wanted = torch.stack(moved) / ((right[a] - right[b]) - (wrong[a] - wrong[b]))
    done = []
    model = wrap(module, hub.tokenizer())
    how = {"by": by, "method": "gradient", "progress": lambda *runs: done.append(runs)}
    found = patching(model, clean, corrupt, answer=(a, b), **how)
    np.testing.assert_allclose(found.share, wanted.detach(), atol=1e-4)
    assert (found.method, done) == ("gradient", [(1, 1)]) and abs(found.share).max() > 0.05


def test_half_a_change_is_estimated_four_times_as_well():
    """An estimate of first order: what it leaves of the answer falls with the square of the change."""
    module, (clean, corrupt), a, b = setting()
    model = wrap(module.double(), hub.tokenizer())
    name = "decoder.1.self_attn.heads"
    of_clean = torch.tensor(model.trace(clean, record=name)[name].value, dtype=torch.float64)

    def answer(step):
        logits = model.trace(corrupt, record="logits", edits={name: lambda x: x + step * (of_clean - x)})[
            "logits"
        ].value
        return float(logits[-1, a] - logits[-1, b])

    found = patching(model, clean, corrupt, answer=(a, b), by="head", method="gradient")
    slope = found.share[1].sum() * (found.clean - found.corrupt)
    rest = [abs(answer(step) - answer(0) - step * slope) for step in (0.5, 0.25)]
    assert rest[0] / rest[1] == pytest.approx(4, rel=0.4)


PAIRS = patching_pairs()
FIRST = {pair.model: pair for pair in reversed(PAIRS)}
"""The first pair of each model."""


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=() if pair is FIRST[pair.model] else pytest.mark.full) for pair in PAIRS],
    ids=lambda pair: f"{pair.model}: {pair.clean}",
)
def test_each_bundled_pair_can_be_patched(pair):
    model = load(pair.model)
    found = patching(model, pair.clean, pair.corrupt, answer=pair.answer, target=pair.target, row=pair.row)
    assert found.clean - found.corrupt >= 0.5 and found.clean > 0
    differing = sum(a != b for a, b in zip(*found.tokens, strict=True))
    if found.stack == "decoder" and differing == 1:  # as it enters the first layer, this token brings all of it back
        assert found.share[0].max() == pytest.approx(1, abs=1e-3)
        assert found.tokens[0] != found.tokens[1]


def test_all_kinds_of_pairs_are_there():
    kinds = {"measure word", "number", "gender", "place name"}
    assert {pair.about for pair in patching_pairs("en-zh")} == kinds
    assert {pair.about for pair in patching_pairs("mini-gpt")} == {"agreement", "repetition"}


def test_an_encoders_stream_and_the_heads_that_read_it():
    model = load("en-zh")
    pair = patching_pairs("en-zh")[0]
    encoder = patching(model, pair.clean, pair.corrupt, answer=pair.answer, target=pair.target, row=pair.row)
    book = encoder.tokens[0].index("book")
    assert encoder.share[0, book] == pytest.approx(1, abs=1e-3)
    cross = patching(
        model, pair.clean, pair.corrupt, answer=pair.answer, target=pair.target, by="head", stack="decoder.cross_attn"
    )
    assert cross.share.shape == (3, 8) and cross.stack == "decoder.cross_attn"


def test_what_cannot_be_compared_is_refused_with_both_numbers():
    model = tiny_translator()
    with pytest.raises(VisformerError, match=r"clean text has 4 tokens and the corrupt one \d+"):
        patching(load("mini-gpt"), "Tom likes tea", "They", answer=("is", "are"))
    with pytest.raises(VisformerError, match=r"The answer is − are is as large in both runs, (-?\d+\.\d{4}) and \1"):
        patching(load("mini-gpt"), "They", "They", answer=("is", "are"))
    with pytest.raises(VisformerError, match=r"answer=\('is', 'is'\): give one token .* a pair of two that differ"):
        patching(load("mini-gpt"), "They", "He", answer=("is", "is"))
    for stack, tensor in (("decoder.nothing", r"decoder\.\*\.nothing\.heads"), ("decoder", r"decoder\.heads")):
        with pytest.raises(VisformerError, match=f"tiny has no {tensor}"):
            patching(model, "I", "I", by="head", stack=stack)


def test_a_pair_of_two_texts_has_the_first_tokens_that_differ_as_answers():
    model = load("en-zh")
    pair = patching_pair(model, "I saw a cat.", "I saw a car.")
    first, second = (model.trace(text, record=()).meta["ids"]["next"] for text in (pair.clean, pair.corrupt))
    at = pair.row
    assert first[:at] == second[:at]
    assert pair.answer == (first[at], second[at])
    assert first[at] != second[at]
    done = []
    how = {"answer": pair.answer, "row": pair.row, "progress": lambda *runs: done.append(runs)}
    found = patching(model, pair.clean, pair.corrupt, **how)
    assert found.share[0].max() > 0.9, "the noun brings it back"
    assert done == [(i + 1, found.share.size) for i in range(found.share.size)]
    assert found.answer == tuple(model.trace(text, record=()).tokens["next"][at] for text in (pair.clean, pair.corrupt))


def test_a_pair_of_a_decoder_is_answered_by_its_next_token():
    pair = patching_pair(load("mini-gpt"), "He", "They")
    nexts = [load("mini-gpt").trace(text, record=()).meta["ids"]["next"][-1] for text in ("He", "They")]
    assert (pair.target, pair.row, [*pair.answer]) == (None, -1, nexts)
