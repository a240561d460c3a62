"""A transformers model of any family: the same Trace, with the same names, as our own Transformer."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from visformer.adapters.base import OTHER_TOKENIZER, ModelInfo, Request, TracedModel
from visformer.adapters.generating import Settings, Speaker
from visformer.adapters.huggingface.about import about, max_tokens, sizes_of
from visformer.adapters.huggingface.check import agree, check_causal, check_rows, on_text_alone
from visformer.adapters.huggingface.families import (
    FAMILIES,
    NO_END,
    NO_MATRICES,
    NO_WEIGHTS,
    NOT_IN_TABLE,
    PATTERNS_ONLY,
)
from visformer.adapters.huggingface.own_attention import use_ours, use_own
from visformer.adapters.huggingface.refused import refuse
from visformer.adapters.huggingface.run import Engine, HubNext, Output
from visformer.adapters.huggingface.taps import install, read_only, watching
from visformer.adapters.huggingface.text import HubText
from visformer.adapters.huggingface.weights import but_weights, chosen, ends_of, weights_of
from visformer.adapters.ids import Text
from visformer.adapters.recording import Recorder, check_budget, matching
from visformer.edits import Edit
from visformer.errors import N_, CheckpointError, TextError
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
    family's eager one does. If it does not, or if the table lacks the family, it stays eager and gives patterns only.

    Args:
        module: a PreTrainedModel, with its language-model head unless it is an encoder.
        tokenizer: its tokenizer, as returned by AutoTokenizer.
        name: name for people to read; None: the one in its config.
        licence: licence of the weights.
        source: where the weights come from.

    Raises:
        CheckpointError: models of its family cannot be shown.
        VisformerError: the module predicts no tokens, returns no attention weights, or needs more than a text.
        TraceError: the rows of its attention weights do not sum to 1.
    """

    text: HubText
    _no_text = N_("There is no text: type a sentence.")

    def __init__(
        self, module: Any, tokenizer: Any, *, name: str | None = None, licence: str = "-", source: str = "-"
    ) -> None:
        refuse(module.config)
        self.module, self.tokenizer = module.eval(), tokenizer
        self.text = HubText(tokenizer)
        self._plain = self.text.encode_plain
        self._engine = Engine(module)
        self._known = self._engine.known
        self._config = module.config
        self._family = FAMILIES.get(self._config.model_type)
        with on_text_alone(module):
            self._speaker = Speaker(self.text, self._engine.allowed(len(tokenizer)), self._engine.end_ids)
        self.patterns_only = self._family is None
        self._probed: dict[str, tuple[int, ...]] = {}
        self._probed = self._probe()
        self._names = tuple(self._probed)
        self._weights = {}
        if self._family is not None:
            stacks = self._family.stacks
            if not self.patterns_only:
                self._weights = weights_of(self._engine.base, stacks, self._config, self._probed)
            self._weights |= ends_of(self.module, self._engine.base, stacks)
        self.info = ModelInfo(
            name=name or self._config.name_or_path or type(module).__name__,
            kind=self._engine.kind,
            max_tokens=max_tokens(self._config, self.text.max_tokens),
            licence=licence,
            source=source,
            **sizes_of(self._config, self._probed),
            n_encoder_layers=self._depth("encoder"),
            n_decoder_layers=self._depth("decoder"),
        )

    # The interface of TracedModel ---------------------------------------------------------------------------------

    def tokenize(self, text: Text, second: Text | None = None) -> tuple[str, ...]:
        """See :class:`TracedModel`; ``second`` is appended: an encoder's pair, or a decoder's continuation."""
        more = None if second is None else self._given(second)
        ids, _segments = self._ids(self._given(text), more if self.info.kind == "encoder" else None)
        return self._row([*ids, *self._continuation(more)] if self.info.kind == "decoder" else ids)

    def _decode(self, source: str | list[int], to: str | None, settings: Settings) -> Decoding:
        edits = settings.edits
        src_ids, segments = self._source(source)
        memory = None
        if self._engine.kind != "decoder":
            with watching(Recorder(frozenset(), edits), "encoder"):
                memory = self._engine.encode(src_ids, segments).value
        start = [*self._begin(src_ids, self.text.language_id(to, self._words(source))), *settings.prefix]
        self._require_room(len(start))
        limit = self._limit(len(src_ids), len(start), settings.max_new_tokens)
        next_token = HubNext(self._engine, memory, cached=not edits)
        with watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            return self._speaker.speak(next_token, torch.tensor([start]), limit, settings)

    def _run(self, request: Request) -> Trace:
        source, target, pair, to = request.source, request.target, request.pair, request.to
        weights = chosen(self._weights, request.record, reason=self._why_no_weights)
        wanted = self._with_sinks(matching(self._names, but_weights(request.record)))
        recorder = Recorder(wanted, request.edits, copied=True, axes=self._axes)
        language = self.text.language_id(to, self._words(source))
        src_ids, segments = self._source(source, pair)
        if self._engine.kind == "decoder":
            sides = self._run_decoder(recorder, src_ids, target)
        else:
            sides = self._run_encoder(recorder, src_ids, segments, target, language)
        if not request.edits:
            check_rows(recorder.tensors, self.module.dtype)
        texts = {"source": self._words(source), "pair": None if pair is None else self._words(pair)}
        meta: dict[str, Any] = {**texts, "to": to, "forced": target is not None}
        if any(segments):
            meta["segments"] = segments
        if self._engine.kind == "encoder-decoder":
            target = sides["next"]
        meta["target"] = None if target is None else self._words(target)
        params = {name: weight.read(name) for name, weight in self._weights.items() if name in weights}
        of_model = about(
            self._config,
            self.info,
            self._names,
            patterns_only=self.patterns_only,
            logits_axes=self._engine.logits_axes,
        )
        return self._labelled(sides, recorder.tensors, params, meta, of_model)

    # One pass -----------------------------------------------------------------------------------------------------

    def _run_encoder(
        self,
        recorder: Recorder,
        src_ids: list[int],
        segments: list[int],
        target: str | list[int] | None,
        language: int | None,
    ) -> dict[str, list[int]]:
        """Run the encoder, and then the decoder if there is one."""
        forced = None if target is None else self._target(target, language)
        self._require_budget(recorder, len(src_ids), 0 if forced is None else len(forced))
        with watching(recorder, "encoder"):
            memory = self._visit(self._engine.encode(src_ids, segments, patterns=self.patterns_only))
        if self._engine.kind == "encoder":
            return {"src": src_ids}
        begin = self._begin(src_ids, language)
        if forced is None:
            forced = [*begin[1:], *self._greedy(memory, begin, src_ids, recorder.edits)]
        tgt_ids = [begin[0], *forced[:-1]]
        self._require_budget(recorder, len(src_ids), len(tgt_ids))
        with watching(recorder, "decoder"):
            self._visit(self._engine.decode(torch.tensor([tgt_ids]), memory, patterns=self.patterns_only))
        return {"src": src_ids, "tgt": tgt_ids, "next": forced}

    def _run_decoder(self, recorder: Recorder, ids: list[int], target: str | list[int] | None) -> dict[str, list[int]]:
        ids = [*ids, *self._continuation(target)]
        self._require_room(len(ids))
        self._require_budget(recorder, 0, len(ids))
        with watching(recorder, "decoder"):
            logits = self._visit(self._engine.decode(torch.tensor([ids]), patterns=self.patterns_only))
        return {"tgt": ids, "next": [*ids[1:], int(self._speaker.likeliest(logits[:, -1].cpu()))]}

    @staticmethod
    def _visit(output: Output) -> Tensor:
        """Pass the patterns to the tap, for families without taps inside their attention."""
        for path, pattern in output.patterns.items():
            read_only(taps.current(), f"{path}.pattern", pattern)
        return output.value

    def _greedy(self, memory: Tensor, begin: list[int], src_ids: list[int], edits: Sequence[Edit]) -> list[int]:
        next_token = HubNext(self._engine, memory, cached=not edits)
        with watching(Recorder(frozenset(), edits, growing=True), "decoder"):
            limit = self._limit(len(src_ids), len(begin))
            ((ids, _),) = self._speaker.greedy(next_token, torch.tensor([begin]), limit)
        return ids

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
        with on_text_alone(self.module):
            own = self._probe_pass(Recorder(frozenset(), ()), patterns=use_own(self.module))
        check_causal(own)
        if self._family is not None:
            has_logits = self._engine.logits_axes is not None
            self._fixed = install(
                self.module, self._engine.base, self._family.stacks, self._config, has_logits=has_logits
            )
        recorder = Recorder(None, (), copied=True, axes=self._axes)
        if not self.patterns_only:
            use_ours(self.module)
            self.patterns_only = not agree(own, self._probe_pass(recorder, patterns=False), recorder.tensors)
        if self.patterns_only:
            use_own(self.module)
            recorder = Recorder(None, (), copied=True, axes=self._axes)
            self._probe_pass(recorder, patterns=True)
            self._fixed |= {name for name in recorder.tensors if name.endswith(".pattern")}
        check_rows(recorder.tensors, self.module.dtype)
        return {name: tensor.shape for name, tensor in recorder.tensors.items()}

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

    def _depth(self, part: str) -> int:
        """The number of layers; of Falcon with ALiBi, whose own attention returns no patterns, that of its blocks."""
        tapped = {name.split(".")[1] for name in self._probed if name.startswith(part) and name.endswith(".resid_pre")}
        return self._engine.depth(part) or len(tapped)

    def _why_no_weights(self, glob: str) -> str:
        if self._family is None:
            return NOT_IN_TABLE
        if not glob.rpartition(".")[2].startswith(("w_", "b_")):
            return NO_END
        has_any = any(name.endswith(".w_q") for name in self._weights)
        return PATTERNS_ONLY if self.patterns_only else NO_WEIGHTS if has_any else NO_MATRICES

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

    def _require_budget(self, recorder: Recorder, n_src: int, n_tgt: int) -> None:
        tokens = {"src": n_src, "tgt": n_tgt}
        shapes = {}
        for name, probed in self._probed.items():
            # A model that returns patterns returns all of them.
            if recorder.records(name) or (self.patterns_only and name.endswith(".pattern")):
                sizes = zip(probed, self._axes(name) or (), strict=True)
                shapes[name] = tuple(size if axis.side is None else tokens[axis.side] for size, axis in sizes)
        check_budget(shapes)
