"""The whole model: tied weights, dropout, state, and generation with a cache."""

import pytest
import torch
from torch import nn

from tests.model.support import VOCAB, build, count_parameters, ids, record, run
from visformer.model.attention import KeyValueCache
from visformer.model.positions import POSITIONS
from visformer.model.transformer import load_state

NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


def storage(module):
    return module.weight.data_ptr()


def test_with_one_vocabulary_both_embeddings_and_the_output_are_tied():
    model = build(tgt_vocab=VOCAB, tie_embeddings=True)
    assert storage(model.src_embedding.token) == storage(model.tgt_embedding.token) == storage(model.output)
    untied = build(tgt_vocab=VOCAB)
    assert count_parameters(untied) - count_parameters(model) == 2 * VOCAB * 12


def test_with_two_vocabularies_the_target_embedding_and_the_output_are_tied():
    model = build(tie_embeddings=True)
    assert storage(model.tgt_embedding.token) == storage(model.output) != storage(model.src_embedding.token)
    assert count_parameters(build()) - count_parameters(model) == 19 * 12


def test_matrices_stay_tied_after_a_change_of_dtype_and_a_training_step():
    model = build(tgt_vocab=VOCAB, tie_embeddings=True).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.output.weight.detach().clone()
    model(ids(2, 4), ids(2, 3)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.output.weight)
    assert storage(model.src_embedding.token) == storage(model.tgt_embedding.token) == storage(model.output)


TIED = ("src_embedding.token.weight", "tgt_embedding.token.weight", "output.weight")


@pytest.mark.parametrize("kept", TIED)
def test_load_state_needs_a_tied_matrix_only_once(kept):
    model, other = (build(seed=seed, tgt_vocab=VOCAB, tie_embeddings=True) for seed in (0, 1))
    state = {name: t.half().float() for name, t in model.state_dict().items() if name == kept or name not in TIED}
    load_state(other, {name: t.half() for name, t in state.items()})
    assert {p.dtype for p in other.parameters()} == {torch.float32}
    for name, tensor in state.items():
        assert torch.equal(other.state_dict()[name], tensor)
    assert storage(other.src_embedding.token) == storage(other.tgt_embedding.token) == storage(other.output)


def test_load_state_refuses_missing_weights():
    state = build().state_dict()
    del state["output.weight"]
    with pytest.raises(RuntimeError, match=r"^output\.weight is missing$"):
        load_state(build(), state)


def test_load_state_refuses_weights_of_another_model_in_one_line():
    state = build().state_dict()
    with pytest.raises(
        RuntimeError, match=r"^src_embedding\.token\.weight has the shape .* instead of .*, and \d+ more$"
    ):
        load_state(build(d_model=18), state)
    with pytest.raises(RuntimeError, match=r"^other is none of the model's weights$"):
        load_state(build(), {**state, "other": state["output.weight"]})


def test_dropout_is_applied_only_in_training_and_where_the_paper_has_it():
    model = build(dropout=0.4)
    src, tgt = ids(2, 4), ids(2, 3)
    evaluated = run(model, src, tgt)
    model.train()
    _, tapped = record(model, src, tgt)
    assert not torch.equal(run(model, src, tgt), run(model, src, tgt))
    for layer, total, before, sublayer in (
        ("encoder.0", "attn_sum", "resid_pre", "self_attn.out"),
        ("encoder.1", "ffn_sum", "resid_self", "ffn.out"),
        ("decoder.2", "cross_sum", "resid_self", "cross_attn.out"),
    ):
        added, full = tapped[f"{layer}.{total}"] - tapped[f"{layer}.{before}"], tapped[f"{layer}.{sublayer}"]
        dropped = added.abs() < 1e-7
        assert 0.1 < dropped.float().mean() < 0.7
        torch.testing.assert_close(added[~dropped], full[~dropped] / 0.6, rtol=1e-4, atol=1e-5)
    dropped = (tapped["encoder.0.resid_pre"] == 0).float().mean()
    assert 0.1 < dropped < 0.7 and not (tapped["src.input"] == 0).any()
    assert torch.equal(run(model.eval(), src, tgt), evaluated)
    assert all(module.p == 0.4 for module in model.modules() if isinstance(module, nn.Dropout))


def test_every_parameter_has_a_gradient():
    model = build(position="learned", norm="pre", activation="gelu", max_len=8)
    model(ids(2, 8), ids(2, 8)).log_softmax(-1)[..., 3].sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def padded_ids():
    src, tgt = ids(3, 6), ids(3, 7, seed=1)
    src[1, 4:], src[2, 1:] = 0, 0
    return src, tgt


@NORMS
@pytest.mark.parametrize("position", POSITIONS)
def test_decoding_with_a_cache_gives_the_logits_of_a_full_pass(norm, position):
    model = build(norm=norm, position=position)
    src, tgt = padded_ids()
    whole = run(model, src, tgt)
    for steps in ([1] * 7, [3, 1, 1, 1, 1], [2, 3, 2]):
        logits, start = [], 0
        with torch.no_grad():
            memory, cache = model.encode(src), model.new_cache()
            for n_tokens in steps:
                logits.append(model.decode(tgt[:, start : start + n_tokens], memory, src, cache=cache, start=start))
                start += n_tokens
        torch.testing.assert_close(torch.cat(logits, 1), whole, rtol=0, atol=1e-5, msg=lambda m, s=steps: f"{s}: {m}")
        assert cache[2].self_attn.key.shape == (3, 3, 7, 4) and cache[2].cross_attn.key.shape == (3, 3, 6, 4)


def test_keys_of_the_memory_are_computed_only_once():
    model = build()
    src, tgt = padded_ids()
    cache, calls = model.new_cache(), []
    handles = [layer.cross_attn.w_k.register_forward_hook(lambda *_: calls.append(1)) for layer in model.decoder.layers]
    with torch.no_grad():
        memory = model.encode(src)
        for start in range(4):
            model.decode(tgt[:, start : start + 1], memory, src, cache=cache, start=start)
    for handle in handles:
        handle.remove()
    assert len(calls) == 3


def test_a_cache_can_be_reordered_with_its_beams():
    model = build()
    src, tgt = ids(1, 5).expand(3, 5), ids(3, 6, seed=2)
    rows = torch.tensor([2, 0, 2])
    with torch.no_grad():
        memory, cache = model.encode(src), model.new_cache()
        model.decode(tgt[:, :4], memory, src, cache=cache)
        for layer in cache:
            layer.self_attn.reorder(rows)
            layer.cross_attn.reorder(rows)
        logits = model.decode(tgt[:, 4:5], memory, src, cache=cache, start=4)
    expected = run(model, src, torch.cat([tgt[rows, :4], tgt[:, 4:5]], 1))[:, 4:5]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    KeyValueCache().reorder(rows)  # an empty cache
