"""The interface of every adapted model, whatever its family, and what all of them share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Self, get_args

import torch
from numpy.typing import NDArray
from torch import Tensor

from visformer.adapters.by_rows import CELLS
from visformer.adapters.generating import Generator, Settings, Vocabulary, alternatives, displayed
from visformer.adapters.interventions import (
    Floats,
    GateRecorder,
    Gradients,
    Of,
    RowRecorder,
    Scalar,
    TensorCollector,
    gradients_of,
    of_predicted,
    sides_of,
)
from visformer.adapters.recording import (
    OVERVIEW,
    Passes,
    Recorder,
    Weight,
    available,
    budget,
    check_attention,
    check_budget,
    checked_edits,
    globs,
    matching,
    most_bytes,
    nbytes_of,
    overview_shapes,
    renewed,
    require_changes,
)
from visformer.adapters.requests import Batches, Encoded, Picture, Text, TextRequest, checked_ids, run_all, side_by_side
from visformer.edits import Edit
from visformer.edits.base import CheckedEdit, _Edit
from visformer.errors import N_, BudgetError, EditError, Message, TextError, TraceError, VisformerError
from visformer.model.decoding import Decoding, Predictor
from visformer.model.tokenizer import require_unicode
from visformer.system import limits
from visformer.trace import Trace, TracedTensor
from visformer.trace.blocks import Blocks
from visformer.trace.labels import SIDES
from visformer.trace.names import VOCAB, Axis, axes_of

ONE_LANGUAGE = N_("to={to!r}: this model has no choice of target language. Leave to= out.")
PATTERNS = ("*.pattern",)
_BY_FUNCTION = N_("a function that edits sees a layer whole")
ONE_PICTURE = N_("{name} reads one picture: pass it once, as image=.")
OTHER_TOKENIZER = N_("Token id {id} is out of range for {known} embeddings: this is another model's tokenizer.")

Labels = tuple[dict[str, tuple[str, ...]], dict[str, tuple[bool, ...]], dict[str, tuple[int, ...]]]
"""What a Trace says of the tokens of each side: tokens, special and words."""


@dataclass(frozen=True)
class ModelInfo:
    """A model's name, sizes and origin.

    Args:
        name: name for people to read.
        kind: "encoder", "decoder" or "encoder-decoder".
        n_encoder_layers: 0 without an encoder.
        n_decoder_layers: 0 without a decoder.
        n_heads: attention heads per layer.
        d_model: width of the vectors between layers.
        max_tokens: maximum number of tokens on each side, specials included; None: no limit.
        licence: licence of the weights.
        source: where the weights come from.
        n_kv_heads: heads of keys and values, fewer than n_heads in grouped-query attention; None: not known.
        position: positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`.
        moment: the moment of its training, as numbered by :func:`visformer.moments`, if one was asked for.
        blocks: its architecture: the order of sublayers and norms in each stack; :attr:`visformer.Trace.blocks` has it.
        grid: rows and columns of patches of the picture that it reads; None: it reads a text.
        patch_size: height and width of a patch in pixels.
    """

    name: str
    kind: Literal["encoder", "decoder", "encoder-decoder"]
    n_encoder_layers: int
    n_decoder_layers: int
    n_heads: int
    d_model: int
    max_tokens: int | None
    licence: str
    source: str
    n_kv_heads: int | None = None
    position: str = "unknown"
    moment: int | None = None
    blocks: Blocks | None = None
    grid: tuple[int, int] | None = None
    patch_size: int = 0


class TracedModel(ABC):
    """A model for pages and notebooks.

    Attributes:
        info: its name, sizes and origin.
        module: the model itself: a visformer Transformer or GPT, or a transformers model.
        tokenizer: the tokenizer that it was given.
        text: its vocabulary.
    """

    info: ModelInfo
    module: Any
    tokenizer: Any
    text: Vocabulary
    _known: tuple[int, int]  # number of token ids of the source and of the target
    _names: tuple[str, ...]  # names of tensors, in the order of computation
    _weights: Mapping[str, Weight]
    _fixed: frozenset[str] = frozenset()  # names of tensors that can be read but not changed
    _why_no_edits: str | None = None  # why nothing but patterns and logits has a name
    _generator: Generator
    _passes: Passes
    _plain: Callable[[str], list[int]]  # encodes a text without specials
    _no_text: Message
    pictures: Literal["none", "alone", "instead", "with"] = "none"
    """Which pictures it reads: none, one alone, one instead of a text, or one with its text."""
    _finds_span = False  # whether its labels are start and end, each a distribution over the tokens

    def __repr__(self) -> str:
        info = self.info
        depth = f"{info.n_encoder_layers} + {info.n_decoder_layers} layers"
        return f"{type(self).__name__}({info.name}: {info.kind}, {depth}, {info.n_heads} heads, d_model {info.d_model})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the use of the module, which is then, as it is between two calls, what it was before it was wrapped."""
        self._passes.close()

    def available(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Select the patterns that match something in this model, for pages that work with any model.

        Args:
            wanted: glob patterns over names.

        Returns:
            Those that ``record`` accepts for this model.
        """
        return available((*self._names, *self._weights), globs(wanted))

    def outline(self) -> Self:
        """Leave out the model's numbers.

        Returns:
            Its vocabulary, its sizes and the names of its tensors: it tokenizes but computes nothing. Can be pickled.
        """
        outline = object.__new__(type(self))
        outline.info, outline.text, outline._plain, outline._known = self.info, self.text, self._plain, self._known
        outline._names, outline._weights = (*self._names, *self._weights), {}
        return outline

    def reading(self, source: Any) -> "TracedModel":
        """Return what of the model reads a source.

        Args:
            source: what :meth:`trace` takes, or a :class:`visformer.adapters.picture_files.Prompt`.

        Returns:
            The model itself; of one with two halves the half for texts or that for pictures.
        """
        return self

    @property
    def takes_chats(self) -> bool:
        """Whether it takes messages: whether its tokenizer has a chat template."""
        return False

    def names(self) -> tuple[str, ...]:
        """Return the names of the tensors that :meth:`trace` can record and edits can change.

        Returns:
            Names such as "encoder.0.self_attn.pattern", in the order of computation.
        """
        return self._names

    def token_id(self, text: str) -> int:
        """Return the id of a text that is one token, such as an answer that is asked about.

        Args:
            text: as the target would have it; where the vocabulary spells words with the space before them, " is" and
                "is" are two tokens, and "is" is the second if there is one.

        Returns:
            Its id in the target's vocabulary.

        Raises:
            TextError: it is no token of this model by itself, but several, or unknown.
        """
        if not text.strip():
            raise TextError(self._no_text)
        require_unicode(text)
        ids: list[int] = []
        for spelled in (text, f" {text}"):
            ids = self._plain(spelled)
            readings = {self.text.decode(ids), *self._row(ids)} if len(ids) == 1 else set()
            if text.strip().casefold() in {each.strip().casefold() for each in readings}:
                return ids[0]
        raise TextError(
            N_("{text!r} is not one token of this model, which reads it as {tokens}. Give one token, or its id."),
            text=text,
            tokens=" + ".join(self._row(ids)),
        )

    @abstractmethod
    def tokenize(self, text: Text) -> tuple[str, ...]:
        """Split a source text into tokens, one per id, specials included; their number is not limited.

        Args:
            text: a source text, or its token ids.

        Returns:
            The tokens as displayed, like ``trace.tokens["src"]`` of the same text.

        Raises:
            TextError: the text is empty or not valid Unicode, or an id is out of range.
        """

    def translate(
        self,
        source: Text | None = None,
        *,
        image: Picture = None,
        to: str | None = None,
        prefix: Text = "",
        beam_size: int = 1,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        edits: Edit | Sequence[Edit] = (),
        max_new_tokens: int | None = None,
    ) -> Decoding:
        """Translate, answer or continue a text: decode step by step.

        Greedy by default; temperature, top_k and top_p each turn on sampling; beam_size above 1 turns on beam search.
        Penalties in a model's generation_config (length, repetition) are not applied: the model itself is shown.

        Args:
            source: the text; for a decoder-only model the text to continue. Or its token ids, which are used as they
                are: no special token is added to them.
            image: as for :meth:`trace`.
            to: target language, such as "zh"; None: English for a Chinese source, else Chinese.
            prefix: text or ids that the target has to begin with.
            beam_size: number of hypotheses kept; above 1 excludes sampling.
            temperature: divides the logits; see :func:`visformer.model.decoding.reshape`, also for top_k and top_p.
            top_k: sample from this many of the likeliest tokens.
            top_p: sample from the likeliest tokens that together reach this probability.
            seed: seed of the sampling.
            edits: changes to the model. One of a mask waits until its position is reached. With edits that look at
                several positions, and with plain functions but :class:`visformer.edits.EachRow`, each step computes all
                positions anew.
            max_new_tokens: None: 20 more than twice the source, or 40 for a decoder-only model.

        Returns:
            The text, its tokens, and every step with its candidates; for a decoder-only model without ``source``.

        Raises:
            TextError: a text cannot be used.
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            BudgetError: the attention over so many tokens would take too much memory.
            VisformerError: the model is an encoder, or a setting is out of range.
        """
        self._require_decoder()
        self._require_language(to)
        given = self._given(self._prompt(self._inputs(source, None, image, None)[0]))
        settings = Settings(
            prefix=self._prefix(prefix),
            beam_size=beam_size,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            edits=self._edits(edits),
            max_new_tokens=max_new_tokens,
        )
        with self._computing():
            decoding = self._decode(given, to, settings)
        require_changes(settings.edits)
        return decoding

    generate = translate  # the name in transformers

    def translate_many(
        self,
        texts: Iterable[Text],
        *,
        to: str | None = None,
        edits: Edit | Sequence[Edit] = (),
        max_new_tokens: int | None = None,
        batch: int | None = None,
    ) -> Iterator[Decoding]:
        """Translate, answer or continue many texts greedily: as :meth:`translate` does one, but several at once.

        Args:
            texts: any iterable; see :meth:`trace_many`.
            to: target language of all, as for :meth:`translate`.
            edits: changes to the model, as for :meth:`translate`.
            max_new_tokens: of each text, as for :meth:`translate`.
            batch: number of consecutive texts to decode at once; None: see :meth:`trace_many`.

        Yields:
            The Decoding of each text, in order, without its steps: their candidates take as long as a layer.

        Raises:
            VisformerError: see :meth:`translate`; where it is about one text, the message names its index.
        """
        self._require_decoder()
        self._require_language(to)
        padded = self.info.kind != "decoder"  # positions of a continuation follow those of the text
        settings = Settings(edits=self._edits(edits), max_new_tokens=max_new_tokens)
        how = self._batches(frozenset(), settings.edits, batch=batch, padded=padded)

        def prepare(row: tuple[Any, ...]) -> Encoded:
            how: dict[str, Any] = {"edits": renewed(settings.edits), "max_new_tokens": settings.max_new_tokens}
            return self._encode(self._request(self._prompt(row[0]), to=to, record=(), **how))

        def run(encoded: Sequence[Encoded]) -> list[Decoding]:
            with self._computing():
                decoded = [self._generator.decoding(ids, sure) for ids, sure in self._greedy(encoded)]
            require_changes(encoded[0].request.edits)
            return decoded

        return run_all(side_by_side(texts), prepare, run, how)

    def trace(
        self,
        source: Text | None = None,
        target: Text | None = None,
        *,
        image: Picture = None,
        text: Text | None = None,
        pair: Text | None = None,
        to: str | None = None,
        record: str | Sequence[str] | None = None,
        edits: Edit | Sequence[Edit] = (),
        max_bytes: int | None = None,
    ) -> Trace:
        """Run the model on a text and record the tensors that ``record`` names.

        Args:
            source: the text; "tgt" in the Trace of a decoder-only model, else "src". Or its token ids, which are used
                as they are: no special token is added to them.
            target: for an encoder-decoder the target to force (None: its own greedy output), for a decoder-only model
                the text after ``source``; a text, or its token ids without specials, such as those of a
                :class:`visformer.model.decoding.Decoding`, which may be tokenized differently from its text.
            image: for a model that reads pictures, in place of ``source``, or with it for one that reads both: uint8
                (row, column, RGB), or what NumPy makes one of, such as an image of PIL or a
                :class:`visformer.scenes.Scene`; of models of transformers also the path of a file.
            text: the text that goes with a picture: of a captioner the caption to force, or None for its own; else
                another name of ``source``.
            pair: a second sentence, for an encoder such as BERT; token ids if ``source`` is.
            to: target language, as for :meth:`translate`.
            record: glob patterns over names of tensors and weights, such as "*.w_q". "overview" stands for
                "*.pattern" without holding all weights: a thumbnail and the scores of every head, and q and k, from
                which ``trace[name].head(5)``, ``.rows(...)`` and ``.block(...)`` are computed when they are asked for.
                None: "*.pattern" or, where that would take too many bytes, "overview". The mass of an attention sink,
                if there is one, is recorded with its pattern.
            edits: changes to the model, both while decoding and in the recorded pass.
            max_bytes: that the Trace may take, with the scores of one layer even if they are not recorded; None:
                VISFORMER_TRACE_BYTES, by default 512 MiB.

        Returns:
            One full pass: its tokens and what was recorded, labelled and frozen. For a decoder-only model "next" is its
            text shifted by one token, followed by the model's prediction.

        Raises:
            TextError: a text cannot be used.
            MissingTensor: ``record`` names weights that this family does not store separately.
            TraceError: ``record`` names nothing, or a row of a pattern does not sum to 1.
            BudgetError: the trace would be too large.
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            VisformerError: a model of this kind does not accept a target, a pair or a picture.
        """
        self._require_language(to)
        source, target = self._inputs(source, target, image, text)
        wanted = (OVERVIEW,) if record is None else globs(record)
        request = self._request(source, target, pair=pair, to=to, record=wanted, edits=self._edits(edits))
        with budget(max_bytes):
            encoded = self._encode(request)
            if record is None and self._fits(PATTERNS, encoded):
                encoded = replace(encoded, request=replace(request, record=PATTERNS))
            (trace,) = self._traced([encoded])
        return trace

    def trace_many(
        self,
        texts: Iterable[Text],
        targets: Iterable[Text | None] | None = None,
        *,
        images: Iterable[Picture] | None = None,
        pairs: Iterable[Text | None] | None = None,
        to: str | None = None,
        record: str | Sequence[str] = PATTERNS,
        edits: Edit | Sequence[Edit] = (),
        batch: int | None = None,
        max_bytes: int | None = None,
    ) -> Iterator[Trace]:
        """Trace many texts, several in one pass: lazily, in order, and each as :meth:`trace` does it alone.

        Texts are padded to one length, and padding is masked and cut off again. Where a text in a padded batch is not
        computed as alone, and with functions as edits, which might look at other texts, each text has its own pass.

        Args:
            texts: any iterable, such as a generator or an open file, whose lines lose their line breaks; each a text
                or its token ids, as for :meth:`trace`. At most 128 texts, and as many as their values take 128 MB,
                are read ahead, or ``batch`` of them.
            targets: one for each text, as for :meth:`trace`.
            images: one for each text, with which the model reads it, as for :meth:`trace`; or None for a text alone.
            pairs: one for each text, as for :meth:`trace`.
            to: target language of all, as for :meth:`translate`.
            record: glob patterns, as for :meth:`trace`.
            edits: changes to the model, applied to each text as in :meth:`trace`.
            batch: number of consecutive texts to run at once, for a GPU as many as its memory holds; None: up to 32
                texts of similar length whose values take 128 MB.
            max_bytes: that each Trace may take, as for :meth:`trace`.

        Yields:
            The Trace of each text, cut out of its batch without padding.

        Raises:
            VisformerError: see :meth:`trace`; where it is about one text, the message names its index, and all texts
                before it have been traced.
        """
        self._require_language(to)
        rows = side_by_side(texts, targets=targets, pairs=pairs, images=images)
        wanted, checked = globs(record), self._edits(edits)
        how = self._batches(self._selected(wanted)[0], checked, batch=1 if OVERVIEW in wanted else batch)

        def prepare(row: tuple[Any, ...]) -> Encoded:
            text, target, pair, image = row
            if image is not None:
                text, target = self._inputs(None, target, image, text)
            request = self._request(text, target, pair=pair, to=to, record=wanted, edits=renewed(checked))
            with budget(max_bytes):
                return self._encode(request)

        def run(encoded: Sequence[Encoded]) -> list[Trace]:
            with budget(max_bytes):
                return self._traced(encoded)

        return run_all(rows, prepare, run, how)

    def gradients(
        self,
        source: Text,
        target: Text | None = None,
        *,
        at: str | Sequence[str],
        to: str | None = None,
        of: Of | Scalar = "log_probability",
    ) -> Gradients:
        """Compute the gradients of what each row predicts: one forward pass, and one pass back for each row.

        With a function of the logits it is one pass back for all: ``lambda logits: logits[-1, yes] - logits[-1, no]``.
        Times the difference of two texts' values that is attribution patching.

        Args:
            source: as for :meth:`trace`.
            target: as for :meth:`trace`; of an encoder its second sentence.
            at: glob patterns over names of tensors, such as "*.embed".
            to: target language, as for :meth:`translate`.
            of: "log_probability", in nats, or "logit", of the token that the row predicts; or a function that returns a
                number of the logits, (row, vocab) float32, or (label,) of a classifier.

        Returns:
            The Trace of the pass, and (row, *shape) for each tensor, (1, *shape) for a function. The parameters' own
            gradients stay as they are.

        Raises:
            TraceError: ``at`` names nothing.
            VisformerError: see :meth:`trace`; or the model predicts no tokens, or a tensor has no part in them.
            BudgetError: the gradients would be too large.
        """
        if not callable(of) or "logits" not in self._names:
            self._require_decoder()
        self._require_language(to)
        if not callable(of) and of not in get_args(Of):
            raise VisformerError(N_("of={of!r} must be one of {known}."), of=of, known=", ".join(get_args(Of)))
        if target is None and self.info.kind == "encoder-decoder" and not self._reads_labels:
            target = self.translate(source, to=to).ids
        record = globs(at)
        if not record:
            raise TraceError(
                N_("record={record!r} names no tensors: pass names or glob patterns, such as ('*.pattern', 'logits')."),
                record=at,
            )
        named = matching(self._names, record)
        wanted = [name for name in self._names if name in named]
        watch = TensorCollector(frozenset((*wanted, "logits")))
        request = self._both(source, target, to=to, record=(*record, "logits"), edits=(watch,))
        with self._passes.open(), torch.inference_mode(False), torch.enable_grad():
            (trace,) = self._run([self._encode(request)])
            return gradients_of(trace, watch.seen, wanted, of)

    # Many runs in one pass, for the analyses --------------------------------------------------------------------------

    def forced(
        self, texts: Iterable[Text], targets: Iterable[Text | None] | None = None, *, to: str | None = None
    ) -> Iterator[Encoded]:
        """Encode texts with what their rows have to predict, for :meth:`logits`, :meth:`gate_gradients` and the like.

        Args:
            texts: any iterable, as for ``trace_many``.
            targets: one for each text, or None: of an encoder-decoder its own greedy output, of an encoder no second
                sentence.
            to: target language of all, as for ``translate``.

        Yields:
            Each text as ids. Of a decoder-only model that is given a target, only the target's tokens count.

        Raises:
            VisformerError: a text cannot be used, its index is in the message; or the model predicts nothing.
        """
        self._require_logits()
        self._require_language(to)

        def prepare(row: tuple[Any, ...]) -> Encoded:
            text, target = row
            encoded = self._encode(self._both(text, target, to=to, record=(), edits=()))
            if self.info.kind == "decoder" and target is not None:
                alone = self._encode(self._request(text, to=to, record=(), edits=()))
                return replace(encoded, first=len(alone.begin) - 1)
            return encoded

        def run(batch: Sequence[Encoded]) -> list[Encoded]:
            open_ends = [each for each in batch if each.is_open]
            if not open_ends:
                return list(batch)
            with self._passes.open(), torch.inference_mode():
                own = iter(self._greedy(open_ends))
            return [
                replace(each, begin=each.begin[:1], forced=[*each.begin[1:], *next(own)[0]]) if each.is_open else each
                for each in batch
            ]

        return run_all(side_by_side(texts, targets=targets), prepare, run, self._batches(frozenset(), (), batch=None))

    def read_again(self, trace: Trace) -> Encoded:
        """Return the texts of a Trace of this model, for :meth:`logits`, :meth:`gate_gradients` and the like.

        Args:
            trace: as :meth:`trace` returned it.

        Returns:
            Its ids, with what every row predicts.

        Raises:
            TextError: an id is out of range: the Trace is another model's.
            TraceError: it has no ids, or not of both sides: it is not of a model of this kind.
            VisformerError: the model predicts nothing.
        """
        self._require_logits()
        ids: Mapping[str, list[int]] = trace.meta.get("ids", {})
        sides = {side: checked_ids(ids.get(side, []), self._known[side != "src"], least=0) for side in SIDES}
        if not all(sides["src" if part == "encoder" else "tgt"] for part in self.info.kind.split("-")):
            raise TraceError(N_("This trace does not hold the token ids that {name} reads."), name=self.info.name)
        request = TextRequest(sides["src"] or sides["tgt"], None, None, trace.meta.get("to"), (), ())
        if self.info.kind == "decoder":
            return Encoded(request, [], sides["tgt"], sides["next"])
        segments = trace.meta.get("segments") or [0] * len(sides["src"])
        if self.info.kind == "encoder":
            return Encoded(request, sides["src"], [], None, segments)
        return Encoded(request, sides["src"], sides["tgt"][:1], sides["next"], segments)

    def log_probabilities(
        self,
        runs: Iterable[tuple[Encoded, Edit | Sequence[Edit]]],
        *,
        batch: int | None = None,
    ) -> Iterator[Floats]:
        """Run texts, each under edits of its own, several in one pass.

        Args:
            runs: texts from :meth:`forced` or :meth:`read_again`, and for each its edits.
            batch: number of consecutive runs in one pass; None: see ``trace_many``.

        Yields:
            (row,) float32, natural logarithms, of what each row predicts.

        Raises:
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            VisformerError: see :meth:`trace_many`; or the model predicts no next token.
        """
        self._require_predictions()
        return self._changed(runs, lambda logits, texts, _visit: of_predicted(logits, texts), batch)

    def logits(
        self, runs: Iterable[tuple[Encoded, Edit | Sequence[Edit]]], *, batch: int | None = None
    ) -> Iterator[Floats]:
        """Run texts, each under edits of its own, several in one pass.

        Args:
            runs: as for :meth:`log_probabilities`.
            batch: as for :meth:`log_probabilities`.

        Yields:
            The logits, float32: (row, vocab) or, of a classifier, (row, label) or (label,).

        Raises:
            EditError: as for :meth:`log_probabilities`.
            VisformerError: see :meth:`trace_many`; or the model has no logits.
        """
        self._require_logits()
        return self._changed(runs, lambda logits, _texts, visit: visit.own("logits", logits.float()), batch)

    def _changed(
        self,
        runs: Iterable[tuple[Encoded, Edit | Sequence[Edit]]],
        read: Callable[[Tensor, Sequence[Encoded], Recorder], list[Tensor]],
        batch: int | None,
    ) -> Iterator[Floats]:
        """Run texts under edits of their own, and read something of each from the logits of a batch."""

        def prepare(run: tuple[Encoded, Edit | Sequence[Edit]]) -> Encoded:
            encoded, edits = run
            return replace(encoded, request=replace(encoded.request, edits=self._edits(edits)))

        def run(texts: Sequence[Encoded]) -> list[Floats]:
            visit = RowRecorder([each.request.edits for each in texts], sides=sides_of(texts), axes=self._axes)
            with self._passes.open(), torch.inference_mode():
                found = read(self._forward(texts, visit), texts, visit)
            for each in texts:
                require_changes(each.request.edits)
            return [each.cpu().numpy() for each in found]

        return run_all(runs, prepare, run, self._together(frozenset(), batch))

    def gate_gradients(
        self, runs: Iterable[tuple[Encoded, Scalar]], names: Sequence[str], *, batch: int | None = None
    ) -> Iterator[dict[str, Floats]]:
        """Multiply each value of some tensors by the gradient of a number of the logits: the gradient of a gate at 1.

        Minus that is to first order what setting the value to 0 changes.

        Args:
            runs: texts from :meth:`forced` or :meth:`read_again`, and for each the function of its logits that returns
                the number, as for :meth:`gradients`.
            names: full names of tensors.
            batch: number of consecutive runs in one pass; None: see ``trace_many``.

        Yields:
            Name to the products, shaped like the tensor in a Trace, float32, in the number's unit.

        Raises:
            EditError: the model shows such a tensor but does not continue from it.
            VisformerError: see :meth:`trace_many`.
        """
        for name in names or ["names=[]"]:
            if name not in self._names or name in self._fixed:
                raise EditError(N_("{name} is no tensor of this model that can be changed."), name=name)

        def run(texts: Sequence[tuple[Encoded, Scalar]]) -> list[dict[str, Floats]]:
            encoded = [each for each, _ in texts]
            visit = GateRecorder(names, sides=sides_of(encoded), axes=self._axes)
            with self._passes.open(), torch.inference_mode(mode=False), torch.enable_grad():
                own = visit.own("logits", self._forward(encoded, visit).float())
                numbers = [of(logits) for logits, (_, of) in zip(own, texts, strict=True)]
                found = torch.autograd.grad(torch.stack(numbers).sum(), [visit.gates[name] for name in names])
            each = {name: visit.own(name, gradient) for name, gradient in zip(names, found, strict=True)}
            return [{name: of[row].float().cpu().numpy() for name, of in each.items()} for row in range(len(texts))]

        how: Batches[Any] = self._together(frozenset(self._names), batch)
        lengths = how.lengths
        return run_all(runs, lambda each: each, run, replace(how, lengths=lambda each: lengths(each[0])))

    def recorded(self, texts: Iterable[Encoded], names: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
        """Run texts from :meth:`forced` as they are, and read some tensors, without the labels of a Trace.

        Args:
            texts: from :meth:`forced` or :meth:`read_again`.
            names: full names of tensors.

        Yields:
            Name to its values, shaped as in a Trace.

        Raises:
            TraceError: there is no tensor of a name.
            VisformerError: see :meth:`trace_many`.
        """
        matching(self._names, tuple(names))

        def run(batch: Sequence[Encoded]) -> list[dict[str, NDArray[Any]]]:
            visit = Recorder(frozenset(names), (), sides=sides_of(batch), copied=True, axes=self._axes)
            with self._passes.open(), torch.inference_mode():
                self._forward(batch, visit)
            return [{name: tensor.value for name, tensor in row.items()} for row in visit.rows]

        return run_all(texts, lambda each: each, run, self._together(frozenset(names), None))

    # What each family implements, and shared helpers --------------------------------------------------------------

    @abstractmethod
    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        """Implement :meth:`translate`."""

    @abstractmethod
    def _encode(self, request: TextRequest) -> Encoded:
        """Turn the texts of a request into ids."""

    @abstractmethod
    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        """Implement :meth:`trace`, for requests with the same edits and the same tensors to record."""

    @abstractmethod
    def _forward(self, batch: Sequence[Encoded], visit: Recorder) -> Tensor:
        """Run texts with what their rows predict; return the logits, (batch, row, vocab), padded at the end."""

    @abstractmethod
    def _greedy(self, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]:
        """Decode greedily, from ``begin``: ids, the end last unless they were cut off, and the confidence of each."""

    @abstractmethod
    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of tensors, and of weights, that ``record`` asks for."""

    @abstractmethod
    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes that these tensors will have in the Trace of so many tokens."""

    def _overview(self, request: TextRequest) -> bool:
        """Whether patterns are recorded on demand."""
        return OVERVIEW in request.record and self._why_whole(request) is None

    def _why_whole(self, request: TextRequest) -> str | None:
        """Why patterns can only be recorded whole; None: they need not be."""
        cells = [name for name in self._names if name.rpartition(".")[2] in CELLS]
        whole = (edit for edit in request.edits if not edit.by_head)
        return _BY_FUNCTION if any(edit.applies(name) for edit in whole for name in cells) else None

    def _held(self, names: Iterable[str], n_src: int, n_tgt: int, *, overview: bool) -> dict[str, tuple[int, ...]]:
        """Return the shapes of what a Trace with these tensors holds; ``overview``: patterns on demand."""
        patterns = [name for name in names if overview and name.endswith(".pattern")]
        paths = [name.removesuffix("pattern") for name in patterns]
        vectors = self._shapes([f"{path}{x}" for path in paths for x in "qk"], n_src, n_tgt)
        rest = self._shapes([name for name in names if name not in {*patterns}], n_src, n_tgt)
        return rest | overview_shapes(self._shapes(patterns, n_src, n_tgt), vectors)

    def _require_bytes(self, names: frozenset[str], n_src: int, n_tgt: int, request: TextRequest) -> None:
        """Refuse a recording in advance that would take too many bytes."""
        overview = self._overview(request)
        shapes = self._held(names, n_src, n_tgt, overview=overview)
        if OVERVIEW in request.record and not overview and (given := nbytes_of(shapes)) > most_bytes():
            raise BudgetError(
                N_(
                    "All weights would take {given:,} bytes, over the limit of {limit:,}, and there is no overview "
                    "of them: {reason}."
                ),
                given=given,
                limit=most_bytes(),
                reason=Message(self._why_whole(request) or ""),
            )
        check_budget(shapes)

    def _fits(self, record: tuple[str, ...], encoded: Encoded) -> bool:
        """Whether a Trace of what ``record`` names takes no more bytes than it may, whatever is decoded."""
        return nbytes_of(self._shapes(self._selected(record)[0], *self._lengths(encoded))) <= most_bytes()

    def _computed(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the tensors that the model holds until the end of a pass that records those wanted."""
        return wanted

    def _pads_exactly(self) -> bool:
        """Whether a text in a padded batch is computed as alone."""
        return True

    def _batches(
        self, wanted: frozenset[str], edits: Sequence[CheckedEdit], *, batch: int | None, padded: bool = True
    ) -> Batches[Encoded]:
        """Choose which texts to run together; a pass holds what it records, one layer, and the logits."""
        held = self._computed(wanted) | {name for name in self._names if ".0." in name or name == "logits"}

        @cache
        def nbytes(n_src: int, n_tgt: int) -> int:
            return nbytes_of(self._shapes(held, n_src, n_tgt))

        chosen = Batches(self._lengths, nbytes, batch, padded)
        alone = any(not isinstance(edit, _Edit) for edit in edits) or (batch != 1 and not self._pads_exactly())
        return replace(chosen, size=1) if alone else chosen

    def _together(self, held: frozenset[str], batch: int | None) -> Batches[Encoded]:
        """Which runs share a pass: where padding is not exact, those that are equally long."""
        how = self._batches(held, (), batch=batch)
        return how if self._pads_exactly() else replace(how, size=batch, padded=False)

    def _require_predictions(self) -> None:
        if self.info.kind == "encoder":
            raise VisformerError(
                N_("{name} is an encoder: it predicts no next token, so there is no effect on one."),
                name=self.info.name,
            )

    def _require_logits(self) -> None:
        """Refuse a model that predicts neither tokens nor labels."""
        if "logits" not in self._names:
            self._require_predictions()

    @property
    def _predicts_next(self) -> bool:
        """Whether its logits are of next tokens."""
        return self.info.kind != "encoder" and "logits" in self._names and not self._reads_labels

    @property
    def _reads_labels(self) -> bool:
        """Whether its logits are of labels: a classifier."""
        axes = self._axes("logits") if "logits" in self._names else None
        return axes is not None and axes[-1].name == "label"

    def _both(self, source: Text, second: Text | None, **checked: Any) -> TextRequest:
        """Check a text and its second one: a target, or of an encoder its second sentence."""
        return self._request(source, **{"pair" if self.info.kind == "encoder" else "target": second}, **checked)

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        """The axes of a tensor of this model."""
        return axes_of(name)

    def _lengths(self, encoded: Encoded) -> tuple[int, int]:
        """The number of tokens on each side, at most."""
        n_src, n_tgt = len(encoded.src), len(encoded.begin)
        if encoded.forced is not None:
            return n_src, len(encoded.forced)
        return n_src, n_tgt if not n_src or not n_tgt else n_tgt + self._limit(n_src, n_tgt)

    def _request(
        self,
        source: Text,
        target: Text | None = None,
        *,
        pair: Text | None = None,
        **checked: Any,
    ) -> TextRequest:
        """Check the texts of :meth:`trace`, whose other arguments are already checked."""
        if self.info.kind == "encoder" and target is not None:
            raise VisformerError(N_("{name} is an encoder: pass a second text as pair."), name=self.info.name)
        if self.info.kind != "encoder" and pair is not None:
            raise VisformerError(
                N_("pair={pair!r}: only an encoder takes a pair; a decoder takes its second text as target."), pair=pair
            )
        first = self._given(source)
        forced = None if target is None else self._given(target, of_target=True)
        second = None if pair is None else self._given(pair)
        if second is not None and isinstance(first, str) != isinstance(second, str):
            raise TextError(N_("A pair is two texts, or the token ids of both."))
        return TextRequest(first, forced, second, **checked)

    def _inputs(self, source: Any, target: Any, image: Picture, text: Text | None) -> tuple[Any, Any]:
        """Return source and target of :meth:`trace`, which a model that reads pictures is given by other names."""
        if image is not None or text is not None:
            raise VisformerError(
                N_("{name} reads a text, no picture: pass source and target, without image= and text=."),
                name=self.info.name,
            )
        return source, target

    def _edits(self, given: Edit | Sequence[Edit]) -> tuple[CheckedEdit, ...]:
        return checked_edits(given, self._names, fixed=self._fixed, reason=self._why_no_edits)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Let the model compute without gradients."""
        with self._passes.open(), torch.inference_mode():
            yield

    def _traced(self, batch: Sequence[Encoded]) -> list[Trace]:
        with self._computing():
            traces = self._run(batch)
        require_changes(batch[0].request.edits)  # with a plain function, each text has a pass of its own
        return traces

    def _require_language(self, to: str | None) -> None:
        """Refuse what is not one of the model's target languages."""
        if to is not None and not isinstance(to, str):
            raise VisformerError(N_("to={to!r} is not the name of a language, such as 'zh'."), to=to)

    def _require_decoder(self) -> None:
        if self.info.kind == "encoder":
            raise VisformerError(N_("{name} is an encoder: it generates no text."), name=self.info.name)

    def _labelled(
        self,
        sides: Mapping[str, Sequence[int]],
        tensors: Mapping[str, TracedTensor],
        params: Mapping[str, TracedTensor],
        meta: Mapping[str, Any],
        about: Mapping[str, Any],
    ) -> Trace:
        """Build the Trace; ``about``: metadata on the model besides its name."""
        ids = {side: list(row) for side, row in sides.items()}
        moment = {} if self.info.moment is None else {"moment": self.info.moment}
        dtype = str(next(iter(self.module.parameters())).dtype).removeprefix("torch.")
        precision = {} if dtype == "float32" else {"dtype": dtype}
        blocks = {} if self.info.blocks is None else {"blocks": self.info.blocks.to_json()}
        likeliest = {}
        if "logits" in tensors and "tgt" in ids and tensors["logits"].axes[-1] == VOCAB:
            likeliest["likeliest"] = [list(alternatives(self.text, row)) for row in tensors["logits"].value]
        tokens, special, words = self._labels(ids)
        return Trace(
            tokens=tokens,
            special=special,
            words=words,
            tensors=tensors,
            params=params,
            meta={"model": self.info.name, **moment, **precision, **meta, "ids": ids, **likeliest, **about, **blocks},
        )

    def _displayed(self, side: str, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the tokens of one side as displayed."""
        return self._labels({side: ids})[0][side]

    def _labels(self, ids: Mapping[str, Sequence[int]]) -> Labels:
        """Return the tokens of each side as displayed, whether each is special, and the word that it belongs to."""
        return (
            dict(zip(ids, displayed(self.text, ids.values()), strict=True)),
            {side: self.text.is_special(row) for side, row in ids.items()},
            {side: self.text.words(row) for side, row in ids.items()},
        )

    def _decode_greedily(self, next_token: Predictor, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]:
        """Decode a batch greedily, see :meth:`_greedy`."""
        most = [self._limit(len(each.src), len(each.begin), each.request.max_new_tokens) for each in batch]
        return self._generator.greedy(next_token, torch.tensor([each.begin for each in batch]), most)

    def _limit(self, n_src: int, n_prefix: int, max_new_tokens: int | None = None) -> int:
        """How many tokens may follow the prefix of a target."""
        default = limits.NEW_TOKENS if self.info.kind == "decoder" else 2 * n_src + 20
        wanted = default if max_new_tokens is None else max_new_tokens
        return wanted if self.info.max_tokens is None else max(1, min(self.info.max_tokens - n_prefix, wanted))

    def _prompt(self, source: Text) -> Text:
        """What is to be answered or continued."""
        return source

    def _given(self, text: Text, *, of_target: bool = False) -> str | list[int]:
        """Check a text, or the token ids in its place."""
        if not isinstance(text, str):
            return checked_ids(text, self._known[of_target])
        if not text.strip():
            raise TextError(self._no_text)
        require_unicode(text)
        return text

    def _prefix(self, given: Text) -> tuple[int, ...]:
        """The ids that a target begins with; there may be none."""
        if isinstance(given, str):
            require_unicode(given)
            return tuple(self._plain(given))
        return tuple(checked_ids(given, self._known[True], least=0))

    def _row(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id."""
        return displayed(self.text, [ids])[0]

    def _words(self, given: str | list[int]) -> str:
        """A text, or that of token ids."""
        return given if isinstance(given, str) else self.text.decode(given)

    @property
    def _holds_scores(self) -> bool:
        """Whether every pass holds the scores of a layer, also where nobody wants them."""
        return True

    def _require_room(self, tokens: int, *, scores: bool = True) -> None:
        """Refuse more tokens than the model takes, or so many that the attention of one layer exceeds the memory."""
        if self.info.max_tokens is not None and tokens > self.info.max_tokens:
            raise TextError(
                N_("The text is {given} tokens long and the limit is {limit}: shorten it."),
                given=tokens,
                limit=self.info.max_tokens,
            )
        if scores and self._holds_scores:
            check_attention(self.info.n_heads, tokens, tokens)
