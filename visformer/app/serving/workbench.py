"""Models and their Traces, shared by all sessions.

The first picture is the shipped Trace of the first example, drawn before torch is imported and the model is loaded.
"""

import gc
import json
import pickle
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union

import streamlit as st

from visformer.adapters.checkpoints import TRANSLATOR, folder_of, model_of
from visformer.adapters.learning.recipe import is_trained_name
from visformer.adapters.names import made_here
from visformer.app.serving import checks, uploaded_pictures
from visformer.app.serving.admission import ADMISSION, WorkKind
from visformer.app.serving.capacity import aside
from visformer.app.serving.chats import messages_of
from visformer.app.serving.model_downloads import require_here
from visformer.app.serving.models import MODEL, SECOND_BOX, discreetly, require_allowed
from visformer.app.serving.remote_models import LONG_WORK, RemoteModel, in_processes, overview, part, receive
from visformer.app.serving.trainings import RUNS
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.errors import N_, BudgetError, VisformerError
from visformer.model.untrained import Untrained, is_untrained_name
from visformer.pictures.registry.setting import LONG, PATTERNS
from visformer.system import limits, settings
from visformer.system.cache import Cache
from visformer.system.memory import enough_memory
from visformer.system.progress import Progress, reporting_to
from visformer.system.sockets import send_at_once

if TYPE_CHECKING:  # torch, and numpy
    from visformer.adapters.base import TracedModel
    from visformer.edits import Edit
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace
    from visformer.trace.blocks import Blocks


HEAD_START = 2.0
"""Seconds between the first picture and the import of torch, which compete for the same cores. Nobody types faster, and
a sentence that arrives earlier starts the import at once."""

_FIRST_BOX = N_("Sentence")


_Texts = tuple[str, str | None]
"""Texts of the first and the second box; None: the second is empty."""


@dataclass(frozen=True)
class _Request:
    """What a Trace is asked for by, and cached by; fields: see :meth:`Workbench.trace`."""

    source: str
    target: str | tuple[int, ...] | None
    record: tuple[str, ...]
    edits: "tuple[Edit, ...]" = ()
    takes_long: bool = field(default=False, compare=False)  # whether the picture can show a long text


@dataclass(frozen=True)
class _Measured:
    """The result of an analysis, with its size for the cache."""

    value: Any
    nbytes: int


_Result = TypeVar("_Result", "Trace", "Decoding", _Measured)
_Runner = Union["TracedModel", RemoteModel]

RESULTS = Cache(lambda: limits.TRACE_BYTES)
"""Traces and decodings of all models, by the workbench and the request."""


class Workbench:
    """A model and a cache of its results, shared by all sessions: results are frozen, the model needs no lock."""

    def __init__(
        self,
        load: "Callable[[], TracedModel]",
        example: Path,
        *,
        lends_target: Callable[[str], str] | None = None,
        always_long: bool = False,
    ) -> None:
        """Keep ``load`` until the model is needed.

        Args:
            load: loads the model.
            example: file of a Trace that is available before the model, for the pages that need no more than it has.
            lends_target: returns a target for a source, for a model whose own translation would mean nothing.
            always_long: whether even short sentences may take long.
        """
        from visformer.pictures.map import RECORD
        from visformer.trace import Trace

        self._load, self._lends_target = load, lends_target
        self.start_workers: Callable[[], RemoteModel | None] = lambda: None
        self._workers: RemoteModel | None = None  # runs the forward passes, if set
        self.long_runner: RemoteModel | None = None  # runs those that take long, if set
        self._always_long = always_long
        self._model: Future[TracedModel] | None = None
        self._lock = threading.Lock()
        self.problem: BaseException | None = None  # why the last attempt to load the model failed
        self._shipped: Blocks | None = None  # its architecture, before it is loaded
        with suppress(VisformerError):  # a model may ship no example: its first picture then waits for the model
            trace = Trace.load(example)
            for record in (PATTERNS, RECORD) if "logits" in trace else (PATTERNS,):
                self._store(_Request(str(trace.meta.get("source")), None, record), trace)
            self._shipped = trace.blocks

    @property
    def is_loaded(self) -> bool:
        """Whether a sentence can be computed without waiting for the model."""
        return self._model is not None and self._model.done()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers; empty if there are none."""
        return self._workers.pids if self._workers is not None else ()

    def load_soon(self) -> None:
        """Load the model in the background, a few seconds from now, when the page has been drawn."""
        if self._model is None:
            timer = threading.Timer(HEAD_START, self.load)
            timer.daemon = True
            with suppress(RuntimeError):  # no memory for a thread: the first sentence will load the model
                timer.start()

    def load(self) -> "Future[TracedModel]":
        """Start loading the model in the background, unless that has begun; return the future model."""
        with self._lock:
            if self._model is None:
                # Not a daemon thread: torch aborts the process if its import is interrupted.
                self._model = ThreadPoolExecutor(1).submit(self._load_now)
            return self._model

    def _load_now(self) -> "TracedModel":
        try:
            model = self._load()
            self._workers = self.start_workers()
        except BaseException as error:
            with self._lock:
                self.problem = error
                self._model = None  # so that the next request tries again: the operator may have restored the file
            raise
        # Otherwise each full garbage collection would traverse torch's objects, for 200 ms.
        gc.collect()
        gc.freeze()
        self.problem = None
        return model

    def holds(self, source: str, target: str | None, record: Sequence[str] = PATTERNS) -> bool:
        """Whether this Trace is in the cache."""
        return self._cached(_Request(source, target, tuple(record))) is not None

    def _cached(self, key: Hashable) -> Any:
        return RESULTS.get((self, key))

    def _store(self, key: Hashable, result: "Trace | Decoding | _Measured") -> None:
        with suppress(BudgetError):  # larger than the whole cache
            RESULTS.put((self, key), result, result.nbytes)

    def trace(
        self,
        source: str,
        target: str | tuple[int, ...] | None,
        *,
        record: Sequence[str] = PATTERNS,
        edits: "Sequence[Edit]" = (),
        on_progress: Callable[[float], object] = lambda _: None,
    ) -> "Trace":
        """Return the Trace of a sentence and its translation, or of a sentence and the target passed.

        Args:
            source: the sentence.
            target: forced, as text or as ids; for an encoder its second sentence; None: the model's own translation,
                made under the edits, or for an untrained model the one that it borrows.
            record: globs over the names of the tensors to record.
            edits: changes to the model for this Trace alone.
            on_progress: called repeatedly with the share of a long text's attention that is done; may raise, to leave.

        Raises:
            VisformerError: the text exceeds a limit, or the model cannot be loaded.
        """
        request = self._sized(_Request(source, target, tuple(record), tuple(edits)))
        texts = self._checked(request)
        compute, progress = partial(self._run_trace, request, texts[1]), Progress()

        def look() -> None:
            on_progress(progress.share)

        def report_it(runner: "_Runner") -> "Trace":
            with reporting_to(progress):
                return compute(runner)

        how: dict[str, Any] = {"times": len(edits), "is_long": request.takes_long, "look": look}
        return self._result(request, texts, report_it, **how)

    def part(self, source: str, target: str | None, path: str, *, session: str = "") -> bytes | None:
        """Return a part of a head of the Trace of a long text, see :mod:`visformer.web.tiles`; for threads of any kind.

        Args:
            source: the text.
            target: as for :meth:`trace`.
            path: which part.
            session: that the computing time is charged to.

        Raises:
            VisformerError: too many wait, or it takes too long.
        """
        key = ("part", source, target, path)
        known: _Measured | None = self._cached(key)
        if known is None:
            how = self._how(_Request(source, target, LONG), target)
            work = partial(self._once, key, partial(_run_part, path, how, self._runner(self.load().result(), "long")))
            known = ADMISSION.run((id(self), key), work, on_wait=lambda _: None, session=session, kind="long")
        part: bytes | None = known.value
        return part

    def is_long(self, source: str, target: str | None) -> bool:
        """Whether heads of this text are computed on demand in a picture that records :data:`LONG`."""
        return self._sized(_Request(source, target, LONG)).record == LONG

    def _sized(self, request: _Request) -> _Request:
        """Record all patterns where a picture of long texts shows one whose patterns take little memory."""
        if request.record != LONG:
            return request
        request = replace(request, takes_long=True)
        whole = replace(request, record=PATTERNS)
        texts = [request.source, *([request.target] if isinstance(request.target, str) else [])]
        is_short = sum(map(len, texts)) <= limits.MAX_CHARACTERS and self.pictures == "none"
        if is_short or self.holds(request.source, None, PATTERNS):
            return whole
        model = self.loaded(*texts, is_long=True)
        info, others = model.info, [self._n_tokens(model, text) for text in texts[1:]]
        n_src = self._n_tokens(model, self._read(texts[0]))
        n_tgt = sum(others) if others else 2 * n_src  # about what a translation takes
        cells = info.n_encoder_layers * n_src**2 + info.n_decoder_layers * (n_tgt + n_src) * n_tgt
        if info.kind == "decoder":
            cells = info.n_decoder_layers * (n_src + sum(others)) ** 2
        return whole if 4 * info.n_heads * cells <= limits.WHOLE_BYTES else request

    def expect(self, source: str, target: str | None, record: Sequence[str]) -> "Future[Trace] | None":
        """Start computing a Trace that :meth:`trace` will be called for; does nothing until the model is loaded.

        Returns:
            The future Trace, or what :meth:`trace` will raise; None: it is cached, or was not started.
        """
        if not self.is_loaded or (target is None and self._lends_target is not None):
            return None
        request = self._sized(_Request(source, target, tuple(record)))
        model = self.loaded(*(texts := self._checked(request)), is_long=request.takes_long)
        if self._cached(request) is not None or self._kind(model, texts) == "long":
            return None
        compute = partial(self._run_trace, request, texts[1], self._runner(model))
        return ADMISSION.begin((id(self), request), partial(self._once, request, compute), session=own_session())

    def _checked(self, request: _Request) -> _Texts:
        """Check the texts that were typed; return them, the second one as it was typed or is borrowed."""
        checks.check_text(request.source, _FIRST_BOX, is_long=request.takes_long)
        target = request.target
        if isinstance(target, str):
            checks.check_text(target, SECOND_BOX[self.kind], is_long=request.takes_long)
        elif target is not None:
            checks.check_tokens(len(target))
        elif self._lends_target is not None and not self.holds(request.source, None, request.record):
            return request.source, self._lends_target(request.source)
        return request.source, target if isinstance(target, str) else None

    def _run_trace(self, request: _Request, second: str | None, runner: "_Runner") -> "Trace":
        """Run the forward pass, or the passes of a translation; ``second``: the text of the second box."""
        forced = second if second is not None else request.target
        known = self._known_translation(request, runner) if forced is None and not request.edits else None
        if known is not None:
            return known
        if request.record == LONG:
            work: Callable[[TracedModel], Trace] = partial(overview, **self._how(request, forced))
            return runner.analyse(work) if isinstance(runner, RemoteModel) else work(runner)
        how = self._how(request, forced)
        return (runner if isinstance(runner, RemoteModel) else runner.reading(how["source"])).trace(**how)

    @property
    def takes_chats(self) -> bool:
        """Whether the model has a chat template; until it is loaded, it is not known to have one."""
        is_there = self._model is not None and self.is_loaded and self._model.exception() is None
        return is_there and self._model is not None and self._model.result().takes_chats

    @property
    def pictures(self) -> str:
        """Which pictures the model reads, see :class:`visformer.adapters.base.TracedModel`; "none" until it is loaded.

        A captioner of ours reads its picture from the text itself.
        """
        is_there = self._model is not None and self.is_loaded and self._model.exception() is None
        return self._model.result().pictures if is_there and self._model is not None else "none"

    def _read(self, source: str) -> Any:
        """What the model reads of a text: the picture that it names, or the messages of a chat."""
        pictures, (name, rest) = self.pictures, uploaded_pictures.named(source)
        if pictures == "with" and name == uploaded_pictures.NONE:
            source = rest
        elif pictures in ("alone", "with") or (pictures == "instead" and name):
            prompt = uploaded_pictures.prompt_of(source)
            return replace(prompt, text=self._chat_or_text(prompt.text) if pictures == "with" else "")
        return self._chat_or_text(source)

    def _chat_or_text(self, text: str) -> Any:
        return (self.takes_chats and messages_of(text)) or text

    def _how(self, request: _Request, forced: Any) -> dict[str, Any]:
        """Arguments of a model's method ``trace``."""
        target, pair = (None, forced) if self.kind == "encoder" else (forced, None)
        how = {"source": self._read(request.source), "target": target, "pair": pair, "record": request.record}
        return {**how, "edits": request.edits}

    def _known_translation(self, request: _Request, runner: "_Runner") -> "Trace | None":
        """Record more tensors of a cached translation; decoding it again would take most of the time."""
        known: Trace | None = self._cached(_Request(request.source, None, PATTERNS))
        ids = known.meta.get("ids") if known is not None and self.kind == "encoder-decoder" else None
        if known is None or not isinstance(ids, dict) or not ids.get("next"):
            return None
        read = self._read(request.source)
        trace = runner.trace(read, tuple(ids["next"][:-1]), record=request.record, edits=())
        if trace.meta.get("ids") != ids:  # it was cut off
            return None
        return replace(trace, meta={**trace.meta, **known.meta})  # what was not recorded before has names of its own

    def decoded(
        self,
        source: str,
        *,
        edits: "Sequence[Edit]" = (),
        on_progress: Callable[[float], object] = lambda _: None,
        **settings: Any,
    ) -> "Decoding":
        """Return the model's translation or answer with its decoding steps; arguments and errors as for :meth:`trace`.

        ``settings`` are those of ``translate``. Edits at places that decoding does not reach have no effect.
        """
        checks.check_text(source, _FIRST_BOX)
        settings["edits"] = tuple(edits)
        key = (source, "decoded", *sorted(settings.items()))
        times, progress = max(settings.get("beam_size", 1), len(edits)), Progress()
        self.loaded(source)

        def decode(runner: "_Runner") -> "Decoding":
            with reporting_to(progress):
                read = self._read(source)
                used = runner if isinstance(runner, RemoteModel) else runner.reading(read)
                return used.translate(read, **settings)

        return self._result(key, (source, None), decode, times=times, look=lambda: on_progress(progress.share))

    def measured(
        self,
        analysis: Callable[..., Any],
        source: str,
        target: str | None,
        *,
        on_progress: Callable[[float], object] = lambda _: None,
        **settings: Any,
    ) -> Any:
        """Return what an analysis finds; it runs where long computations do, and keeps no sentence waiting.

        Args:
            analysis: a function of a module, called with the model, both texts and ``settings``; its result is pickled.
            source: the sentence.
            target: as for :meth:`trace`.
            on_progress: called repeatedly with the share of its runs that are done; may raise, to leave.
            settings: hashable keywords.

        Raises:
            VisformerError: a text exceeds a limit, or what the analysis raises.
        """
        checks.check_text(source, _FIRST_BOX)
        if target is not None:
            checks.check_text(target, SECOND_BOX[self.kind])
        elif self._lends_target is not None:
            target = self._lends_target(source)
        progress = Progress()
        model = self.loaded(source, target)
        work = partial(_analyse, analysis, self._read(source), target, settings)
        key = (analysis.__qualname__, source, target, *sorted(settings.items()))
        compute = partial(_run_analysis, work, model, progress)

        def look() -> None:
            on_progress(progress.share)

        return self._result(key, (source, target), compute, kind="long", look=look).value

    @enough_memory()
    def _result(
        self,
        key: Hashable,
        texts: _Texts,
        compute: "Callable[[_Runner], _Result]",
        *,
        times: int = 1,
        kind: WorkKind | None = None,
        look: Callable[[], object] = lambda: None,
        is_long: bool = False,
    ) -> _Result:
        """Return a result from the cache, or else compute and cache it. All that a page waits for is started here.

        ``times``: number of beams or of changes; ``look``: called repeatedly while the page waits.
        """
        result: _Result | None = self._cached(key)
        if result is not None:
            ADMISSION.counts.add("cached")
            return result
        model = self.loaded(*texts, is_long=is_long)
        kind = kind or self._kind(model, texts, max(1, times))
        work = partial(self._once, key, partial(compute, self._runner(model, kind)))
        with aside(), ADMISSION.notice() as on_wait:

            def wait(before: int | None) -> None:
                on_wait(before)
                look()

            return ADMISSION.run((id(self), key), work, on_wait=wait, session=own_session(), kind=kind)

    def _kind(self, model: "TracedModel", texts: _Texts, times: int = 1) -> WorkKind:
        """Estimate whether this is more than an ordinary computation; ``times``: number of beams or of changes."""
        source, target = texts
        tokens = self._n_tokens(model, self._read(source)) + (0 if target is None else self._n_tokens(model, target))
        return "long" if self._always_long or tokens * times > limits.ORDINARY else "ordinary"

    @staticmethod
    def _n_tokens(model: "TracedModel", given: Any) -> int:
        return len(model.reading(given).tokenize(given))

    def _runner(self, model: "TracedModel", kind: WorkKind = "ordinary") -> "_Runner":
        """Return what runs the model's forward passes: the workers, or the model itself."""
        return (self.long_runner if kind == "long" else None) or self._workers or model

    def _once(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Compute and cache a result, unless another visitor was a moment earlier."""
        result: _Result | None = self._cached(key)
        if result is None:
            result = compute()
            self._store(key, result)
        return result

    @enough_memory()
    def loaded(self, source: str | None = None, target: str | None = None, *, is_long: bool = False) -> "TracedModel":
        """Wait for the model and return it, after checking the texts of both boxes, if any, against its limits.

        Raises:
            VisformerError: a text is too long, or the model cannot be loaded.
        """
        loading = self.load()
        with aside():
            model = loading.result()
        read = None if source is None else self._read(source)
        model = model.reading(read)
        room, second = model.info.max_tokens, SECOND_BOX[model.info.kind]
        for text, box in ((read, _FIRST_BOX), (target, second)):
            if text is not None and (model.info.grid is None or box == second):  # a picture is never too long
                checks.check_tokens(self._n_tokens(model, text), room, box=box, is_long=is_long)
        if read is not None and target is not None and model.info.kind != "encoder-decoder":  # one sequence
            tokenize: Callable[..., tuple[str, ...]] = model.tokenize
            n_tokens = len(tokenize(read, target))
            checks.check_tokens(n_tokens, room, box=N_("Both boxes together"), is_long=is_long)
        return model

    def reading(self, source: str) -> "TracedModel":
        """Wait for the model, and return what of it reads a text, see :meth:`TracedModel.reading`."""
        return self.loaded().reading(self._read(source))

    @property
    def kind(self) -> str:
        """The model's kind; until it is loaded, that of the bundled model."""
        return self._model.result().info.kind if self._model is not None and self.is_loaded else "encoder-decoder"

    @property
    def blocks(self) -> "Blocks | None":
        """The model's architecture; until it is loaded, that of its example; None: not known."""
        if self._model is not None and self.is_loaded and self._model.exception() is None:
            return self._model.result().info.blocks
        return self._shipped


def _run_part(path: str, how: Mapping[str, Any], runner: _Runner) -> _Measured:
    work: Callable[[TracedModel], bytes | None] = partial(part, path=path, **how)
    value = runner.analyse(work) if isinstance(runner, RemoteModel) else work(runner)
    return _Measured(value, len(value or b""))


def _run_analysis(
    work: "Callable[[TracedModel], Any]", model: "TracedModel", progress: Progress, runner: _Runner
) -> _Measured:
    """Run an analysis where the model is; this process's own may be an outline, which computes nothing."""
    with reporting_to(progress):
        value = runner.analyse(work) if isinstance(runner, RemoteModel) else work(model)
    return _Measured(value, len(pickle.dumps(value)))


def _analyse(
    analysis: Callable[..., Any],
    source: Any,
    target: str | None,
    settings: Mapping[str, Any],
    model: "TracedModel",
) -> Any:
    return analysis(model.reading(source), source, target, **settings)


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """Return this process's workbench of the default model."""
    send_at_once()  # under plain `streamlit run`
    name = MODEL

    def load() -> "TracedModel":
        from visformer.adapters.load import load_to_serve

        with discreetly(name):
            return load_to_serve(name)

    return Workbench(load, folder_of(name) / "example.safetensors")


@st.cache_resource(show_spinner=False)
def width() -> int | None:
    """Return the default model's d_model, from its file and without importing torch; None: there is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(folder_of(MODEL) / "model.safetensors"), framework="numpy") as file:
            return int(json.loads(file.metadata()["config"])["d_model"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError):
        return None  # the page that needs the model will show the error


@st.cache_resource(show_spinner=False, max_entries=limits.BENCHES)
def _other_workbench(name: str) -> Workbench:
    runner = RemoteModel(name)

    def load() -> "TracedModel":
        from visformer.adapters.load import outline

        if is_untrained_name(name):
            return outline(name)
        if is_trained_name(name):
            return ADMISSION.run(
                ("outline", name), partial(_learned, runner, name), on_wait=lambda _: None, kind="long"
            )
        return ADMISSION.run(("outline", name), runner.outline, on_wait=lambda _: None, kind="long")

    lends_target = _translation if is_untrained_name(name) else None
    bench = Workbench(load, folder_of(name) / "example.safetensors", lends_target=lends_target, always_long=True)
    bench.long_runner = runner
    return bench


def _learned(runner: RemoteModel, name: str) -> "TracedModel":
    """Hand a model that was trained here over to where long computations run; it is trained anew if it is gone."""
    weights = RUNS.weights(name)
    if weights is not None:
        LONG_WORK.run(partial(receive, name, weights), models=[name])
    return runner.outline()


def workbench_of(name: str | None) -> Workbench:
    """Return the workbench of a model that a visitor chose; None: no choice yet.

    Raises:
        VisformerError: the operator does not offer it, or it has to be downloaded first.
    """
    require_servable(name)
    if not name or name == MODEL:
        return workbench()
    return _other_workbench(name)


def require_servable(name: str | None) -> None:
    """Raise what :func:`workbench_of` raises, without making a workbench."""
    name = model_of(name)[0] if name else None  # of a moment of its training
    if not name or name == MODEL:
        return
    if is_untrained_name(name):
        checks.check_untrained(Untrained.named(name))
    elif made_here(name) is None:
        require_allowed(name)
        require_here(name)


def _translation(source: str) -> str:
    """Return the bundled model's translation; untrained models borrow it, so that both read the same words."""
    bench = workbench() if MODEL == TRANSLATOR else _other_workbench(TRANSLATOR)
    return str(bench.trace(source, None).meta["target"])


def serve_a_room() -> Workbench:
    """Return the default model's workbench, loading, with its worker processes and one for long computations."""
    bench = workbench()
    chosen = settings.PROCESSES()
    if processes := ADMISSION.at_once if chosen is None else chosen:
        LONG_WORK.start()
        bench.start_workers, bench.long_runner = partial(in_processes, MODEL, processes), RemoteModel(MODEL)
    bench.load()
    return bench
