"""The names of everything that can be traced, what each holds, and the axes that it implies. No arrays here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from visformer.errors import N_, Message


@dataclass(frozen=True)
class Axis:
    """One axis of a traced array.

    Args:
        name: "head", "kv_head" (for keys and values that several heads share), "query", "key", "token",
            "d_model", "d_k", "d_heads" (all heads together), "d_ff", "vocab", "patch" (of a picture, where tokens are
            more than patches), "pixel" (of a patch) or "label" (a classifier's).
        side: side whose tokens are along it, "src" or "tgt", with :data:`PREFIX` before it where more keys come before
            the tokens; None for an axis without tokens.
    """

    name: str
    side: str | None = None


PREFIX = "prefix+"
"""Begins the name of a side whose tokens have others before them, which are only read: virtual tokens, a cache."""


D_MODEL, VOCAB, PIXEL = Axis("d_model"), Axis("vocab"), Axis("pixel")
_HEAD = Axis("head")
_SIDE = {
    "embed": N_("the token embeddings as they enter the sum, in the paper times √d_model (section 3.4)"),
    "segment": N_("what is added for the first or second text of a pair (BERT)"),
    "position": N_("the positional encoding, where one is added to the embeddings (section 3.5)"),
    "input": N_("what the first layer receives: their sum, and its layer norm if the model has one there"),
}
_INSIDE = {
    "q": N_("the queries, rotated where the model has rotary positions (section 3.2)"),
    "k": N_("the keys, rotated like the queries; the first axis is kv_head where several heads share them"),
    "v": N_("the values; the first axis is kv_head where several heads share them"),
    "bias": N_("the positional bias that the scores include (ALiBi, T5)"),
    "scores": N_("q · kᵀ / √d_k with the bias, or as the model scales it: before mask and softmax"),
    "mask": N_("whether the query may attend to the key; bool"),
    "pattern": N_("the attention weights: softmax of the scores where the mask is True; a row sums to 1 with its sink"),
    "map": N_("any numbers between queries and keys in place of a pattern, from Trace.from_maps"),
    "sink": N_("the weight that a row gives to no token, where the model has attention sinks (GPT-OSS)"),
    "heads": N_("pattern · v: each head's weighted sum of the values"),
    "out": N_("all heads concatenated and multiplied by W_O: what the sublayer adds to the residual stream"),
}
_BLOCK = {
    "resid_pre": N_("the residual stream that enters the layer"),
    "attn_sum": N_("the stream plus the output of self-attention"),
    "norm_self": N_("the layer norm of self-attention: of its input with pre-norm, of the sum with post-norm"),
    "resid_self": N_("the stream after self-attention: the sum with pre-norm, its layer norm with post-norm"),
    "cross_sum": N_("the stream plus the output of cross-attention"),
    "norm_cross": N_("the layer norm of cross-attention, like norm_self"),
    "resid_cross": N_("the stream after cross-attention, like resid_self"),
    "ffn.hidden": N_("the feed-forward network's hidden values, after the activation (section 3.3)"),
    "ffn.out": N_("the feed-forward network's output: what the sublayer adds to the residual stream"),
    "ffn_sum": N_("the stream plus the output of the feed-forward network"),
    "norm_ffn": N_("the layer norm of the feed-forward network, like norm_self"),
    "resid_post": N_("the residual stream that leaves the layer"),
}
_LAST = {
    "{stack}.out": N_("the output of the stack: of its last layer, or of the layer norm after it"),
    "logits": N_("a number for each token of the vocabulary: softmax gives its probability as the next one"),
}
TENSORS: Mapping[str, Message] = {
    "src.pixels": N_(
        "the pixels of each patch of a picture, from 0 to 1: its red values row by row, then green and blue"
    ),
    **{f"{{side}}.{name}": meaning for name, meaning in _SIDE.items()},
    **{f"{{stack}}.{{layer}}.{{attention}}.{name}": meaning for name, meaning in _INSIDE.items()},
    **{f"{{stack}}.{{layer}}.{name}": meaning for name, meaning in _BLOCK.items()},
    **_LAST,
}
"""Name to what it holds; side: src, tgt; stack: encoder, decoder; attention: self_attn, in decoders also cross_attn."""

WEIGHTS: Mapping[str, Message] = {
    "src.w_patch": N_("the matrix from a patch's pixels to its embedding (Dosovitskiy et al. 2021, section 3.1)"),
    "src.b_patch": N_("the bias of this matrix"),
    "{side}.embedding": N_("the rows of the embedding table that the text uses, before the factor √d_model"),
    "{stack}.{layer}.{attention}.w_q": N_("W_Q: the projection to the queries of all heads"),
    "{stack}.{layer}.{attention}.w_k": N_("W_K: the projection to the keys"),
    "{stack}.{layer}.{attention}.w_v": N_("W_V: the projection to the values"),
    "{stack}.{layer}.{attention}.w_o": N_("W_O: the projection of the concatenated heads"),
    **{f"{{stack}}.{{layer}}.{{attention}}.b_{x}": N_("the bias of this projection, if it has one") for x in "qkvo"},
    "{stack}.{layer}.ffn.w_1": N_("the first matrix of the feed-forward network"),
    "{stack}.{layer}.ffn.b_1": N_("the bias of the first matrix"),
    "{stack}.{layer}.ffn.w_2": N_("the second matrix of the feed-forward network"),
    "{stack}.{layer}.ffn.b_2": N_("the bias of the second matrix"),
    "{stack}.{layer}.{norm}.gamma": N_("the factor of a layer norm"),
    "{stack}.{layer}.{norm}.beta": N_("the summand of a layer norm"),
    "{stack}.norm.gamma": N_("the factor of the layer norm after the last layer, if there is one"),
    "{stack}.norm.beta": N_("the summand of the layer norm after the last layer"),
    "output.w": N_("the matrix from the decoder's output to the logits"),
}
"""Every name of weights to what they are, y = x W + b; norm: norm_self, norm_cross, norm_ffn."""

_PATH = r"(encoder|decoder)\.(\d+)\."
_IN_ATTENTION = re.compile(rf"{_PATH}(self_attn|cross_attn)\.({'|'.join(_INSIDE)})")
_IN_BLOCK = re.compile(rf"{_PATH}({'|'.join(map(re.escape, _BLOCK))})")
_ENDS = {
    **{f"{side}.{part}": (Axis("token", side), D_MODEL) for side in ("src", "tgt") for part in _SIDE},
    "src.pixels": (Axis("token", "src"), PIXEL),
    "encoder.out": (Axis("token", "src"), D_MODEL),
    "decoder.out": (Axis("token", "tgt"), D_MODEL),
    "logits": (Axis("token", "tgt"), VOCAB),
}


@lru_cache(maxsize=4096)
def axes_of(name: str) -> tuple[Axis, ...] | None:
    """Return the axes of the tensor with this name, or None if there is no such name."""
    if name in _ENDS:
        return _ENDS[name]
    side = "src" if name.startswith("encoder") else "tgt"
    if match := _IN_ATTENTION.fullmatch(name):
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
            "out": (Axis("query", side), D_MODEL),
        }.get(tensor, (_HEAD, Axis("query", side), Axis("key", read)))
    if match := _IN_BLOCK.fullmatch(name):
        if match[1] == "encoder" and "cross" in match[3]:
            return None
        return (Axis("token", side), Axis("d_ff") if match[3] == "ffn.hidden" else D_MODEL)
    return None


def all_names(
    n_encoder_layers: int | None,
    n_decoder_layers: int,
    *,
    adds_position: bool = True,
    biases_scores: bool = False,
    feeds_forward: bool = True,
) -> Iterator[str]:
    """Yield every tensor name of a model of these depths, in the order of computation.

    Args:
        n_encoder_layers: number of encoder layers; None: a decoder-only model, without cross-attention.
        n_decoder_layers: number of decoder layers.
        adds_position: whether the input is embedding plus position.
        biases_scores: whether self-attention adds a positional bias.
        feeds_forward: whether blocks have a feed-forward network.
    """
    for stack, side, depth in (("encoder", "src", n_encoder_layers), ("decoder", "tgt", n_decoder_layers)):
        if depth is None:
            continue
        yield from (f"{side}.{part}" for part in ("embed", *["position"] * adds_position, "input"))
        reads = stack == "decoder" and n_encoder_layers is not None
        for layer in range(depth):
            yield from (f"{stack}.{layer}.{rest}" for rest in _block_names(reads, biases_scores, feeds_forward))
        yield f"{stack}.out"
    yield "logits"


def _block_names(reads_encoder: bool, biases_scores: bool, feeds_forward: bool) -> Iterator[str]:
    sublayers = (("self", "attn_sum"), ("cross", "cross_sum")) if reads_encoder else (("self", "attn_sum"),)
    yield "resid_pre"
    for kind, name_sum in sublayers:
        bias = ["bias"] * (biases_scores and kind == "self")
        parts = ("q", "k", "v", *bias, "scores", "mask", "pattern", "heads", "out")
        yield from (f"{kind}_attn.{part}" for part in parts)
        yield from (name_sum, f"norm_{kind}", f"resid_{kind}")
    if feeds_forward:
        yield from ("ffn.hidden", "ffn.out", "ffn_sum", "norm_ffn")
    yield "resid_post"
