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


def test_answers_are_ids_also_without_a_prefix_but_not_beside_a_text():
    module, (clean, corrupt), a, b = setting()
    model = wrap(module, hub.tokenizer())
    found = patching(model, clean, corrupt, answers=([a], [b]))
    assert np.array_equal(found.share, patching(model, clean, corrupt, answers=((a,), (b,)), prefix=()).share)
    with pytest.raises(VisformerError, match=r"prefix='the' and the answer \[\d+\] have to be both texts"):
        patching(model, clean, corrupt, answers=([a], [b]), prefix="the")


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
    found = patching(model, CLEAN, CORRUPT, answers=answers)
    np.testing.assert_allclose(found.share, tokens, atol=1e-4)
    assert (found.clean, found.corrupt) == pytest.approx((of_clean, of_corrupt), abs=1e-4)
    assert found.stack == "decoder" and found.tokens[0][1:3] == ("I", "went")
    by_head = patching(model, CLEAN, CORRUPT, answers=answers, by="head")
    np.testing.assert_allclose(by_head.share, heads, atol=1e-4)
    assert by_head.stack == "decoder.self_attn" and abs(np.array(heads)).max() > 0.05


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
    found = patching(model, pair.clean, pair.corrupt, answers=pair.answers, prefix=pair.prefix)
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
    encoder = patching(model, pair.clean, pair.corrupt, answers=pair.answers, prefix=pair.prefix)
    book = encoder.tokens[0].index("book")
    assert encoder.share[0, book] == pytest.approx(1, abs=1e-3)
    cross = patching(
        model, pair.clean, pair.corrupt, answers=pair.answers, prefix=pair.prefix, by="head", stack="decoder.cross_attn"
    )
    assert cross.share.shape == (3, 8) and cross.stack == "decoder.cross_attn"


def test_what_cannot_be_compared_is_refused_with_both_numbers():
    model = tiny_translator()
    with pytest.raises(VisformerError, match=r"clean text has 5 tokens and the corrupt one \d+"):
        patching(load("mini-gpt"), "Tom likes tea", "They", answers=("is", "are"))
    with pytest.raises(
        VisformerError, match=r"is -?\d+\.\d\d nats in the clean run and -?\d+\.\d\d in the corrupt one"
    ):
        patching(load("mini-gpt"), "They", "He", answers=("is", "are"))
    with pytest.raises(VisformerError, match="differ in exactly one token"):
        patching(load("mini-gpt"), "They", "He", answers=("is", "is"))
    with pytest.raises(VisformerError, match=r"tiny has no decoder\.\*\.nothing\.heads"):
        patching(model, "I", "I", answers=("a", "b"), by="head", stack="decoder.nothing")


def test_a_pair_of_two_texts_has_the_first_tokens_that_differ_as_answers():
    model = load("en-zh")
    pair = patching_pair(model, "I saw a cat.", "I saw a car.")
    first, second = (model.trace(text, record=()).meta["ids"]["next"] for text in (pair.clean, pair.corrupt))
    at = len(pair.prefix)
    assert first[:at] == second[:at] == [*pair.prefix]
    assert pair.answers == ((first[at],), (second[at],))
    assert first[at] != second[at]
    done = []
    how = {"answers": pair.answers, "prefix": pair.prefix, "progress": lambda *runs: done.append(runs)}
    found = patching(model, pair.clean, pair.corrupt, **how)
    assert found.share[0].max() > 0.9, "the noun brings it back"
    assert done == [(i + 1, found.share.size) for i in range(found.share.size)]
    assert found.answers == tuple(
        model.trace(text, record=()).tokens["next"][at] for text in (pair.clean, pair.corrupt)
    )


def test_a_pair_of_a_decoder_is_answered_by_its_next_token():
    pair = patching_pair(load("mini-gpt"), "He", "They")
    assert (pair.prefix, [len(answer) for answer in pair.answers]) == ((), [1, 1])
