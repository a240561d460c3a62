"""Our own Transformer, with its tokenizer: tokenize, translate, trace."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from visformer.adapters.base import ModelInfo
from visformer.adapters.generating import Choice, Speaker
from visformer.adapters.params import param_names, read_params
from visformer.adapters.recording import Recorder, available, check_budget, check_edits, globs, matching
from visformer.edits import Edit
from visformer.errors import N_, TextError, VisformerError
from visformer.model import taps
from visformer.model.decoding import Decoding, NextToken
from visformer.model.padding import pad
from visformer.model.positions import PAPERS
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer, detect_language
from visformer.model.transformer import PAD_ID, Transformer
from visformer.system import limits
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import all_names, axes_of


class Translator:
    """A :class:`visformer.Transformer` between English and Chinese, both ways."""

    def __init__(
        self, module: Transformer, tokenizer: Tokenizer, *, name: str = "own", licence: str = "-", source: str = "-"
    ) -> None:
        self.module, self.tokenizer, self.text = module, tokenizer, tokenizer
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
        # What there is to say of positions that are not the paper's.
        self._meta: dict[str, object] = {} if config.position == PAPERS else {"position": config.position}
        if not order.adds:
            self._meta["missing"] = [["*.position", order.says]]
        self._params = param_names(config)
        self._end = tokenizer.token_id(EOS)
        allowed = torch.ones(len(tokenizer), dtype=torch.bool)
        allowed[[PAD_ID, *(tokenizer.token_id(token) for token in LANGUAGE_TOKEN.values())]] = False
        self._speaker = Speaker(tokenizer, allowed, (self._end,))

    def __repr__(self) -> str:
        return self.info.describe(type(self).__name__)

    def available(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Of these glob patterns over names those that ``record`` takes here."""
        return available(self._names + self._params, globs(wanted))

    def tokenize(self, text: str) -> tuple[str, ...]:
        """The tokens of a source sentence as shown, one per id, </s> included; however many they are.

        Raises:
            TextError: empty, or not valid Unicode.
        """
        self._require_text(text)
        return self.tokenizer.shown([*self.tokenizer.encode(text), self._end])

    def translate(
        self,
        source: str,
        *,
        to: str | None = None,
        prefix: str | Sequence[int] = "",
        beam_size: int = 1,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        edits: Sequence[Edit] = (),
        max_new_tokens: int | None = None,
    ) -> Decoding:
        """Translate one sentence.

        Greedy by default; any of temperature, top_k and top_p samples; beam_size above 1 searches.

        Args:
            source: the sentence.
            to: "en" or "zh"; None: the language that the source is not written in.
            prefix: what the translation has to begin with, as text or as ids.
            beam_size: hypotheses kept; excludes sampling.
            temperature: see :func:`visformer.model.decoding.reshape`, as for top_k and top_p.
            top_k: likewise.
            top_p: likewise.
            seed: of the sampling.
            edits: change the model meanwhile; decoding is then uncached.
            max_new_tokens: None: 20 more than twice the source.

        Returns:
            text, tokens, and every step with its candidates.

        Raises:
            TextError: a text that cannot be run.
            VisformerError: a setting out of its range.
        """
        how = Choice(beam_size=beam_size, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        check_edits(edits, self._names)
        src_ids = self._source_ids(source)
        begun = self.tokenizer.encode(prefix) if isinstance(prefix, str) else prefix
        begin = [self.tokenizer.token_id(LANGUAGE_TOKEN[self._language(source, to)]), *begun]
        limit = self._limit(src_ids, begin, max_new_tokens)
        with torch.inference_mode(), self._decoding_session(edits):
            next_token = NextToken(self.module, torch.tensor([src_ids]), cached=not edits)
            return self._speaker.speak(next_token, torch.tensor([begin]), limit, begun=begin[1:], how=how)

    generate = translate  # as models of transformers call it

    def trace(
        self,
        source: str,
        target: str | Sequence[int] | None = None,
        *,
        pair: str | None = None,
        to: str | None = None,
        record: Sequence[str] = ("*.pattern",),
        edits: Sequence[Edit] = (),
    ) -> Trace:
        """Run the model on a sentence and its target, and keep what is asked for.

        Args:
            source: the sentence.
            target: to be forced, as text or as the ids of a :class:`visformer.model.decoding.Decoding`, whose tokens
                may be cut otherwise than its text alone would be; None: the model's own greedy translation.
            pair: second sentence of an encoder-only model; has no meaning here and must be None.
            to: "en" or "zh"; None: the language that the source is not written in.
            record: glob patterns over tensor and weight names.
            edits: change the model, in decoding and in the recorded pass alike.

        Returns:
            One full pass over the finished pair.

        Raises:
            TextError: a text that cannot be run.
            TraceError: ``record`` names nothing.
            BudgetError: the trace would be too large.
            EditError: an edit reaches nothing, or does not fit.
        """
        if pair is not None:
            raise VisformerError(N_("pair={pair!r}: an encoder-decoder takes its second text as target."), pair=pair)
        wanted = matching(self._names + self._params, globs(record))
        check_edits(edits, self._names)
        src_ids = self._source_ids(source)
        language = self._language(source, to)
        ids = None if target is None else self._target_ids(target)
        tensors = wanted.intersection(self._names)
        recorder = Recorder(tensors, edits)
        check_budget(self._shapes(tensors, len(src_ids), 0 if ids is None else len(ids)))
        with torch.inference_mode():
            with taps.session(recorder, wanted=recorder.wants):
                memory = self.module.encode(torch.tensor([src_ids]))  # (1, src, d_model)
            if ids is None:
                ids = self._greedy_ids(src_ids, memory, language, edits)
            tgt_ids = [self.tokenizer.token_id(LANGUAGE_TOKEN[language]), *ids[:-1]]
            params = self._read_params(wanted, src_ids, tgt_ids)
            more = sum(p.value.nbytes for p in params.values())
            check_budget(self._shapes(tensors, len(src_ids), len(tgt_ids)), more=more)
            with taps.session(recorder, wanted=recorder.wants):
                run = self.module.decode if recorder.wants("logits") else self.module.read_target
                run(torch.tensor([tgt_ids]), memory, torch.tensor([src_ids]))
        meta = {"source": source, "target": self.tokenizer.decode(ids), "to": language, "forced": target is not None}
        return self._labelled({"src": src_ids, "tgt": tgt_ids, "next": ids}, recorder.tensors, params, meta)

    def _labelled(
        self,
        sides: dict[str, list[int]],
        tensors: dict[str, TracedTensor],
        params: dict[str, TracedTensor],
        meta: dict[str, object],
    ) -> Trace:
        return Trace(
            tokens={side: self.tokenizer.shown(row) for side, row in sides.items()},
            special={side: self.tokenizer.is_special(row) for side, row in sides.items()},
            words={side: self.tokenizer.words(row) for side, row in sides.items()},
            tensors=tensors,
            params=params,
            meta={"model": self.info.name, **meta, "ids": sides, **self._meta},
        )

    def translate_batch(self, sources: Sequence[str], *, to: str) -> list[str]:
        """Greedy translations of many sentences at once, for evaluation: same tokens as :meth:`translate` gives."""
        src_ids = pad([self._source_ids(source) for source in sources])
        start = torch.full((len(sources), 1), self.tokenizer.token_id(LANGUAGE_TOKEN[to]))
        with torch.inference_mode():
            rows = self._speaker.greedy(NextToken(self.module, src_ids), start, 2 * src_ids.shape[1] + 20)
        return [self.tokenizer.decode(row) for row in rows]

    def _target_ids(self, target: str | Sequence[int]) -> list[int]:
        """Ids that the decoder's rows predict: the target, </s> last."""
        self._require_text(target if isinstance(target, str) else self.tokenizer.decode(target))
        ids = [*(self.tokenizer.encode(target) if isinstance(target, str) else target), self._end]
        self._require_room(len(ids))
        return ids

    def _greedy_ids(self, src_ids: list[int], memory: Tensor, language: str, edits: Sequence[Edit]) -> list[int]:
        """What :meth:`translate` finds, </s> last unless it was cut off."""
        begin = [self.tokenizer.token_id(LANGUAGE_TOKEN[language])]
        with self._decoding_session(edits):
            next_token = NextToken(self.module, torch.tensor([src_ids]), cached=not edits, memory=memory)
            (ids,) = self._speaker.greedy(next_token, torch.tensor([begin]), self._limit(src_ids, begin, None))
        return ids

    def _read_params(self, wanted: frozenset[str], src_ids: list[int], tgt_ids: list[int]) -> dict[str, TracedTensor]:
        if wanted.isdisjoint(self._params):  # looking at a hundred names costs as much as a layer
            return {}
        return read_params(self.module, wanted, src_ids=src_ids, tgt_ids=tgt_ids)

    def _limit(self, src_ids: list[int], begin: list[int], asked: int | None) -> int:
        """How many tokens a translation may add."""
        return max(1, min(self.info.max_tokens - len(begin), 2 * len(src_ids) + 20 if asked is None else asked))

    def _source_ids(self, text: str) -> list[int]:
        self._require_text(text)
        ids = [*self.tokenizer.encode(text), self._end]
        self._require_room(len(ids))
        return ids

    @staticmethod
    def _require_text(text: str) -> None:
        if not isinstance(text, str):
            raise TextError(N_("{given!r} is no text: give one sentence as a str."), given=text)
        if not text.strip():
            raise TextError(N_("There is no text: type a sentence in English or Chinese."))

    def _require_room(self, tokens: int) -> None:
        if tokens > self.info.max_tokens:
            raise TextError(
                N_("The text is {given} tokens long and the limit is {limit}: shorten it."),
                given=tokens,
                limit=self.info.max_tokens,
            )

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
