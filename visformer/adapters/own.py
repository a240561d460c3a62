"""Our own models, with their tokenizer: tokenize, translate or continue a text, trace."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from visformer import scenes
from visformer.adapters.base import ONE_LANGUAGE, ONE_PICTURE, OTHER_TOKENIZER, Labels, ModelInfo, TracedModel
from visformer.adapters.generating import Generator, Settings
from visformer.adapters.huggingface.families import NO_SOURCE
from visformer.adapters.picture_files import checked_picture, language_of, picture_of
from visformer.adapters.recording import Passes, Recorder, Weight, check_budget, matching, may_cache
from visformer.adapters.requests import Encoded, Picture, Text, TextRequest
from visformer.edits.base import CheckedEdit
from visformer.errors import N_, ArgumentError, CheckpointError, ShapeError, VisformerError
from visformer.model import taps
from visformer.model.config import VisionConfig
from visformer.model.decoding import Decoding, NextOfText, NextToken
from visformer.model.gpt import GPT
from visformer.model.kinds import Config, Model
from visformer.model.masks import PAD_ID, pad
from visformer.model.patches import PatchEmbedding, pixels_of
from visformer.model.positions import PAPERS
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer, detect_language
from visformer.model.transformer import Transformer
from visformer.system.arguments import checked_class
from visformer.trace import Trace, TracedTensor
from visformer.trace.blocks import Blocks, StackBlocks, Sublayer
from visformer.trace.names import D_MODEL, PIXEL, VOCAB, Axis, all_names, axes_of
from visformer.trace.tokens import patch_names

READ_BACK = 0.02
"""Weight, in a translator's confidence, of the log probability with which the source is read back: chosen on one half
of the judged sentences. More marks right translations of short synonyms ("Hi." is read back as "Hello.")."""

_ATTENTION_ALONE = N_("its blocks have attention alone, no feed-forward network")


class OwnModel(TracedModel):
    """A model of ours: what the translator and a decoder-only model share."""

    text: Tokenizer
    unsure_below: float | None = None  # confidence below which its translations count as unsure, if it was evaluated
    caches = True  # whether decoding keeps keys and values: not where tokens that are added change those before them
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
            blocks=_blocks(config),
        )
        how = {"adds_position": order.adds, "biases_scores": order.biases, "feeds_forward": config.d_ff > 0}
        self._names = tuple(all_names(*config.depths, **how))
        # Only positions other than the paper's are worth a note.
        self._meta: dict[str, Any] = {} if config.position == PAPERS else {"position": config.position}
        missing = [["*.position", order.says]] if not order.adds else []
        missing += [[glob, _ATTENTION_ALONE] for glob in ("*.ffn*", "*.norm_ffn*") if not config.d_ff]
        if missing:
            self._meta["missing"] = missing
        self._weights = weights_of(module)
        self._passes = Passes(module)
        self._end = tokenizer.token_id(EOS)
        allowed = torch.arange(module.output.out_features) < len(tokenizer)
        allowed[[PAD_ID, *(tokenizer.token_id(token) for token in LANGUAGE_TOKEN.values())]] = False
        self._generator = Generator(tokenizer, allowed, (self._end,))

    def _require_fit(self) -> None:
        """Refuse a tokenizer that has more ids than the model."""
        sizes = [size for name, size in vars(self.module.config).items() if name.endswith("vocab")]
        if len(self.tokenizer) > min(sizes):
            raise CheckpointError(OTHER_TOKENIZER, id=len(self.tokenizer) - 1, known=min(sizes))

    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        wanted = matching((*self._names, *self._weights), record)
        return wanted.intersection(self._names), wanted.intersection(self._weights)

    def _params(
        self,
        tensors: frozenset[str],
        weights: frozenset[str],
        sides: Mapping[str, Sequence[int]],
        request: TextRequest,
    ) -> dict[str, TracedTensor]:
        """Read these weights; with the tensors of a sentence, whose ids are ``sides``, they are within the budget."""
        params = {name: weight.read(name, sides) for name, weight in self._weights.items() if name in weights}
        n_src, n_tgt = len(sides.get("src", ())), len(sides["tgt"])
        self._require_bytes(tensors, n_src, n_tgt, request)
        shapes = self._held(tensors, n_src, n_tgt, overview=self._overview(request))
        check_budget(shapes, more=sum(p.nbytes for p in params.values()))
        return params

    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        """The shapes that these tensors will have."""
        config = self.module.config
        sizes = {"head": config.n_heads, "d_model": config.d_model, "d_k": config.d_k, "d_ff": config.d_ff}
        sizes["vocab"] = self.module.output.out_features
        if isinstance(config, VisionConfig):
            sizes["pixel"] = 3 * config.patch_size**2
        tokens = {"src": n_src, "tgt": n_tgt}
        return {
            name: tuple(sizes[a.name] if a.side is None else tokens[a.side] for a in axes_of(name) or ())
            for name in names
        }

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Rows of ids, padded at the end, where the model is: (batch, token)."""
        return pad(rows).to(self.module.output.weight.device)

    def _caches(self, edits: Sequence[CheckedEdit]) -> bool:
        return self.caches and may_cache(edits)

    def _recorder(
        self, tensors: frozenset[str], request: TextRequest, sides: Sequence[Mapping[str, Sequence[int]]]
    ) -> Recorder:
        """Return what visits the passes of a request."""
        return Recorder(tensors, request.edits, sides=sides, show=self._displayed if self._overview(request) else None)

    @staticmethod
    def _decoding_session(
        edits: Sequence[CheckedEdit], sides: Sequence[Mapping[str, Sequence[int]]] = ({},)
    ) -> AbstractContextManager[None]:
        if not edits:
            return nullcontext()
        recorder = Recorder(frozenset(), edits, sides=sides, growing=True)
        return taps.session(recorder, wanted=recorder.wants)


class EncoderDecoder(OwnModel):
    """A :class:`visformer.Transformer`: what the translator and the captioner share."""

    module: Transformer

    @abstractmethod
    def _source_ids(self, given: Any, *, scores: bool = True) -> list[int]:
        """Return an id for each of the source's tokens."""

    @abstractmethod
    def _sources(self, batch: Sequence[Encoded]) -> Tensor:
        """Return what the encoder reads, its first axis the batch."""

    @abstractmethod
    def _language(self, request: TextRequest) -> str:
        """Return the target language."""

    def _judged(
        self, batch: Sequence[Encoded], outputs: Sequence[tuple[list[int], float]]
    ) -> list[tuple[list[int], float]]:
        """Return each output, its ids and the confidence in them, with the confidence that is shown."""
        return list(outputs)

    def _decode(self, source: Any, to: str | None, settings: Settings) -> Decoding:
        each = self._encode(TextRequest(source, None, None, to, (), settings.edits))
        start = [*each.begin, *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(each.src), len(start), settings.max_new_tokens)
        with self._decoding_session(settings.edits):
            next_token = NextToken(self.module, self._sources([each]), cached=self._caches(settings.edits))
            decoding = self._generator.generate(next_token, torch.tensor([start]), limit, settings)
        ids = [*decoding.ids, self._end] if decoding.finished else list(decoding.ids)
        ((_, sure),) = self._judged([each], [(ids, decoding.confidence)])
        return replace(decoding, confidence=sure)

    def _encode(self, request: TextRequest) -> Encoded:
        scores = not self._overview(request)
        src_ids = self._source_ids(request.source, scores=scores)
        start = self.tokenizer.token_id(LANGUAGE_TOKEN[self._language(request)])
        forced = None if request.target is None else self._target_ids(request.target, scores=scores)
        return Encoded(request, src_ids, [start], forced)

    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        first, sides = batch[0].request, [{"src": each.src} for each in batch]
        tensors, weights = self._selected(first.record)
        for each in batch:
            self._require_bytes(tensors, len(each.src), len(each.forced or ()), first)
        recorder = self._recorder(tensors, first, sides)
        sources = self._sources(batch)  # (batch, src), or pixels
        with taps.session(recorder, wanted=recorder.wants, by_rows=recorder.by_rows):
            memory = self.module.encode(sources)  # (batch, src, d_model)
        outputs = self._outputs(batch, memory)
        for side, each, (ids, _) in zip(sides, batch, outputs, strict=True):
            side |= {"tgt": [*each.begin, *ids[:-1]], "next": ids}
        params = [self._params(tensors, weights, side, first) for side in sides]
        with taps.session(recorder, wanted=recorder.wants, by_rows=recorder.by_rows):
            run = self.module.decode if recorder.wants("logits") else self.module.read_target
            run(self._tensor([side["tgt"] for side in sides]), memory, sources)
        return [self._trace_of(*row) for row in zip(batch, sides, recorder.rows, params, outputs, strict=True)]

    def _forward(self, batch: Sequence[Encoded], visit: Recorder) -> Tensor:
        sources = self._sources(batch)
        with taps.session(visit, wanted=visit.wants):
            return self.module(sources, self._tensor([each.tgt for each in batch]))

    def _outputs(self, batch: Sequence[Encoded], memory: Tensor) -> list[tuple[list[int], float | None]]:
        """What the decoder's rows predict, and the confidence of the model in it if it is the model's own."""
        forced: list[tuple[list[int], float | None]] = [(each.forced or [], None) for each in batch]
        if all(ids for ids, _ in forced):
            return forced
        own = self._greedy(batch, memory)
        return [given if given[0] else greedy for given, greedy in zip(forced, own, strict=True)]

    def _trace_of(
        self,
        each: Encoded,
        sides: Mapping[str, Sequence[int]],
        tensors: Mapping[str, TracedTensor],
        params: Mapping[str, TracedTensor],
        output: tuple[list[int], float | None],
    ) -> Trace:
        """Put one sentence's part of a pass into a Trace."""
        ids, sure = output
        meta: dict[str, object] = {
            "source": self._words(each.request.source),
            "target": self.tokenizer.decode(ids),
            "to": self._language(each.request),
            "forced": each.forced is not None,
        }
        if sure is not None:
            meta["confidence"] = sure
            if self.unsure_below is not None and not each.request.edits:  # the threshold is of the model as it is
                meta["unsure_below"] = self.unsure_below
        return self._labelled(sides, tensors, params, meta, self._meta)

    def _target_ids(self, target: str | list[int], *, scores: bool = True) -> list[int]:
        """Ids that the decoder's rows predict: the target, </s> last."""
        ids = [*(self.tokenizer.encode(target) if isinstance(target, str) else target), self._end]
        self._require_room(len(ids), scores=scores)
        return ids

    def _greedy(self, batch: Sequence[Encoded], memory: Tensor | None = None) -> list[tuple[list[int], float]]:
        """See :class:`TracedModel`; ``memory``: the encoder's output, if it has already run."""
        edits, sources = batch[0].request.edits, self._sources(batch)
        with self._decoding_session(edits, [{"src": each.src} for each in batch]):
            next_token = NextToken(self.module, sources, cached=self._caches(edits), memory=memory)
            own = self._decode_greedily(next_token, batch)
        return self._judged(batch, own)

    def _require_language(self, to: str | None) -> None:
        super()._require_language(to)
        if to is not None and to not in LANGUAGE_TOKEN:
            raise VisformerError(N_("to={to!r} is not a language of this model: choose en or zh."), to=to)


@checked_class
class Translator(EncoderDecoder):
    """A :class:`visformer.Transformer` between English and Chinese, both ways."""

    def tokenize(self, text: Text) -> tuple[str, ...]:
        """See :class:`TracedModel`; the last token of a text is </s>."""
        return self._row(self._ids_of(self._given(text)))

    def _judged(
        self, batch: Sequence[Encoded], outputs: Sequence[tuple[list[int], float]]
    ) -> list[tuple[list[int], float]]:
        """Multiply each output's confidence by READ_BACK's power of the probability of its source, given the output.

        What an output left out cannot be read back from it.
        """
        start_of = [self.tokenizer.token_id(token) for token in LANGUAGE_TOKEN.values()]
        back = [start_of[each.begin[0] == start_of[0]] for each in batch]  # there are two
        read = self._tensor([ids or [self._end] for ids, _ in outputs])  # (batch, output)
        tgt = self._tensor(
            [[start, *each.src[:-1]] for start, each in zip(back, batch, strict=True)]
        )  # (batch, source)
        logits = self.module(read, tgt)  # (batch, source, vocab)
        expected = self._sources(batch)[..., None]  # (batch, source, 1)
        found = logits.gather(2, expected)[..., 0] - logits.logsumexp(dim=-1)  # (batch, source)
        return [
            (ids, sure * math.exp(READ_BACK * float(row[: len(each.src)].sum())))
            for (ids, sure), row, each in zip(outputs, found, batch, strict=True)
        ]

    def _source_ids(self, given: str | list[int], *, scores: bool = True) -> list[int]:
        ids = self._ids_of(given)
        self._require_room(len(ids), scores=scores)
        return ids

    def _sources(self, batch: Sequence[Encoded]) -> Tensor:
        return self._tensor([each.src for each in batch])

    def _ids_of(self, given: str | list[int]) -> list[int]:
        return [*self._plain(given), self.text.token_id(EOS)] if isinstance(given, str) else given

    def _language(self, request: TextRequest) -> str:
        return request.to or ("en" if detect_language(self._words(request.source)) == "zh" else "zh")


@checked_class
class Captioner(EncoderDecoder):
    """A :class:`visformer.Transformer` that reads a picture and describes it in English or Chinese.

    The source's tokens are the picture's patches, "r1c1" the first of the first row. ``trace(image=..., text=...)``
    takes the picture and, to force it, its caption; None: the model's own, in ``to`` or English. Every other method
    takes a picture in place of a source text. A text that describes a scene as :func:`visformer.scenes.caption` does
    stands for its picture, and for the language of the caption; so does one of
    :func:`visformer.adapters.picture_files.text_of`. Its errors name what is wrong: ArgumentError: another
    text, or no array; ShapeError: another size; VisformerError: numbers that are not whole, or not from 0 to 255.

    "src.pixels" is always recorded, from which :attr:`visformer.Trace.image` is put together; ``trace.meta["grid"]``
    has the numbers of rows and columns of patches. An edit of "src.pixels" changes what patches show.
    """

    def __init__(self, module: Transformer, tokenizer: Tokenizer, **about: str) -> None:
        super().__init__(module, tokenizer, **about)
        config = module.config
        assert isinstance(config, VisionConfig)
        self.info = replace(self.info, grid=config.grid, patch_size=config.patch_size)
        self._known = (math.prod(config.grid), len(tokenizer))
        self._names = ("src.pixels", *self._names)
        self._meta["grid"] = [*config.grid]

    def tokenize(self, text: Picture) -> tuple[str, ...]:
        """Return the names of a picture's patches; see :class:`TracedModel`."""
        self._given(text)
        return self._patches

    @property
    def _patches(self) -> tuple[str, ...]:
        """The name of each patch, row by row."""
        return patch_names(*(self.info.grid or (0, 0)))

    def read_again(self, trace: Trace) -> Encoded:
        """See :class:`TracedModel`; the picture is the Trace's."""
        read = super().read_again(trace)
        return replace(read, request=replace(read.request, source=self._given(trace.image)))

    def _inputs(self, source: Any, target: Any, image: Picture, text: Text | None) -> tuple[Any, Any]:
        if source is not None and image is not None:
            raise VisformerError(ONE_PICTURE, name=self.info.name)
        return self._given(source if image is None else image), target if text is None else text

    def _given(self, text: Any, *, of_target: bool = False) -> Any:
        """Check a picture, and return it as uint8 (row, column, RGB)."""
        if of_target:
            return super()._given(text, of_target=True)
        wanted = (*(n * self.info.patch_size for n in self.info.grid or ()), 3)
        if isinstance(text, str):
            if scenes.described(text) or language_of(text):
                return text
            raise ArgumentError(
                N_(
                    "{name} reads a picture, not a text: pass image=, uint8 of shape {wanted}; {text!r} may be text=. "
                    "Only a text such as {example!r} stands for a picture."
                ),
                example=scenes.caption(scenes.EXAMPLES[1], "en"),
                name=self.info.name,
                wanted=wanted,
                text=text,
            )
        picture = checked_picture(text, wanted)
        if picture.shape != wanted:
            raise ShapeError(
                N_(
                    "A picture of shape {given} does not fit: {name} reads (row, column, RGB) of {wanted}. With PIL, "
                    "image.convert('RGB').resize({size}) makes it so."
                ),
                given=picture.shape,
                name=self.info.name,
                wanted=wanted,
                size=wanted[:2],
            )
        return picture

    def _source_ids(self, given: Any, *, scores: bool = True) -> list[int]:
        return [*range(self._known[0])]

    def _sources(self, batch: Sequence[Encoded]) -> Tensor:
        weight = self.module.output.weight
        pictures = [self._picture(each.request.source) for each in batch]
        return pixels_of(pictures).to(weight.device, weight.dtype)

    def _picture(self, given: Any) -> Any:
        """Return the picture itself, where a text may stand for it."""
        if not isinstance(given, str):
            return given
        told, (height, width) = scenes.described(given), (n * self.info.patch_size for n in self.info.grid or ())
        return picture_of(given, (height, width)) if told is None else scenes.render(told[0])

    def _language(self, request: TextRequest) -> str:
        texts = (text for text in (request.target, request.source) if isinstance(text, str))
        return request.to or next((language_of(text) or detect_language(text) for text in texts), "en")

    def _trace_of(self, each: Encoded, *more: Any) -> Trace:
        trace = super()._trace_of(each, *more)
        source = each.request.source
        if not isinstance(source, str) or language_of(source) is None:
            return trace
        return replace(trace, meta={**trace.meta, "source": "", "picture": source})

    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        tensors, weights = super()._selected(record)
        return tensors | {"src.pixels"}, weights

    def _words(self, given: Any) -> str:
        return super()._words(given) if isinstance(given, str | list) else ""

    def _labels(self, ids: Mapping[str, Sequence[int]]) -> Labels:
        tokens, special, words = super()._labels({side: row for side, row in ids.items() if side != "src"})
        n = self._known[0]
        src = (self._patches, (False,) * n, tuple(range(n)))
        return {"src": src[0], **tokens}, {"src": src[1], **special}, {"src": src[2], **words}


@checked_class
class LanguageModel(OwnModel):
    """A :class:`visformer.GPT`, which continues a text. As in GPT-2, the token that ends a text begins it, too."""

    module: GPT

    def __init__(self, module: GPT, tokenizer: Tokenizer, **about: str) -> None:
        super().__init__(module, tokenizer, **about)
        missing = [["decoder.*cross*", NO_SOURCE], *self._meta.get("missing", ())]
        self._meta |= {"n_kv_heads": self.info.n_kv_heads, "missing": missing}
        self.caches = module.config.causal

    def tokenize(self, text: Text, second: Text | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; the first token of a text is </s>; ``second`` is appended."""
        return self._row(self._ids(self._given(text), None if second is None else self._given(second)))

    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        start = [*self._ids(source, None), *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(start), len(start), settings.max_new_tokens)
        with self._decoding_session(settings.edits):
            next_token = NextOfText(self.module, cached=self._caches(settings.edits))
            return self._generator.generate(next_token, torch.tensor([start]), limit, settings)

    def _encode(self, request: TextRequest) -> Encoded:
        ids = self._ids(request.source, request.target)
        self._require_room(len(ids), scores=not self._overview(request))
        return Encoded(request, [], ids)

    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        first, sides = batch[0].request, [{"tgt": each.begin} for each in batch]
        tensors, weights = self._selected(first.record)
        recorder = self._recorder(tensors, first, sides)
        params = [self._params(tensors, weights, side, first) for side in sides]
        with taps.session(recorder, wanted=recorder.wants, by_rows=recorder.by_rows):
            logits = self.module(self._tensor([each.begin for each in batch]))  # (batch, token, vocab)
        traces = []
        for i, (each, side) in enumerate(zip(batch, sides, strict=True)):
            ids, request = each.begin, each.request
            following = int(self._generator.likeliest(logits[i : i + 1, len(ids) - 1].cpu()))
            text = None if request.target is None else self._words(request.target)
            meta = {"source": self._words(request.source), "target": text, "to": None, "forced": text is not None}
            all_sides = {**side, "next": [*ids[1:], following]}
            traces.append(self._labelled(all_sides, recorder.rows[i], params[i], meta, self._meta))
        return traces

    def _forward(self, batch: Sequence[Encoded], visit: Recorder) -> Tensor:
        with taps.session(visit, wanted=visit.wants):
            return self.module(self._tensor([each.tgt for each in batch]))

    def _greedy(self, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]:
        edits = batch[0].request.edits
        with self._decoding_session(edits, [{}] * len(batch)):  # all texts are equally long
            return self._decode_greedily(NextOfText(self.module, cached=self._caches(edits)), batch)

    def _require_language(self, to: str | None) -> None:
        super()._require_language(to)
        if to is not None:
            raise VisformerError(ONE_LANGUAGE, to=to)

    def _ids(self, given: str | list[int], second: str | list[int] | None) -> list[int]:
        """Ids of a text, </s> first, and of its continuation."""
        ids = [self.text.token_id(EOS), *self._plain(given)] if isinstance(given, str) else given
        return [*ids, *(self._plain(second) if isinstance(second, str) else second or ())]


def _blocks(config: Config) -> Blocks:
    """The architecture of a model of ours."""

    def stack(n_layers: int, *sublayers: Sublayer) -> StackBlocks:
        return StackBlocks(
            n_layers=n_layers,
            sublayers=sublayers,
            norm=config.norm,
            parallel=False,
            final_norm=config.has_final_norm,
            n_heads=config.n_heads,
            n_kv_heads=config.n_heads,
            attention_layers=None,
        )

    n_encoder, n_decoder = config.depths
    if n_encoder is None:
        rest: tuple[Sublayer, ...] = ("ffn",) if config.d_ff else ()
        return Blocks(None, stack(n_decoder, "self_attn", *rest), config.position, logits=True)
    encoder = stack(n_encoder, "self_attn", "ffn")
    return Blocks(encoder, stack(n_decoder, "self_attn", "cross_attn", "ffn"), config.position, logits=True)


def adapted(module: Model, tokenizer: Tokenizer, **about: str) -> OwnModel:
    """Return the adapter of a model of ours."""
    if isinstance(module, GPT):
        return LanguageModel(module, tokenizer, **about)
    reads_picture = isinstance(module.config, VisionConfig)
    return (Captioner if reads_picture else Translator)(module, tokenizer, **about)


# Weights, under the paper's names and in its convention: y = x W + b, so W is (in, out) -------------------------------

_D_FF = Axis("d_ff")


def weights_of(model: Model) -> dict[str, Weight]:
    """Return every weight by name: ``decoder.0.cross_attn.w_q``, ``encoder.1.norm_ffn.gamma``, ``src.embedding``.

    Embeddings only where a Trace has them times sqrt(d_model); GPT's are not scaled.
    """
    weights: dict[str, Weight] = {}
    stacks: dict[str, Any] = {"decoder": model.decoder}
    if isinstance(model, Transformer):
        stacks = {"encoder": model.encoder, **stacks}
        for side, table in (("src", model.src_embedding), ("tgt", model.tgt_embedding)):
            if isinstance(table, PatchEmbedding):
                weights["src.w_patch"] = Weight(table.patch, "weight", (PIXEL, D_MODEL))
                weights["src.b_patch"] = Weight(table.patch, "bias", (D_MODEL,))
            else:
                weights[f"{side}.embedding"] = Weight(table.token, "weight", (Axis("token", side), D_MODEL))
    weights["output.w"] = Weight(model.output, "weight", (D_MODEL, VOCAB))
    for name, stack in stacks.items():
        for layer, block in enumerate(stack.layers):
            parts = {"self_attn": "norm_self", "cross_attn": "norm_cross", "ffn": "norm_ffn"}
            for part, norm in parts.items():
                if hasattr(block, part):
                    weights.update(_linear_maps(f"{name}.{layer}.{part}", getattr(block, part)))
                    weights |= _gamma_beta(f"{name}.{layer}.{norm}", getattr(block, norm))
        if model.config.has_final_norm:
            weights |= _gamma_beta(f"{name}.norm", stack.norm)
    return weights


def _linear_maps(path: str, sublayer: nn.Module) -> Iterator[tuple[str, Weight]]:
    for w, linear in sublayer.named_children():
        inner = (_D_FF if w == "w_2" else D_MODEL, _D_FF if w == "w_1" else D_MODEL)
        yield f"{path}.{w}", Weight(linear, "weight", inner)
        yield f"{path}.b{w[1:]}", Weight(linear, "bias", inner[1:])


def _gamma_beta(path: str, norm: nn.Module) -> dict[str, Weight]:
    parts = {"gamma": "weight", "beta": "bias"}
    return {f"{path}.{name}": Weight(norm, part, (D_MODEL,)) for name, part in parts.items()}
