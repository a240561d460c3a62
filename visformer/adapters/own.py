"""Our own models, with their tokenizer: tokenize, translate or continue a text, trace."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from visformer.adapters.base import ONE_LANGUAGE, OTHER_TOKENIZER, ModelInfo, Request, TracedModel
from visformer.adapters.generating import Settings, Speaker
from visformer.adapters.huggingface.families import NO_SOURCE
from visformer.adapters.ids import Text
from visformer.adapters.params import weights_of
from visformer.adapters.recording import Recorder, check_budget, matching
from visformer.edits import Edit
from visformer.errors import N_, CheckpointError, VisformerError
from visformer.model import taps
from visformer.model.decoding import Decoding, NextOfText, NextToken
from visformer.model.gpt import GPT
from visformer.model.kinds import Model
from visformer.model.masks import PAD_ID, pad
from visformer.model.positions import PAPERS
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer, detect_language
from visformer.model.transformer import Transformer
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import all_names, axes_of


class OwnModel(TracedModel):
    """A model of ours: what the translator and a decoder-only model share."""

    text: Tokenizer
    unsure_below: float | None = None  # confidence below which its translations count as unsure, if it was evaluated
    _no_text = N_("There is no text: type a sentence in English or Chinese.")

    def __init__(
        self, module: Model, tokenizer: Tokenizer, *, name: str = "own", licence: str = "-", source: str = "-"
    ) -> None:
        self.module, self.tokenizer, self.text = module, tokenizer, tokenizer
        self._plain = tokenizer.encode
        config, order = module.config, module.config.positions
        self._known = (len(tokenizer), len(tokenizer))
        self._require_fit()
        self.info = ModelInfo(
            name=name,
            kind="decoder" if config.depths[0] is None else "encoder-decoder",
            n_encoder_layers=config.depths[0] or 0,
            n_decoder_layers=config.depths[1],
            n_heads=config.n_heads,
            d_model=config.d_model,
            max_tokens=config.max_len if order.adds else None,
            licence=licence,
            source=source,
            n_kv_heads=config.n_heads,
            position=config.position,
        )
        self._names = tuple(all_names(*config.depths, adds_position=order.adds, biases_scores=order.biases))
        # Only positions other than the paper's are worth a note.
        self._meta: dict[str, Any] = {} if config.position == PAPERS else {"position": config.position}
        if not order.adds:
            self._meta["missing"] = [["*.position", order.says]]
        self._weights = weights_of(module)
        self._end = tokenizer.token_id(EOS)
        allowed = torch.arange(module.output.out_features) < len(tokenizer)
        allowed[[PAD_ID, *(tokenizer.token_id(token) for token in LANGUAGE_TOKEN.values())]] = False
        self._speaker = Speaker(tokenizer, allowed, (self._end,))

    def _require_fit(self) -> None:
        """Refuse a tokenizer that has more ids than the model."""
        sizes = [size for name, size in vars(self.module.config).items() if name.endswith("vocab")]
        if len(self.tokenizer) > min(sizes):
            raise CheckpointError(OTHER_TOKENIZER, id=len(self.tokenizer) - 1, known=min(sizes))

    def _read(self, wanted: Iterable[str], sides: Mapping[str, Sequence[int]]) -> dict[str, TracedTensor]:
        """The weights among these names."""
        return {name: weight.read(name, sides) for name, weight in self._weights.items() if name in wanted}

    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        """The shapes that these tensors will have."""
        config = self.module.config
        sizes = {"head": config.n_heads, "d_model": config.d_model, "d_k": config.d_k, "d_ff": config.d_ff}
        sizes["vocab"] = self.module.output.out_features
        tokens = {"src": n_src, "tgt": n_tgt}
        return {
            name: tuple(sizes[a.name] if a.side is None else tokens[a.side] for a in axes_of(name) or ())
            for name in names
        }

    @staticmethod
    def _decoding_session(edits: Sequence[Edit]) -> AbstractContextManager[None]:
        if not edits:
            return nullcontext()
        recorder = Recorder(frozenset(), edits, growing=True)
        return taps.session(recorder, wanted=recorder.wants)


class Translator(OwnModel):
    """A :class:`visformer.Transformer` between English and Chinese, both ways."""

    module: Transformer

    def tokenize(self, text: Text) -> tuple[str, ...]:
        """See :class:`TracedModel`; the last token of a text is </s>."""
        return self._row(self._ids_of(self._given(text)))

    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        src_ids = self._source_ids(source)
        start = [self.tokenizer.token_id(LANGUAGE_TOKEN[self._language(source, to)]), *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(src_ids), len(start), settings.max_new_tokens)
        with self._decoding_session(settings.edits):
            next_token = NextToken(self.module, torch.tensor([src_ids]), cached=not settings.edits)
            return self._speaker.speak(next_token, torch.tensor([start]), limit, settings)

    def _run(self, request: Request) -> Trace:
        source, target, edits = request.source, request.target, request.edits
        wanted = matching((*self._names, *self._weights), request.record)
        src_ids = self._source_ids(source)
        language = self._language(source, request.to)
        ids = None if target is None else self._target_ids(target)
        tensors = wanted.intersection(self._names)
        recorder = Recorder(tensors, edits)
        check_budget(self._shapes(tensors, len(src_ids), 0 if ids is None else len(ids)))
        with taps.session(recorder, wanted=recorder.wants):
            memory = self.module.encode(torch.tensor([src_ids]))  # (1, src, d_model)
        told: dict[str, object] = {}  # of its own translation
        if ids is None:
            ids, told["confidence"] = self._greedy(src_ids, memory, language, edits)
            if self.unsure_below is not None and not edits:  # the threshold is of the model as it is
                told["unsure_below"] = self.unsure_below
        sides = {"src": src_ids, "tgt": [self.tokenizer.token_id(LANGUAGE_TOKEN[language]), *ids[:-1]], "next": ids}
        params = self._read(wanted, sides)
        more = sum(p.value.nbytes for p in params.values())
        check_budget(self._shapes(tensors, len(src_ids), len(ids)), more=more)
        with taps.session(recorder, wanted=recorder.wants):
            run = self.module.decode if recorder.wants("logits") else self.module.read_target
            run(torch.tensor([sides["tgt"]]), memory, torch.tensor([src_ids]))
        texts = {"source": self._words(source), "target": self.tokenizer.decode(ids)}
        meta = texts | {"to": language, "forced": target is not None}
        return self._labelled(sides, recorder.tensors, params, meta | told, self._meta)

    def translate_batch(self, sources: Sequence[str], *, to: str) -> list[tuple[str, float]]:
        """Translate many sentences at once, greedily, for evaluation.

        Args:
            sources: the sentences.
            to: the language of all translations.

        Returns:
            Text and confidence of each; the tokens are those of :meth:`translate`.
        """
        src_ids = pad([self._source_ids(self._given(source)) for source in sources])
        start = torch.full((len(sources), 1), self.tokenizer.token_id(LANGUAGE_TOKEN[to]))
        with torch.inference_mode():
            rows = self._speaker.greedy(NextToken(self.module, src_ids), start, 2 * src_ids.shape[1] + 20)
        return [(self.tokenizer.decode(ids), sure) for ids, sure in rows]

    def _target_ids(self, target: str | list[int]) -> list[int]:
        """Ids that the decoder's rows predict: the target, </s> last."""
        ids = [*(self.tokenizer.encode(target) if isinstance(target, str) else target), self._end]
        self._require_room(len(ids))
        return ids

    def _greedy(
        self, src_ids: list[int], memory: Tensor, language: str, edits: Sequence[Edit]
    ) -> tuple[list[int], float]:
        """The ids of the greedy :meth:`translate`, </s> last unless it was cut off, and their confidence."""
        start = [self.tokenizer.token_id(LANGUAGE_TOKEN[language])]
        with self._decoding_session(edits):
            next_token = NextToken(self.module, torch.tensor([src_ids]), cached=not edits, memory=memory)
            (greedy,) = self._speaker.greedy(next_token, torch.tensor([start]), self._limit(len(src_ids), 1))
        return greedy

    def _source_ids(self, given: str | list[int]) -> list[int]:
        ids = self._ids_of(given)
        self._require_room(len(ids))
        return ids

    def _ids_of(self, given: str | list[int]) -> list[int]:
        return [*self._plain(given), self.text.token_id(EOS)] if isinstance(given, str) else given

    def _language(self, source: str | list[int], to: str | None) -> str:
        if to is None:
            return "en" if detect_language(self._words(source)) == "zh" else "zh"
        if to not in LANGUAGE_TOKEN:
            raise VisformerError(N_("to={to!r} is not a language of this model: choose en or zh."), to=to)
        return to


class LanguageModel(OwnModel):
    """A :class:`visformer.GPT`, which continues a text. As in GPT-2, the token that ends a text begins it, too."""

    module: GPT

    def __init__(self, module: GPT, tokenizer: Tokenizer, **told: str) -> None:
        super().__init__(module, tokenizer, **told)
        self._meta |= {"n_kv_heads": self.info.n_kv_heads, "missing": [["decoder.*cross*", NO_SOURCE]]}

    def tokenize(self, text: Text, second: Text | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; the first token of a text is </s>; ``second`` is appended."""
        return self._row(self._ids(self._given(text), None if second is None else self._given(second)))

    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        start = [*self._ids(source, None, to), *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(start), len(start), settings.max_new_tokens)
        with self._decoding_session(settings.edits):
            next_token = NextOfText(self.module, cached=not settings.edits)
            return self._speaker.speak(next_token, torch.tensor([start]), limit, settings)

    def _run(self, request: Request) -> Trace:
        wanted = matching((*self._names, *self._weights), request.record)
        ids = self._ids(request.source, request.target, request.to)
        self._require_room(len(ids))
        tensors = wanted.intersection(self._names)
        recorder = Recorder(tensors, request.edits)
        params = self._read(wanted, {"tgt": ids})
        check_budget(self._shapes(tensors, 0, len(ids)), more=sum(p.value.nbytes for p in params.values()))
        with taps.session(recorder, wanted=recorder.wants):
            logits = self.module(torch.tensor([ids]))
        sides = {"tgt": ids, "next": [*ids[1:], int(self._speaker.likeliest(logits[:, -1]))]}
        target = request.target
        text = target if target is None else self._words(target)
        meta = {"source": self._words(request.source), "target": text, "to": None, "forced": target is not None}
        return self._labelled(sides, recorder.tensors, params, meta, self._meta)

    def _ids(self, given: str | list[int], second: str | list[int] | None, to: str | None = None) -> list[int]:
        """Ids of a text, </s> first, and of its continuation."""
        if to is not None:
            raise VisformerError(ONE_LANGUAGE, to=to)
        ids = [self.text.token_id(EOS), *self._plain(given)] if isinstance(given, str) else given
        return [*ids, *(self._plain(second) if isinstance(second, str) else second or ())]


def adapted(module: Model, tokenizer: Tokenizer, **told: str) -> OwnModel:
    """Return the adapter of a model of ours."""
    if isinstance(module, GPT):
        return LanguageModel(module, tokenizer, **told)
    return Translator(module, tokenizer, **told)
