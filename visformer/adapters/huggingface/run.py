"""Run a transformers model, the same way for every family, and check what it returns.

A hybrid model has attention in some of its layers only. transformers returns the weights as a list without gaps, and
each family's config says in its own way which layers have attention. So the model is watched once, on a short text:
each tensor is noted with the block that computed it.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import MoEModelOutput
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from visformer.adapters.huggingface.families import Kind
from visformer.adapters.huggingface.taps import value_of
from visformer.errors import N_, Message, TraceError, VisformerError
from visformer.model import taps
from visformer.model.masks import PAD_ID, pad
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import Axis, axes_of
from visformer.trace.overview import PatternOnDemand

HEADS: Mapping[str, tuple[Axis, ...]] = {
    "ForMaskedLM": (Axis("token", "src"), Axis("vocab")),
    "ForSequenceClassification": (Axis("label"),),
    "ForTokenClassification": (Axis("token", "src"), Axis("label")),
    "ForQuestionAnswering": (Axis("token", "src"), Axis("label")),
    "ForImageClassification": (Axis("label"),),
    "WithLMHeadModel": (Axis("token", "src"), Axis("vocab")),
}
"""What the name of a class says of its head, if that predicts no next token, to the axes of its logits."""

SPAN = ("start", "end")
"""Labels of a head that finds the answer to a question."""


def kind_of(config: Any) -> Kind:
    """The kind of a model of this config, from what transformers can build of it."""
    if config.is_encoder_decoder:
        return "encoder-decoder"
    decoders = {*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    return "decoder" if config.model_type in decoders.difference(MODEL_FOR_MASKED_LM_MAPPING_NAMES) else "encoder"


def class_of(config: Any) -> str:
    """The class of transformers that loads a model of this config with what predicts its tokens, if anything does."""
    kind = kind_of(config)
    if kind == "decoder" and config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "AutoModelForImageTextToText"
    if kind == "encoder-decoder" and config.model_type not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
        return "AutoModel"  # of sound
    return {
        "encoder": "AutoModel",
        "decoder": "AutoModelForCausalLM",
        "encoder-decoder": "AutoModelForSeq2SeqLM",
    }[kind]


def _kind_of_module(module: Any) -> Kind:
    """The kind of a module: what reads a text and predicts no next token is an encoder, whatever its config says."""
    kind = kind_of(module.config)
    if "decoder_input_ids" in inspect.signature(module.forward).parameters:
        return "encoder-decoder"
    if not module.can_generate():
        return "encoder"
    is_masked = module.config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return (
        "encoder" if kind == "encoder" and is_masked and not getattr(module.config, "is_decoder", False) else "decoder"
    )


@dataclass
class HubOutput:
    """The result of a pass, apart from what taps recorded."""

    value: Tensor  # the encoder's output (batch, src, d_model), or logits
    patterns: dict[str, Tensor]  # "decoder.0.cross_attn" to (batch, head, query, key); empty unless requested
    ids: Tensor | None = None  # of an encoder: (batch, src)
    seen: Tensor | None = None  # of an encoder: int64 (batch, src), 0 for padding
    cache: Any = None  # keys and values, if requested and the model keeps any


class Engine:
    """Calls a transformers PreTrainedModel."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.kind = _kind_of_module(module)
        self.predicts = self.kind != "encoder" and bool(module.can_generate())
        self._keeps_logits = self.predicts and "logits_to_keep" in inspect.signature(module.forward).parameters
        self.base: nn.Module = module.base_model
        if self.base is module and self.kind == "decoder":  # transformers 4.57 looks for Gemma 3's by another name
            self.base = getattr(module, "model", module)
        self._encoder: nn.Module = self.base.get_encoder() if self.kind == "encoder-decoder" else self.base  # type: ignore[operator]
        self._numberings: dict[str, Numbering] = {}
        self.logits_axes = axes_of("logits") if self.predicts else None
        self.finds_span = False
        for head, axes in HEADS.items():
            if not self.predicts and any(head in each.__name__ for each in type(module).__mro__):
                self.finds_span = "QuestionAnswering" in head
                self.logits_axes = axes
                if self.kind == "encoder":
                    self._encoder = module
                elif len(axes) > 1:
                    self.logits_axes = (Axis("token", "tgt"), *axes[1:])

    def require_predictions(self) -> None:
        """Refuse a model without a head that predicts tokens.

        Raises:
            VisformerError: it has none.
        """
        if not self.predicts and kind_of(self.module.config) != "encoder":
            raise VisformerError(
                N_("{model} predicts no tokens: pass the model with its language-model head ({wanted})."),
                model=type(self.module).__name__,
                wanted=class_of(self.module.config),
            )

    @property
    def device(self) -> torch.device:
        """Where ids are put; accelerate moves them on to modules whose weights it keeps elsewhere."""
        device: torch.device = self.module.device
        return torch.device("cpu") if device.type == "meta" else device

    def depth(self, part: str) -> int:
        """The number of layers of "encoder" or "decoder", as seen in a pass with patterns; 0 if there was none."""
        numbering = self._numberings.get(f"{part}.self_attn")
        return 0 if numbering is None else numbering.depth

    @property
    def known(self) -> tuple[int, int]:
        """How many token ids the source has, and the target."""
        try:
            source = self.module.get_input_embeddings()
            target = (self.module.get_output_embeddings() if self.kind == "encoder-decoder" else None) or source
            return len(source.weight), len(target.weight)
        except (NotImplementedError, AttributeError):  # CLIP has none of the whole model, Moshi one for each codebook
            size = self.module.config.get_text_config().vocab_size
            return size, size

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Ids of the tokens that end a sentence."""
        ids = self._setting("eos_token_id")
        return (ids,) if isinstance(ids, int) else tuple(ids or ())

    def begin(self, language: int | None) -> list[int]:
        """Ids that an encoder-decoder's decoder starts with; ``language``: id of the target language.

        Raises:
            VisformerError: the model's config does not define them.
        """
        start = self._setting("decoder_start_token_id")
        forced = self._setting("forced_bos_token_id") if language is None else language
        if start is None:
            raise VisformerError(
                N_("{name} does not define its decoder's first token: set config.{setting}."),
                name=type(self.module).__name__,
                setting="decoder_start_token_id",
            )
        return [int(start)] if forced is None else [int(start), int(forced)]

    def allowed(self, n_tokens: int) -> Tensor:
        """bool (vocab,): the tokenizer's ids, ``n_tokens`` in number, that the model's settings do not forbid."""
        config = self.module.config
        size = getattr(config, "decoder_vocab_size", None) or config.get_text_config(decoder=True).vocab_size
        allowed = torch.arange(int(size)) < n_tokens
        for words in self._setting("bad_words_ids") or ():
            if len(words) == 1:
                allowed[words[0]] = False
        allowed[list(self._setting("suppress_tokens") or ())] = False
        return allowed

    def _setting(self, name: str) -> Any:
        """Read a generation setting; encoders and older models have it in their config."""
        value = getattr(getattr(self.module, "generation_config", None), name, None)
        return getattr(self.module.config, name, None) if value is None else value

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Ids of texts, padded at the end, (batch, token), and their attention mask, 0 for padding."""
        pad_id, device = self._setting("pad_token_id"), self.device
        ids = pad(rows, pad_id if isinstance(pad_id, int) and pad_id >= 0 else PAD_ID)
        return ids.to(device), pad([[1] * len(row) for row in rows]).to(device)

    def encode(
        self, rows: Sequence[Sequence[int]], segments: Sequence[Sequence[int]], *, patterns: bool = False
    ) -> HubOutput:
        """Run the encoder on the ids of texts; ``segments``: 0 for each id of a first text, 1 for one of a second."""
        ids, seen = self.padded(rows)
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": seen}
        taken = inspect.signature(self._encoder.forward).parameters
        if any(map(any, segments)) and "token_type_ids" in taken:
            inputs["token_type_ids"] = pad(segments).to(self.device)
        if "use_cache" in taken:
            inputs["use_cache"] = False
        return replace(self._encoded(inputs, ids.shape[1], patterns=patterns), ids=ids, seen=seen)

    def look(self, pixels: Tensor, n_tokens: int, *, patterns: bool = False) -> HubOutput:
        """Run an encoder on pictures, (batch, channel, row, column), of which it makes ``n_tokens``."""
        inputs = {"pixel_values": pixels.to(self.device, self.module.dtype)}
        return self._encoded(inputs, n_tokens, patterns=patterns)

    def _encoded(self, inputs: Mapping[str, Any], n_tokens: int, *, patterns: bool) -> HubOutput:
        fields = {"self_attn": ("attentions", (n_tokens, n_tokens))}
        if patterns:
            output, named = self._with_patterns("encoder", self._encoder, inputs, fields)
        else:
            output, named = self._encoder(**inputs), {}
        return HubOutput(_value(output), named)

    def decode(
        self,
        rows: Tensor,
        memory: HubOutput | None = None,
        *,
        seen: Tensor | None = None,
        patterns: bool = False,
        cache: Any = None,
        keep: bool = False,
        last: bool = False,
        besides: Mapping[str, Tensor] | None = None,
    ) -> HubOutput:
        """Run the decoder on ids (batch, tgt), only the new ones with the ``cache`` of the previous pass.

        ``memory``: output of :meth:`encode`, for an encoder-decoder; ``seen``: int64 (batch, tgt), 0 for padding;
        ``keep``: whether to return a cache; ``last``: whether the last token's logits are enough, where nobody wants
        them all: those of 4,096 tokens and 150,000 words take 2.5 GB; ``besides``: pictures, (picture, channel, row,
        column), for as many texts each, and what else is given of each token, (picture, tgt or fewer), 0 for those that
        follow.
        """
        rows = rows.to(self.device)
        mask = None if seen is None or bool(seen.all()) else seen
        inputs: dict[str, Any] = {"use_cache": keep, "past_key_values": cache} if self.predicts else {}
        if last and mask is None and self._keeps_logits and not taps.current().wants("logits"):
            inputs["logits_to_keep"] = 1
        own = (rows.shape[1], rows.shape[1])
        if memory is None:
            inputs |= {"input_ids": rows, "attention_mask": mask}
            fields = {"self_attn": ("attentions", own)}
        else:
            memory_output = MoEModelOutput(last_hidden_state=memory.value)  # Switch looks for router_logits in it
            inputs |= {"encoder_outputs": memory_output, "attention_mask": memory.seen}
            inputs |= {"decoder_input_ids": rows, "decoder_attention_mask": mask}
            inputs["input_ids"] = memory.ids  # FSMT: no ids, no mask
            if not self.predicts and memory.value.shape[1] != rows.shape[1]:  # BART's classifier looks for the end
                end = rows.new_full((len(rows), 1), self.end_ids[0] if self.end_ids else 0)
                inputs["input_ids"] = torch.cat([rows[:, 1:], end], dim=1)
            across = (rows.shape[1], memory.value.shape[1])
            fields = {"self_attn": ("decoder_attentions", own), "cross_attn": ("cross_attentions", across)}
        for name, value in (besides or {}).items():
            each = value.repeat_interleave(len(rows) // len(value), dim=0).to(rows.device)
            is_picture = each.is_floating_point()
            inputs[name] = each.to(self.module.dtype) if is_picture else _widened(each, rows.shape[1])
        inputs = _accepted(self.module, inputs)
        named: dict[str, Tensor] = {}
        if patterns:
            output, named = self._with_patterns("decoder", self.module, inputs, fields)
        else:
            output = self.module(**inputs)
        return HubOutput(_value(output), named, cache=output.get("past_key_values") if keep else None)

    def _with_patterns(
        self, part: str, run: Any, inputs: Mapping[str, Any], fields: Mapping[str, tuple[str, tuple[int, int]]]
    ) -> tuple[Any, dict[str, Tensor]]:
        """Return the output of a pass and its patterns; ``fields``: kind of attention to its field and (query, key)."""
        if f"{part}.self_attn" in self._numberings:
            output = run(**inputs, output_attentions=True)
        else:
            with watching_blocks(self.module) as watch:
                output = run(**inputs, output_attentions=True)
            for kind, (field, size) in fields.items():
                self._numberings[f"{part}.{kind}"] = watch.numbering(output.get(field) or (), size)
        return output, {
            f"{part}.{layer}.{kind}": output[field][place]
            for kind, (field, _) in fields.items()
            for layer, place in self._numberings[f"{part}.{kind}"].places.items()
        }


def _widened(values: Tensor, n_tokens: int) -> Tensor:
    """Values of tokens, with 0 for those that follow."""
    return nn.functional.pad(values, (0, n_tokens - values.shape[1]))


def _accepted(module: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that a module takes."""
    taken = inspect.signature(module.forward).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    return {name: value for name, value in inputs.items() if takes_any or name in taken}


def _value(output: Any) -> Tensor:
    value = value_of(output)
    assert value is not None
    return value


class HubNext:
    """A transformers model as a :class:`visformer.model.decoding.Predictor`."""

    def __init__(
        self, engine: Engine, memory: HubOutput | None, *, cached: bool, besides: Mapping[str, Tensor] | None = None
    ) -> None:
        self._engine, self._memory, self._besides = engine, memory, besides
        self._cached = cached and engine.module.config.model_type != "fsmt"  # it has no causal mask with a cache
        self._cache: Any = None
        self._seen = 0

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """Map ``prefix`` (row, tgt), longer at each call, to log-probabilities (row, vocab), nats."""
        new = prefix if self._cache is None else prefix[:, self._seen :]
        how: dict[str, Any] = {"besides": self._besides if self._cache is None else None, "last": True}
        output = self._engine.decode(new, self._memory, cache=self._cache, keep=self._cached, **how)
        self._cache, self._seen = output.cache, prefix.shape[1]
        self._cached = self._cache is not None  # OpenAI's GPT keeps none
        return output.value[:, -1].float().log_softmax(dim=-1).cpu()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; a row may occur more than once."""
        rows = rows.to(self._engine.device)
        if self._memory is not None and self._memory.seen is not None:
            ids = None if self._memory.ids is None else self._memory.ids[rows]
            self._memory = HubOutput(self._memory.value[rows], {}, ids, self._memory.seen[rows])
        if self._cache is not None:
            self._cache.reorder_cache(rows)


@dataclass(frozen=True)
class Numbering:
    """The layers that the weights returned by a pass belong to.

    Args:
        places: layer, from 0, to the index of its weights among those returned.
        depth: number of layers, those without attention included.
    """

    places: Mapping[int, int]
    depth: int


@dataclass
class BlockWatch:
    """The block that computed each tensor of a pass that may be a pattern."""

    running: list[tuple[int, int]] = field(default_factory=list)  # (index, length of its list), the outermost first
    seen: dict[int, tuple[Tensor, int, int]] = field(default_factory=dict)  # by id, unique while the tensor is kept

    def enter(self, place: tuple[int, int]) -> None:
        """A block begins."""
        self.running.append(place)

    def leave(self) -> None:
        """The block that began last ends."""
        self.running.pop()

    def note(self, module: nn.Module, args: Any, output: Any) -> None:
        """A forward hook of any module."""
        for tensor in output if self.running and isinstance(output, tuple) else ():
            if isinstance(tensor, Tensor) and tensor.dim() == 4:
                self.seen.setdefault(id(tensor), (tensor, *self.running[0]))

    def numbering(self, weights: Sequence[Tensor | None], size: tuple[int, int]) -> Numbering:
        """Number the weights that the pass returned; ``size``: its (query, key).

        Other sizes are left out: the state of linear attention, which some models return among the weights.

        Raises:
            VisformerError: nothing of this size was returned.
        """
        places = {id(each): i for i, each in enumerate(weights) if each is not None and each.shape[-2:] == size}
        if not places:
            raise VisformerError(
                N_(
                    "The model returns no attention weights of shape (head, query, key), so there is nothing to show: "
                    "its layers have none, or attend in windows, in blocks or to a shortened text."
                )
            )
        blocks = [self.seen.get(each, (None, -1, 0))[1:] for each in places]
        layers = [layer for layer, _ in blocks]
        if -1 in layers or len({*layers}) < len(layers):  # ALBERT reuses its blocks: each pass through one is a layer
            return Numbering(dict(enumerate(places.values())), len(places))
        return Numbering(dict(sorted(zip(layers, places.values(), strict=True))), blocks[0][1])


@contextmanager
def watching_blocks(model: nn.Module) -> Iterator[BlockWatch]:
    """BlockWatch the blocks of a model, which are what its lists of modules hold."""
    watch = BlockWatch()
    hooks = [module.register_forward_hook(watch.note) for module in model.modules()]
    for blocks in [module for module in model.modules() if isinstance(module, nn.ModuleList)]:
        for index, block in enumerate(blocks):
            place = (index, len(blocks))
            hooks.append(block.register_forward_pre_hook(lambda *_, place=place: watch.enter(place)))
            hooks.append(block.register_forward_hook(lambda *_: watch.leave()))
    try:
        yield watch
    finally:
        for hook in hooks:
            hook.remove()


TEXT_ALONE = N_("{model} cannot be traced: transformers fails when it is given the tokens of a text alone ({reason}).")
PICTURE_ALONE = N_(
    "{model} cannot be traced: transformers fails when it is given a picture as its image processor makes it "
    "({reason})."
)


@contextmanager
def given_alone(model: nn.Module, said: Message) -> Iterator[None]:
    """Say of a model that needs more than a text, or than a picture, or another size of it, that it is such a one.

    Raises:
        VisformerError: ``said``, for any error of transformers inside the block.
    """
    try:
        yield
    except VisformerError:
        raise
    except Exception as error:  # each family's own: a missing argument, a config without a vocabulary
        raise VisformerError(
            said,
            model=type(model).__name__,
            reason=(str(error).strip() or type(error).__name__).splitlines()[0].rstrip("."),
        ) from error


def check_causal(outputs: list[HubOutput]) -> None:
    """Check that no token of a decoder attends to a later one, as far as patterns were returned.

    Raises:
        VisformerError: the message names the first pattern in which one does.
    """
    for output in outputs:
        for path, pattern in output.patterns.items():
            if path.startswith("decoder.") and path.endswith(".self_attn") and bool(pattern[0].float().triu(1).any()):
                raise VisformerError(
                    N_(
                        "The model does not read from left to right: in {path}, tokens attend to later ones, so its "
                        "logits do not predict the next token. One cause is is_decoder=False in its config."
                    ),
                    path=path,
                )


def agree(eager: list[HubOutput], traced: list[HubOutput], tensors: Mapping[str, TracedTensor] | None = None) -> bool:
    """Whether a traced pass has the same outputs as the model's own eager pass, part by part.

    ``tensors``: what it recorded, whose patterns have to be the same, too; None: it recorded none.
    """
    for own, ours in zip(eager, traced, strict=True):
        tolerance = 5e-2 if _is_half(own.value.dtype) else 1e-4  # for sums in another order
        if not torch.allclose(own.value, ours.value, atol=tolerance * float(own.value.abs().max()), rtol=0):
            return False
        if tensors is None:
            continue
        for path, pattern in own.patterns.items():
            recorded = tensors.get(f"{path}.pattern")
            if recorded is None:
                return False
            given = pattern[0].float().cpu().numpy()
            if f"{path}.sink" in tensors and np.allclose(given.sum(axis=-1), 1, atol=tolerance):
                given = given * recorded.value.sum(axis=-1, keepdims=True)  # GraniteSWA returns it without its sink
            if not np.allclose(given, recorded.value, atol=tolerance):
                return False
    return True


def check_rows(tensors: Mapping[str, TracedTensor], dtype: torch.dtype) -> None:
    """Check that each row of a pattern sums to 1 with its sink, or is all zeros, within the precision of ``dtype``.

    Raises:
        TraceError: the message names the pattern.
    """
    tolerance = 2e-2 if _is_half(dtype) else 1e-4
    for name, tensor in tensors.items():
        if not name.endswith(".pattern") or isinstance(tensor, PatternOnDemand):
            continue
        total = tensor.value.sum(axis=-1)
        if (sink := tensors.get(f"{name.removesuffix('.pattern')}.sink")) is not None:
            total = total + sink.value
        if not bool(np.all((abs(total - 1) < tolerance) | (abs(total) < tolerance))):
            worst = float(total.flat[abs(total - 1).argmax()])
            raise TraceError(N_("{name} is not an attention pattern: a row sums to {total}."), name=name, total=worst)


def same(alone: Trace, padded: Trace, dtype: torch.dtype) -> bool:
    """Whether two Traces of the same text hold the same values, within the precision of ``dtype``."""
    tolerance = 5e-2 if _is_half(dtype) else 1e-4
    return all(
        np.allclose(padded[name].value, tensor.value, atol=tolerance * float(abs(tensor.value).max()), rtol=0)
        for name, tensor in alone.tensors.items()
    )


def _is_half(dtype: torch.dtype) -> bool:
    return torch.finfo(dtype).bits < 32
