"""Attention of families that do not call transformers' attention interface, through our attention function.

Each function below stands in for one method of a family's attention module, and only while a session is open: the
projections, the rotation and the cache remain the family's, :func:`visformer.adapters.huggingface.taps.attend` does
what lies between them. Like any other family, each is compared with its own eager attention when it is wrapped.
Before version 5, transformers passes a mask of heads as well, which is None here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from visformer.adapters.huggingface.taps import attend
from visformer.model import taps

Pair = tuple[Tensor, Tensor | None]


def _bloom(
    module: Any, hidden_states: Tensor, residual: Tensor, alibi: Tensor, attention_mask: Tensor,
    layer_past: Any = None, **_: Any,
) -> Pair:  # fmt: skip
    """``BloomAttention.forward``, which also adds the residual stream; ``alibi``: (batch * head, 1, key)."""
    fused = module.query_key_value(hidden_states).unflatten(-1, (module.num_heads, 3, -1))
    query, key, value = fused.transpose(1, 2).unbind(-2)  # (batch, head, token, d_k)
    if layer_past is not None:
        key, value = layer_past.update(key, value, module.layer_idx)
    bias = alibi.view(len(query), -1, *alibi.shape[1:])  # (batch, head, 1, key)
    heads, pattern = attend(module, query, key, value, attention_mask, position_bias=bias)
    return residual + module.dense(heads.flatten(2)), pattern


def _falcon(
    module: Any, hidden_states: Tensor, alibi: Tensor | None, attention_mask: Tensor,
    layer_past: Any = None, position_embeddings: Any = None, **_: Any,
) -> Pair:  # fmt: skip
    """``FalconAttention.forward``; ``alibi``: (batch, head, 1, key), here before the scaling, in the mask after it."""
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb  # its family's own, loaded with it

    group = module.num_heads // module.num_kv_heads
    fused = module.query_key_value(hidden_states).unflatten(-1, (module.num_kv_heads, group + 2, -1))
    query = fused[..., :-2, :].flatten(2, 3).transpose(1, 2)  # (batch, head, token, d_k)
    key, value = (fused[..., i, :].transpose(1, 2) for i in (-2, -1))  # (batch, kv_head, token, d_k)
    if alibi is None:
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    if layer_past is not None:
        key, value = layer_past.update(key, value, module.layer_idx)
    bias = None
    if alibi is not None:
        bias = alibi * module.inv_norm_factor
        attention_mask = attention_mask > torch.finfo(attention_mask.dtype).min / 2
    heads, pattern = attend(module, query, key, value, attention_mask, position_bias=bias)
    return module.dense(heads.flatten(2)), pattern


def _mpnet(module: Any, hidden_states: Tensor, attention_mask: Tensor | None, *more: Tensor, **_: Any) -> Pair:
    """``MPNetSelfAttention.forward``; the last of ``more``: the bias (batch, head, query, key)."""
    position_bias = more[-1]
    projected = (project(hidden_states) for project in (module.q, module.k, module.v))
    query, key, value = (x.unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2) for x in projected)
    heads, pattern = attend(module, query, key, value, attention_mask, position_bias=position_bias)
    return module.o(heads.flatten(2)), pattern


def _deberta(
    module: Any, hidden_states: Tensor, attention_mask: Tensor, *_: Any,
    relative_pos: Tensor | None = None, rel_embeddings: Tensor | None = None, **__: Any,
) -> Pair:  # fmt: skip
    """``DisentangledSelfAttention.forward`` of DeBERTa; ``in_proj`` has q, k and v of the first head, then the next."""
    fused = module.in_proj(hidden_states).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
    query, key, value = fused.chunk(3, dim=-1)  # (batch, head, token, d_k)
    query, value = (
        x + bias.unflatten(0, (module.num_attention_heads, 1, -1))
        for x, bias in ((query, module.q_bias), (value, module.v_bias))
    )
    terms = 1 + len(module.pos_att_type)
    scaling = (query.shape[-1] * terms) ** -0.5

    def bias(query: Tensor, key: Tensor) -> Tensor:
        added: Tensor = module.disentangled_att_bias(query * scaling, key, relative_pos, rel_embeddings, terms)
        return added

    heads, pattern = attend(
        module, query, key, value, attention_mask.bool(), scaling=scaling,
        position_bias=bias if module.relative_attention else None,
    )  # fmt: skip
    return heads.flatten(2), pattern


def _deberta_v2(
    module: Any, hidden_states: Tensor, attention_mask: Tensor, *_: Any,
    relative_pos: Tensor | None = None, rel_embeddings: Tensor | None = None, **__: Any,
) -> Pair:  # fmt: skip
    """``DisentangledSelfAttention.forward`` of DeBERTa-v2 and -v3."""
    projected = (project(hidden_states) for project in (module.query_proj, module.key_proj, module.value_proj))
    query, key, value = (x.unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2) for x in projected)
    terms = 1 + len({"c2p", "p2c"}.intersection(module.pos_att_type))

    def bias(query: Tensor, key: Tensor) -> Tensor:
        rows = query.flatten(0, 1), key.flatten(0, 1)  # (batch * head, token, d_k)
        added: Tensor = module.disentangled_attention_bias(*rows, relative_pos, rel_embeddings, terms)
        return added.view(*query.shape[:2], *added.shape[1:])  # (batch, head, query, key)

    heads, pattern = attend(
        module, query, key, value, attention_mask.bool(), scaling=(query.shape[-1] * terms) ** -0.5,
        position_bias=bias if module.relative_attention else None,
    )  # fmt: skip
    return heads.flatten(2), pattern


def _gptj(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, *_: Any
) -> Pair:
    """``GPTJAttention._attn``, after rotary; scores in float32."""
    heads, pattern = attend(module, query.float(), key.float(), value, attention_mask)
    return heads.transpose(1, 2), pattern


def _gpt_neo(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None, *_: Any
) -> Pair:
    """``GPTNeoSelfAttention._attn``: scores in float32, not scaled; the module has its own causal or local mask."""
    n_query, n_key = query.shape[-2], key.shape[-2]
    mask = module.bias[:, :, n_key - n_query : n_key, :n_key]  # bool (1, 1, query, key)
    if attention_mask is not None:
        mask = attention_mask[..., :n_key].masked_fill(~mask, torch.finfo(attention_mask.dtype).min)
    heads, pattern = attend(module, query.float(), key.float(), value, mask, scaling=1.0)
    return heads.transpose(1, 2), pattern


_METHODS: Mapping[str, tuple[str, str, Callable[..., Pair]]] = {
    "bloom": ("BloomAttention", "forward", _bloom),
    "falcon": ("FalconAttention", "forward", _falcon),
    "mpnet": ("MPNetSelfAttention", "forward", _mpnet),
    "deberta": ("DisentangledSelfAttention", "forward", _deberta),
    "deberta-v2": ("DisentangledSelfAttention", "forward", _deberta_v2),
    "gptj": ("GPTJAttention", "_attn", _gptj),
    "gpt_neo": ("GPTNeoSelfAttention", "_attn", _gpt_neo),
}
"""model_type to the class of its attention modules, a method of theirs, and what stands in for it."""


def has_patterns(config: Any) -> bool:
    """Whether a family's eager attention returns its patterns, and computes what it was trained with.

    Eager Falcon adds ALiBi twice, to the scores and in the mask; "sdpa" does it once, but returns none.
    """
    return not (config.model_type == "falcon" and config.alibi)


def calls_interface(config: Any) -> bool:
    """Whether a family's attention calls the function that the config names."""
    return config.model_type not in _METHODS


def stand_ins(config: Any, modules: Iterable[nn.Module]) -> Iterator[tuple[nn.Module, str, Callable[..., Pair]]]:
    """Yield each attention module, the name of a method, and what stands in for it, of families that do not."""
    if not calls_interface(config):
        kind, method, ours = _METHODS[config.model_type]
        for module in modules:
            if any(each.__name__ == kind for each in type(module).__mro__):
                yield module, method, partial(_in_a_session, module, method, ours)


def _in_a_session(module: nn.Module, method: str, ours: Callable[..., Pair], *args: Any, **kwargs: Any) -> Any:
    """Call ours with open taps, else the family's own: another thread may be training the model."""
    if taps.current() is taps.CLOSED:
        return getattr(type(module), method)(module, *args, **kwargs)
    return ours(module, *args, **kwargs)
