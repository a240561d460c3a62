"""The weights that a trace used, under the paper's names and in its convention: y = x W + b, so W is (in, out)."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from visformer.model.config import TransformerConfig
from visformer.model.transformer import Transformer
from visformer.trace import TracedTensor
from visformer.trace.names import Axis

_LINEAR = {
    "self_attn": ("w_q", "w_k", "w_v", "w_o"),
    "cross_attn": ("w_q", "w_k", "w_v", "w_o"),
    "ffn": ("w_1", "w_2"),
}


def param_names(config: TransformerConfig) -> tuple[str, ...]:
    """Every weight name, such as ``decoder.0.cross_attn.w_q``, ``encoder.1.norm_ffn.gamma``, ``src.embedding``."""
    names = ["src.embedding", "tgt.embedding", "output.w"]
    for stack, depth in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        parts = [part for part in _LINEAR if stack == "decoder" or part != "cross_attn"]
        for path in (f"{stack}.{layer}" for layer in range(depth)):
            for part in parts:
                names += [f"{path}.{part}.{kind}{w[1:]}" for w in _LINEAR[part] for kind in ("w", "b")]
                names += [f"{path}.norm_{part.removesuffix('_attn')}.{weight}" for weight in ("gamma", "beta")]
        if config.has_final_norm:
            names += [f"{stack}.norm.gamma", f"{stack}.norm.beta"]
    return tuple(names)


def read_params(
    module: Transformer, wanted: frozenset[str], *, src_ids: Sequence[int], tgt_ids: Sequence[int]
) -> dict[str, TracedTensor]:
    """The wanted weights, read-only float32.

    Args:
        module: the model.
        wanted: names; those of tensors are passed over.
        src_ids: their embedding rows are "src.embedding" (token, d_model), before the factor sqrt(d_model).
        tgt_ids: likewise.
    """
    return {name: _read(module, name, src_ids, tgt_ids) for name in param_names(module.config) if name in wanted}


def _read(module: Transformer, name: str, src_ids: Sequence[int], tgt_ids: Sequence[int]) -> TracedTensor:
    if name == "output.w":
        return _traced(name, module.output.weight.T, "d_model", "vocab")
    if name in ("src.embedding", "tgt.embedding"):
        side, table, ids = (
            ("src", module.src_embedding, src_ids) if name[0] == "s" else ("tgt", module.tgt_embedding, tgt_ids)
        )
        value = table.token.weight[list(ids)]
        return TracedTensor(name, _array(value), (Axis("token", side), Axis("d_model")))
    path, weight = name.rsplit(".", 1)
    if weight in ("gamma", "beta"):
        norm = module.get_submodule(path if path.endswith(".norm") else _layer_path(path))
        assert isinstance(norm, nn.LayerNorm)
        return _traced(name, norm.weight if weight == "gamma" else norm.bias, "d_model")
    linear = module.get_submodule(f"{_layer_path(path)}.w{weight[1:]}")
    assert isinstance(linear, nn.Linear)
    inner = {"w_1": ("d_model", "d_ff"), "w_2": ("d_ff", "d_model")}.get(f"w{weight[1:]}", ("d_model", "d_model"))
    if weight.startswith("b"):
        return _traced(name, linear.bias, inner[1])
    return _traced(name, linear.weight.T, *inner)


def _layer_path(path: str) -> str:
    """decoder.0.cross_attn to decoder.layers.0.cross_attn."""
    stack, rest = path.split(".", 1)
    return f"{stack}.layers.{rest}"


def _traced(name: str, weight: Tensor, *axes: str) -> TracedTensor:
    return TracedTensor(name, _array(weight), tuple(Axis(axis) for axis in axes))


def _array(weight: Tensor) -> np.ndarray:
    array: np.ndarray = weight.detach().float().cpu().numpy().copy()  # a copy: a trace outlives changes to the model
    return array
