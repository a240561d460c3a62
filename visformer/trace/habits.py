"""How other libraries hold and call attention weights: TransformerLens, nnsight, BertViz. None is imported."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from visformer.errors import N_, TraceError

_HOOK = re.compile(r"(blocks|encoder|decoder)\.(\d+)\.(attn|cross_attn)\.hook_pattern")
_STACKS = {"decoder": ("blocks.attn", "decoder.attn"), "cross": ("decoder.cross_attn",)}
_ENCODER = ("blocks.attn", "encoder.attn")

_OUR_NAMES = {
    "attention": "patterns",
    "attentions": "patterns",
    "encoder_attention": "patterns",
    "encoder_attentions": "patterns",
    "decoder_attention": "decoder",
    "decoder_attentions": "decoder",
    "cross_attention": "cross",
    "cross_attentions": "cross",
    "encoder_tokens": "tokens",
    "decoder_tokens": "target",
}
"""What BertViz and transformers call the arguments of ``Trace.from_attention``."""


def refuse_others(names: Iterable[str]) -> None:
    """Refuse arguments that ``Trace.from_attention`` does not have.

    Raises:
        TraceError: the name is BertViz's or transformers'; the message says what it is called here.
        TypeError: any other name, as Python itself raises it.
    """
    for name in names:
        if name not in _OUR_NAMES:
            raise TypeError(f"Trace.from_attention() got an unexpected keyword argument {name!r}")
        raise TraceError(
            N_(
                "{given}= is called {name}= here: from_attention(tokens, patterns) for an encoder, target= and "
                "decoder= for a decoder, and cross= for cross-attention."
            ),
            given=name,
            name=_OUR_NAMES[name],
        )


def layers_in(given: Any, name: str) -> Any:
    """Return the layers that another library's container holds; anything else as it is.

    Args:
        given: a cache of TransformerLens, by whose names its layers are found; a saved proxy of nnsight.
        name: name of the argument, for error messages; it says which stack of a cache is meant.

    Raises:
        TraceError: the cache has no patterns of this stack, or not those of all layers from the first on.
    """
    given = _saved(given)
    names = [str(key) for key in given.keys()] if hasattr(given, "keys") else []  # noqa: SIM118 (no mapping)
    if not any("hook_" in each for each in names):
        return given
    stacks = _STACKS.get(name, _ENCODER)
    found = {
        int(match[2]): each for each in names if (match := _HOOK.fullmatch(each)) and f"{match[1]}.{match[3]}" in stacks
    }
    if sorted(found) != list(range(len(found))) or not found:
        raise TraceError(
            N_(
                "{name} is a cache with the patterns of {layers} for this argument; it needs those of all layers from "
                'the first on, such as "blocks.0.attn.hook_pattern". Caches keep them with names_filter=lambda name: '
                'name.endswith("hook_pattern"). For some layers only, give a dict: {{3: cache["pattern", 3]}}.'
            ),
            name=name,
            layers=", ".join(found[layer] for layer in sorted(found)) or "-",
        )
    return [given[found[layer]] for layer in sorted(found)]


def weights_in(layer: Any, name: str) -> Any:
    """Return a layer's weights from a saved proxy, or from an attention's whole output; anything else as it is.

    Args:
        layer: an array, or (attn_output, attn_weights) as torch.nn.MultiheadAttention and transformers return it.
        name: name of the layer, for error messages.

    Raises:
        TraceError: the output holds no weights of each head.
    """
    layer = _saved(layer)
    parts = [_saved(part) for part in layer] if isinstance(layer, tuple) else []
    sizes = [len(getattr(part, "shape", ())) for part in parts]
    if not parts or max(sizes) < 3:
        return layer
    if len(parts) > 1 and sizes[0] < max(sizes) and sizes.count(max(sizes)) == 1:
        return parts[sizes.index(max(sizes))]
    raise TraceError(
        N_(
            "{name} is an output with the shapes {shapes}, without the weights of each head, (1, head, query, key): "
            'transformers returns them with attn_implementation="eager", torch.nn.MultiheadAttention with '
            "average_attn_weights=False."
        ),
        name=name,
        shapes=", ".join(str(tuple(getattr(part, "shape", ()))) if part is not None else "None" for part in parts),
    )


def _saved(given: Any) -> Any:
    """Return what a proxy has saved: its ``value``."""
    value = getattr(given, "value", None)
    return value if hasattr(value, "shape") or isinstance(value, tuple | list | Mapping) else given
