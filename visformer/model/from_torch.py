"""Copy a ``torch.nn.Transformer`` into ours: same weights, same numbers, every step visible."""

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import torch
from torch import nn
from torch.nn import functional as F

from visformer.errors import N_, ConfigError
from visformer.model.config import TransformerConfig

_TorchLayer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
_Found = tuple[str, str, Any]  # where, name of the field, value
_Transformer = TypeVar("_Transformer", bound=nn.Module)  # visformer.Transformer, or a class of it


def copy_torch_transformer(
    cls: type[_Transformer], nn_transformer: nn.Transformer, *, src_vocab: int, tgt_vocab: int
) -> _Transformer:
    """Copy both stacks, layer by layer; see :meth:`visformer.Transformer.from_torch`.

    Copied: weights, dtype, device, eps, pre- or post-norm, both final norms (with post-norm too, where the paper
    has none, section 3.1), dropout probability, train or eval mode. ``batch_first`` is ignored: the copy always
    works on (batch, token, d_model). torch also applies dropout to attention weights and hidden units, which the
    paper does not (section 5.4), so training runs differ; evaluation does not.

    Raises:
        ConfigError: the copy could not reproduce the module exactly; the message says why.
    """
    if not isinstance(nn_transformer, nn.Transformer):
        raise ConfigError(
            N_("from_torch copies a torch.nn.Transformer; given {given}."), given=type(nn_transformer).__name__
        )
    fields = _common_fields(nn_transformer)
    dtype = fields.pop("dtype")
    config = TransformerConfig(
        src_vocab=src_vocab,
        tgt_vocab=tgt_vocab,
        n_encoder_layers=len(nn_transformer.encoder.layers),
        n_decoder_layers=len(nn_transformer.decoder.layers),
        final_norm=True,
        **fields,
    )
    model = cls(config).to(device=nn_transformer.encoder.norm.weight.device, dtype=dtype)
    _copy_stacks(model, nn_transformer)
    return model.train(nn_transformer.training)


def _common_fields(nn_transformer: nn.Transformer) -> dict[str, Any]:
    """Return the config fields, and the dtype, that all layers share. Raises ConfigError where layers differ."""
    stacks = (
        ("encoder", nn_transformer.encoder, nn.TransformerEncoder, nn.TransformerEncoderLayer),
        ("decoder", nn_transformer.decoder, nn.TransformerDecoder, nn.TransformerDecoderLayer),
    )
    found: list[_Found] = []
    for name, stack, stack_type, layer_type in stacks:
        _require_type(name, stack, stack_type)
        for i, layer in enumerate(stack.layers):
            _require_type(f"{name}.layers.{i}", layer, layer_type)
            found += _in_layer(f"{name}.layers.{i}", layer)
    if not found:
        raise ConfigError(N_("This torch.nn.Transformer has no layers: there is nothing to copy."))
    for name, stack, *_ in stacks:
        found += _in_final_norm(f"{name}.norm", stack.norm)
    common: dict[str, Any] = {}
    first: dict[str, str] = {}
    for where, field, value in found:
        if value != common.setdefault(field, value):
            raise ConfigError(_NOT_SAME, what=field, wanted=common[field], first=first[field], given=value, other=where)
        first.setdefault(field, where)
    return common


_NOT_SAME = N_("{what} must be the same everywhere to be copied; it is {wanted} in {first} and {given} in {other}.")


def _in_layer(where: str, layer: _TorchLayer) -> Iterator[_Found]:
    missing = [name for name, module in layer.named_modules() if _lacks_bias(module)]
    if missing:
        raise ConfigError(
            N_("{where}.{part} has no bias; visformer's layers always have one: build it with bias=True."),
            where=where,
            part=missing[0],
        )
    yield where, "d_model", layer.self_attn.embed_dim
    yield where, "n_heads", layer.self_attn.num_heads
    yield where, "d_ff", layer.linear1.out_features
    yield where, "norm", "pre" if layer.norm_first else "post"
    yield where, "activation", _activation_name(where, layer.activation)
    yield where, "dtype", layer.linear1.weight.dtype
    for name, module in layer.named_children():
        if isinstance(module, nn.LayerNorm):
            yield where, "layer_norm_eps", module.eps
        if isinstance(module, nn.Dropout) and name != "dropout":  # that one is inside the feed-forward network
            yield where, "dropout", module.p


def _in_final_norm(where: str, norm: nn.Module | None) -> Iterator[_Found]:
    if type(norm) is not nn.LayerNorm or norm.weight is None or norm.bias is None:
        raise ConfigError(
            N_("{stack}.norm is {given}; from_torch needs the final LayerNorm, with weight and bias, of both stacks."),
            stack=where.removesuffix(".norm"),
            given=norm,
        )
    yield where, "d_model", norm.normalized_shape[-1]
    yield where, "layer_norm_eps", norm.eps
    yield where, "dtype", norm.weight.dtype


def _activation_name(where: str, activation: object) -> Literal["relu", "gelu"]:
    if activation is F.relu or type(activation) is nn.ReLU:
        return "relu"
    if activation is F.gelu or (type(activation) is nn.GELU and activation.approximate == "none"):
        return "gelu"
    raise ConfigError(
        N_('{where} has the activation {given!r}; only activation="relu" and activation="gelu" can be copied.'),
        where=where,
        given=activation,
    )


def _lacks_bias(module: nn.Module) -> bool:
    if isinstance(module, nn.MultiheadAttention):
        return module.in_proj_bias is None
    return isinstance(module, (nn.Linear, nn.LayerNorm)) and module.bias is None


def _require_type(where: str, given: object, wanted: type) -> None:
    if type(given) is not wanted:
        raise ConfigError(
            N_("{where} is a {given}; from_torch copies only torch.nn.{wanted}: build it without custom parts."),
            where=where,
            given=type(given).__name__,
            wanted=wanted.__name__,
        )


_ENCODER_PARTS = {"ffn.w_1": "linear1", "ffn.w_2": "linear2", "norm_self": "norm1", "norm_ffn": "norm2"}
_DECODER_PARTS = {**_ENCODER_PARTS, "norm_cross": "norm2", "norm_ffn": "norm3"}
"""Each part of our layer, other than its attentions, to the name of the same part in torch."""


@torch.no_grad()
def _copy_stacks(model: Any, nn_transformer: nn.Transformer) -> None:
    for ours, theirs, parts in (
        (model.encoder, nn_transformer.encoder, _ENCODER_PARTS),
        (model.decoder, nn_transformer.decoder, _DECODER_PARTS),
    ):
        for layer, its in zip(ours.layers, theirs.layers, strict=True):
            _copy_attention(layer.self_attn, its.self_attn)
            if parts is _DECODER_PARTS:
                _copy_attention(layer.cross_attn, its.multihead_attn)
            for part, its_part in parts.items():
                layer.get_submodule(part).load_state_dict(its.get_submodule(its_part).state_dict())
        ours.norm.load_state_dict(theirs.norm.state_dict())


def _copy_attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    """Split in_proj: torch stacks W_Q, W_K and W_V into one (3 d_model, d_model) matrix."""
    for part, weight, bias in zip(
        (ours.w_q, ours.w_k, ours.w_v), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        part.weight.copy_(weight)  # (d_model, d_model)
        part.bias.copy_(bias)  # (d_model,)
    ours.w_o.load_state_dict(theirs.out_proj.state_dict())
