"""Running a transformers model: its encoder, its decoder, and what comes next, the same way for every family."""

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from visformer.adapters.huggingface.families import FAMILIES, Kind
from visformer.errors import N_, VisformerError


def kind_of(config: Any) -> Kind:
    """What a model of this config is: by the table, else by what transformers can make of it."""
    if config.model_type in FAMILIES:
        return FAMILIES[config.model_type].kind
    if config.is_encoder_decoder:
        return "encoder-decoder"
    speaks = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return "decoder" if speaks and config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES else "encoder"


@dataclass
class Output:
    """What a pass gives, besides what taps saw."""

    value: Tensor  # the encoder's output (batch, src, d_model), or logits (batch, tgt, vocab)
    patterns: dict[str, Tensor]  # "decoder.0.cross_attn" to (batch, head, query, key); empty unless requested
    cache: Any = None  # keys and values, if requested


class Engine:
    """A model (a transformers PreTrainedModel), and how to call it."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.kind = kind_of(module.config)
        if self.kind != "encoder" and module.get_output_embeddings() is None:
            raise VisformerError(
                N_("{model} predicts no tokens: pass the model with its language-model head ({wanted})."),
                model=type(module).__name__,
                wanted="AutoModelForSeq2SeqLM" if self.kind == "encoder-decoder" else "AutoModelForCausalLM",
            )
        self.base: nn.Module = module.base_model
        self._encoder: nn.Module | None = None
        if self.kind == "encoder":
            self._encoder = self.base
        elif self.kind == "encoder-decoder":
            self._encoder = module.get_encoder()

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Of the tokens that end what the model says."""
        if self.kind == "encoder":
            return ()
        found = self._setting("eos_token_id")
        if found is None:
            return ()
        return (int(found),) if isinstance(found, int) else tuple(int(i) for i in found)

    def begin(self, language: int | None) -> list[int]:
        """What the decoder of an encoder-decoder begins with; ``language``: the id of the target's.

        Raises:
            VisformerError: the model does not say.
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
        """bool (vocab,): ids that the tokenizer knows, of ``n_tokens``, and the model's settings do not forbid."""
        config = self.module.config
        size = getattr(config, "decoder_vocab_size", None) or config.get_text_config(decoder=True).vocab_size
        allowed = torch.arange(int(size)) < n_tokens
        if self.kind != "encoder":
            for words in self._setting("bad_words_ids") or ():
                if len(words) == 1:
                    allowed[words[0]] = False
            allowed[list(self._setting("suppress_tokens") or ())] = False
        return allowed

    def _setting(self, name: str) -> Any:
        """Of generation; older models have it in their config."""
        found = getattr(self.module.generation_config, name, None)
        return getattr(self.module.config, name, None) if found is None else found

    def encode(self, ids: list[int], segments: list[int], *, patterns: bool = False) -> Output:
        """Run the encoder on one text; ``segments``: 0 for the ids of a first text, 1 for those of a second."""
        assert self._encoder is not None
        inputs = {"input_ids": self._row(ids), "attention_mask": self._row([1] * len(ids))}
        if any(segments) and "token_type_ids" in inspect.signature(self._encoder.forward).parameters:
            inputs["token_type_ids"] = self._row(segments)
        found = self._encoder(**inputs, **({"output_attentions": True} if patterns else {}))
        named = _named("encoder", "self_attn", found, "attentions") if patterns else {}
        return Output(found.last_hidden_state, named)

    def decode(
        self,
        rows: Tensor,
        memory: Tensor | None = None,
        *,
        patterns: bool = False,
        cache: Any = None,
        keep: bool = False,
    ) -> Output:
        """Run the decoder.

        Args:
            rows: ids (batch, tgt), only the new ones with a cache.
            memory: (batch, src, d_model) of an encoder-decoder.
            patterns: return them.
            cache: from the pass before.
            keep: make a cache.
        """
        rows = rows.to(self.module.device)
        options = {"use_cache": keep, "past_key_values": cache} | ({"output_attentions": True} if patterns else {})
        if memory is None:
            found = self.module(input_ids=rows, **options)
            named = _named("decoder", "self_attn", found, "attentions") if patterns else {}
        else:
            seen = torch.ones(memory.shape[:2], dtype=torch.long, device=self.module.device)
            memory_output = BaseModelOutput(last_hidden_state=memory)
            found = self.module(encoder_outputs=memory_output, attention_mask=seen, decoder_input_ids=rows, **options)
            named = {}
            if patterns:
                named |= _named("decoder", "self_attn", found, "decoder_attentions")
                named |= _named("decoder", "cross_attn", found, "cross_attentions")
        return Output(found.logits, named, found.past_key_values if keep else None)

    def _row(self, ids: list[int]) -> Tensor:
        return torch.tensor([ids], device=self.module.device)


def _named(part: str, kind: str, found: Any, field: str) -> dict[str, Tensor]:
    given = found.get(field)
    if not given or any(pattern is None for pattern in given):
        raise VisformerError(
            N_("The model returns no attention weights: load it with attn_implementation={eager!r}."), eager="eager"
        )
    return {f"{part}.{layer}.{kind}": pattern for layer, pattern in enumerate(given)}


class HubNext:
    """A transformers model as a :class:`visformer.model.decoding.Predictor`."""

    def __init__(self, engine: Engine, memory: Tensor | None, *, cached: bool) -> None:
        self._engine, self._memory, self._cached = engine, memory, cached
        self._cache: Any = None
        self._seen = 0

    def log_probabilities(self, prefix: Tensor) -> Tensor:
        """prefix (row, tgt), longer than at the last call, to (row, vocab), nats."""
        new = prefix[:, self._seen :] if self._cached else prefix
        found = self._engine.decode(new, self._memory, cache=self._cache, keep=self._cached)
        self._cache, self._seen = found.cache, prefix.shape[1]
        return found.value[:, -1].float().log_softmax(dim=-1).cpu()

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be kept more than once."""
        rows = rows.to(self._engine.module.device)
        if self._memory is not None:
            self._memory = self._memory[rows]
        if self._cache is not None:
            self._cache.reorder_cache(rows)
