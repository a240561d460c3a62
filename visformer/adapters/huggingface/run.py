"""Run a transformers model: its encoder, its decoder, and next-token prediction, the same way for every family."""

import inspect
from collections.abc import Mapping
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
from visformer.errors import N_, VisformerError


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

    value: Tensor  # the encoder's output (batch, src, d_model), or logits (batch, tgt, vocab)
    patterns: dict[str, Tensor]  # "decoder.0.cross_attn" to (batch, head, query, key); empty unless requested
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
        self._encoder: nn.Module = module.get_encoder() if self.kind == "encoder-decoder" else self.base

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

    def encode(self, ids: list[int], segments: list[int], *, patterns: bool = False) -> Output:
        """Run the encoder on one text; ``segments``: 0 for the ids of a first text, 1 for those of a second."""
        inputs = {"input_ids": self._row(ids), "attention_mask": self._row([1] * len(ids))}
        if any(segments) and "token_type_ids" in inspect.signature(self._encoder.forward).parameters:
            inputs["token_type_ids"] = self._row(segments)
        output = self._encoder(**inputs, **({"output_attentions": True} if patterns else {}))
        fields = {"self_attn": ("attentions", (len(ids), len(ids)))}
        named = _named("encoder", output, fields) if patterns else {}
        return Output(output.last_hidden_state, named)

    def decode(
        self,
        rows: Tensor,
        memory: Tensor | None = None,
        *,
        patterns: bool = False,
        cache: Any = None,
        keep: bool = False,
    ) -> Output:
        """Run the decoder on ids (batch, tgt), only the new ones with the ``cache`` of the previous pass.

        ``memory``: (batch, src, d_model), for an encoder-decoder; ``keep``: whether to return a cache.
        """
        rows = rows.to(self.module.device)
        options = {"use_cache": keep, "past_key_values": cache} | ({"output_attentions": True} if patterns else {})
        own = (rows.shape[1], rows.shape[1])
        if memory is None:
            output = self.module(input_ids=rows, **options)
            fields = {"self_attn": ("attentions", own)}
        else:
            seen = torch.ones(memory.shape[:2], dtype=torch.long, device=self.module.device)
            memory_output = MoEModelOutput(last_hidden_state=memory)  # Switch looks for router_logits in it
            inputs = {"input_ids": seen, "attention_mask": seen, "decoder_input_ids": rows}  # FSMT: no ids, no mask
            output = self.module(encoder_outputs=memory_output, **inputs, **options)
            across = (rows.shape[1], memory.shape[1])
            fields = {"self_attn": ("decoder_attentions", own), "cross_attn": ("cross_attentions", across)}
        named = _named("decoder", output, fields) if patterns else {}
        return Output(output.logits, named, output.get("past_key_values") if keep else None)

    def _row(self, ids: list[int]) -> Tensor:
        return torch.tensor([ids], device=self.module.device)


def _named(part: str, output: Any, fields: Mapping[str, tuple[str, tuple[int, int]]]) -> dict[str, Tensor]:
    """The patterns in an output; ``fields``: kind of attention to its field and (query, key)."""
    named: dict[str, Tensor] = {}
    for kind, (field, size) in fields.items():
        patterns = output.get(field)
        if not patterns or any(pattern is None or pattern.shape[-2:] != size for pattern in patterns):
            raise VisformerError(
                N_(
                    "The model returns no attention weights of shape (head, query, key), so there is nothing to show: "
                    "its layers have none, or attend in windows, in blocks or to a shortened text."
                )
            )
        named |= {f"{part}.{layer}.{kind}": pattern for layer, pattern in enumerate(patterns)}
    return named


class HubNext:
    """A transformers model as a :class:`visformer.model.decoding.Predictor`."""

    def __init__(self, engine: Engine, memory: Tensor | None, *, cached: bool) -> None:
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
        rows = rows.to(self._engine.module.device)
        if self._memory is not None:
            self._memory = self._memory[rows]
        if self._cache is not None:
            self._cache.reorder_cache(rows)
