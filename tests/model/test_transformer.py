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


def test_three_way_tie_with_one_vocabulary():
    model = build(tgt_vocab=VOCAB, tie_embeddings=True)
    assert storage(model.src_embedding.token) == storage(model.tgt_embedding.token) == storage(model.output)
    loose = build(tgt_vocab=VOCAB)
    assert count_parameters(loose) - count_parameters(model) == 2 * VOCAB * 12
    assert len({storage(loose.src_embedding.token), storage(loose.tgt_embedding.token), storage(loose.output)}) == 3


def test_two_way_tie_with_two_vocabularies():
    model = build(tie_embeddings=True)
    assert storage(model.tgt_embedding.token) == storage(model.output) != storage(model.src_embedding.token)
    assert count_parameters(build()) - count_parameters(model) == 19 * 12


def test_a_tie_outlives_a_change_of_dtype_and_a_training_step():
    model = build(tgt_vocab=VOCAB, tie_embeddings=True).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.output.weight.detach().clone()
    model(ids(2, 4), ids(2, 3)).square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.output.weight)
    assert storage(model.src_embedding.token) == storage(model.tgt_embedding.token) == storage(model.output)


@pytest.mark.parametrize("kept", ["src_embedding.token.weight", "tgt_embedding.token.weight", "output.weight"])
def test_load_state_needs_a_tied_matrix_only_once(kept):
    model, other = (build(seed=seed, tgt_vocab=VOCAB, tie_embeddings=True) for seed in (0, 1))
    tied = {"src_embedding.token.weight", "tgt_embedding.token.weight", "output.weight"}
    state = {name: t.half().float() for name, t in model.state_dict().items() if name == kept or name not in tied}
    load_state(other, {name: t.half() for name, t in state.items()})
    assert {p.dtype for p in other.parameters()} == {torch.float32}
    for name, tensor in state.items():
        assert torch.equal(other.state_dict()[name], tensor)
    assert storage(other.src_embedding.token) == storage(other.tgt_embedding.token) == storage(other.output)


def test_load_state_refuses_missing_weights():
    state = build().state_dict()
    del state["output.weight"]
    with pytest.raises(RuntimeError, match=r"output\.weight"):
        load_state(build(), state)


def test_dropout_only_in_training_and_where_the_paper_has_it():
    model = build(dropout=0.4)
    src, tgt = ids(2, 4), ids(2, 3)
    calm = run(model, src, tgt)
    model.train()
    seen = dict(record(model, src, tgt)[1])
    assert not torch.equal(run(model, src, tgt), run(model, src, tgt))
    for whole, before, sublayer in (
        ("encoder.0.attn_sum", "resid_pre", "self_attn.out"),
        ("encoder.1.ffn_sum", "resid_self", "ffn.out"),
        ("decoder.2.cross_sum", "resid_self", "cross_attn.out"),
    ):
        layer = whole.rsplit(".", 1)[0]
        added, full = seen[whole] - seen[f"{layer}.{before}"], seen[f"{layer}.{sublayer}"]
        dropped = added.abs() < 1e-7
        assert 0.1 < dropped.float().mean() < 0.7
        torch.testing.assert_close(added[~dropped], full[~dropped] / 0.6, rtol=1e-4, atol=1e-5)
    dropped = (seen["encoder.0.resid_pre"] == 0).float().mean()
    assert 0.1 < dropped < 0.7 and not (seen["src.input"] == 0).any()
    assert torch.equal(run(model.eval(), src, tgt), calm)
    assert all(module.p == 0.4 for module in model.modules() if isinstance(module, nn.Dropout))


def test_every_parameter_learns():
    model = build(position="learned", norm="pre", activation="gelu", max_len=8)
    model(ids(2, 8), ids(2, 8)).log_softmax(-1)[..., 3].sum().backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert silent == []


def prompts():
    src, tgt = ids(3, 6), ids(3, 7, seed=1)
    src[1, 4:], src[2, 1:] = 0, 0
    return src, tgt


@NORMS
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("steps", [[1] * 7, [3, 1, 1, 1, 1], [2, 3, 2], [1, 6], [7]], ids=str)
def test_cached_decoding_gives_the_same_logits(norm, position, steps):
    model = build(norm=norm, position=position)
    src, tgt = prompts()
    expected = run(model, src, tgt)
    got, start = [], 0
    with torch.no_grad():
        memory, cache = model.encode(src), model.new_cache()
        for new in steps:
            got.append(model.decode(tgt[:, start : start + new], memory, src, cache=cache, start=start))
            start += new
    torch.testing.assert_close(torch.cat(got, 1), expected, rtol=0, atol=1e-5)
    assert cache[2].self_attn.key.shape == (3, 3, 7, 4) and cache[2].cross_attn.key.shape == (3, 3, 6, 4)


def test_a_cache_reads_the_memory_only_once():
    model = build()
    src, tgt = prompts()
    cache, calls = model.new_cache(), []
    handles = [layer.cross_attn.w_k.register_forward_hook(lambda *_: calls.append(1)) for layer in model.decoder.layers]
    with torch.no_grad():
        memory = model.encode(src)
        for start in range(4):
            model.decode(tgt[:, start : start + 1], memory, src, cache=cache, start=start)
    for handle in handles:
        handle.remove()
    assert len(calls) == 3


def test_a_cache_follows_reordered_beams():
    model = build()
    src, tgt = ids(1, 5).expand(3, 5), ids(3, 6, seed=2)
    rows = torch.tensor([2, 0, 2])
    with torch.no_grad():
        memory, cache = model.encode(src), model.new_cache()
        model.decode(tgt[:, :4], memory, src, cache=cache)
        for layer in cache:
            layer.self_attn.reorder(rows)
            layer.cross_attn.reorder(rows)
        got = model.decode(tgt[:, 4:5], memory, src, cache=cache, start=4)
    expected = run(model, src, torch.cat([tgt[rows, :4], tgt[:, 4:5]], 1))[:, 4:5]
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)
    KeyValueCache().reorder(rows)  # nothing to reorder yet
