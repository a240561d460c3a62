"""Metadata of a transformers model: its sizes, its positions, and why it lacks a tensor."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from visformer.adapters.base import ModelInfo
from visformer.adapters.huggingface.families import (
    NO_ATTENTION,
    NO_HEAD,
    NO_SOURCE,
    NOT_SEEN,
    PARALLEL,
    POSITIONS,
)
from visformer.adapters.huggingface.run import SPAN, Engine
from visformer.adapters.huggingface.taps import part_of
from visformer.adapters.huggingface.wiring import Found
from visformer.model.positions import described
from visformer.trace.blocks import Blocks, StackBlocks, Sublayer
from visformer.trace.names import all_names


def max_tokens(config: Any, of_tokenizer: int | None) -> int | None:
    """The smaller of the tokenizer's limit and the model's number of positions; None: neither has one."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions and config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= 2  # they number positions from the padding id on
    return min((max(1, int(limit)) for limit in (of_tokenizer, positions) if limit), default=None)


def sizes_of(config: Any, shapes: Mapping[str, tuple[int, ...]], found: Found) -> dict[str, Any]:
    """Fields of :class:`ModelInfo`, derived from the shapes of all tensors of a short pass."""
    heads = [shape[0] for path, shape in shapes.items() if path.endswith(".pattern")]
    groups = [shape[0] for path, shape in shapes.items() if path.endswith(".self_attn.k")]
    size = getattr(config.get_text_config(), "hidden_size", None) or config.hidden_size  # FSMT's is in the outer config
    return {
        "n_heads": heads[0],
        "d_model": int(size),
        "n_kv_heads": groups[0] if groups else None,
        "position": _position(config, found),
    }


def architecture(
    config: Any,
    *,
    shapes: Mapping[str, tuple[int, ...]],
    depths: Mapping[str, int],
    found: Found,
    logits: bool,
) -> Blocks:
    """Describe the stacks of a model.

    Args:
        config: the model's config.
        shapes: the shapes of all tensors of a short pass.
        depths: "encoder" and "decoder" to the number of layers, 0 without such a stack.
        found: where its values are.
        logits: whether the model returns logits.
    """
    blocks = {
        part: replace(_as_seen(part, depth, shapes=shapes), final_norm=part in found.ends)
        for part, depth in depths.items()
        if depth
    }
    for part, (norm, parallel) in found.norms.items():
        blocks[part] = replace(blocks[part], norm=norm, parallel=parallel)
    return Blocks(blocks.get("encoder"), blocks.get("decoder"), position=_position(config, found), logits=logits)


def _as_seen(part: str, n_layers: int, *, shapes: Mapping[str, tuple[int, ...]]) -> StackBlocks:
    """Describe a stack as far as the shapes of its tensors tell."""
    patterns = {layer: f"{part}.{layer}.self_attn.pattern" for layer in range(n_layers)}
    heads = {layer: shapes[name][0] for layer, name in patterns.items() if name in shapes}
    first = min(heads)
    keys = shapes.get(f"{part}.{first}.self_attn.k")
    crosses: list[Sublayer] = ["cross_attn"] * (f"{part}.{first}.cross_attn.pattern" in shapes)
    return StackBlocks(
        n_layers=n_layers,
        sublayers=("self_attn", *crosses, "ffn"),
        norm="unknown",
        parallel=False,
        final_norm=False,
        n_heads=heads[first],
        n_kv_heads=None if keys is None else keys[0],
        attention_layers=None if len(heads) == n_layers else tuple(heads),
    )


def about(
    config: Any,
    info: ModelInfo,
    names: tuple[str, ...],
    *,
    why_patterns: str | None,
    found: Found,
    engine: Engine,
) -> dict[str, Any]:
    """A Trace's metadata on its model: kv heads, windows, positions, labels, and why a tensor is missing."""
    meta: dict[str, Any] = {"n_kv_heads": info.n_kv_heads, "position": info.position}
    if engine.logits_axes is not None and engine.logits_axes[-1].name == "label":
        labels = SPAN if engine.finds_span else [str(config.id2label[i]) for i in range(config.num_labels)]
        meta["labels"] = [*labels]
    if windows := _windows(config, info.n_encoder_layers or info.n_decoder_layers):
        meta["windows"] = windows
    absent = [*dict.fromkeys((*_absent(info, names), *["logits"] * ("logits" not in names)))]
    missing = [[name, _why(name, config, why_patterns=why_patterns, found=found, engine=engine)] for name in absent]
    return {**meta, "missing": missing + [[name, NO_ATTENTION] for name in _without_attention(info, names)]}


def _windows(config: Any, depth: int) -> list[int | None]:
    """Window of each layer, in tokens: with the query for a decoder, per side for an encoder. Empty: no windows."""
    kinds, window = getattr(config, "layer_types", None), getattr(config, "sliding_window", None)
    if local := getattr(config, "attention_layers", None):  # GPT-Neo
        return [config.window_size if kind == "local" else None for kind in local]
    if not window:
        return []
    return [window if kind == "sliding_attention" else None for kind in kinds or ["sliding_attention"] * depth]


def _position(config: Any, found: Found) -> str:
    """The positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`."""
    return (
        "alibi"
        if getattr(config, "alibi", False)
        else POSITIONS.get(config.model_type, "rotary" if found.rotates else "unknown")
    )


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


def _why(name: str, config: Any, *, why_patterns: str | None, found: Found, engine: Engine) -> str:
    if name.endswith("cross*"):
        return NO_SOURCE
    if name == "logits" and engine.logits_axes is None:
        return NO_HEAD
    if why_patterns:
        return why_patterns
    position = _position(config, found)
    if name.endswith(".position") and position != "unknown":
        return described(position)
    is_parallel = {parallel for _, parallel in found.norms.values()} == {True}
    return PARALLEL if is_parallel and name.endswith(("_self", "_sum")) else NOT_SEEN
