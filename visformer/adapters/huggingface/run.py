"""Run a transformers model: its encoder, its decoder, and next-token prediction, the same way for every family."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import MoEModelOutput
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from visformer.adapters.huggingface.families import FAMILIES, Kind
from visformer.adapters.huggingface.layers import Numbering, watching_blocks
from visformer.errors import N_, VisformerError
from visformer.model.masks import PAD_ID, pad
from visformer.trace.names import Axis, axes_of

HEADS: Mapping[str, tuple[Axis, ...]] = {
    "ForMaskedLM": (Axis("token", "src"), Axis("vocab")),
    "ForSequenceClassification": (Axis("label"),),
    "ForTokenClassification": (Axis("token", "src"), Axis("label")),
}
"""Ending of the name of an encoder's class with a head to the axes of its logits."""


def kind_of(config: Any) -> Kind:
    """The kind of a model of this config: from the table of families, else from what transformers can build of it."""
    if config.model_type in FAMILIES:
        return FAMILIES[config.model_type].kind
    if config.is_encoder_decoder:
        return "encoder-decoder"
    decoders = {*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    return "decoder" if config.model_type in decoders.difference(MODEL_FOR_MASKED_LM_MAPPING_NAMES) else "encoder"


def class_of(config: Any) -> str:
    """The class of transformers that loads a model of this config with what predicts its tokens, if anything does."""
    kind = kind_of(config)
    if kind == "decoder" and config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "AutoModelForImageTextToText"
    return {
        "encoder": "AutoModel",
        "decoder": "AutoModelForCausalLM",
        "encoder-decoder": "AutoModelForSeq2SeqLM",
    }[kind]


@dataclass
class Output:
    """The result of a pass, apart from what taps recorded."""

    value: Tensor  # the encoder's output (batch, src, d_model), or logits
    patterns: dict[str, Tensor]  # "decoder.0.cross_attn" to (batch, head, query, key); empty unless requested
    seen: Tensor | None = None  # of an encoder: int64 (batch, src), 0 for padding
    cache: Any = None  # keys and values, if requested and the model keeps any


class Engine:
    """Calls a transformers PreTrainedModel."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.kind = kind_of(module.config)
        if self.kind != "encoder" and not module.can_generate():
            raise VisformerError(
                N_("{model} predicts no tokens: pass the model with its language-model head ({wanted})."),
                model=type(module).__name__,
                wanted=class_of(module.config),
            )
        self.base: nn.Module = module.base_model
        if self.base is module and self.kind == "decoder":  # transformers 4.57 looks for Gemma 3's by another name
            self.base = getattr(module, "model", module)
        self._encoder: nn.Module = module.get_encoder() if self.kind == "encoder-decoder" else self.base
        self._numberings: dict[str, Numbering] = {}
        self.logits_axes = axes_of("logits") if self.kind != "encoder" else None
        for ending, axes in HEADS.items():
            if self.kind == "encoder" and any(each.__name__.endswith(ending) for each in type(module).__mro__):
                self._encoder, self.logits_axes = module, axes

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
        except NotImplementedError:  # CLIP has none of the whole model
            size = self.module.config.get_text_config().vocab_size
            return size, size
        target = self.module.get_output_embeddings() if self.kind == "encoder-decoder" else source
        return len(source.weight), len(target.weight)

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
    ) -> Output:
        """Run the encoder on the ids of texts; ``segments``: 0 for each id of a first text, 1 for one of a second."""
        ids, seen = self.padded(rows)
        inputs = {"input_ids": ids, "attention_mask": seen}
        if any(map(any, segments)) and "token_type_ids" in inspect.signature(self._encoder.forward).parameters:
            inputs["token_type_ids"] = pad(segments).to(self.device)
        fields = {"self_attn": ("attentions", (ids.shape[1], ids.shape[1]))}
        if patterns:
            output, named = self._with_patterns("encoder", self._encoder, inputs, fields)
        else:
            output, named = self._encoder(**inputs), {}
        return Output(output.get("logits", output.get("last_hidden_state")), named, seen)

    def decode(
        self,
        rows: Tensor,
        memory: Output | None = None,
        *,
        seen: Tensor | None = None,
        patterns: bool = False,
        cache: Any = None,
        keep: bool = False,
    ) -> Output:
        """Run the decoder on ids (batch, tgt), only the new ones with the ``cache`` of the previous pass.

        ``memory``: output of :meth:`encode`, for an encoder-decoder; ``seen``: int64 (batch, tgt), 0 for padding;
        ``keep``: whether to return a cache.
        """
        rows = rows.to(self.device)
        mask = None if seen is None or bool(seen.all()) else seen
        inputs: dict[str, Any] = {"use_cache": keep, "past_key_values": cache}
        own = (rows.shape[1], rows.shape[1])
        if memory is None:
            inputs |= {"input_ids": rows, "attention_mask": mask}
            fields = {"self_attn": ("attentions", own)}
        else:
            memory_output = MoEModelOutput(last_hidden_state=memory.value)  # Switch looks for router_logits in it
            inputs |= {"encoder_outputs": memory_output, "attention_mask": memory.seen}
            inputs |= {"decoder_input_ids": rows, "decoder_attention_mask": mask}
            inputs["input_ids"] = memory.seen  # FSMT: no ids, no mask
            across = (rows.shape[1], memory.value.shape[1])
            fields = {"self_attn": ("decoder_attentions", own), "cross_attn": ("cross_attentions", across)}
        named: dict[str, Tensor] = {}
        if patterns:
            output, named = self._with_patterns("decoder", self.module, inputs, fields)
        else:
            output = self.module(**inputs)
        return Output(output.logits, named, cache=output.get("past_key_values") if keep else None)

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


class HubNext:
    """A transformers model as a :class:`visformer.model.decoding.Predictor`."""

    def __init__(self, engine: Engine, memory: Output | None, *, cached: bool) -> None:
        self._engine, self._memory = engine, memory
        self._cached = cached and engine.module.config.model_type != "fsmt"  # it has no causal mask with a cache
        self._cache: Any = None
        self._seen = 0

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """Map ``prefix`` (row, tgt), longer at each call, to log-probabilities (row, vocab), nats."""
        new = prefix if self._cache is None else prefix[:, self._seen :]
        output = self._engine.decode(new, self._memory, cache=self._cache, keep=self._cached)
        self._cache, self._seen = output.cache, prefix.shape[1]
        self._cached = self._cache is not None  # OpenAI's GPT keeps none
        return output.value[:, -1].float().log_softmax(dim=-1).cpu()

    def keep(self, rows: Tensor) -> None:
        """Continue with these rows, in this order; a row may occur more than once."""
        rows = rows.to(self._engine.device)
        if self._memory is not None and self._memory.seen is not None:
            self._memory = Output(self._memory.value[rows], {}, self._memory.seen[rows])
        if self._cache is not None:
            self._cache.reorder_cache(rows)
