"""A transformers model of any family: the same Trace, with the same names, as our own Transformer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from visformer.adapters.base import OTHER_TOKENIZER, ModelInfo, TracedModel
from visformer.adapters.generating import Generator, Settings
from visformer.adapters.huggingface.about import about, architecture, max_tokens, sizes_of
from visformer.adapters.huggingface.chat import is_chat
from visformer.adapters.huggingface.families import (
    DIFFERS,
    NO_END,
    NO_MATRIX,
    NO_TOKENS,
    NO_WEIGHTS,
    PATTERNS_ONLY,
    refuse,
)
from visformer.adapters.huggingface.inspection import Inspection, found_in
from visformer.adapters.huggingface.own_attention import calls_interface, has_patterns
from visformer.adapters.huggingface.run import (
    TEXT_ALONE,
    Engine,
    HubNext,
    HubOutput,
    agree,
    check_causal,
    check_rows,
    given_alone,
    same,
)
from visformer.adapters.huggingface.taps import NotFusedError, part_of, read_only, watching
from visformer.adapters.huggingface.text import HubText
from visformer.adapters.huggingface.weights import but_weights, chosen
from visformer.adapters.huggingface.wiring import Wiring
from visformer.adapters.recording import Recorder, Weight, matching, may_cache
from visformer.adapters.requests import Encoded, Text, TextRequest, ids_in
from visformer.errors import N_, CheckpointError, TextError, TraceError
from visformer.model import taps
from visformer.model.decoding import Decoding
from visformer.system.arguments import checked_class
from visformer.trace import Trace
from visformer.trace.names import Axis, axes_of

_PROBE = "It is 2 + 2."
_RETURNED = N_("this model returns its attention whole")


def is_pretrained(module: object) -> bool:
    """Whether :class:`HubModel` can wrap it."""
    return isinstance(module, PreTrainedModel)


@checked_class
class HubModel(TracedModel):
    """An encoder, a decoder or an encoder-decoder of transformers.

    During a pass its attention is visformer's own function, which is checked, on a short text, to compute what the
    family's eager one does. If it does not, attention is eager and gives patterns only.
    Outside of our passes nothing of the model is changed.

    Args:
        module: a PreTrainedModel, with its head if it is to predict tokens or labels.
        tokenizer: its tokenizer, as returned by AutoTokenizer.
        name: name for people to read; None: the one in its config.
        licence: licence of the weights.
        source: where the weights come from.

    Raises:
        CheckpointError: models of its family cannot be shown.
        VisformerError: the module returns no attention weights, or needs more than a text.
        TraceError: the rows of its attention weights do not sum to 1.
    """

    text: HubText
    _no_text = N_("There is no text: type a sentence.")
    _given_alone = TEXT_ALONE

    def __init__(
        self, module: Any, tokenizer: Any, *, name: str | None = None, licence: str = "-", source: str = "-"
    ) -> None:
        refuse(module.config)
        self.module, self.tokenizer = module, tokenizer
        self._engine = Engine(module)
        self._finds_span = self._engine.finds_span
        self._config = module.config
        self._take(tokenizer)
        self._wiring = Wiring(module, self._config, has_logits=self._engine.logits_axes is not None)
        self._why_patterns = PATTERNS_ONLY
        self._passes, self._fixed = self._wiring, self._wiring.fixed
        self._names = ()
        self._probed: dict[str, tuple[int, ...]] = {}
        self._probed = self._probe()
        self._names = tuple(self._probed)
        self._weights = self._found_weights()
        depths = {part: self._depth(part) for part in ("encoder", "decoder")}
        self.info = ModelInfo(
            name=name or self._config.name_or_path or type(module).__name__,
            kind=self._engine.kind,
            max_tokens=max_tokens(self._config, self.text.max_tokens),
            licence=licence,
            source=source,
            **sizes_of(self._config, self._probed, self._wiring.found),
            n_encoder_layers=depths["encoder"],
            n_decoder_layers=depths["decoder"],
            blocks=architecture(
                self._config,
                shapes=self._probed,
                depths=depths,
                found=self._wiring.found,
                logits=self._engine.logits_axes is not None,
            ),
        )

    def _take(self, tokenizer: Any) -> None:
        """Set what stands between what is given to the model and what it reads."""
        self.text = HubText(tokenizer)
        self._plain = self.text.encode_plain
        self._known = self._engine.known
        with given_alone(self.module, self._given_alone):
            self._generator = Generator(self.text, self._engine.allowed(len(tokenizer)), self._engine.end_ids)

    # The interface of TracedModel ---------------------------------------------------------------------------------

    @property
    def takes_chats(self) -> bool:
        """See :class:`TracedModel`."""
        return self.text.has_template

    def tokenize(self, text: Text, second: Text | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; ``second`` is appended: an encoder's pair, or a decoder's continuation."""
        more = None if second is None else self._given(second)
        ids, _segments = self._ids(self._given(text), more if self.info.kind == "encoder" else None)
        return self._row([*ids, *self._continuation(more)] if self.info.kind == "decoder" else ids)

    def _require_language(self, to: str | None) -> None:
        super()._require_language(to)
        if to is not None:
            self.text.language_id(to, str)

    def _require_decoder(self) -> None:
        self._engine.require_predictions()
        super()._require_decoder()

    def _require_predictions(self) -> None:
        self._engine.require_predictions()
        super()._require_predictions()

    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        edits = settings.edits
        each = self._encode(TextRequest(source, None, None, to, (), edits))
        memory = None
        if self._engine.kind != "decoder":
            with self._watching(Recorder(frozenset(), edits), "encoder"):
                memory = self._read([each])
        start = [*each.begin, *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(each.src), len(start), settings.max_new_tokens)
        with self._watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            next_token = HubNext(self._engine, memory, cached=may_cache(edits), besides=self._besides([each]))
            return self._generator.generate(next_token, torch.tensor([start]), limit, settings)

    def _encode(self, request: TextRequest) -> Encoded:
        language = self.text.language_id(request.to, lambda: self._words(request.source))
        src_ids, segments = self._source(request.source, request.pair)
        target = request.target
        if self._engine.kind == "decoder":
            ids = [*src_ids, *self._continuation(target)]
            self._require_room(len(ids))
            return Encoded(request, [], ids)
        forced = None if target is None else self._target(target, language)
        if forced is None and self._engine.kind == "encoder-decoder" and not self._engine.predicts:
            forced = src_ids  # it reads its source again, as BART's classifiers do
        begin = self._engine.begin(language) if self._engine.kind == "encoder-decoder" else []
        return Encoded(request, src_ids, begin, forced, segments)

    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        weights = chosen(self._weights, record, reason=self._why_no_weights)
        return self._with_sinks(matching(self._names, but_weights(record))), weights

    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        first, sides = batch[0].request, [{} if self._engine.kind == "decoder" else {"src": each.src} for each in batch]
        tensors, weights = self._selected(first.record)
        show = self._displayed if self._overview(first) else None
        recorder = Recorder(tensors, first.edits, sides=sides, copied=True, axes=self._axes, show=show)
        if self._engine.kind == "decoder":
            self._run_decoder(recorder, batch, sides)
        else:
            self._run_encoder(recorder, batch, sides)
        traces = []
        found = self._found_weights() if weights else {}  # anew: an adapter may have come, or gone
        of_model = about(
            self._config,
            self.info,
            self._names,
            why_patterns=self._why_patterns if self._patterns_only else None,
            found=self._wiring.found,
            engine=self._engine,
        )
        for each, side, recorded in zip(batch, sides, recorder.rows, strict=True):
            if not first.edits:
                check_rows(recorded, self.module.dtype)
            params = {name: weight.read(name) for name, weight in found.items() if name in weights}
            trace = self._labelled(side, recorded, params, self._meta(each, side), of_model)
            traces.append(replace(trace, roles=self._roles(each, side)))
        return traces

    def _roles(self, each: Encoded, sides: Mapping[str, list[int]]) -> dict[str, tuple[str | None, ...]]:
        """The role of each token of a chat, by side; what continues it is the assistant's answer."""
        roles = each.request.roles
        if not roles or self._engine.kind != "decoder":
            return {"src": roles} if roles else {}
        own = (*roles, *["assistant"] * (len(sides["tgt"]) - len(roles)))
        return {"tgt": own, "next": (*own[1:], None)}

    def _meta(self, each: Encoded, sides: Mapping[str, list[int]]) -> dict[str, Any]:
        request = each.request
        target = sides["next"] if self._engine.kind == "encoder-decoder" else request.target
        meta: dict[str, Any] = {
            "source": self._words(request.source),
            "pair": None if request.pair is None else self._words(request.pair),
            "to": request.to,
            "forced": request.target is not None,
        }
        if any(each.segments):
            meta["segments"] = each.segments
        meta["target"] = None if target is None else self._words(target)
        return meta

    @property
    def _why_no_edits(self) -> str | None:  # type: ignore[override]
        return self._why_patterns if self._patterns_only else None

    @property
    def _holds_scores(self) -> bool:
        return not self._wiring.ours  # ours says by itself where it does

    @property
    def _patterns_only(self) -> bool:
        """Whether nothing but patterns can be seen of its attention."""
        return not self._wiring.ours

    # One pass -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _watching(self, recorder: Recorder, part: str) -> Iterator[None]:
        """Let ``recorder`` visit what ``part`` computes."""
        wiring = self._wiring
        with wiring.open(), watching(recorder, part, wiring.callers, may_fuse=wiring.may_fuse):
            yield
        for name in self._names:
            if self._part(name) == part and recorder.wants(name) and name not in recorder.visited:
                raise TraceError(
                    N_(
                        "{model} no longer computes {name} as it did when it was wrapped: a module of it was replaced. "
                        "Wrap the model as it is now with vf.wrap."
                    ),
                    model=self.info.name,
                    name=name,
                )

    def _part(self, name: str) -> str:
        """The part whose pass computes a tensor."""
        return "encoder" if self._engine.kind == "encoder" else part_of(name)

    def _run_encoder(self, recorder: Recorder, batch: Sequence[Encoded], sides: list[dict[str, list[int]]]) -> None:
        """Run the encoder, and then the decoder if there is one, whose ids are added to ``sides``."""
        for each in batch:
            self._require_budget(recorder, len(each.src), len(each.forced or ()), each.request)
        with self._watching(recorder, "encoder"):
            memory = self._visit(self._read(batch, patterns=self._patterns_only))
        if self._engine.kind == "encoder":
            return
        outputs = [each.forced for each in batch]
        if None in outputs:
            own = self._greedy(batch, memory)
            outputs = [
                [*each.begin[1:], *ids] if each.forced is None else each.forced
                for each, (ids, _) in zip(batch, own, strict=True)
            ]
        for each, side, ids in zip(batch, sides, outputs, strict=True):
            assert ids is not None
            side |= {"tgt": [each.begin[0], *ids[:-1]], "next": ids}
            self._require_budget(recorder, len(each.src), len(ids), each.request)
        rows, seen = self._engine.padded([side["tgt"] for side in sides])
        with self._watching(recorder, "decoder"):
            self._visit(self._engine.decode(rows, memory, seen=seen, patterns=self._patterns_only))

    def _run_decoder(self, recorder: Recorder, batch: Sequence[Encoded], sides: list[dict[str, list[int]]]) -> None:
        """Run a decoder-only model, and add its ids to ``sides``."""
        for each, side in zip(batch, sides, strict=True):
            self._require_budget(recorder, 0, len(each.begin), each.request)
            side["tgt"] = each.begin
        rows, seen = self._engine.padded([each.begin for each in batch])
        with self._watching(recorder, "decoder"):
            how: dict[str, Any] = {"patterns": self._patterns_only, "besides": self._besides(batch), "last": True}
            output = self._visit(self._engine.decode(rows, seen=seen, **how))
        for i, side in enumerate(sides):
            ids = side["tgt"]
            behind = rows.shape[1] - len(ids)  # padding; where there is none, the last logits may be all
            last = output.value[i : i + 1, output.value.shape[1] - 1 - behind]
            side["next"] = [*ids[1:], int(self._generator.likeliest(last.cpu()))]

    def _forward(self, batch: Sequence[Encoded], visit: Recorder) -> Tensor:
        memory = None
        if self._engine.kind == "encoder":
            with self._watching(visit, "encoder"):
                return self._read(batch).value
        if self._engine.kind == "encoder-decoder":
            with self._watching(visit, "encoder"):
                memory = self._read(batch)
        rows, seen = self._engine.padded([each.tgt for each in batch])
        with self._watching(visit, "decoder"):
            return self._engine.decode(rows, memory, seen=seen, besides=self._besides(batch)).value

    def _read(self, batch: Sequence[Encoded], *, patterns: bool = False) -> HubOutput:
        """Run the encoder."""
        return self._engine.encode([each.src for each in batch], [each.segments for each in batch], patterns=patterns)

    def _besides(self, batch: Sequence[Encoded]) -> Mapping[str, Tensor]:
        """What a decoder reads besides its ids, each a row for each text: nothing, or pictures."""
        return {}

    @staticmethod
    def _visit(output: HubOutput) -> HubOutput:
        """Pass the patterns to the tap, for families without taps inside their attention."""
        for path, pattern in output.patterns.items():
            read_only(taps.current(), f"{path}.pattern", pattern)
        return output

    def _greedy(self, batch: Sequence[Encoded], memory: HubOutput | None = None) -> list[tuple[list[int], float]]:
        """See :class:`TracedModel`; ``memory``: the encoder's output, if it has already run."""
        edits, sides = batch[0].request.edits, [{"src": each.src} for each in batch]
        if memory is None and self._engine.kind == "encoder-decoder":
            with self._watching(Recorder(frozenset(), edits, sides=sides, axes=self._axes), "encoder"):
                memory = self._read(batch)
        with self._watching(Recorder(frozenset(), edits, sides=sides, axes=self._axes, growing=True), "decoder"):
            next_token = HubNext(self._engine, memory, cached=may_cache(edits), besides=self._besides(batch))
            return self._decode_greedily(next_token, batch)

    def _request(
        self, source: Text, target: Text | None = None, *, pair: Text | None = None, **checked: Any
    ) -> TextRequest:
        segments = source.get("token_type_ids") if isinstance(source, Mapping) and self.info.kind == "encoder" else None
        if segments is not None and pair is None:  # a pair, as the tokenizer has joined it
            kinds = ids_in({**source, "input_ids": segments})  # type: ignore[dict-item]
            ids, first = ids_in(source), kinds.index(1) if 1 in kinds else len(kinds)
            if any(kind != (place >= first) for place, kind in enumerate(kinds)):
                raise TextError(N_("token_type_ids have to be 0 for a first text, and then 1 for a second one."))
            source, pair = (ids[:first], ids[first:]) if 0 < first < len(ids) else (ids, None)
        prompting = target is not None or self.info.kind == "encoder-decoder"  # the answer follows
        ids, roles = self.text.chat(source, prompting=prompting) if is_chat(source) else (source, ())
        return replace(super()._request(ids, target, pair=pair, **checked), roles=roles)

    def _prompt(self, source: Text) -> Text:
        """See :class:`TracedModel`; of messages with the beginning of the assistant's answer."""
        return self.text.chat(source, prompting=True)[0] if is_chat(source) else source

    def _given(self, text: Text, *, of_target: bool = False) -> str | list[int]:
        return super()._given(self.text.chat(text)[0] if is_chat(text) else text, of_target=of_target)

    # Texts --------------------------------------------------------------------------------------------------------

    def _source(self, given: str | list[int], pair: str | list[int] | None = None) -> tuple[list[int], list[int]]:
        ids, segments = self._ids(given, pair)
        self._require_room(len(ids))
        return ids, segments

    def _ids(self, given: str | list[int], pair: str | list[int] | None) -> tuple[list[int], list[int]]:
        """Ids of a text or a pair, and the segment of each."""
        if isinstance(given, str):
            ids, segments = self.text.encode(given, self._words(pair) if pair is not None else None)
            self._require_known(ids)
            return self._kept(ids, given), segments
        second = [] if pair is None else [*pair]
        return [*given, *second], [0] * len(given) + [1] * len(second)

    def _continuation(self, given: str | list[int] | None) -> list[int]:
        """Ids of what follows the text of a decoder-only model."""
        if given is None:
            return []
        return self._kept(self._plain(given), given) if isinstance(given, str) else given

    @staticmethod
    def _kept(ids: list[int], text: str) -> list[int]:
        """Refuse a text of which the tokenizer keeps nothing."""
        if not ids:
            raise TextError(N_("The tokenizer of this model leaves nothing of {text!r}: give another text."), text=text)
        return ids

    def _require_known(self, ids: list[int]) -> None:
        known, _ = self._known
        if max(ids, default=0) >= known:
            raise CheckpointError(OTHER_TOKENIZER, id=max(ids), known=known)

    def _target(self, target: str | list[int], language: int | None) -> list[int]:
        """Ids that the decoder's rows predict, the end last."""
        if isinstance(target, str):
            ids = self._kept(self.text.encode_target(target, language), target)
        else:
            ids = [*self._engine.begin(language)[1:], *target, *self._generator.end_ids[:1]]
        self._require_room(len(ids))
        return ids

    # Probing the model on a short text ----------------------------------------------------------------------------

    def _probe(self) -> dict[str, tuple[int, ...]]:
        """Look at the model as it computes, and compare a traced pass with its own eager one."""
        with given_alone(self.module, self._given_alone):
            own = self._probe_pass(Recorder(frozenset(), ()), patterns=has_patterns(self._config))
        check_causal(own)
        recorder = Recorder(None, (), copied=True, axes=self._axes)
        if self._inspect():
            self._wiring.ours = True
            self._wiring.ours = agree(own, self._probe_pass(recorder, patterns=False), recorder.rows[0])
            self._why_patterns = DIFFERS
            self._fixed |= self._wiring.fixed
        if self._wiring.ours and calls_interface(self._config) and self.module._supports_sdpa:
            self._wiring.may_fuse = True
            try:
                self._wiring.may_fuse = agree(own, self._probe_pass(Recorder(frozenset(), ()), patterns=False))
            except NotFusedError:
                self._wiring.may_fuse = False
        if self._patterns_only:
            recorder = Recorder(None, (), copied=True, axes=self._axes)
            self._probe_pass(recorder, patterns=True)
            self._fixed |= {name for name in recorder.rows[0] if name.endswith(".pattern")}
        check_rows(recorder.rows[0], self.module.dtype)
        return {name: tensor.shape for name, tensor in recorder.rows[0].items()}

    def _sample(self) -> Encoded:
        """What the model is looked at with."""
        ids, segments = self.text.encode(_PROBE)
        self._require_known(ids)
        return Encoded(TextRequest(_PROBE, None, None, None, ("*",), ()), ids, [], None, segments)

    def _probe_pass(
        self, recorder: Recorder, *, patterns: bool, watching: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> list[HubOutput]:
        """Run the sample, ``watching`` each part. The target is longer, so that keys tell what they belong to."""
        sample, passes, memory = self._sample(), [], None
        with torch.inference_mode():
            if self._engine.kind != "decoder":
                with self._watching(recorder, "encoder"), watching():
                    memory = self._visit(self._read([sample], patterns=patterns))
                    passes.append(memory)
            if self._engine.kind != "encoder":
                ids = sample.src
                rows = torch.tensor([ids if memory is None else [*ids, ids[0]]])
                with self._watching(recorder, "decoder"), watching():
                    passes.append(self._visit(self._engine.decode(rows, memory, patterns=patterns)))
        return passes

    def _inspect(self) -> bool:
        """Find where the values are; whether our function was called."""
        seen: list[Inspection] = []

        @contextmanager
        def watching() -> Iterator[None]:
            seen.append(Inspection(self.module))
            with seen[-1].watching():
                yield

        self._wiring.ours = True
        try:
            passes = self._probe_pass(Recorder(frozenset(), ()), patterns=False, watching=watching)
        except Exception:  # of whatever kind: its code is not made for such a function
            self._why_patterns = DIFFERS
            return False
        finally:
            self._wiring.ours = False
        parts = [part for part in ("encoder", "decoder") if part in self._engine.kind]
        n_tokens = [len(self._sample().src) + i for i in range(len(passes))]
        sizes = zip(seen, parts, n_tokens, [0, *n_tokens], strict=False)
        self._wiring.found = found_in([*sizes])
        if not self._wiring.found.callers and any(each.calls for each in seen):
            self._why_patterns = NO_TOKENS
        return bool(self._wiring.found.callers)

    def _depth(self, part: str) -> int:
        """The number of layers; of Falcon with ALiBi, whose own attention returns no patterns, that of its blocks."""
        tapped = {name.split(".")[1] for name in self._probed if name.startswith(part) and name.endswith(".resid_pre")}
        return self._engine.depth(part) or len(tapped)

    def _found_weights(self) -> dict[str, Weight]:
        """Every weight by name, in the modules as they are."""
        return self._wiring.found_weights() if self._wiring.ours else {}

    def _why_no_weights(self, glob: str) -> str:
        if not glob.rpartition(".")[2].startswith(("w_", "b_")):
            return NO_END
        if self._patterns_only:
            return self._why_patterns
        return NO_WEIGHTS if any(name.endswith(".w_q") for name in self._weights) else NO_MATRIX

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        """The axes that the name implies, except for an encoder's logits, and kv_heads of keys and values."""
        axes = self._engine.logits_axes if name == "logits" else axes_of(name)
        path, _, tensor = name.rpartition(".")
        if axes is None or tensor not in ("k", "v") or not self._probed:
            return axes
        if self._probed[name][0] == self._probed[f"{path}.pattern"][0]:
            return axes
        return (Axis("kv_head"), *axes[1:])

    def _with_sinks(self, wanted: frozenset[str]) -> frozenset[str]:
        sinks = {f"{name.removesuffix('.pattern')}.sink" for name in wanted if name.endswith(".pattern")}
        return wanted | sinks.intersection(self._names)

    def _require_budget(self, recorder: Recorder, n_src: int, n_tgt: int, request: TextRequest) -> None:
        names = self._computed(frozenset(filter(recorder.records, self._names)))
        self._require_bytes(names, n_src, n_tgt, request)

    def _why_whole(self, request: TextRequest) -> str | None:
        return _RETURNED if self._patterns_only else super()._why_whole(request)

    def _computed(self, wanted: frozenset[str]) -> frozenset[str]:
        # A model that returns patterns returns all of them.
        return wanted | {name for name in self._names if self._patterns_only and name.endswith(".pattern")}

    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        tokens = {"src": n_src, "tgt": n_tgt}
        shapes = {}
        for name in names:
            sizes = zip(self._probed[name], self._axes(name) or (), strict=True)
            shapes[name] = tuple(size if axis.side is None else tokens[axis.side] for size, axis in sizes)
        return shapes

    def _pads_exactly(self) -> bool:
        return not self._patterns_only and self._padding_is_exact

    @cached_property
    def _padding_is_exact(self) -> bool:
        """Whether a short text in a padded batch is computed as alone: not everything masks padding."""
        probes = []
        for text in (_PROBE, f"{_PROBE} {_PROBE}"):
            ids, segments = self.text.encode(text)
            request = TextRequest(text, None, None, None, ("*",), ())
            if self._engine.kind == "decoder":
                probes.append(Encoded(request, [], ids))
            else:
                probes.append(Encoded(request, ids, ids[:1], [*ids[1:], ids[-1]], segments))
        with torch.inference_mode():
            try:
                return same(self._run(probes[:1])[0], self._run(probes)[0], self.module.dtype)
            except (TraceError, ValueError):  # weight on padding is not in the rows left; a head may want its pad id
                return False
