"""What is on screen is what the model used: its output follows from the traced tensors and weights alone."""

import numpy as np
import pytest

from visformer import formulas


def attend(trace, path, x, memory, mask):
    """One attention from its input to its output; every tensor on the way is held against the traced one."""
    weights = {name: trace.params[f"{path}.{name}"].value.astype(np.float64) for name in WEIGHTS}
    n_heads = trace[f"{path}.pattern"].shape[0]

    def heads(rows, what):
        y = rows @ weights[f"w_{what}"] + weights[f"b_{what}"]
        split = y.reshape(len(rows), n_heads, -1).swapaxes(0, 1)  # (head, token, d_k)
        close(split, trace[f"{path}.{what}"])
        return split

    q, k, v = heads(x, "q"), heads(memory, "k"), heads(memory, "v")
    close(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), trace[f"{path}.scores"])
    out, pattern = formulas.attention(q, k, v, mask=mask)
    close(pattern, trace[f"{path}.pattern"])
    close(out, trace[f"{path}.heads"])
    joined = out.swapaxes(0, 1).reshape(len(x), -1) @ weights["w_o"] + weights["b_o"]
    close(joined, trace[f"{path}.out"])
    return joined


WEIGHTS = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v", "w_o", "b_o")


def close(found, traced):
    assert np.allclose(found, traced.value, atol=1e-5 * max(1.0, float(np.abs(traced.value).max())), rtol=0)


def norm(trace, layer, part, x):
    gain, bias = (trace.params[f"{layer}.norm_{part}.{name}"].value for name in ("gamma", "beta"))
    return formulas.layer_norm(x, gain=gain, bias=bias)


def feed(trace, layer, x):
    w = {name: trace.params[f"{layer}.ffn.{name}"].value for name in ("w_1", "b_1", "w_2", "b_2")}
    return formulas.feed_forward(x, w["w_1"], b_1=w["b_1"], w_2=w["w_2"], b_2=w["b_2"])


def enter(trace, side):
    embedding = trace.params[f"{side}.embedding"].value.astype(np.float64)
    x = embedding * np.sqrt(embedding.shape[1]) + formulas.sinusoidal_encoding(*embedding.shape)
    close(x, trace[f"{side}.input"])
    return x


def logits(trace, n_layers):
    """From embedding rows to logits, post-norm, in float64."""
    x = enter(trace, "src")
    for layer in (f"encoder.{i}" for i in range(n_layers[0])):
        x = norm(trace, layer, "self", x + attend(trace, f"{layer}.self_attn", x, x, None))
        x = norm(trace, layer, "ffn", x + feed(trace, layer, x))
        close(x, trace[f"{layer}.resid_post"])
    y = enter(trace, "tgt")
    causal = formulas.causal_mask(len(y))
    for layer in (f"decoder.{i}" for i in range(n_layers[1])):
        y = norm(trace, layer, "self", y + attend(trace, f"{layer}.self_attn", y, y, causal))
        y = norm(trace, layer, "cross", y + attend(trace, f"{layer}.cross_attn", y, x, None))
        y = norm(trace, layer, "ffn", y + feed(trace, layer, y))
        close(y, trace[f"{layer}.resid_post"])
    return y @ trace.params["output.w"].value


def test_a_small_model(trace):
    close(logits(trace, (2, 3)), trace["logits"])


@pytest.mark.slow
def test_the_bundled_model():
    import visformer

    model = visformer.load("en-zh")
    trace = model.trace("I went to Northeastern University.", record=("*",))
    found = logits(trace, (model.info.n_encoder_layers, model.info.n_decoder_layers))
    close(found, trace["logits"])
    assert found.argmax(axis=-1).tolist() == trace.meta["ids"]["next"]
