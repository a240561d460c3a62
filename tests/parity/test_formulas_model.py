"""A whole forward pass, implemented again in NumPy from the formulas: every tapped tensor must be equal."""

import itertools
import math

import numpy as np
import pytest
import torch

from tests.model.support import build, ids, record
from visformer import formulas
from visformer.model.positions import POSITIONS

TOLERANCE = 1e-10


class Reference:
    """Section 3 in NumPy float64, with the weights of a model; ``tensors`` has what taps should receive."""

    def __init__(self, model):
        self.config, self.tensors = model.config, {}
        # The weights of layer i are under "encoder.layers.i", its tensors are named "encoder.i".
        state = model.state_dict().items()
        self.weights = {name.replace(".layers.", "."): tensor.double().numpy() for name, tensor in state}

    def keep(self, name, value):
        self.tensors[name] = value
        return value

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        gain, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return formulas.layer_norm(x, gain=gain, bias=bias, eps=self.config.layer_norm_eps)

    def embed(self, side, ids):
        d_model = self.config.d_model
        table = self.weights[f"{side}_embedding.token.weight"]
        embed = self.keep(f"{side}.embed", table[ids] * math.sqrt(d_model))
        if self.config.position in ("rotary", "alibi", "none"):
            return self.keep(f"{side}.input", embed)
        position = self.weights.get(f"{side}_embedding.position")
        position = formulas.sinusoidal_encoding(ids.shape[1], d_model) if position is None else position[: ids.shape[1]]
        return self.keep(f"{side}.input", embed + self.keep(f"{side}.position", position))

    def split(self, x):
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.config.n_heads, -1).transpose(0, 2, 1, 3)

    def attend(self, name, x, source, mask):
        q, k = self.split(self.linear(f"{name}.w_q", x)), self.split(self.linear(f"{name}.w_k", source))
        bias = 0.0
        if name.endswith("self_attn") and self.config.position == "rotary":
            q, k = (formulas.rotate(y, np.arange(y.shape[2])) for y in (q, k))
        if name.endswith("self_attn") and self.config.position == "alibi":
            bias = formulas.alibi_bias(self.config.n_heads, q.shape[2])
            self.keep(f"{name}.bias", np.broadcast_to(bias, (len(q), *bias.shape)))
        self.keep(f"{name}.q", q)
        self.keep(f"{name}.k", k)
        v = self.keep(f"{name}.v", self.split(self.linear(f"{name}.w_v", source)))
        self.keep(f"{name}.scores", np.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(self.config.d_k) + bias)
        self.keep(f"{name}.mask", np.broadcast_to(mask, self.tensors[f"{name}.scores"].shape))
        heads, pattern = formulas.attention(q, k, v, mask=mask, bias=bias)
        self.keep(f"{name}.pattern", pattern)
        concat = np.concatenate(list(self.keep(f"{name}.heads", heads).transpose(1, 0, 2, 3)), axis=-1)
        return self.keep(f"{name}.out", self.linear(f"{name}.w_o", concat))

    def feed(self, name, x):
        own, inner = {}, self.linear(f"{name}.w_1", x)
        for number in "12":
            own[f"w_{number}"] = self.weights[f"{name}.w_{number}.weight"].T
            own[f"b_{number}"] = self.weights[f"{name}.w_{number}.bias"]
        eye, zero = np.eye(inner.shape[-1]), np.zeros(inner.shape[-1])
        alone = {"w_1": eye, "b_1": zero, "w_2": eye, "b_2": zero}
        self.keep(f"{name}.hidden", formulas.feed_forward(inner, **alone, activation=self.config.activation))
        return self.keep(f"{name}.out", formulas.feed_forward(x, **own, activation=self.config.activation))

    def add(self, layer, x, sublayer, sum_name, norm_name, resid_name):
        norm = f"{layer}.{norm_name}"
        if self.config.norm == "pre":
            x = self.keep(f"{layer}.{sum_name}", x + sublayer(self.keep(norm, self.norm(norm, x))))
        else:
            x = self.keep(norm, self.norm(norm, self.keep(f"{layer}.{sum_name}", x + sublayer(x))))
        return self.keep(f"{layer}.{resid_name}", x)

    def stack(self, stack, x, n_layers, self_mask, memory=None, cross_mask=None):
        for i in range(n_layers):
            layer = f"{stack}.{i}"
            self.keep(f"{layer}.resid_pre", x)

            def self_attn(y, layer=layer):
                return self.attend(f"{layer}.self_attn", y, y, self_mask)

            def cross_attn(y, layer=layer):
                return self.attend(f"{layer}.cross_attn", y, memory, cross_mask)

            def feed(y, layer=layer):
                return self.feed(f"{layer}.ffn", y)

            x = self.add(layer, x, self_attn, "attn_sum", "norm_self", "resid_self")
            if memory is not None:
                x = self.add(layer, x, cross_attn, "cross_sum", "norm_cross", "resid_cross")
            x = self.add(layer, x, feed, "ffn_sum", "norm_ffn", "resid_post")
        if self.config.has_final_norm:
            x = self.norm(f"{stack}.norm", x)
        return self.keep(f"{stack}.out", x)

    def run(self, src_ids, tgt_ids):
        src_keys = formulas.padding_mask(src_ids)
        self_mask = formulas.causal_mask(tgt_ids.shape[1]) & formulas.padding_mask(tgt_ids)
        memory = self.stack("encoder", self.embed("src", src_ids), self.config.n_encoder_layers, src_keys)
        y = self.embed("tgt", tgt_ids)
        y = self.stack("decoder", y, self.config.n_decoder_layers, self_mask, memory, src_keys)
        self.keep("logits", y @ self.weights["output.weight"].T)
        return self.tensors


def padded(tensor, lengths):
    for row, length in enumerate(lengths):
        tensor[row, length:] = 0
    return tensor


def combinations():
    """All of them; `make test` has every position with each norm on padded ids, and the rest with sinusoids alone."""
    for position, activation, is_padded in itertools.product(POSITIONS, ("relu", "gelu"), (True, False)):
        usual = position == "sinusoidal" or (activation == "relu" and is_padded)
        yield pytest.param(position, activation, is_padded, marks=() if usual else pytest.mark.full)


@pytest.mark.parametrize(("position", "activation", "is_padded"), [*combinations()])
@pytest.mark.parametrize(("norm", "final_norm"), [("post", None), ("pre", None), ("post", True), ("pre", False)])
def test_every_tapped_tensor_equals_the_formulas(norm, final_norm, is_padded, activation, position):
    model = build(
        dtype=torch.float64, norm=norm, final_norm=final_norm, activation=activation, position=position, max_len=9
    )
    src, tgt = ids(3, 7), ids(3, 5)
    if is_padded:
        src, tgt = padded(src, (7, 3, 0)), padded(tgt, (2, 5, 1))
    expected = Reference(model).run(src.numpy(), tgt.numpy())
    _, tapped = record(model, src, tgt)
    assert tapped.keys() == expected.keys()
    for name, value in expected.items():
        assert tapped[name].shape == value.shape, name
        assert (tapped[name].dtype == torch.bool) == name.endswith(".mask")
        np.testing.assert_allclose(tapped[name].numpy(), value, rtol=0, atol=TOLERANCE, err_msg=name)
