"""A transformers model, of whatever family: the same Trace, with the same names, as our own Transformer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from visformer.adapters.generating import Choice, Speaker
from visformer.adapters.huggingface.about import about, info_of, max_tokens
from visformer.adapters.huggingface.check import Everything, agree, check_rows
from visformer.adapters.huggingface.families import FAMILIES, NO_PLACE, NO_WEIGHTS, NOT_IN_TABLE, PATTERNS_ONLY
from visformer.adapters.huggingface.run import Engine, HubNext, Output
from visformer.adapters.huggingface.taps import NAME, install, read_only, watching
from visformer.adapters.huggingface.text import HubText, require_text
from visformer.adapters.huggingface.weights import Weight, but_weights, chosen, weights_of
from visformer.adapters.recording import Recorder, available, check_budget, check_edits, globs, matching
from visformer.edits import Edit
from visformer.errors import N_, CheckpointError, TextError, VisformerError
from visformer.model import taps
from visformer.model.decoding import Decoding
from visformer.system import limits
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import Axis, axes_of

_PROBE = "It is 2 + 2."


def is_pretrained(module: object) -> bool:
    """Whether :class:`HubModel` takes it."""
    return isinstance(module, PreTrainedModel)


class HubModel:
    """An encoder, a decoder or an encoder-decoder of transformers, put into evaluation mode.

    Its attention is set to visformer's own function, which computes what the family's eager one does; that it does is
    checked on a short text. A family that calls no attention function stays eager, and shows patterns only.

    Args:
        module: a PreTrainedModel, with its language-model head unless it is an encoder.
        tokenizer: its tokenizer, as AutoTokenizer gives it.
        name: for people; None: what its config says.
        licence: of the weights.
        source: where they come from.

    Raises:
        VisformerError: it predicts no tokens, or gives no attention weights.
        TraceError: its attention weights are none.
    """

    def __init__(
        self,
        module: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        licence: str = "-",
        source: str = "-",
    ) -> None:
        self.module = module.eval()
        self.text = HubText(tokenizer)
        self._engine = Engine(module)
        self._config = module.config
        self._family = FAMILIES.get(self._config.model_type)
        self._speaker = Speaker(self.text, self._engine.allowed(len(tokenizer)), self._engine.end_ids)
        self._room = max_tokens(self._config, self.text.max_tokens)
        self._fixed: frozenset[str] = frozenset()
        self.patterns_only = self._family is None or self._family.patterns_only
        self._kv_heads: dict[str, bool] = {}
        self._probed = self._probe()
        self._names = tuple(self._probed)
        self._weights = self._find_weights()
        self.info = info_of(
            self._config,
            self._probed,
            kind=self._engine.kind,
            name=name or self._config.name_or_path or type(module).__name__,
            licence=licence,
            source=source,
            room=self._room,
        )

    # What a model offers ------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.info.describe(type(self).__name__)

    def available(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Of these glob patterns over names those that ``record`` takes here."""
        return available((*self._names, *self._weights), globs(wanted))

    def tokenize(self, text: str, second: str | None = None) -> tuple[str, ...]:
        """The tokens of a source text as shown, one per id, specials included; however many they are.

        Args:
            text: the source.
            second: what joins it in one row: an encoder's pair, or what follows of a decoder.

        Raises:
            TextError: empty, or not valid Unicode.
        """
        require_text(text)
        if second is not None:
            require_text(second)
        ids, _segments = self.text.encode(text, second if self._engine.kind == "encoder" else None)
        if second is not None and self._engine.kind == "decoder":
            ids = [*ids, *self.text.encode_plain(second)]
        return self.text.shown(ids)

    def generate(
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
        """Translate, answer or go on: what the decoder says after ``source``.

        Greedy by default; any of temperature, top_k and top_p samples; beam_size above 1 searches. Penalties that a
        model's generation_config names (of length, of repetition) are not applied: what is shown is the model.

        Args:
            source: the encoder's text, or of a decoder the text to go on from.
            to: the target's language, of a model that knows several.
            prefix: what the answer has to begin with, as text or as ids.
            beam_size: hypotheses kept; excludes sampling.
            temperature: see :func:`visformer.model.decoding.reshape`, as for top_k and top_p.
            top_k: likewise.
            top_p: likewise.
            seed: of the sampling.
            edits: change the model meanwhile; decoding is then uncached.
            max_new_tokens: None: 20 more than twice the source, of a decoder 40.

        Returns:
            text, tokens, and every step with its candidates; of a decoder without ``source``.

        Raises:
            TextError: a text that cannot be run.
            EditError: an edit that the model cannot honour.
            VisformerError: an encoder, or a setting out of its range.
        """
        how = Choice(beam_size=beam_size, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        if self._engine.kind == "encoder":
            raise VisformerError(N_("{name} is an encoder: it reads and says nothing."), name=self.info.name)
        check_edits(edits, self._names, fixed=self._fixed)
        src_ids, segments = self._source(source)
        begun = (self.text.encode_plain(prefix) if prefix else []) if isinstance(prefix, str) else list(prefix)
        with torch.inference_mode():
            memory = self._memory(src_ids, segments, edits)
            begin = self._begin(src_ids, self._language(to, source))
            return self._speak(memory, [*begin, *begun], src_ids, edits, begun=begun, how=how, asked=max_new_tokens)

    translate = generate

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
        """Run the model on a text and keep what is asked for.

        Args:
            source: the sentence. Of an encoder it fills "src", of a decoder "tgt".
            target: of an encoder-decoder the target to be forced (None: its own, greedily), of a decoder what follows
                ``source``; as text, or as the ids of a :class:`visformer.model.decoding.Decoding`.
            pair: second sentence of an encoder.
            to: the target's language, of a model that knows several.
            record: glob patterns over the names of tensors and of attention's weights, such as "*.w_q". With a pattern
                comes the mass of its sink, where there is one.
            edits: change the model, in decoding and in the recorded pass alike.

        Returns:
            One full pass. "next" of a decoder is its text one token on, and last what the model says comes then.

        Raises:
            TextError: a text that cannot be run.
            MissingTensor: ``record`` names weights that this family has in no place of their own.
            TraceError: ``record`` names nothing, or a row of a pattern does not sum to 1.
            BudgetError: the trace would be too large.
            EditError: an edit that the model cannot honour.
        """
        self._require_kind(target, pair)
        record = globs(record)
        weights = chosen(self._weights, record, reason=self._why_no_weights())
        wanted = self._with_sinks(matching(self._names, but_weights(record)))
        check_edits(edits, self._names, fixed=self._fixed)
        recorder = Recorder(wanted, edits, copied=True, axes=self._axes)
        language = self._language(to, source)
        src_ids, segments = self._source(source, pair)
        with torch.inference_mode():
            if self._engine.kind == "decoder":
                sides = self._run_decoder(recorder, wanted, src_ids, target)
            else:
                sides = self._run_encoder(recorder, wanted, src_ids, segments, target, language)
        if not edits:
            check_rows(recorder.tensors, self.module.dtype)
        meta: dict[str, Any] = {"source": source, "pair": pair, "to": to, "forced": target is not None}
        if any(segments):
            meta["segments"] = segments
        params = {name: self._weights[name].read(name) for name in self._weights if name in weights}
        return self._labelled(sides, recorder.tensors, params, target, meta)

    def _labelled(
        self,
        sides: dict[str, list[int]],
        tensors: Mapping[str, TracedTensor],
        params: Mapping[str, TracedTensor],
        target: str | Sequence[int] | None,
        meta: dict[str, Any],
    ) -> Trace:
        if self._engine.kind == "encoder-decoder":
            target = sides["next"]
        words = target if target is None or isinstance(target, str) else self.text.decode(target)
        of_model = about(self._config, self.info, self._names, patterns_only=self.patterns_only)
        ids = {side: list(row) for side, row in sides.items()}
        return Trace(
            tokens={side: self.text.shown(row) for side, row in sides.items()},
            special={side: self.text.is_special(row) for side, row in sides.items()},
            words={side: self.text.words(row) for side, row in sides.items()},
            tensors=tensors,
            params=params,
            meta={"model": self.info.name, **meta, "target": words, "ids": ids, **of_model},
        )

    # One pass -----------------------------------------------------------------------------------------------------

    def _run_encoder(
        self,
        recorder: Recorder,
        wanted: frozenset[str],
        src_ids: list[int],
        segments: list[int],
        target: str | Sequence[int] | None,
        language: int | None,
    ) -> dict[str, list[int]]:
        """The encoder's pass, and that of the decoder behind it if there is one."""
        forced = None if target is None else self._target(target, language)
        self._require_budget(wanted, len(src_ids), 0 if forced is None else len(forced))
        with watching(recorder, "encoder"):
            memory = self._visit(self._engine.encode(src_ids, segments, patterns=self.patterns_only))
        if self._engine.kind == "encoder":
            return {"src": src_ids}
        begin = self._begin(src_ids, language)
        if forced is None:
            forced = [*begin[1:], *self._greedy(memory, begin, src_ids, recorder.edits)]
        tgt_ids = [begin[0], *forced[:-1]]
        self._require_budget(wanted, len(src_ids), len(tgt_ids))
        with watching(recorder, "decoder"):
            self._visit(self._engine.decode(torch.tensor([tgt_ids]), memory, patterns=self.patterns_only))
        return {"src": src_ids, "tgt": tgt_ids, "next": forced}

    def _run_decoder(
        self, recorder: Recorder, wanted: frozenset[str], ids: list[int], target: str | Sequence[int] | None
    ) -> dict[str, list[int]]:
        if target is not None:
            ids = [*ids, *(self.text.encode_plain(target) if isinstance(target, str) else target)]
        self._require_room(len(ids))
        self._require_budget(wanted, 0, len(ids))
        with watching(recorder, "decoder"):
            logits = self._visit(self._engine.decode(torch.tensor([ids]), patterns=self.patterns_only))
        row = logits[0, -1].cpu().masked_fill(~self._speaker.allowed, -torch.inf)
        return {"tgt": ids, "next": [*ids[1:], int(row.argmax())]}

    @staticmethod
    def _visit(found: Output) -> Tensor:
        """Show the patterns of a family that has no taps inside its attention."""
        for path, pattern in found.patterns.items():
            read_only(taps.current(), f"{path}.pattern", pattern)
        return found.value

    def _memory(self, src_ids: list[int], segments: list[int], edits: Sequence[Edit]) -> Tensor | None:
        if self._engine.kind == "decoder":
            return None
        with watching(Recorder(frozenset(), edits), "encoder"):
            return self._engine.encode(src_ids, segments).value

    def _greedy(self, memory: Tensor, begin: list[int], src_ids: list[int], edits: Sequence[Edit]) -> list[int]:
        next_token = HubNext(self._engine, memory, cached=not edits)
        limit = self._limit(len(src_ids), len(begin), None)
        with watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            (ids,) = self._speaker.greedy(next_token, torch.tensor([begin]), limit)
        return ids

    def _speak(
        self,
        memory: Tensor | None,
        start: list[int],
        src_ids: list[int],
        edits: Sequence[Edit],
        *,
        begun: list[int],
        how: Choice,
        asked: int | None,
    ) -> Decoding:
        limit = self._limit(len(src_ids), len(start), asked)
        next_token = HubNext(self._engine, memory, cached=not edits)
        with watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            return self._speaker.speak(next_token, torch.tensor([start]), limit, begun=begun, how=how)

    # Texts --------------------------------------------------------------------------------------------------------

    def _source(self, text: str, pair: str | None = None) -> tuple[list[int], list[int]]:
        require_text(text)
        if pair is not None:
            require_text(pair)
        ids, segments = self.text.encode(text, pair)
        self._require_known(ids)
        self._require_room(len(ids))
        return ids, segments

    def _require_known(self, ids: list[int]) -> None:
        known = self.module.get_input_embeddings().weight.shape[0]
        if max(ids, default=0) >= known:
            raise CheckpointError(
                N_("A token has the number {id} of only {known} embeddings: this is another model's tokenizer."),
                id=max(ids),
                known=known,
            )

    def _target(self, target: str | Sequence[int], language: int | None) -> list[int]:
        """Ids that the decoder's rows predict, the end last."""
        if isinstance(target, str):
            require_text(target)
            ids = self.text.encode_target(target, language)
        else:
            ids = [*self._begin([], language)[1:], *target, *self._speaker.end_ids[:1]]
        self._require_room(len(ids))
        return ids

    def _begin(self, src_ids: list[int], language: int | None) -> list[int]:
        """What stands before the decoder says anything."""
        return src_ids if self._engine.kind == "decoder" else self._engine.begin(language)

    def _language(self, to: str | None, source: str) -> int | None:
        if self._engine.kind == "encoder-decoder":
            return self.text.language_id(to, source)
        if to is not None:
            raise VisformerError(N_("to={to!r}: this model has no choice of languages. Leave it out."), to=to)
        return None

    def _limit(self, n_src: int, begun: int, asked: int | None) -> int:
        usual = limits.NEW_TOKENS if self._engine.kind == "decoder" else 2 * n_src + 20
        return max(1, min(self.info.max_tokens - begun, usual if asked is None else asked))

    def _require_room(self, tokens: int) -> None:
        limit = self._room
        if tokens > limit:
            raise TextError(
                N_("The text is {given} tokens long and the limit is {limit}: shorten it."), given=tokens, limit=limit
            )

    def _require_kind(self, target: str | Sequence[int] | None, pair: str | None) -> None:
        if self._engine.kind == "encoder" and target is not None:
            raise VisformerError(N_("{name} is an encoder: it takes a second text as pair."), name=self.info.name)
        if self._engine.kind != "encoder" and pair is not None:
            raise VisformerError(
                N_("pair={pair!r}: only an encoder takes a pair; a decoder takes its second text as target."), pair=pair
            )

    # What the model was seen to do --------------------------------------------------------------------------------

    def _probe(self) -> dict[str, tuple[int, ...]]:
        """Put the taps in, and hold a traced pass against the model's own eager one.

        Returns:
            Every tensor that came, in the order of computation, and its shape; places of tokens are as in the probe.

        Raises:
            VisformerError: the model gives no attention weights, or they are none.
        """
        self.module.set_attn_implementation("eager")
        eager = self._probe_pass(Recorder(frozenset(), ()), patterns=True)
        if self._family is not None:
            self._fixed = install(self.module, self._engine.base, self._family.stacks, self._config)
        if not self.patterns_only:
            self.module.set_attn_implementation(NAME)
            recorder = Everything()
            if agree(eager, self._probe_pass(recorder, patterns=False), recorder.tensors):
                check_rows(recorder.tensors, self.module.dtype)
                return self._shapes_of(recorder)
            self.module.set_attn_implementation("eager")
            self.patterns_only = True
        recorder = Everything()
        self._probe_pass(recorder, patterns=True)
        check_rows(recorder.tensors, self.module.dtype)
        self._fixed |= {name for name in recorder.tensors if name.endswith(".pattern")}
        return self._shapes_of(recorder)

    def _probe_pass(self, recorder: Recorder, *, patterns: bool) -> list[Output]:
        ids, segments = self.text.encode(_PROBE)
        self._require_known(ids)
        passes, memory = [], None
        with torch.inference_mode():
            if self._engine.kind != "decoder":
                with watching(recorder, "encoder"):
                    passes.append(self._engine.encode(ids, segments, patterns=patterns))
                    memory = self._visit(passes[-1])
            if self._engine.kind != "encoder":
                with watching(recorder, "decoder"):
                    passes.append(self._engine.decode(torch.tensor([ids]), memory, patterns=patterns))
                    self._visit(passes[-1])
        return passes

    def _shapes_of(self, recorder: Recorder) -> dict[str, tuple[int, ...]]:
        shapes = {name: tensor.shape for name, tensor in recorder.tensors.items()}
        for name, shape in shapes.items():
            if name.endswith("_attn.k"):
                path = name.removesuffix(".k")
                self._kv_heads[path] = shape[0] != shapes[f"{path}.pattern"][0]
        return shapes

    def _find_weights(self) -> dict[str, Weight]:
        if self._family is None or self.patterns_only:
            return {}
        return weights_of(self._engine.base, self._family.stacks, self._config, self._probed)

    def _why_no_weights(self) -> str:
        if self._family is None:
            return NOT_IN_TABLE
        return PATTERNS_ONLY if self.patterns_only else NO_WEIGHTS if self._weights else NO_PLACE

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        """As the name implies, but keys and values that several heads read have heads of their own."""
        axes = axes_of(name)
        path, _, tensor = name.rpartition(".")
        if axes is not None and tensor in ("k", "v") and self._kv_heads.get(path):
            return (Axis("kv_head"), *axes[1:])
        return axes

    def _with_sinks(self, wanted: frozenset[str]) -> frozenset[str]:
        sinks = {f"{name.removesuffix('.pattern')}.sink" for name in wanted if name.endswith(".pattern")}
        return wanted | sinks.intersection(self._names)

    def _require_budget(self, wanted: Iterable[str], n_src: int, n_tgt: int) -> None:
        names = set(wanted)
        if self.patterns_only:  # they come all together or not at all
            names.update(name for name in self._names if name.endswith(".pattern"))
        tokens = {"src": n_src, "tgt": n_tgt}
        shapes = {}
        for name in names:
            sizes = zip(self._probed[name], axes_of(name) or (), strict=True)
            shapes[name] = tuple(size if axis.side is None else tokens[axis.side] for size, axis in sizes)
        check_budget(shapes)
