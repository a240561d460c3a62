"""A decoder-only model in which three heads are set by hand; all others have random weights."""

import torch

from tests.support import tiny_gpt, tiny_tokenizer
from visformer.adapters.own import LanguageModel
from visformer.trace.row_totals import separators

PREVIOUS, INDUCTION, PUNCTUATION = (0, 1), (1, 2), (1, 0)
"""(layer, head) of the head that reads the token before, what followed the token before, and punctuation."""

_N_HEADS, _D_HEAD, _MAX_LEN, _SHARP = 4, 160, 32, 30.0


def planted_gpt() -> LanguageModel:
    """Return the model; a token's vector has a part for the token, one for its position, and one for the token before.

    The parts are set by hand: token and position are one-hot, the token before is written by the head that reads it. An
    induction head compares that part with its own token (Elhage et al. 2021).
    """
    vocab, d_model = len(tiny_tokenizer()), _N_HEADS * _D_HEAD
    token, position, before = slice(0, vocab), slice(vocab, vocab + _MAX_LEN), slice(vocab + _MAX_LEN, None)
    assert d_model - vocab - _MAX_LEN >= _D_HEAD
    model = tiny_gpt(std=0.02, d_model=d_model, n_heads=_N_HEADS, max_len=_MAX_LEN)
    gpt = model.module
    squeezed = torch.randn(vocab, _D_HEAD) / _D_HEAD**0.5  # nearly orthogonal vectors, one for each token
    with torch.no_grad():
        gpt.embedding.token.weight.zero_()[:, token] = torch.eye(vocab)
        gpt.embedding.position.zero_()[:, position] = torch.eye(_MAX_LEN)
        for norm in (each for each in gpt.modules() if isinstance(each, torch.nn.LayerNorm)):
            norm.reset_parameters()
        for layer in gpt.decoder.layers:
            layer.ffn.w_2.weight.zero_()
            layer.self_attn.w_o.weight.zero_()  # random heads are not to disturb the parts

        attention, rows = gpt.decoder.layers[0].self_attn, _rows(PREVIOUS)
        for weight in (attention.w_q, attention.w_k, attention.w_v):
            weight.weight[rows] = 0
        attention.w_k.weight[rows, position][:_MAX_LEN] = torch.eye(_MAX_LEN)
        attention.w_q.weight[rows, position][:_MAX_LEN] = _SHARP * torch.eye(_MAX_LEN).roll(-1, dims=0)
        attention.w_v.weight[rows, token] = squeezed.T
        attention.w_o.weight[before, rows][:_D_HEAD] = torch.eye(_D_HEAD)

        attention, rows = gpt.decoder.layers[1].self_attn, _rows(INDUCTION)
        attention.w_q.weight[rows] = attention.w_k.weight[rows] = 0
        attention.w_q.weight[rows, token] = _SHARP * squeezed.T
        attention.w_k.weight[rows, before][:, :_D_HEAD] = torch.eye(_D_HEAD)

        rows = _rows(PUNCTUATION)
        attention.w_q.weight[rows] = attention.w_k.weight[rows] = 0
        attention.w_q.bias[rows] = _SHARP
        marks = separators(model.text.shown(range(vocab)), [False] * vocab)
        attention.w_k.weight[rows, token] = torch.tensor(marks, dtype=torch.float32)
    return model


def _rows(place: tuple[int, int]) -> slice:
    return slice(place[1] * _D_HEAD, (place[1] + 1) * _D_HEAD)
