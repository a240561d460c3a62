"""Our own Transformer, with its tokenizer: tokenize, translate, trace."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from visformer.adapters.base import ModelInfo, Request, TracedModel
from visformer.adapters.generating import Settings, Speaker
from visformer.adapters.params import weights_of
from visformer.adapters.recording import Recorder, check_budget, matching
from visformer.edits import Edit
from visformer.errors import N_, VisformerError
from visformer.model import taps
from visformer.model.decoding import Decoding, NextToken
from visformer.model.masks import pad
from visformer.model.positions import PAPERS
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer, detect_language
from visformer.model.transformer import PAD_ID, Transformer
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.names import all_names, axes_of


class Translator(TracedModel):
    """A :class:`visformer.Transformer` between English and Chinese, both ways."""

    text: Tokenizer
    unsure_below: float | None = None  # confidence below which its translations count as unsure, if it was evaluated
    _no_text = N_("There is no text: type a sentence in English or Chinese.")

    def __init__(
        self, module: Transformer, tokenizer: Tokenizer, *, name: str = "own", licence: str = "-", source: str = "-"
    ) -> None:
        self.module, self.tokenizer, self.text = module, tokenizer, tokenizer
        self._plain = tokenizer.encode
        config = module.config
        self.info = ModelInfo(
            name=name,
            kind="encoder-decoder",
            n_encoder_layers=config.n_encoder_layers,
            n_decoder_layers=config.n_decoder_layers,
            n_heads=config.n_heads,
            d_model=config.d_model,
            max_tokens=min(limits.MODEL_TOKENS, config.positions.rows(config.max_len) or limits.MODEL_TOKENS),
            licence=licence,
            source=source,
            n_kv_heads=config.n_heads,
            position=config.position,
        )
        depths, order = (config.n_encoder_layers, config.n_decoder_layers), config.positions
        self._names = tuple(all_names(*depths, adds_position=order.adds, biases_scores=order.biases))
        # Only positions other than the paper's are worth a note.
        self._meta: dict[str, object] = {} if config.position == PAPERS else {"position": config.position}
        if not order.adds:
            self._meta["missing"] = [["*.position", order.says]]
        self._weights = weights_of(module)
        self._end = tokenizer.token_id(EOS)
        allowed = torch.ones(len(tokenizer), dtype=torch.bool)
        allowed[[PAD_ID, *(tokenizer.token_id(token) for token in LANGUAGE_TOKEN.values())]] = False
        self._speaker = Speaker(tokenizer, allowed, (self._end,))

    def tokenize(self, text: str) -> tuple[str, ...]:
        """See :class:`TracedModel`; the last token is </s>."""
        self._require_text(text)
        return self.text.shown([*self._plain(text), self.text.token_id(EOS)])

    def _decode(self, source: str, to: str | None, settings: Settings) -> Decoding:
        src_ids = self._source_ids(source)
        start = [self.tokenizer.token_id(LANGUAGE_TOKEN[self._language(source, to)]), *settings.prefix]
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
        params = {name: weight.read(name, sides) for name, weight in self._weights.items() if name in wanted}
        more = sum(p.value.nbytes for p in params.values())
        check_budget(self._shapes(tensors, len(src_ids), len(ids)), more=more)
        with taps.session(recorder, wanted=recorder.wants):
            run = self.module.decode if recorder.wants("logits") else self.module.read_target
            run(torch.tensor([sides["tgt"]]), memory, torch.tensor([src_ids]))
        meta = {"source": source, "target": self.tokenizer.decode(ids), "to": language, "forced": target is not None}
        return self._labelled(sides, recorder.tensors, params, meta | told, self._meta)

    def translate_batch(self, sources: Sequence[str], *, to: str) -> list[tuple[str, float]]:
        """Translate many sentences at once, greedily, for evaluation.

        Args:
            sources: the sentences.
            to: the language of all translations.

        Returns:
            Text and confidence of each; the tokens are those of :meth:`translate`.
        """
        src_ids = pad([self._source_ids(source) for source in sources])
        start = torch.full((len(sources), 1), self.tokenizer.token_id(LANGUAGE_TOKEN[to]))
        with torch.inference_mode():
            rows = self._speaker.greedy(NextToken(self.module, src_ids), start, 2 * src_ids.shape[1] + 20)
        return [(self.tokenizer.decode(ids), sure) for ids, sure in rows]

    def _target_ids(self, target: str | Sequence[int]) -> list[int]:
        """Ids that the decoder's rows predict: the target, </s> last."""
        self._require_text(target if isinstance(target, str) else self.tokenizer.decode(target))
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

    def _source_ids(self, text: str) -> list[int]:
        self._require_text(text)
        ids = [*self.tokenizer.encode(text), self._end]
        self._require_room(len(ids))
        return ids

    @staticmethod
    def _language(source: str, to: str | None) -> str:
        if to is None:
            return "en" if detect_language(source) == "zh" else "zh"
        if to not in LANGUAGE_TOKEN:
            raise VisformerError(N_("to={to!r} is not a language of this model: choose en or zh."), to=to)
        return to

    @staticmethod
    def _decoding_session(edits: Sequence[Edit]) -> AbstractContextManager[None]:
        if not edits:
            return nullcontext()
        recorder = Recorder(frozenset(), edits, growing=True)
        return taps.session(recorder, wanted=recorder.wants)

    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        """The shapes that these tensors will have."""
        config = self.module.config
        sizes = {"head": config.n_heads, "d_model": config.d_model, "d_k": config.d_k, "d_ff": config.d_ff}
        sizes["vocab"] = config.tgt_vocab
        tokens = {"src": n_src, "tgt": n_tgt}
        return {
            name: tuple(sizes[a.name] if a.side is None else tokens[a.side] for a in axes_of(name) or ())
            for name in names
        }
