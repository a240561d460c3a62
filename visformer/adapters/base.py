"""The interface of every adapted model, whatever its family, and what all of them share."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, Self, get_args

import torch

from visformer.adapters.batching import Batches, run_all, side_by_side
from visformer.adapters.editing import checked_edits, renewed, require_changes
from visformer.adapters.generating import Settings, Speaker, Vocabulary, alternatives, displayed
from visformer.adapters.gradients import Gradients, Of, Watch, gradients_of
from visformer.adapters.info import ModelInfo
from visformer.adapters.params import Weight
from visformer.adapters.recording import Passes, available, check_attention, globs, matching, nbytes_of
from visformer.adapters.requests import Encoded, Request, Text, checked_ids
from visformer.adapters.reruns import Reruns
from visformer.edits import Edit
from visformer.edits.base import _Edit
from visformer.errors import N_, Message, TextError, TraceError, VisformerError
from visformer.model.decoding import Decoding, Predictor
from visformer.model.tokenizer import require_unicode
from visformer.system import limits
from visformer.trace import Trace, TracedTensor

ONE_LANGUAGE = N_("to={to!r}: this model has no choice of target language. Leave to= out.")
OTHER_TOKENIZER = N_("Token id {id} is out of range for {known} embeddings: this is another model's tokenizer.")


class TracedModel(Reruns):
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
    _speaker: Speaker
    _passes: Passes
    _plain: Callable[[str], list[int]]  # encodes a text without specials
    _no_text: Message

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
        source: Text,
        *,
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
        given = self._given(source)
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
            return self._encode(self._request(row[0], to=to, record=(), **how))

        def run(encoded: Sequence[Encoded]) -> list[Decoding]:
            with self._computing():
                decoded = [self._speaker.decoding(ids, sure) for ids, sure in self._greedy(encoded)]
            require_changes(encoded[0].request.edits)
            return decoded

        return run_all(side_by_side(texts), prepare, run, how)

    def trace(
        self,
        source: Text,
        target: Text | None = None,
        *,
        pair: Text | None = None,
        to: str | None = None,
        record: str | Sequence[str] = ("*.pattern",),
        edits: Edit | Sequence[Edit] = (),
    ) -> Trace:
        """Run the model on a text and record the tensors that ``record`` names.

        Args:
            source: the text; "tgt" in the Trace of a decoder-only model, else "src". Or its token ids, which are used
                as they are: no special token is added to them.
            target: for an encoder-decoder the target to force (None: its own greedy output), for a decoder-only model
                the text after ``source``; a text, or its token ids without specials, such as those of a
                :class:`visformer.model.decoding.Decoding`, which may be tokenized differently from its text.
            pair: a second sentence, for an encoder such as BERT; token ids if ``source`` is.
            to: target language, as for :meth:`translate`.
            record: glob patterns over names of tensors and weights, such as "*.w_q". The mass of an attention sink,
                if there is one, is recorded with its pattern.
            edits: changes to the model, both while decoding and in the recorded pass.

        Returns:
            One full pass: its tokens and what was recorded, labelled and frozen. For a decoder-only model "next" is its
            text shifted by one token, followed by the model's prediction.

        Raises:
            TextError: a text cannot be used.
            MissingTensor: ``record`` names weights that this family does not store separately.
            TraceError: ``record`` names nothing, or a row of a pattern does not sum to 1.
            BudgetError: the trace would be too large.
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            VisformerError: a model of this kind does not accept a target or a pair.
        """
        self._require_language(to)
        request = self._request(source, target, pair=pair, to=to, record=globs(record), edits=self._edits(edits))
        (trace,) = self._traced([self._encode(request)])
        return trace

    def trace_many(
        self,
        texts: Iterable[Text],
        targets: Iterable[Text | None] | None = None,
        *,
        pairs: Iterable[Text | None] | None = None,
        to: str | None = None,
        record: str | Sequence[str] = ("*.pattern",),
        edits: Edit | Sequence[Edit] = (),
        batch: int | None = None,
    ) -> Iterator[Trace]:
        """Trace many texts, several in one pass: lazily, in order, and each as :meth:`trace` does it alone.

        Texts are padded to one length, and padding is masked and cut off again. Where a text in a padded batch is not
        computed as alone, and with functions as edits, which might look at other texts, each text has its own pass.

        Args:
            texts: any iterable, such as a generator or an open file, whose lines lose their line breaks; each a text
                or its token ids, as for :meth:`trace`. At most 128 texts, and as many as their values take 128 MB,
                are read ahead, or ``batch`` of them.
            targets: one for each text, as for :meth:`trace`.
            pairs: one for each text, as for :meth:`trace`.
            to: target language of all, as for :meth:`translate`.
            record: glob patterns, as for :meth:`trace`.
            edits: changes to the model, applied to each text as in :meth:`trace`.
            batch: number of consecutive texts to run at once, for a GPU as many as its memory holds; None: up to 32
                texts of similar length whose values take 128 MB.

        Yields:
            The Trace of each text, cut out of its batch without padding.

        Raises:
            VisformerError: see :meth:`trace`; where it is about one text, the message names its index, and all texts
                before it have been traced.
        """
        self._require_language(to)
        rows = side_by_side(texts, targets=targets, pairs=pairs)
        wanted, checked = globs(record), self._edits(edits)
        how = self._batches(self._selected(wanted)[0], checked, batch=batch)

        def prepare(row: tuple[Any, ...]) -> Encoded:
            text, target, pair = row
            return self._encode(self._request(text, target, pair=pair, to=to, record=wanted, edits=renewed(checked)))

        return run_all(rows, prepare, self._traced, how)

    def gradients(
        self,
        source: Text,
        target: Text | None = None,
        *,
        at: str | Sequence[str],
        to: str | None = None,
        of: Of = "log_probability",
    ) -> Gradients:
        """Compute the gradients of what each row predicts: one forward pass, and one pass back for each row.

        Args:
            source: as for :meth:`trace`.
            target: as for :meth:`trace`.
            at: glob patterns over names of tensors, such as "*.embed".
            to: target language, as for :meth:`translate`.
            of: "log_probability", in nats, or "logit", of the token that the row predicts.

        Returns:
            The Trace of the pass, and (row, *shape) for each tensor. The parameters' own gradients stay as they are.

        Raises:
            TraceError: ``at`` names nothing.
            VisformerError: see :meth:`trace`; or the model predicts no tokens, or a tensor has no part in them.
            BudgetError: the gradients would be too large.
        """
        self._require_decoder()
        self._require_language(to)
        if of not in get_args(Of):
            raise VisformerError(N_("of={of!r} must be one of {known}."), of=of, known=", ".join(get_args(Of)))
        if target is None and self.info.kind == "encoder-decoder":
            target = self.translate(source, to=to).ids
        record = globs(at)
        if not record:
            raise TraceError(
                N_("record={record!r} names no tensors: pass names or glob patterns, such as ('*.pattern', 'logits')."),
                record=at,
            )
        named = matching(self._names, record)
        wanted = [name for name in self._names if name in named]
        watch = Watch(frozenset((*wanted, "logits")))
        request = self._request(source, target, to=to, record=(*record, "logits"), edits=(watch,))
        with self._passes.open(), torch.inference_mode(False), torch.enable_grad():
            (trace,) = self._run([self._encode(request)])
            return gradients_of(trace, watch.seen, wanted, of)

    # What each family implements, and shared helpers --------------------------------------------------------------

    @abstractmethod
    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        """Implement :meth:`translate`."""

    @abstractmethod
    def _encode(self, request: Request) -> Encoded:
        """Turn the texts of a request into ids."""

    @abstractmethod
    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        """Implement :meth:`trace`, for requests with the same edits and the same tensors to record."""

    @abstractmethod
    def _greedy(self, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]:
        """Decode greedily, from ``begin``: ids, the end last unless they were cut off, and the confidence of each."""

    @abstractmethod
    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the names of tensors, and of weights, that ``record`` asks for."""

    @abstractmethod
    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes that these tensors will have in the Trace of so many tokens."""

    def _computed(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the tensors that the model holds until the end of a pass that records those wanted."""
        return wanted

    def _pads_exactly(self) -> bool:
        """Whether a text in a padded batch is computed as alone."""
        return True

    def _batches(
        self, wanted: frozenset[str], edits: Sequence[Edit], *, batch: int | None, padded: bool = True
    ) -> Batches[Encoded]:
        """Choose which texts to run together; a pass holds what it records, one layer, and the logits."""
        held = self._computed(wanted) | {name for name in self._names if ".0." in name or name == "logits"}

        @cache
        def nbytes(n_src: int, n_tgt: int) -> int:
            return nbytes_of(self._shapes(held, n_src, n_tgt))

        chosen = Batches(self._lengths, nbytes, batch, padded)
        alone = any(not isinstance(edit, _Edit) for edit in edits) or (batch != 1 and not self._pads_exactly())
        return replace(chosen, size=1) if alone else chosen

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
    ) -> Request:
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
        return Request(first, forced, second, **checked)

    def _edits(self, given: Edit | Sequence[Edit]) -> tuple[Edit, ...]:
        return checked_edits(given, self._names, fixed=self._fixed)

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
        if "logits" in tensors and "tgt" in ids:
            likeliest["likeliest"] = [list(alternatives(self.text, row)) for row in tensors["logits"].value]
        return Trace(
            tokens=dict(zip(ids, displayed(self.text, ids.values()), strict=True)),
            special={side: self.text.is_special(row) for side, row in ids.items()},
            words={side: self.text.words(row) for side, row in ids.items()},
            tensors=tensors,
            params=params,
            meta={"model": self.info.name, **moment, **precision, **meta, "ids": ids, **likeliest, **about, **blocks},
        )

    def _spoken(self, next_token: Predictor, batch: Sequence[Encoded]) -> list[tuple[list[int], float]]:
        """Decode a batch greedily, see :meth:`_greedy`."""
        most = [self._limit(len(each.src), len(each.begin), each.request.max_new_tokens) for each in batch]
        return self._speaker.greedy(next_token, torch.tensor([each.begin for each in batch]), most)

    def _limit(self, n_src: int, n_prefix: int, max_new_tokens: int | None = None) -> int:
        """How many tokens may follow the prefix of a target."""
        default = limits.NEW_TOKENS if self.info.kind == "decoder" else 2 * n_src + 20
        wanted = default if max_new_tokens is None else max_new_tokens
        return wanted if self.info.max_tokens is None else max(1, min(self.info.max_tokens - n_prefix, wanted))

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

    def _require_room(self, tokens: int) -> None:
        """Refuse more tokens than the model takes, or so many that the attention of one layer exceeds the memory."""
        if self.info.max_tokens is not None and tokens > self.info.max_tokens:
            raise TextError(
                N_("The text is {given} tokens long and the limit is {limit}: shorten it."),
                given=tokens,
                limit=self.info.max_tokens,
            )
        check_attention(self.info.n_heads, tokens)
