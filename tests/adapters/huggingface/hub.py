"""Tiny untrained models of transformers, of many families, and a tokenizer for them."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedModel, PreTrainedTokenizerFast

import visformer as vf
from tests.adapters.huggingface.listed import FAMILIES
from visformer.adapters.base import TracedModel
from visformer.adapters.huggingface.model import HubModel
from visformer.adapters.huggingface.run import class_of
from visformer.trace import Trace

IS_OLD = int(transformers.__version__.partition(".")[0]) < 5
"""Whether this is the last transformers before version 5, see `make test-lowest`."""

TEXT = "I went to the river and saw you again today"
STRUCTURES = {
    "bert": "an encoder with segments, norms after the sum",
    "modernbert": "an encoder with rotary positions and windows, norms before",
    "deberta-v2": "relative positions in attention of its own",
    "gpt2": "a decoder, one matrix for queries, keys and values",
    "gptj": "parallel blocks, attention of its own",
    "bloom": "ALiBi in attention of its own",
    "falcon": "several queries share one key",
    "llama": "root mean squares, groups of queries share a key",
    "gemma2": "norms before and after, windows, capped scores",
    "olmo2": "norms of what is added",
    "gpt_oss": "sinks, and experts in place of the network",
    "deepseek_v3": "keys and values computed through narrower vectors",
    "bart": "both stacks, learned positions",
    "t5": "both stacks, a learned bias, no positions",
    "lfm2": "layers without attention",
    "zamba": "layers that share one attention",
}
"""A family of each structure: `make test` compares these where a comparison of all would cost too much."""


def one_of_each(families: Iterable[Any]) -> list[Any]:
    """Return rows for parametrize: families, or tuples that begin with one. Those of no structure above are `full`."""
    rows = [row if isinstance(row, tuple) else (row,) for row in families]
    return [pytest.param(*row, marks=() if row[0] in STRUCTURES else pytest.mark.full) for row in rows]


SPECIALS = ["<pad>", "<s>", "</s>", "<unk>", "<sep>"]
WORDS = "It is 2 + . I went to school the river and saw you again today".split()
SIZE = 48

_WIDTH = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 24,
          "max_position_embeddings": 64}  # fmt: skip
_GROUPED = {**_WIDTH, "num_key_value_heads": 2, "head_dim": 4}
_DEBERTA = {**_WIDTH, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}
_GPT2 = {"n_embd": 16, "n_layer": 3, "n_head": 4, "n_positions": 64}
_EXPERTS = {"moe_intermediate_size": 12, "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 1}
_LATENT = {**_WIDTH, "num_key_value_heads": 4, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
           "qk_nope_head_dim": 6, "v_head_dim": 4, "moe_intermediate_size": 12, "num_experts_per_tok": 2,
           "first_k_dense_replace": 1}  # fmt: skip
_TWO = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 64,
        "scale_embedding": True, "decoder_start_token_id": 2, "forced_eos_token_id": None}  # fmt: skip
_T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 3, "num_heads": 4,
       "decoder_start_token_id": 0}  # fmt: skip
_SIZES: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 16, "n_layers": 3, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 64},
    "albert": {**_WIDTH, "embedding_size": 8, "num_hidden_groups": 1},
    "modernbert": {**_WIDTH, "local_attention": 4, "global_attn_every_n_layers": 2},
    "deberta": _DEBERTA,
    "deberta-v2": _DEBERTA,
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2,
    "gpt_neo": {"hidden_size": 16, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 64, "window_size": 3,
                "attention_types": [[["global", "local"], 1]]},
    "gptj": {**_GPT2, "rotary_dim": 4},
    "opt": {**_WIDTH, "ffn_dim": 24, "word_embed_proj_dim": 16},
    "bloom": {"hidden_size": 16, "n_layer": 3, "n_head": 4},
    "falcon": {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 64},
    "mistral": {**_GROUPED, "sliding_window": 3},
    "gemma2": {**_GROUPED, "sliding_window": 3, "query_pre_attn_scalar": 4, "attn_logit_softcapping": 0.5},
    "gemma3_text": {**_GROUPED, "sliding_window": 3, "query_pre_attn_scalar": 4,
                    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "gpt_oss": {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 3},
    "mixtral": {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": {**_GROUPED, **_EXPERTS, "shared_expert_intermediate_size": 12},
    "qwen3_moe": {**_GROUPED, **_EXPERTS},
    "phi": {**_WIDTH, "partial_rotary_factor": 0.5},
    "gpt_neox": _WIDTH,
    "cohere2": {**_GROUPED, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "sliding_window": 3},
    "deepseek_v2": {**_LATENT, "n_routed_experts": 4, "n_shared_experts": 1},
    "deepseek_v3": {**_LATENT, "n_routed_experts": 8, "n_group": 4, "topk_group": 2},
    "stablelm": {**_WIDTH, "num_key_value_heads": 2, "partial_rotary_factor": 0.5},
    "ministral": {**_GROUPED, "sliding_window": 3},
    "t5": _T5,
    "mt5": _T5,
    "umt5": _T5,
    "bigbird_pegasus": {**_TWO, "block_size": 2, "num_random_blocks": 1},
    "fsmt": {**_TWO, "src_vocab_size": SIZE, "tgt_vocab_size": SIZE, "langs": ["en", "de"]},
    "openai-gpt": _GPT2,
    "switch_transformers": {**_T5, "num_experts": 2, "num_decoder_layers": 2},
    "qwen2_vl": {"text_config": {**_GROUPED, "vocab_size": SIZE,
                                 "rope_scaling": {"rope_type": "default", "mrope_section": [1, 1, 0]}},
                 "vision_config": {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 16, "mlp_ratio": 1}},
    "blip": {"text_config": {**_WIDTH, "vocab_size": SIZE, "encoder_hidden_size": 16},
             "vision_config": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                               "intermediate_size": 16, "image_size": 8, "patch_size": 4}},
    "bert-generation": _WIDTH,
    "megatron-bert": _WIDTH,
    "xglm": {"d_model": 16, "ffn_dim": 24, "num_layers": 2, "attention_heads": 4},
}  # fmt: skip
# fmt: off
_FEW_EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
_MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 4, "mamba_d_conv": 2,
          "mamba_chunk_size": 4}
_ZAMBA = {"num_hidden_layers": 6, "num_attention_heads": 4, "hidden_size": 16, "attention_hidden_size": 32,
          "attention_head_dim": 8, "num_key_value_heads": 4, "intermediate_size": 24, "mamba_d_state": 4,
          "layers_block_type": ["mamba", "hybrid", "mamba", "mamba", "hybrid", "hybrid"]}
_LINEAR = {"linear_key_head_dim": 4, "linear_value_head_dim": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
           "linear_conv_kernel_dim": 2, "num_hidden_layers": 4,
           "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"]}
_LATENT = {**_WIDTH, **_LINEAR, **_FEW_EXPERTS, "num_key_value_heads": 4, "kv_lora_rank": 8, "qk_rope_head_dim": 4,
           "v_head_dim": 4, "qk_nope_head_dim": 4, "head_dim": 4, "linear_head_dim": 4, "linear_num_heads": 4,
           "short_conv_kernel_size": 2, "n_group": 1, "topk_group": 1}
_CONV = ["conv", "conv", "full_attention", "conv", "full_attention", "conv"]
_HYBRIDS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "lfm2": ({**_GROUPED, "num_hidden_layers": 6, "layer_types": _CONV}, (2, 4)),
    "lfm2_moe": ({**_GROUPED, **_FEW_EXPERTS, "num_hidden_layers": 6, "layer_types": _CONV, "num_dense_layers": 1},
                 (2, 4)),
    "jamba": ({**_GROUPED, "num_hidden_layers": 6, "attn_layer_period": 3, "attn_layer_offset": 1, "num_experts": 2,
               "mamba_d_state": 4, "mamba_dt_rank": 2, "use_mamba_kernels": False}, (1, 4)),
    "qwen3_next": ({**_GROUPED, **_LINEAR, **_FEW_EXPERTS, "shared_expert_intermediate_size": 12}, (1, 3)),
    "qwen3_5_text": ({**_GROUPED, **_LINEAR}, (1, 3)),
    "olmo_hybrid": ({**_GROUPED, **_LINEAR}, (1, 3)),
    "kimi_linear": (_LATENT, (1, 3)),
    "bailing_hybrid": (_LATENT, (1, 3)),
    "minimax": ({**_GROUPED, **_LINEAR, "num_local_experts": 4, "block_size": 4}, (1, 3)),
    "granitemoehybrid": ({**_GROUPED, **_MAMBA, "layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 4,
                          "num_experts_per_tok": 2, "shared_intermediate_size": 12}, (1,)),
    "bamba": ({**_GROUPED, **_MAMBA, "num_hidden_layers": 4, "attn_layer_indices": [0, 3]}, (0, 3)),
    "zamba": ({**_ZAMBA, "n_mamba_heads": 2, "mamba_dt_rank": 2, "use_mamba_kernels": False}, (1, 4, 5)),
    "zamba2": ({**_ZAMBA, "n_mamba_heads": 4, "mamba_headdim": 8, "chunk_size": 4, "num_mem_blocks": 2}, (1, 4, 5)),
    "nemotron_h": ({**_GROUPED, "layers_block_type": ["mamba", "moe", "attention", "moe"], "ssm_state_size": 4,
                    "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 1, "conv_kernel": 2, "chunk_size": 4,
                    "n_routed_experts": 4, "moe_intermediate_size": 12, "moe_shared_expert_intermediate_size": 12},
                   (2,)),
    "recurrent_gemma": ({**_WIDTH, "num_hidden_layers": 5, "lru_width": 16, "num_key_value_heads": 1,
                         "block_types": ["recurrent", "recurrent", "attention"], "attention_window_size": 64}, (2,)),
    "falcon_h1": ({**_GROUPED, **_MAMBA, "mamba_d_ssm": 32}, (0, 1, 2)),
}
# fmt: on
_SIZES |= {family: sizes for family, (sizes, _) in _HYBRIDS.items()}
HYBRIDS = {family: layers for family, (_, layers) in _HYBRIDS.items()}
"""Families that mix attention with layers of other kinds, and which layers of their tiny models have attention."""

_STATES = {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}
_SIZES |= {  # families that are refused
    "mamba": _STATES,
    "mamba2": {**_STATES, "num_heads": 4, "head_dim": 8, "n_groups": 1},
    "falcon_mamba": _STATES,
    "rwkv": {"hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16},
    "fnet": _WIDTH,
    "yoso": _WIDTH,
    "longformer": {**_WIDTH, "attention_window": 4},
    "led": {**_TWO, "attention_window": 4, "max_encoder_position_embeddings": 64,
            "max_decoder_position_embeddings": 64},
    "longt5": {**_T5, "local_radius": 3},
    "reformer": {"hidden_size": 16, "num_attention_heads": 4, "attention_head_size": 4, "feed_forward_size": 24,
                 "attn_layers": ["local", "lsh"], "num_buckets": 2, "axial_pos_shape": [8, 8],
                 "axial_pos_embds_dim": [8, 8], "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4,
                 "is_decoder": True},
    "big_bird": _WIDTH,
    "funnel": {"d_model": 16, "n_head": 4, "d_head": 4, "d_inner": 24, "block_sizes": [1, 1],
               "num_decoder_layers": 1, "architectures": ["FunnelModel"]},
    "canine": _WIDTH,
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24},
    "prophetnet": {"hidden_size": 16, "num_encoder_layers": 2, "num_decoder_layers": 2, "encoder_ffn_dim": 24,
                   "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "decoder_ffn_dim": 24,
                   "max_position_embeddings": 64, "decoder_start_token_id": 2},
    "squeezebert": {**_WIDTH, "embedding_size": 16},
}  # fmt: skip
_USUAL = {"encoder": _WIDTH, "decoder": _GROUPED, "encoder-decoder": _TWO}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "sep_token_id": 2, "cls_token_id": 1}


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of words that puts <s> and </s> around a text; the second text of a pair is segment 1."""
    vocabulary = {token: i for i, token in enumerate([*SPECIALS, *WORDS])}
    library = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library.decoder = decoders.Fuse()
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=library, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def tiny_module(family: str, *, attention: str = "eager", seed: int = 0, **changes: Any) -> PreTrainedModel:
    """Return an untrained model whose attention is far from uniform."""
    if lacks := _lacks(family):
        pytest.skip(f"transformers {transformers.__version__}: {lacks}")
    return made(family, attention=attention, seed=seed, **changes)


@cache
def _lacks(family: str) -> str:
    """Return what the last transformers before version 5 lacks of a family; "": nothing, or this is a later one."""
    if not IS_OLD:
        return ""
    if family not in CONFIG_MAPPING:
        return f"there is no {family}"
    if family in FAMILIES and vf.wrap(made(family), tokenizer())._patterns_only:
        return f"{family} shows patterns only"
    return f"{family} returns no patterns" if family in ("minimax", "recurrent_gemma") else ""


def made(family: str, *, attention: str | None = "eager", seed: int = 0, **changes: Any) -> PreTrainedModel:
    """Return a module as :func:`tiny_module` does, whatever this version of transformers lacks."""
    sizes = _SIZES.get(family) or _USUAL[FAMILIES[family].kind]
    config = AutoConfig.for_model(family, **{"vocab_size": SIZE, **_IDS, **sizes, **changes})
    torch.manual_seed(seed)
    module = getattr(transformers, class_of(config)).from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.dim() > 1 or "sink" in name or "bias" in name:
                weight.normal_(std=0.4)
    return module.eval()


def tiny_model(family: str, **changes: Any) -> HubModel:
    """Return an adapted model, made once: a test that changes its module wraps a ``tiny_module`` of its own."""
    return _model(family, json.dumps(changes))


def tiny_trace(family: str, **changes: Any) -> Trace:
    """Return a Trace of ``TEXT`` with all tensors and all weights of attention, made once."""
    return _trace(family, json.dumps(changes))


def target_of(model: TracedModel) -> str | None:
    """Return what to trace ``TEXT`` with: without a target, a model with both stacks first has to translate."""
    return "to school" if model.info.kind == "encoder-decoder" else None


@cache
def _model(family: str, changes: str) -> HubModel:
    return vf.wrap(tiny_module(family, **json.loads(changes)), tokenizer())


@cache
def _trace(family: str, changes: str) -> Trace:
    model = _model(family, changes)
    record = model.available(("*", "*.w_[qkvo]", "*.b_[qkvo]"))
    return model.trace(TEXT, target_of(model), record=record)
