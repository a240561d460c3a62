"""Metadata of a transformers model: its sizes, its positions, and why it lacks a tensor."""

import re
from collections.abc import Mapping
from typing import Any

from visformer.adapters.base import ModelInfo
from visformer.adapters.huggingface.families import (
    FAMILIES,
    NO_ATTENTION,
    NO_HEAD,
    NO_PLACE,
    NO_SOURCE,
    NOT_IN_TABLE,
    PARALLEL,
    PATTERNS_ONLY,
    layout_of,
)
from visformer.adapters.huggingface.taps import part_of
from visformer.model.positions import described
from visformer.trace.names import Axis, all_names


def max_tokens(config: Any, of_tokenizer: int | None) -> int | None:
    """The smaller of the tokenizer's limit and the model's number of positions; None: neither has one."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions and config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= 2  # they number positions from the padding id on
    return min((max(1, int(limit)) for limit in (of_tokenizer, positions) if limit), default=None)


def sizes_of(config: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Fields of :class:`ModelInfo`, derived from the shapes of all tensors of a short pass."""
    heads = [shape[0] for path, shape in shapes.items() if path.endswith(".pattern")]
    groups = [shape[0] for path, shape in shapes.items() if path.endswith(".self_attn.k")]
    return {
        "n_heads": heads[0],
        "d_model": int(config.get_text_config().hidden_size),
        "n_kv_heads": groups[0] if groups else None,
        "position": _position(config),
    }


def about(
    config: Any,
    info: ModelInfo,
    names: tuple[str, ...],
    *,
    patterns_only: bool,
    logits_axes: tuple[Axis, ...] | None,
) -> dict[str, Any]:
    """A Trace's metadata on its model: kv heads, windows, positions, labels, and why a tensor is missing."""
    meta: dict[str, Any] = {"n_kv_heads": info.n_kv_heads, "position": info.position}
    if logits_axes is not None and logits_axes[-1].name == "label":
        meta["labels"] = [str(config.id2label[i]) for i in range(config.num_labels)]
    if windows := _windows(config, info.n_encoder_layers or info.n_decoder_layers):
        meta["windows"] = windows
    absent = [*_absent(info, names), *["logits"] * (info.kind == "encoder" and "logits" not in names)]
    missing = [[name, _why(name, config, patterns_only=patterns_only)] for name in absent]
    return {**meta, "missing": missing + [[name, NO_ATTENTION] for name in _without_attention(info, names)]}


def _windows(config: Any, depth: int) -> list[int | None]:
    """Window of each layer, in tokens: with the query for a decoder, per side for an encoder. Empty: no windows."""
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    if local := getattr(config, "attention_layers", None):  # GPT-Neo
        return [config.window_size if kind == "local" else None for kind in local]
    if not window:
        return []
    return [window if kind == "sliding_attention" else None for kind in kinds or ["sliding_attention"] * depth]


def _position(config: Any) -> str:
    """The positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`."""
    if config.model_type not in FAMILIES:
        return "unknown"
    return "alibi" if getattr(config, "alibi", False) else FAMILIES[config.model_type].position


def _absent(info: ModelInfo, names: tuple[str, ...]) -> list[str]:
    """Names of tensors that other models have and this one lacks; * stands for the layer."""
    layers = re.compile(r"\.\d+\.")
    present = {layers.sub(".*.", name) for name in names}
    depth = {"encoder": info.n_encoder_layers, "decoder": info.n_decoder_layers}
    possible = dict.fromkeys(layers.sub(".*.", name) for name in all_names(*map(bool, depth.values())))
    absent = [name for name in possible if name not in present and depth[part_of(name)]]
    if info.kind != "decoder":
        return absent
    return ["decoder.*cross*", *(name for name in absent if "cross" not in name)]


def _without_attention(info: ModelInfo, names: tuple[str, ...]) -> list[str]:
    """Names of the attentions of layers that have none, in a hybrid model."""
    depth = {"encoder": info.n_encoder_layers, "decoder": info.n_decoder_layers}
    paths = (f"{part}.{layer}.self_attn." for part, layers in depth.items() for layer in range(layers))
    return [f"{path}*" for path in paths if f"{path}pattern" not in names]


def _why(name: str, config: Any, *, patterns_only: bool) -> str:
    if name.endswith("cross*"):
        return NO_SOURCE
    if config.model_type not in FAMILIES:
        return NOT_IN_TABLE
    if name == "logits":
        return NO_HEAD
    if name.endswith(".position"):
        return described(_position(config))
    if patterns_only and name.endswith((".q", ".k", ".v", ".scores", ".mask", ".heads")):
        return PATTERNS_ONLY
    layouts = {layout_of(stack, config) for stack in FAMILIES[config.model_type].stacks.values()}
    return PARALLEL if layouts == {"parallel"} and name.endswith(("_self", "_sum")) else NO_PLACE
