"""What every adapted model offers, whatever family it is of, and what all of them do alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from visformer.adapters.generating import Choice, Speaker, Vocabulary
from visformer.adapters.params import Weight
from visformer.adapters.recording import available, check_edits, globs
from visformer.edits import Edit
from visformer.errors import N_, Message, TextError, VisformerError
from visformer.model.decoding import Decoding
from visformer.model.tokenizer import require_unicode
from visformer.system import limits
from visformer.trace import Trace, TracedTensor


@dataclass(frozen=True)
class ModelInfo:
    """What a model is.

    Args:
        name: for people.
        kind: "encoder", "decoder" or "encoder-decoder".
        n_encoder_layers: 0 where there is no encoder.
        n_decoder_layers: 0 where there is no decoder.
        n_heads: attention heads per layer.
        d_model: width.
        max_tokens: most tokens of one side, specials included.
        licence: of the weights.
        source: where the weights come from.
        n_kv_heads: heads of keys and values where several heads of queries read one; None: not known.
        position: how it knows the order of tokens, a key of :data:`visformer.model.positions.DESCRIBED`.
    """

    name: str
    kind: Literal["encoder", "decoder", "encoder-decoder"]
    n_encoder_layers: int
    n_decoder_layers: int
    n_heads: int
    d_model: int
    max_tokens: int
    licence: str
    source: str
    n_kv_heads: int | None = None
    position: str = "unknown"


class TracedModel(ABC):
    """A model that a page or a notebook can hold; ``text`` says what its ids mean."""

    info: ModelInfo
    text: Vocabulary
    _names: tuple[str, ...]  # of tensors, in the order of computation
    _weights: Mapping[str, Weight]
    _fixed: frozenset[str] = frozenset()  # names of tensors that can be read but not changed
    _speaker: Speaker
    _plain: Callable[[str], list[int]]  # ids of a text, without specials
    _no_text: Message

    def __repr__(self) -> str:
        info = self.info
        depth = f"{info.n_encoder_layers} + {info.n_decoder_layers} layers"
        return f"{type(self).__name__}({info.name}: {info.kind}, {depth}, {info.n_heads} heads, d_model {info.d_model})"

    def available(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """What there is of the wanted, for pages that show any model.

        Args:
            wanted: glob patterns over names.

        Returns:
            Those of them that ``record`` takes here.
        """
        return available((*self._names, *self._weights), globs(wanted))

    @abstractmethod
    def tokenize(self, text: str) -> tuple[str, ...]:
        """The tokens of a source text as shown, one per id, specials included; however many they are.

        Args:
            text: a source text.

        Returns:
            Such as the ``trace.tokens["src"]`` of the same text.

        Raises:
            TextError: empty, or not valid Unicode.
        """

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
        """Translate, answer or go on: what the decoder says to a source, step by step.

        Greedy by default; any of temperature, top_k and top_p samples; beam_size above 1 searches. Penalties that a
        model's generation_config names (of length, of repetition) are not applied: what is shown is the model.

        Args:
            source: the text; of a decoder alone the text to go on from.
            to: language of the target, such as "zh"; None: Chinese for a source that is not, else English.
            prefix: what the target has to begin with, as text or as ids.
            beam_size: hypotheses kept; excludes sampling.
            temperature: divides the logits, see :func:`visformer.model.decoding.reshape`, as for top_k and top_p.
            top_k: draw from so many of the likeliest.
            top_p: draw from the likeliest that together have this probability.
            seed: of the sampling.
            edits: change the model meanwhile; decoding is then uncached.
            max_new_tokens: None: 20 more than twice the source, of a decoder alone 40.

        Returns:
            The text, its tokens, and every step with its candidates; of a decoder alone without ``source``.

        Raises:
            TextError: a text that cannot be run.
            EditError: an edit that the model cannot honour.
            VisformerError: an encoder, or a setting out of its range.
        """
        how = Choice(beam_size=beam_size, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        if self.info.kind == "encoder":
            raise VisformerError(N_("{name} is an encoder: it generates no text."), name=self.info.name)
        check_edits(edits, self._names, fixed=self._fixed)
        begun = self._plain(prefix) if isinstance(prefix, str) else list(prefix)
        with torch.inference_mode():
            return self._say(source, to, begun=begun, how=how, edits=edits, asked=max_new_tokens)

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
        """Run the model on a text and keep what ``record`` names.

        Args:
            source: the text. Of a decoder alone it fills "tgt", else "src".
            target: of an encoder-decoder the target to be forced (None: its own, greedily), of a decoder alone what
                follows ``source``; as text, or as the ids of a :class:`visformer.model.decoding.Decoding`, whose tokens
                may be cut otherwise than its text alone would be.
            pair: a second sentence, of an encoder such as BERT.
            to: language of the target, as for :meth:`translate`.
            record: glob patterns of tensor and weight names, such as "*.w_q". With a pattern comes the mass of its
                sink, where there is one.
            edits: change the model, in decoding and in the recorded pass alike.

        Returns:
            One full pass: the tokens, and what was recorded, labelled and frozen. "next" of a decoder alone is its text
            one token on, and last what the model says comes then.

        Raises:
            TextError: a text that cannot be run.
            MissingTensor: ``record`` names weights that this family has in no place of their own.
            TraceError: ``record`` names nothing, or a row of a pattern does not sum to 1.
            BudgetError: the trace would be too large.
            EditError: an edit reaches nothing, does not fit, or cannot be honoured.
            VisformerError: a target or a pair that a model of this kind does not take.
        """
        if self.info.kind == "encoder" and target is not None:
            raise VisformerError(N_("{name} is an encoder: pass a second text as pair."), name=self.info.name)
        if self.info.kind != "encoder" and pair is not None:
            raise VisformerError(
                N_("pair={pair!r}: only an encoder takes a pair; a decoder takes its second text as target."), pair=pair
            )
        check_edits(edits, self._names, fixed=self._fixed)
        with torch.inference_mode():
            return self._run(source, target, pair=pair, to=to, record=globs(record), edits=edits)

    # What families do differently, and what helps them ------------------------------------------------------------

    @abstractmethod
    def _say(
        self,
        source: str,
        to: str | None,
        *,
        begun: list[int],
        how: Choice,
        edits: Sequence[Edit],
        asked: int | None,
    ) -> Decoding:
        """As :meth:`translate`; ``begun``: ids that the target begins with."""

    @abstractmethod
    def _run(
        self,
        source: str,
        target: str | Sequence[int] | None,
        *,
        pair: str | None,
        to: str | None,
        record: tuple[str, ...],
        edits: Sequence[Edit],
    ) -> Trace:
        """As :meth:`trace`."""

    def _labelled(
        self,
        sides: Mapping[str, Sequence[int]],
        tensors: Mapping[str, TracedTensor],
        params: Mapping[str, TracedTensor],
        meta: Mapping[str, Any],
        about: Mapping[str, Any],
    ) -> Trace:
        """``about``: what the Trace says of the model besides its name."""
        ids = {side: list(row) for side, row in sides.items()}
        return Trace(
            tokens={side: self.text.shown(row) for side, row in ids.items()},
            special={side: self.text.is_special(row) for side, row in ids.items()},
            words={side: self.text.words(row) for side, row in ids.items()},
            tensors=tensors,
            params=params,
            meta={"model": self.info.name, **meta, "ids": ids, **about},
        )

    def _limit(self, n_src: int, begun: int, asked: int | None = None) -> int:
        """How many tokens a target may add to those that it begins with."""
        usual = limits.NEW_TOKENS if self.info.kind == "decoder" else 2 * n_src + 20
        return max(1, min(self.info.max_tokens - begun, usual if asked is None else asked))

    def _require_text(self, text: str) -> None:
        if not isinstance(text, str):
            raise TextError(N_("{given!r} is not a text: pass one sentence as a str."), given=text)
        if not text.strip():
            raise TextError(self._no_text)
        require_unicode(text)

    def _require_room(self, tokens: int) -> None:
        if tokens > self.info.max_tokens:
            raise TextError(
                N_("The text is {given} tokens long and the limit is {limit}: shorten it."),
                given=tokens,
                limit=self.info.max_tokens,
            )
