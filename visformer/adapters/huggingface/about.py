"""Metadata of a transformers model: its sizes, its positions, and why it lacks a tensor."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from visformer.adapters.base import ModelInfo
from visformer.adapters.huggingface.families import (
    FAMILIES,
    NO_ATTENTION,
    NO_HEAD,
    NO_PLACE,
    NO_SOURCE,
    NOT_SEEN,
    PARALLEL,
    StackPlaces,
    layout_of,
    norms_of,
)
from visformer.adapters.huggingface.run import SPAN, Engine
from visformer.adapters.huggingface.taps import part_of
from visformer.adapters.huggingface.weights import final_norm_of
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


def sizes_of(config: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Fields of :class:`ModelInfo`, derived from the shapes of all tensors of a short pass."""
    heads = [shape[0] for path, shape in shapes.items() if path.endswith(".pattern")]
    groups = [shape[0] for path, shape in shapes.items() if path.endswith(".self_attn.k")]
    size = getattr(config.get_text_config(), "hidden_size", None) or config.hidden_size  # FSMT's is in the outer config
    return {
        "n_heads": heads[0],
        "d_model": int(size),
        "n_kv_heads": groups[0] if groups else None,
        "position": _position(config),
    }


def architecture(
    config: Any,
    base: nn.Module,
    *,
    shapes: Mapping[str, tuple[int, ...]],
    depths: Mapping[str, int],
    stacks: Mapping[str, StackPlaces],
    found: Found,
    logits: bool,
) -> Blocks:
    """Describe the stacks of a model.

    Args:
        config: the model's config.
        base: the module that the table's paths are relative to.
        shapes: the shapes of all tensors of a short pass.
        depths: "encoder" and "decoder" to the number of layers, 0 without such a stack.
        stacks: the stacks of the table, if it lists the family.
        found: what was found without the table.
        logits: whether the model returns logits.
    """
    blocks = {part: _as_seen(part, depth, shapes=shapes) for part, depth in depths.items() if depth}
    for part, stack in stacks.items():
        blocks[part] = replace(
            blocks[part],
            norm=norms_of(stack, config),
            parallel=layout_of(stack, config) == "parallel",
            final_norm=final_norm_of(base, stack) is not None,
        )
    for part, (norm, parallel) in found.norms.items():
        blocks[part] = replace(blocks[part], norm=norm, parallel=parallel, final_norm=part in found.ends)
    return Blocks(blocks.get("encoder"), blocks.get("decoder"), position=_position(config), logits=logits)


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
    stacks: Mapping[str, StackPlaces],
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
    missing = [[name, _why(name, config, why_patterns=why_patterns, stacks=stacks, engine=engine)] for name in absent]
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


def _why(name: str, config: Any, *, why_patterns: str | None, stacks: Mapping[str, StackPlaces], engine: Engine) -> str:
    if name.endswith("cross*"):
        return NO_SOURCE
    if name == "logits" and engine.logits_axes is None:
        return NO_HEAD
    if why_patterns and (not stacks or name.endswith((".q", ".k", ".v", ".scores", ".mask", ".heads"))):
        return why_patterns
    if not stacks:
        return NOT_SEEN
    if name.endswith(".position"):
        return described(_position(config))
    layouts = {layout_of(stack, config) for stack in stacks.values()}
    return PARALLEL if layouts == {"parallel"} and name.endswith(("_self", "_sum")) else NO_PLACE
