"""Where families compute their values, listed by hand from transformers' source: inspection is held against it.

A place is a module path, relative to the block or, for values outside the blocks, to the base model: ``path`` is the
module's output, ``path:in`` its input. ``path:scaled`` is an embedding's output times the ``embed_scale`` of its stack,
for stacks that do this multiplication themselves. The path of a block itself is empty; ``a|b`` is the one of two that a
variant of the family has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

import torch

from visformer.adapters.huggingface.taps import part_of
from visformer.trace.blocks import Norm

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Layout = Literal["post", "pre", "parallel"]
_Choice = TypeVar("_Choice", Layout, Norm)


@dataclass(frozen=True)
class StackPlaces:
    """One stack of blocks, and the places of the values that they compute.

    The layout is "post": norm(x + sublayer(x)), as in the paper; "pre": x + sublayer(norm(x)); or "parallel": x +
    attention(norm(x)) + ffn(norm(x)). A tuple names a flag of the config, the layout if it is true, and the layout if
    it is false.
    """

    blocks: str  # the list of blocks
    self_attn: str  # calls the attention function
    layout: Layout | tuple[str, Layout, Layout] = "pre"
    self_out: str | None = None  # returns self-attention's contribution to the residual stream
    cross_attn: str | None = None
    cross_out: str | None = None
    down: str | None = None  # second matrix of the feed-forward network, from hidden values to the residual stream
    ffn: str | None = None  # returns the network's contribution if no single matrix does (mixtures of experts)
    norm_self: str | None = None  # normalises the input of self-attention, or the sum after it with "post"
    norm_cross: str | None = None
    norm_ffn: str | None = None
    mid: str | None = None  # receives the sum of x and self-attention; None: the next norm
    embed: str | None = None  # returns the token embeddings
    position: str | None = None  # returns what is added for the position; None if nothing is
    segment: str | None = None  # returns what is added for the segment
    out: str | None = None  # returns the output of the stack; None: the last block
    final_norm: str | None = None  # normalises it; None: the module of ``out``, if it does
    repeated: bool = False  # the blocks are reused until the config's number of layers is reached (ALBERT)
    norms: Norm | tuple[str, Norm, Norm] | None = None  # where they are, if not where the layout says; or by a flag
    more: Mapping[str, str] = field(default_factory=dict)  # tensor name to place in a block; overrides the layout


@dataclass(frozen=True)
class Family:
    """A model type of transformers."""

    position: str  # a key of visformer.model.positions.DESCRIBED
    encoder: StackPlaces | None = None
    decoder: StackPlaces | None = None

    @property
    def stacks(self) -> dict[str, StackPlaces]:
        """Its stacks, by name."""
        both = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in both.items() if stack is not None}

    @property
    def kind(self) -> Kind:
        """Which stacks it has."""
        return cast(Kind, "-".join(self.stacks))


LAYOUTS: Mapping[str, Mapping[str, str]] = {
    "post": {
        "resid_pre": "block:in",
        "self_attn.out": "self_out",
        "attn_sum": "norm_self:in",
        "norm_self": "norm_self",
        "resid_self": "norm_self",
        "cross_attn.out": "cross_out",
        "cross_sum": "norm_cross:in",
        "norm_cross": "norm_cross",
        "resid_cross": "norm_cross",
        "ffn.hidden": "down:in",
        "ffn.out": "ffn",
        "ffn_sum": "norm_ffn:in",
        "norm_ffn": "norm_ffn",
        "resid_post": "block",
    },
    "pre": {
        "resid_pre": "block:in",
        "norm_self": "norm_self",
        "self_attn.out": "self_out",
        "attn_sum": "mid:in",
        "resid_self": "mid:in",
        "norm_cross": "norm_cross",
        "cross_attn.out": "cross_out",
        "cross_sum": "after_cross:in",
        "resid_cross": "after_cross:in",
        "norm_ffn": "norm_ffn",
        "ffn.hidden": "down:in",
        "ffn.out": "ffn",
        "ffn_sum": "block",
        "resid_post": "block",
    },
    "parallel": {
        "resid_pre": "block:in",
        "norm_self": "norm_self",
        "self_attn.out": "self_out",
        "norm_ffn": "norm_ffn",
        "ffn.hidden": "down:in",
        "ffn.out": "ffn",
        "resid_post": "block",
    },
}
"""Tensor name to place in a block, with fields of :class:`StackPlaces` in place of paths."""

# Stacks that families share ---------------------------------------------------------------------------------------

_BERT = StackPlaces(
    blocks="encoder.layer",
    layout="post",
    self_attn="attention.self",
    self_out="attention.output.dense",
    norm_self="attention.output.LayerNorm",
    down="output.dense",
    norm_ffn="output.LayerNorm",
    embed="embeddings.word_embeddings",
    position="embeddings.position_embeddings",
    segment="embeddings.token_type_embeddings",
)
_LLAMA = StackPlaces(
    blocks="layers",
    self_attn="self_attn",
    self_out="self_attn.o_proj",
    norm_self="input_layernorm",
    down="mlp.down_proj",
    norm_ffn="post_attention_layernorm",
    embed="embed_tokens",
    out="norm",
)
_EXPERTS = replace(_LLAMA, down=None, ffn="mlp")
_COHERE = replace(_LLAMA, layout="parallel", norm_ffn=None)
_GEMMA2 = replace(_LLAMA, norm_ffn="pre_feedforward_layernorm", norms="both")
_GPT2 = StackPlaces(
    blocks="h",
    self_attn="attn",
    self_out="attn.c_proj",
    norm_self="ln_1",
    down="mlp.c_proj",
    norm_ffn="ln_2",
    embed="wte",
    position="wpe",
    out="ln_f",
)
_BLOOM = StackPlaces(
    blocks="h",
    self_attn="self_attention",
    self_out="self_attention.dense",
    norm_self="input_layernorm",
    norm_ffn="post_attention_layernorm",
    down="mlp.dense_4h_to_h",
    embed="word_embeddings",
    out="ln_f",
)
_BART_ENCODER = StackPlaces(
    blocks="encoder.layers",
    layout="post",
    self_attn="self_attn",
    self_out="self_attn.out_proj",
    norm_self="self_attn_layer_norm",
    down="fc2",
    norm_ffn="final_layer_norm",
    embed="encoder.embed_tokens",
    position="encoder.embed_positions",
)
_BART_DECODER = replace(
    _BART_ENCODER,
    blocks="decoder.layers",
    cross_attn="encoder_attn",
    cross_out="encoder_attn.out_proj",
    norm_cross="encoder_attn_layer_norm",
    embed="decoder.embed_tokens",
    position="decoder.embed_positions",
)
_MBART_ENCODER = replace(_BART_ENCODER, layout="pre", out="encoder.layer_norm")
_MBART_DECODER = replace(_BART_DECODER, layout="pre", out="decoder.layer_norm")
_BART = Family("learned", _BART_ENCODER, _BART_DECODER)
_MBART = Family("learned", _MBART_ENCODER, _MBART_DECODER)
_T5_ENCODER = StackPlaces(
    blocks="encoder.block",
    self_attn="layer.0.SelfAttention",
    self_out="layer.0.SelfAttention.o",
    norm_self="layer.0.layer_norm",
    down="layer.1.DenseReluDense.wo",
    norm_ffn="layer.1.layer_norm",
    embed="encoder.embed_tokens",
    out="encoder.final_layer_norm",
    more={"attn_sum": "layer.0", "resid_self": "layer.0"},
)
_T5_DECODER = replace(
    _T5_ENCODER,
    blocks="decoder.block",
    cross_attn="layer.1.EncDecAttention",
    cross_out="layer.1.EncDecAttention.o",
    norm_cross="layer.1.layer_norm",
    down="layer.2.DenseReluDense.wo",
    norm_ffn="layer.2.layer_norm",
    embed="decoder.embed_tokens",
    out="decoder.final_layer_norm",
    more={"attn_sum": "layer.0", "resid_self": "layer.0", "cross_sum": "layer.1", "resid_cross": "layer.1"},
)
_T5 = Family("relative", _T5_ENCODER, _T5_DECODER)


def _scaled(stack: StackPlaces) -> StackPlaces:
    """A stack that scales the embeddings itself."""
    return replace(stack, embed=f"{stack.embed}:scaled")


# The table --------------------------------------------------------------------------------------------------------

FAMILIES: Mapping[str, Family] = {
    # Encoders
    "bert": Family("learned", encoder=_BERT),
    "roberta": Family("learned", encoder=_BERT),
    "xlm-roberta": Family("learned", encoder=_BERT),
    "camembert": Family("learned", encoder=_BERT),
    "electra": Family("learned", encoder=_BERT),
    "ernie": Family("learned", encoder=_BERT),
    "distilbert": Family(
        "learned",
        encoder=StackPlaces(
            blocks="transformer.layer",
            layout="post",
            self_attn="attention",
            self_out="attention.out_lin",
            norm_self="sa_layer_norm",
            down="ffn.lin2",
            norm_ffn="output_layer_norm",
            embed="embeddings.word_embeddings",
            position="embeddings.position_embeddings",
        ),
    ),
    "albert": Family(
        "learned",
        encoder=replace(
            _BERT,
            blocks="encoder.albert_layer_groups",
            self_attn="albert_layers.0.attention",
            self_out="albert_layers.0.attention.dense",
            norm_self="albert_layers.0.attention.LayerNorm",
            down="albert_layers.0.ffn_output",
            norm_ffn="albert_layers.0.full_layer_layer_norm",
            repeated=True,
        ),
    ),
    "modernbert": Family(
        "rotary",
        encoder=StackPlaces(
            blocks="layers",
            self_attn="attn",
            self_out="attn.Wo",
            norm_self="attn_norm",
            down="mlp.Wo",
            norm_ffn="mlp_norm",
            embed="embeddings.tok_embeddings",
            out="final_norm",
        ),
    ),
    "mpnet": Family(
        "learned",
        encoder=replace(
            _BERT, self_attn="attention.attn", self_out="attention.attn.o", norm_self="attention.LayerNorm"
        ),
    ),
    "deberta": Family("disentangled", encoder=replace(_BERT, position=None)),
    "deberta-v2": Family("disentangled", encoder=replace(_BERT, position=None)),
    # Decoders
    "gpt2": Family("learned", decoder=_GPT2),
    "gpt_bigcode": Family("learned", decoder=_GPT2),
    "gpt_neo": Family(
        "learned", decoder=replace(_GPT2, self_attn="attn.attention", self_out="attn.attention.out_proj")
    ),
    "gptj": Family(
        "rotary",
        decoder=replace(
            _GPT2,
            layout="parallel",
            self_out="attn.out_proj",
            down="mlp.fc_out",
            norm_ffn=None,
            position=None,
        ),
    ),
    "gpt_neox": Family(
        "rotary",
        decoder=replace(
            _LLAMA,
            layout=("use_parallel_residual", "parallel", "pre"),
            self_attn="attention",
            self_out="attention.dense",
            down="mlp.dense_4h_to_h",
            embed="embed_in",
            out="final_layer_norm",
        ),
    ),
    "opt": Family(
        "learned",
        decoder=replace(
            _BART_ENCODER,
            blocks="decoder.layers",
            layout=("do_layer_norm_before", "pre", "post"),
            embed="decoder.embed_tokens",
            position="decoder.embed_positions",
            out="decoder",
            final_norm="decoder.final_layer_norm",
        ),
    ),
    "bloom": Family(
        "alibi", decoder=replace(_BLOOM, norms=("apply_residual_connection_post_layernorm", "unknown", "pre"))
    ),
    "falcon": Family(
        "rotary",
        decoder=replace(
            _BLOOM,
            layout=("parallel_attn", "parallel", "pre"),
            norm_self="input_layernorm|ln_attn",
            norm_ffn="post_attention_layernorm|ln_mlp",
        ),
    ),
    "llama": Family("rotary", decoder=_LLAMA),
    "mistral": Family("rotary", decoder=_LLAMA),
    "ministral": Family("rotary", decoder=_LLAMA),
    "mixtral": Family("rotary", decoder=replace(_EXPERTS, ffn="mlp|block_sparse_moe")),  # before transformers 5
    "qwen2": Family("rotary", decoder=_LLAMA),
    "qwen2_moe": Family("rotary", decoder=_EXPERTS),
    "qwen3": Family("rotary", decoder=_LLAMA),
    "qwen3_moe": Family("rotary", decoder=_EXPERTS),
    "gemma": Family("rotary", decoder=_LLAMA),
    "gemma2": Family("rotary", decoder=_GEMMA2),
    "gemma3_text": Family("rotary", decoder=_GEMMA2),
    "granite": Family("rotary", decoder=_LLAMA),
    "glm": Family("rotary", decoder=_LLAMA),
    "glm4": Family("rotary", decoder=replace(_LLAMA, norms="both")),
    "nemotron": Family("rotary", decoder=_LLAMA),
    "deepseek_v2": Family("rotary", decoder=_EXPERTS),
    "deepseek_v3": Family("rotary", decoder=_EXPERTS),
    "smollm3": Family("rotary", decoder=_LLAMA),
    "olmo": Family("rotary", decoder=_LLAMA),
    "olmo2": Family(
        "rotary",
        decoder=replace(
            _LLAMA,
            norm_self="post_attention_layernorm",
            norm_ffn="post_feedforward_layernorm",
            mid="mlp",
            norms="output",
        ),
    ),
    "cohere": Family("rotary", decoder=_COHERE),
    "cohere2": Family("rotary", decoder=_COHERE),
    "phi": Family(
        "rotary",
        decoder=replace(
            _LLAMA, layout="parallel", self_out="self_attn.dense", down="mlp.fc2", norm_ffn=None, out="final_layernorm"
        ),
    ),
    "phi3": Family("rotary", decoder=_LLAMA),
    "stablelm": Family("rotary", decoder=replace(_LLAMA, layout=("use_parallel_residual", "parallel", "pre"))),
    "starcoder2": Family("rotary", decoder=replace(_LLAMA, down="mlp.c_proj")),
    "gpt_oss": Family("rotary", decoder=_EXPERTS),
    # Encoder-decoders
    "marian": Family("sinusoidal", _scaled(_BART_ENCODER), _scaled(_BART_DECODER)),
    "bart": _BART,
    "mbart": _MBART,
    "m2m_100": replace(_MBART, position="sinusoidal"),
    "blenderbot": _MBART,
    "blenderbot-small": Family("learned", _scaled(_BART_ENCODER), _BART_DECODER),  # its decoder does not scale
    "plbart": _BART,
    "pegasus": Family("sinusoidal", _scaled(_MBART_ENCODER), _scaled(_MBART_DECODER)),
    "t5": _T5,
    "mt5": _T5,
    "umt5": _T5,
}
"""transformers' model_type to its family. Of a model type that is not listed, only patterns are traced."""


def layout_of(stack: StackPlaces, config: object) -> Layout:
    """The layout that a stack has under this config."""
    return _under(config, stack.layout)


def norms_of(stack: StackPlaces, config: object) -> Norm:
    """Where the norms of a stack's blocks are under this config."""
    if stack.norms is not None:
        return _under(config, stack.norms)
    return "post" if layout_of(stack, config) == "post" else "pre"


def _under(config: object, choice: _Choice | tuple[str, _Choice, _Choice]) -> _Choice:
    """What a flag of the config chooses, if it is not the same under all."""
    if isinstance(choice, str):
        return choice
    flag, if_true, if_false = choice
    return if_true if getattr(config, flag) else if_false


def places(stack: StackPlaces, layout: Layout) -> dict[str, str]:
    """Map each tensor name within a block to its place, in the order of the layout."""
    roles = {
        **vars(stack),
        "block": "",
        "ffn": stack.ffn or stack.down,
        "mid": stack.mid or stack.norm_cross or stack.norm_ffn,
        "after_cross": stack.norm_ffn if stack.norm_cross else None,
    }
    result = {}
    for tensor, place in LAYOUTS[layout].items():
        role, colon, mode = place.partition(":")
        if roles[role] is not None:
            result[tensor] = f"{roles[role]}{colon}{mode}"
    return {**result, **stack.more}


def values(module: Any, **inputs: Any) -> dict[str, torch.Tensor]:
    """Run a model, and return what its modules read and returned at each listed place, by tensor name."""
    found: dict[str, torch.Tensor] = {}
    hooks = [
        hook
        for (one, mode), rows in _places(module).items()
        for hook in (_note_given(one, rows, found) if mode == "in" else _note_made(one, mode, rows, found),)
    ]
    with torch.no_grad():
        module(**inputs)
    for hook in hooks:
        hook.remove()
    return found


def _note_given(module: Any, rows: list[list[str]], found: dict[str, torch.Tensor]) -> Any:
    turns = iter(rows)
    return module.register_forward_pre_hook(
        lambda _, args, kwargs: found.update(
            dict.fromkeys(next(turns), (args[0] if args else kwargs["hidden_states"]).clone())
        ),
        with_kwargs=True,
    )


def _note_made(module: Any, mode: str, rows: list[list[str]], found: dict[str, torch.Tensor]) -> Any:
    turns = iter(rows)

    def note(_: Any, args: Any, output: Any) -> None:
        value = (
            output
            if isinstance(output, torch.Tensor)
            else next(iter(output.values() if hasattr(output, "values") else output))
        )
        found.update(dict.fromkeys(next(turns, []), value * float(mode or 1)))

    return module.register_forward_hook(note)


def _places(module: Any) -> dict[tuple[Any, str], list[list[str]]]:
    """Module and "in", or a factor of what it returns, to the names at each of its calls."""
    family, base, config = FAMILIES[module.config.model_type], module.base_model, module.config
    wanted: dict[tuple[Any, str], list[list[str]]] = {}

    def add(root: Any, place: str, name: str, turn: int = 0) -> None:
        paths, _, mode = place.partition(":")
        one = next((one for one in (_at(root, path) for path in paths.split("|")) if one is not None), None)
        if one is None:
            return  # some variants of a family lack it
        if mode == "scaled":
            owner = _at(base, "encoder" if name.startswith("src") else "decoder")
            mode = str(owner.embed_scale)
        rows = wanted.setdefault((one, mode), [])
        turn += sum(part_of(row[0]) != part_of(name) for row in rows if row)  # both stacks may share their embeddings
        rows += [[] for _ in range(turn + 1 - len(rows))]
        rows[turn].append(name)

    for part, stack in family.stacks.items():
        side = "src" if part == "encoder" else "tgt"
        blocks = [*_at(base, stack.blocks).children()]
        if stack.repeated:
            depth = config.num_hidden_layers
            blocks = [blocks[layer * len(blocks) // depth] for layer in range(depth)]
        for name, place in (("embed", stack.embed), ("segment", stack.segment), ("position", stack.position)):
            if place is not None:
                add(base, place, f"{side}.{name}")
        add(blocks[0], ":in", f"{side}.input")
        turn = 0
        for layer, block in enumerate(blocks):
            turn = blocks[:layer].count(block)
            for name, place in places(stack, layout_of(stack, config)).items():
                add(block, place, f"{part}.{layer}.{name}", turn)
        add(blocks[-1] if stack.out is None else base, stack.out or "", f"{part}.out", 0 if stack.out else turn)
    return wanted


def _at(root: Any, path: str) -> Any:
    """The module at a path; None: there is none."""
    try:
        return root.get_submodule(path)
    except AttributeError:
        return None
