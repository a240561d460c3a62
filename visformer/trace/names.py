"""The names of everything that can be traced, and the axes that each name implies. No arrays here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Axis:
    """One axis of a traced array.

    Args:
        name: "layer", "head", "kv_head" (for keys and values that several heads share), "query", "key", "token",
            "d_model", "d_k", "d_heads" (all heads together), "d_ff" or "vocab".
        side: side whose tokens are along it, "src" or "tgt"; None for an axis without tokens.
    """

    name: str
    side: str | None = None


_HEAD, _D_MODEL = Axis("head"), Axis("d_model")
_ATTENTION = re.compile(
    r"(encoder|decoder)\.(\d+)\.(self_attn|cross_attn)\.(q|k|v|bias|scores|mask|sink|pattern|map|heads|out)"
)
_BLOCK = re.compile(
    r"(encoder|decoder)\.(\d+)\."
    r"(ffn\.hidden|ffn\.out|(?:attn|cross|ffn)_sum|norm_(?:self|cross|ffn)|resid_(?:pre|self|cross|post))"
)
_ENDS = {
    **{
        f"{side}.{part}": (Axis("token", side), _D_MODEL)
        for side in ("src", "tgt")
        for part in ("embed", "segment", "position", "input")
    },
    "encoder.out": (Axis("token", "src"), _D_MODEL),
    "decoder.out": (Axis("token", "tgt"), _D_MODEL),
    "logits": (Axis("token", "tgt"), Axis("vocab")),
}


@lru_cache(maxsize=4096)
def axes_of(name: str) -> tuple[Axis, ...] | None:
    """Return the axes of the tensor with this name, or None if there is no such name."""
    if name in _ENDS:
        return _ENDS[name]
    side = "src" if name.startswith("encoder") else "tgt"
    if match := _ATTENTION.fullmatch(name):
        stack, _, part, tensor = match.groups()
        if stack == "encoder" and part == "cross_attn":
            return None
        read = "src" if part == "cross_attn" else side
        return {
            "q": (_HEAD, Axis("query", side), Axis("d_k")),
            "k": (_HEAD, Axis("key", read), Axis("d_k")),
            "v": (_HEAD, Axis("key", read), Axis("d_k")),
            "sink": (_HEAD, Axis("query", side)),
            "heads": (_HEAD, Axis("query", side), Axis("d_k")),
            "out": (Axis("query", side), _D_MODEL),
        }.get(tensor, (_HEAD, Axis("query", side), Axis("key", read)))
    if match := _BLOCK.fullmatch(name):
        if match[1] == "encoder" and "cross" in match[3]:
            return None
        return (Axis("token", side), Axis("d_ff") if match[3] == "ffn.hidden" else _D_MODEL)
    return None


def all_names(
    n_encoder_layers: int | None, n_decoder_layers: int, *, adds_position: bool = True, biases_scores: bool = False
) -> Iterator[str]:
    """Yield every tensor name of a model of these depths, in the order of computation.

    Args:
        n_encoder_layers: number of encoder layers; None: a decoder-only model, without cross-attention.
        n_decoder_layers: number of decoder layers.
        adds_position: whether the input is embedding plus position.
        biases_scores: whether self-attention adds a positional bias.
    """
    for stack, side, depth in (("encoder", "src", n_encoder_layers), ("decoder", "tgt", n_decoder_layers)):
        if depth is None:
            continue
        yield from (f"{side}.{part}" for part in ("embed", *["position"] * adds_position, "input"))
        reads = stack == "decoder" and n_encoder_layers is not None
        for layer in range(depth):
            yield from (f"{stack}.{layer}.{rest}" for rest in _block_names(reads, biases_scores))
        yield f"{stack}.out"
    yield "logits"


def _block_names(reads_encoder: bool, biases_scores: bool) -> Iterator[str]:
    sublayers = (("self", "attn_sum"), ("cross", "cross_sum")) if reads_encoder else (("self", "attn_sum"),)
    yield "resid_pre"
    for kind, name_sum in sublayers:
        bias = ["bias"] * (biases_scores and kind == "self")
        parts = ("q", "k", "v", *bias, "scores", "mask", "pattern", "heads", "out")
        yield from (f"{kind}_attn.{part}" for part in parts)
        yield from (name_sum, f"norm_{kind}", f"resid_{kind}")
    yield from ("ffn.hidden", "ffn.out", "ffn_sum", "norm_ffn", "resid_post")
