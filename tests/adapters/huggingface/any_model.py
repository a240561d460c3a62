"""Every class of transformers that reads text, made tiny from its config, of which each known size is set."""

from contextlib import suppress
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedModel
from transformers.models.auto import modeling_auto

import visformer as vf
from tests.adapters.huggingface.hub import _IDS, _SIZES, SIZE, tokenizer
from visformer.adapters.huggingface.families import REFUSED
from visformer.errors import VisformerError

TOKENS = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
HEADS = ("SEQUENCE_CLASSIFICATION", "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING")

# fmt: off
# ruff: noqa: E501
SMALL = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "word_embed_proj_dim", "embedding_size",
                     "emb_dim", "model_dim", "lru_width", "encoder_hidden_size", "rnn_hidden_size",
                     "cross_attention_hidden_size"), 16),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads",
                     "decoder_attention_heads", "attention_heads", "num_encoder_attention_heads",
                     "num_decoder_attention_heads", "num_query_heads"), 4),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim",
                     "n_inner", "ffn_hidden_size", "shared_intermediate_size"), 24),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "expert_ffn_hidden_size",
                     "moe_shared_expert_intermediate_size", "intermediate_size_mlp", "dense_intermediate_size"), 12),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_experts_per_tok", "moe_k", "moe_topk", "num_kv_heads",
                     "num_experts_per_token", "multi_query_group_num"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
                     "first_k_dense_replace", "num_expert_groups"), 1),
    **dict.fromkeys(("head_dim", "d_kv", "v_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "global_head_dim",
                     "attention_head_dim", "kv_channels"), 4),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "o_lora_rank", "index_head_dim"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 64),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "src_vocab_size", "tgt_vocab_size", "encoder_vocab_size",
                     "decoder_vocab_size", "ngram_vocab_size"), SIZE),
    "hidden_size_per_layer_input": 8, "rotary_dim": 4, "sliding_window": 4, "index_n_heads": 2, "index_topk": 4, "linear_key_head_dim": 4,
    "linear_value_head_dim": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_conv_kernel_dim": 2,
    "mamba_d_state": 4, "mamba_d_conv": 2, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1,
    "mamba_chunk_size": 4, "num_kv_shared_layers": 0, "laurel_rank": 4, "attention_chunk_size": 64,
    "decoder_start_token_id": 2, "depth": 1, "image_size": 8, "patch_size": 4, "rope_theta": 10000.0, "max_window_layers": 1, "position_buckets": 8,
}
# fmt: on


_MOST = 3_000_000


def types(kinds: tuple[str, ...] = TOKENS) -> list[tuple[str, str]]:
    """Return each model type with the class that transformers builds of it, for every kind of head."""
    found = []
    for kind in kinds:
        for model_type, name in getattr(modeling_auto, f"MODEL_FOR_{kind}_MAPPING_NAMES").items():
            names = (name,) if isinstance(name, str) else name
            if model_type in CONFIG_MAPPING and model_type not in REFUSED and hasattr(transformers, names[0]):
                found.append((model_type, names[0]))
    return list(dict.fromkeys(found))


def classes(kinds: tuple[str, ...] = TOKENS) -> list[tuple[str, str]]:
    """Return one class of each model type, that of the last kind: of a model with both stacks not its decoder alone."""
    return list(dict(types(kinds)).items())


def _known(usual: Any) -> dict[str, Any]:
    """The small value of each size that a config has."""
    sizes: dict[str, Any] = {}
    for size, value in SMALL.items():
        try:
            old = getattr(usual, size, None)
        except Exception:  # it holds one for each layer
            continue
        if old is not None and not isinstance(old, bool | list | dict | tuple):
            sizes[size] = type(old)(value) if isinstance(old, int | float) else value
    return sizes


def shrunk(kind: type) -> Any:
    """Return a config of which every known size is small, as far as it lets itself be built so."""
    usual = kind()
    sizes = _known(usual)
    for name in kind.sub_configs:
        inner = getattr(usual, name, None)
        if inner is not None and not isinstance(inner, dict):
            sizes[name] = shrunk(type(inner))
    if "kv_lora_rank" in sizes:  # latent attention has as many keys as queries
        sizes["num_key_value_heads"] = SMALL["num_attention_heads"]
    for name in ("layer_types", "mlp_layer_types"):
        if isinstance(old := getattr(usual, name, None), list):
            each = list(dict.fromkeys(old))
            sizes[name] = each if len(each) > 1 else each * 2
            sizes |= {size: len(sizes[name]) for size in ("num_hidden_layers", "num_layers") if size in sizes}
    try:
        return kind(**sizes)
    except Exception:  # a validator of its own: what it computes may be set only afterwards
        for name, value in sizes.items():
            with suppress(Exception):
                setattr(usual, name, value)
        return usual


def tiny(model_type: str, name: str, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """Return an untrained model of a class, whose attention is far from uniform."""
    kind = getattr(transformers, name)
    if model_type in _SIZES:
        config = transformers.AutoConfig.for_model(model_type, **{"vocab_size": SIZE, **_IDS, **_SIZES[model_type]})
    else:
        config = shrunk(kind.config_class)
        for key, value in _IDS.items():
            for inner in (config, config.get_text_config(decoder=True)):
                setattr(inner, key, value)
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 2
    for key, value in changes.items():
        setattr(config, key, value)
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    with torch.device("meta"):  # what no known size makes small would take gigabytes
        n_weights = sum(weight.numel() for weight in kind(config).parameters())
    if n_weights > _MOST:
        raise ValueError(f"its config has sizes of other names: {n_weights:,} weights")
    module = kind(config)
    with torch.no_grad():
        for label, weight in module.named_parameters():
            if weight.dim() > 1 or "sink" in label or "bias" in label:
                weight.normal_(std=0.4)
    return module.eval()


GIVES = ("patterns", "inside", "stream", "sublayers", "qkv", "o", "logits")
"""What a class may give: patterns; q, k, v, scores, heads and edits; resid_pre and resid_post; resid_self, ffn.out and
the norms; w_q, w_k and w_v; w_o; logits."""


def given(model_type: str, name: str) -> dict[str, Any]:
    """Return what a class gives, and why not more: "why" is a message, "" if only inspection names less."""
    try:
        module = tiny(model_type, name)
        ids = torch.tensor([[1, 5, 6, 7, 2]])
        two = {"decoder_input_ids": ids} if module.config.is_encoder_decoder else {}
        with torch.no_grad():
            module(ids, **two)
    except Exception as error:  # of a config, or of code that takes other sizes
        return {"class": name, "unbuilt": f"{type(error).__name__}: {error}".splitlines()[0][:120]}
    try:
        model = vf.wrap(module, tokenizer())
    except VisformerError as error:
        return {"class": name, "gives": [], "why": error.message_id}
    names = {each.split(".", 2)[-1] for each in model._names}
    weights = {each.rpartition(".")[2] for each in model._weights}
    gives = {
        "patterns": True,
        "inside": "self_attn.q" in names,
        "stream": "resid_pre" in names,
        "sublayers": {"resid_self", "ffn.out"} <= names or ("ffn.out" in names and "norm_self" in names),
        "qkv": {"w_q", "w_k", "w_v"} <= weights,
        "o": "w_o" in weights,
        "logits": "logits" in model._names,
    }
    why = str(model._why_patterns) if model._patterns_only else ""
    stacks = (model.info.blocks.encoder, model.info.blocks.decoder)
    blocks = dict.fromkeys("parallel" if stack.parallel else stack.norm for stack in stacks if stack)
    return {
        "class": name,
        "kind": model.info.kind,
        "position": model.info.position,
        "blocks": [*blocks],
        "gives": [each for each in GIVES if gives[each]],
        "why": why,
    }
