"""A transformers model of any family: the same Trace, with the same names, as our own Transformer."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from transformers.modeling_utils import PreTrainedModel

from visformer.adapters.base import Encoded, ModelInfo, Request, TracedModel
from visformer.adapters.generating import Settings, Speaker
from visformer.adapters.huggingface.about import about, max_tokens, sizes_of
from visformer.adapters.huggingface.check import agree, check_rows, same
from visformer.adapters.huggingface.families import FAMILIES, NO_PLACE, NO_WEIGHTS, NOT_IN_TABLE, PATTERNS_ONLY
from visformer.adapters.huggingface.run import Engine, HubNext, Output
from visformer.adapters.huggingface.taps import NAME, install, read_only, watching
from visformer.adapters.huggingface.text import HubText
from visformer.adapters.huggingface.weights import but_weights, chosen, weights_of
from visformer.adapters.recording import Recorder, check_budget, matching
from visformer.errors import N_, CheckpointError, TraceError
from visformer.model import taps
from visformer.model.decoding import Decoding
from visformer.trace import Trace
from visformer.trace.names import Axis, axes_of

_PROBE = "It is 2 + 2."


def is_pretrained(module: object) -> bool:
    """Whether :class:`HubModel` can wrap it."""
    return isinstance(module, PreTrainedModel)


class HubModel(TracedModel):
    """An encoder, a decoder or an encoder-decoder of transformers, put into evaluation mode.

    Its attention is replaced by visformer's own function, which is checked, on a short text, to compute what the
    family's eager one does. A family without a replaceable attention function stays eager and gives patterns only.

    Args:
        module: a PreTrainedModel, with its language-model head unless it is an encoder.
        tokenizer: its tokenizer, as returned by AutoTokenizer.
        name: name for people to read; None: the one in its config.
        licence: licence of the weights.
        source: where the weights come from.

    Raises:
        VisformerError: the module predicts no tokens, or returns no attention weights.
        TraceError: the rows of its attention weights do not sum to 1.
    """

    text: HubText
    _no_text = N_("There is no text: type a sentence.")

    def __init__(
        self, module: Any, tokenizer: Any, *, name: str | None = None, licence: str = "-", source: str = "-"
    ) -> None:
        self.module = module.eval()
        self.text = HubText(tokenizer)
        self._plain = self.text.encode_plain
        self._engine = Engine(module)
        self._config = module.config
        self._family = FAMILIES.get(self._config.model_type)
        self._speaker = Speaker(self.text, self._engine.allowed(len(tokenizer)), self._engine.end_ids)
        self.patterns_only = self._family is None or self._family.patterns_only
        self._probed = self._probe()
        self._names = tuple(self._probed)
        self._weights = {}
        if self._family is not None and not self.patterns_only:
            self._weights = weights_of(self._engine.base, self._family.stacks, self._config, self._probed)
        self.info = ModelInfo(
            name=name or self._config.name_or_path or type(module).__name__,
            kind=self._engine.kind,
            max_tokens=max_tokens(self._config, self.text.max_tokens),
            licence=licence,
            source=source,
            **sizes_of(self._config, self._probed),
        )

    # The interface of TracedModel ---------------------------------------------------------------------------------

    def tokenize(self, text: str, second: str | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; ``second`` is appended: an encoder's pair, or a decoder's continuation."""
        self._require_text(text)
        if second is not None:
            self._require_text(second)
        ids, _segments = self.text.encode(text, second if self.info.kind == "encoder" else None)
        if second is not None and self.info.kind == "decoder":
            ids = [*ids, *self._plain(second)]
        return self.text.shown(ids)

    def _decode(self, source: str, to: str | None, settings: Settings) -> Decoding:
        edits = settings.edits
        src_ids, segments = self._source(source)
        memory = None
        if self._engine.kind != "decoder":
            with watching(Recorder(frozenset(), edits), "encoder"):
                memory = self._engine.encode([src_ids], [segments])
        start = [*self._begin(src_ids, self.text.language_id(to, source)), *settings.prefix]
        limit = self._limit(len(src_ids), len(start), settings.max_new_tokens)
        next_token = HubNext(self._engine, memory, cached=not edits)
        with watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            return self._speaker.speak(next_token, torch.tensor([start]), limit, settings)

    def _encode(self, request: Request) -> Encoded:
        src_ids, segments = self._source(request.source, request.pair)
        language = self.text.language_id(request.to, request.source)
        target = request.target
        if self._engine.kind == "decoder":
            more = [] if target is None else self._plain(target) if isinstance(target, str) else target
            self._require_room(len(src_ids) + len(more))
            return Encoded(request, [], [*src_ids, *more])
        forced = None if target is None else self._target(target, language)
        begin = self._begin(src_ids, language) if self._engine.kind == "encoder-decoder" else []
        return Encoded(request, src_ids, begin, forced, segments)

    def _selected(self, record: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
        weights = chosen(self._weights, record, reason=self._why_no_weights())
        return self._with_sinks(matching(self._names, but_weights(record))), weights

    def _run(self, batch: Sequence[Encoded]) -> list[Trace]:
        first, sides = batch[0].request, [{} if self._engine.kind == "decoder" else {"src": each.src} for each in batch]
        tensors, weights = self._selected(first.record)
        recorder = Recorder(tensors, first.edits, sides=sides, copied=True, axes=self._axes)
        if self._engine.kind == "decoder":
            self._run_decoder(recorder, batch, sides)
        else:
            self._run_encoder(recorder, batch, sides)
        traces = []
        of_model = about(self._config, self.info, self._names, patterns_only=self.patterns_only)
        for each, side, recorded in zip(batch, sides, recorder.rows, strict=True):
            if not first.edits:
                check_rows(recorded, self.module.dtype)
            params = {name: weight.read(name) for name, weight in self._weights.items() if name in weights}
            traces.append(self._labelled(side, recorded, params, self._meta(each, side), of_model))
        return traces

    def _meta(self, each: Encoded, sides: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        request = each.request
        target = sides["next"] if self._engine.kind == "encoder-decoder" else request.target
        meta: dict[str, Any] = {
            "source": request.source,
            "pair": request.pair,
            "to": request.to,
            "forced": request.target is not None,
        }
        if any(each.segments):
            meta["segments"] = each.segments
        meta["target"] = target if target is None or isinstance(target, str) else self.text.decode(target)
        return meta

    # One pass -----------------------------------------------------------------------------------------------------

    def _run_encoder(self, recorder: Recorder, batch: Sequence[Encoded], sides: list[dict[str, list[int]]]) -> None:
        """Run the encoder, and then the decoder if there is one, whose ids are added to ``sides``."""
        for each in batch:
            self._require_budget(recorder, len(each.src), len(each.forced or ()))
        with watching(recorder, "encoder"):
            memory = self._visit(
                self._engine.encode(
                    [each.src for each in batch], [each.segments for each in batch], patterns=self.patterns_only
                )
            )
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
            self._require_budget(recorder, len(each.src), len(ids))
        rows, seen = self._engine.padded([side["tgt"] for side in sides])
        with watching(recorder, "decoder"):
            self._visit(self._engine.decode(rows, memory, seen=seen, patterns=self.patterns_only))

    def _run_decoder(self, recorder: Recorder, batch: Sequence[Encoded], sides: list[dict[str, list[int]]]) -> None:
        """Run a decoder-only model, and add its ids to ``sides``."""
        for each, side in zip(batch, sides, strict=True):
            self._require_budget(recorder, 0, len(each.begin))
            side["tgt"] = each.begin
        rows, seen = self._engine.padded([each.begin for each in batch])
        with watching(recorder, "decoder"):
            logits = self._visit(self._engine.decode(rows, seen=seen, patterns=self.patterns_only)).value
        for i, side in enumerate(sides):
            ids = side["tgt"]
            side["next"] = [*ids[1:], int(self._speaker.likeliest(logits[i : i + 1, len(ids) - 1].cpu()))]

    @staticmethod
    def _visit(output: Output) -> Output:
        """Pass the patterns to the tap, for families without taps inside their attention."""
        for path, pattern in output.patterns.items():
            read_only(taps.current(), f"{path}.pattern", pattern)
        return output

    def _greedy(self, batch: Sequence[Encoded], memory: Output | None = None) -> list[tuple[list[int], float]]:
        """See :class:`TracedModel`; ``memory``: the encoder's output, if it has already run."""
        edits, sides = batch[0].request.edits, [{"src": each.src} for each in batch]
        if memory is None and self._engine.kind == "encoder-decoder":
            with watching(Recorder(frozenset(), edits, sides=sides, axes=self._axes), "encoder"):
                memory = self._engine.encode([each.src for each in batch], [each.segments for each in batch])
        next_token = HubNext(self._engine, memory, cached=not edits)
        with watching(Recorder(frozenset(), edits, sides=sides, axes=self._axes, growing=True), "decoder"):
            limits = [self._limit(len(each.src), len(each.begin), each.request.max_new_tokens) for each in batch]
            start = torch.tensor([each.begin for each in batch])
            return self._speaker.greedy(next_token, start, limits)

    # Texts --------------------------------------------------------------------------------------------------------

    def _source(self, text: str, pair: str | None = None) -> tuple[list[int], list[int]]:
        self._require_text(text)
        if pair is not None:
            self._require_text(pair)
        ids, segments = self.text.encode(text, pair)
        self._require_known(ids)
        self._require_room(len(ids))
        return ids, segments

    def _require_known(self, ids: list[int]) -> None:
        known = self.module.get_input_embeddings().weight.shape[0]
        if max(ids, default=0) >= known:
            raise CheckpointError(
                N_("Token id {id} is out of range for {known} embeddings: this is another model's tokenizer."),
                id=max(ids),
                known=known,
            )

    def _target(self, target: str | Sequence[int], language: int | None) -> list[int]:
        """Ids that the decoder's rows predict, the end last."""
        if isinstance(target, str):
            self._require_text(target)
            ids = self.text.encode_target(target, language)
        else:
            ids = [*self._begin([], language)[1:], *target, *self._speaker.end_ids[:1]]
        self._require_room(len(ids))
        return ids

    def _begin(self, src_ids: list[int], language: int | None) -> list[int]:
        """The ids that decoding starts from."""
        return src_ids if self._engine.kind == "decoder" else self._engine.begin(language)

    # Probing the model on a short text ----------------------------------------------------------------------------

    def _probe(self) -> dict[str, tuple[int, ...]]:
        """Install the taps, and compare a traced pass with the model's own eager one.

        Returns:
            The shape of every recorded tensor, in the order of computation; its token axes are as long as the probe.

        Raises:
            VisformerError: the model returns no attention weights, or their rows do not sum to 1.
        """
        self.module.set_attn_implementation("eager")
        eager = self._probe_pass(Recorder(frozenset(), ()), patterns=True)
        if self._family is not None:
            self._fixed = install(self.module, self._engine.base, self._family.stacks, self._config)
        recorder = Recorder(None, (), copied=True)
        if not self.patterns_only:
            self.module.set_attn_implementation(NAME)
            self.patterns_only = not agree(eager, self._probe_pass(recorder, patterns=False), recorder.rows[0])
        if self.patterns_only:
            self.module.set_attn_implementation("eager")
            recorder = Recorder(None, (), copied=True)
            self._probe_pass(recorder, patterns=True)
            self._fixed |= {name for name in recorder.rows[0] if name.endswith(".pattern")}
        check_rows(recorder.rows[0], self.module.dtype)
        return {name: tensor.shape for name, tensor in recorder.rows[0].items()}

    def _probe_pass(self, recorder: Recorder, *, patterns: bool) -> list[Output]:
        ids, segments = self.text.encode(_PROBE)
        self._require_known(ids)
        passes, memory = [], None
        with torch.inference_mode():
            if self._engine.kind != "decoder":
                with watching(recorder, "encoder"):
                    memory = self._visit(self._engine.encode([ids], [segments], patterns=patterns))
                    passes.append(memory)
            if self._engine.kind != "encoder":
                with watching(recorder, "decoder"):
                    passes.append(self._visit(self._engine.decode(torch.tensor([ids]), memory, patterns=patterns)))
        return passes

    def _why_no_weights(self) -> str:
        if self._family is None:
            return NOT_IN_TABLE
        return PATTERNS_ONLY if self.patterns_only else NO_WEIGHTS if self._weights else NO_PLACE

    def _axes(self, name: str) -> tuple[Axis, ...] | None:
        """The axes that the name implies, except that keys and values shared by several heads have kv_heads."""
        axes = axes_of(name)
        path, _, tensor = name.rpartition(".")
        if axes is None or tensor not in ("k", "v") or self._probed[name][0] == self._probed[f"{path}.pattern"][0]:
            return axes
        return (Axis("kv_head"), *axes[1:])

    def _with_sinks(self, wanted: frozenset[str]) -> frozenset[str]:
        sinks = {f"{name.removesuffix('.pattern')}.sink" for name in wanted if name.endswith(".pattern")}
        return wanted | sinks.intersection(self._names)

    def _require_budget(self, recorder: Recorder, n_src: int, n_tgt: int) -> None:
        names = self._computed(frozenset(filter(recorder.records, self._names)))
        check_budget(self._shapes(names, n_src, n_tgt))

    def _computed(self, wanted: frozenset[str]) -> frozenset[str]:
        # A model that returns patterns returns all of them.
        return wanted | {name for name in self._names if self.patterns_only and name.endswith(".pattern")}

    def _shapes(self, names: Iterable[str], n_src: int, n_tgt: int) -> dict[str, tuple[int, ...]]:
        tokens = {"src": n_src, "tgt": n_tgt}
        shapes = {}
        for name in names:
            sizes = zip(self._probed[name], self._axes(name) or (), strict=True)
            shapes[name] = tuple(size if axis.side is None else tokens[axis.side] for size, axis in sizes)
        return shapes

    def _pads_exactly(self) -> bool:
        return self._family is not None and self._padding_is_exact

    @cached_property
    def _padding_is_exact(self) -> bool:
        """Whether a short text in a padded batch is computed as alone: not everything masks padding."""
        probes = []
        for text in (_PROBE, f"{_PROBE} {_PROBE}"):
            ids, segments = self.text.encode(text)
            request = Request(text, None, None, None, ("*",), ())
            if self._engine.kind == "decoder":
                probes.append(Encoded(request, [], ids))
            else:
                probes.append(Encoded(request, ids, ids[:1], [*ids[1:], ids[-1]], segments))
        with torch.inference_mode():
            try:
                return same(self._run(probes[:1])[0], self._run(probes)[0], self.module.dtype)
            except TraceError:  # weight on padding is missing from the rows that are left
                return False
