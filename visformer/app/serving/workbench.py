"""What all sessions share: the model, loaded behind the first picture, and the Traces made with it.

The first picture is the shipped Trace of the first example. It is painted before torch is imported.
"""

import gc
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

import visformer
from visformer.adapters.bundled import BUNDLED
from visformer.app.serving import checks
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.model_downloads import require_here
from visformer.app.serving.models import MODEL, SECOND_BOX, discreet, offered, require_allowed
from visformer.app.serving.worker_pool import WorkerPool
from visformer.app.streamlit_private import warm_start
from visformer.errors import N_, VisformerError
from visformer.model.untrained import Untrained, names_untrained
from visformer.system import limits, settings
from visformer.system.memory import enough_memory

if TYPE_CHECKING:  # torch, and numpy
    from visformer.edits import Edit
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace

PATTERNS = ("*.pattern",)
"""What the attention page records, and the shipped Trace holds."""

HEAD_START = 2.0
"""Seconds that the first picture gets before torch is imported: both want the same cores. Nobody types faster, and a
sentence that comes earlier does not wait for it."""

_FIRST_BOX = N_("Sentence")


_Kept = TypeVar("_Kept", "Trace", "Decoding")


class Cache:
    """Results by key; the least recently used go when they hold too many bytes together."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._results: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.nbytes = 0

    def get(self, key: Hashable) -> Any:
        """The result, now the most recently used, or None."""
        with self._lock:
            if key not in self._results:
                return None
            self._results.move_to_end(key)
            return self._results[key][0]

    def put(self, key: Hashable, result: "Trace | Decoding") -> None:
        """Keep a result; one larger than the whole budget is not kept."""
        nbytes = result.nbytes
        if nbytes > self._budget:
            return
        with self._lock:
            self.nbytes += nbytes - self._results.pop(key, (None, 0))[1]
            self._results[key] = (result, nbytes)
            while self.nbytes > self._budget:
                self.nbytes -= self._results.popitem(last=False)[1][1]


class Workbench:
    """The model, and what was made with it. Shared by all sessions: frozen results, no lock around the model."""

    def __init__(
        self,
        load: Callable[[], Any],
        example: Path,
        *,
        budget: int = limits.TRACE_BYTES,
        lends_target: Callable[[str], str] | None = None,
    ) -> None:
        """What is loaded when it is first needed.

        Args:
            load: the model.
            example: a Trace that is there before the model.
            budget: bytes of Traces.
            lends_target: gives the target of a source to a model whose own would mean nothing.
        """
        from visformer.trace import Trace

        self._load, self._lends_target = load, lends_target
        self.start_workers: Callable[[], WorkerPool | None] = lambda: None
        self._workers: WorkerPool | None = None  # make the forward passes
        self._model: Future[Any] | None = None
        self._lock = threading.Lock()
        self._results = Cache(budget)
        self.problem: BaseException | None = None  # why the last attempt to load the model came to nothing
        with suppress(VisformerError):  # a model may ship none: the first picture then waits for the model
            trace = Trace.load(example)
            self._results.put((trace.meta.get("source"), None, PATTERNS, ()), trace)

    @property
    def is_loaded(self) -> bool:
        """Whether a sentence can be run without waiting for the model."""
        return self._model is not None and self._model.done()

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept at present."""
        return self._results.nbytes

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes that make the forward passes, if there are any."""
        return self._workers.pids if self._workers is not None else ()

    def load_soon(self) -> None:
        """Load the model in the background, once the page that asks for it has been painted."""
        if self._model is None:
            timer = threading.Timer(HEAD_START, self.load)
            timer.daemon = True
            with suppress(RuntimeError):  # no memory for a thread: the first sentence loads it
                timer.start()

    def load(self) -> Future[Any]:
        """Load the model in the background, now; where that has begun, this is the same."""
        with self._lock:
            if self._model is None:
                # No daemon: torch aborts the process if it is cut off in the middle of its import.
                self._model = ThreadPoolExecutor(1).submit(self._loaded_now)
            return self._model

    def _loaded_now(self) -> Any:
        try:
            loaded = self._load()
            self._workers = self.start_workers()
        except BaseException as error:
            with self._lock:
                self.problem = error
                self._model = None  # the next request tries again: the operator may have restored the file
            raise
        # A full collection of garbage would look through torch's objects each time, for 200 ms.
        gc.collect()
        gc.freeze()
        self.problem = None
        return loaded

    def holds(self, source: str, target: str | None, record: Sequence[str] = PATTERNS) -> bool:
        """Whether this Trace is at hand, without running or waiting for the model."""
        return self._results.get((source, target, tuple(record), ())) is not None

    def trace(
        self,
        source: str,
        target: str | tuple[int, ...] | None,
        *,
        record: Sequence[str] = PATTERNS,
        edits: "Sequence[Edit]" = (),
    ) -> "Trace":
        """The Trace of a sentence and its translation, or of the pair where a target is given.

        Args:
            source: the sentence.
            target: to be forced, as text or as ids, and of an encoder its second sentence; None: the model's own
                translation, made under the edits, or the one that an untrained model is lent.
            record: what the page shows.
            edits: change the model for this Trace alone.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """
        return self._once(*self._asked(source, target, tuple(record), tuple(edits)))

    def expect(self, source: str, target: str | None, record: Sequence[str]) -> "Future[Trace] | None":
        """Begin with a Trace that :meth:`trace` will be asked for; nothing happens while the model is not loaded.

        Returns:
            Where it will be, and what :meth:`trace` will raise; None: it is here, or was not begun.
        """
        if not self.is_loaded or (target is None and self._lends_target is not None):
            return None
        key, texts, make = self._asked(source, target, tuple(record), ())
        if self._results.get(key) is not None:
            return None
        return ADMISSION.begin((id(self), key), partial(self._made, key, self.loaded(*texts), make))

    def _asked(
        self, source: str, target: str | tuple[int, ...] | None, record: tuple[str, ...], edits: "tuple[Edit, ...]"
    ) -> "tuple[Hashable, tuple[str, str | None], Callable[[Any], Trace]]":
        """Under which key a Trace is kept, the texts of it that the model reads, and what makes it."""
        checks.check_text(source, _FIRST_BOX)
        text = target if isinstance(target, str) else None
        if text is not None:
            checks.check_text(text, SECOND_BOX[self.kind])
        elif target is not None:
            checks.check_tokens(len(target))
        if target is None and self._lends_target is not None and not self.holds(source, None, record):
            text = self._lends_target(source)

        def make(model: Any) -> "Trace":
            forced = target if target is not None else text
            if forced is None and not edits and (known := self._of_the_same(model, source, record)) is not None:
                return known
            given = {"pair" if model.info.kind == "encoder" else "target": forced}
            return self._passes(model).trace(source, **given, record=record, edits=edits)

        return (source, target, record, edits), (source, text), make

    def _of_the_same(self, model: Any, source: str, record: tuple[str, ...]) -> "Trace | None":
        """More tensors of a translation that is known: finding it anew would take most of the time."""
        known: Trace | None = self._results.get((source, None, PATTERNS, ()))
        ids = known.meta.get("ids") if known is not None and model.info.kind == "encoder-decoder" else None
        if known is None or not isinstance(ids, dict) or not ids.get("next"):
            return None
        made = self._passes(model).trace(source, target=tuple(ids["next"][:-1]), record=record, edits=())
        return replace(made, meta=known.meta) if made.meta.get("ids") == ids else None  # it may have been cut off

    def _passes(self, model: Any) -> WorkerPool:
        """Who makes the model's forward passes: the processes, or the model itself."""
        return self._workers or model

    def decoded(self, source: str, *, edits: "Sequence[Edit]" = (), **settings: Any) -> "Decoding":
        """The model's translation, and how it came about; arguments and errors as of :meth:`trace`.

        ``settings`` are those of ``translate``. An edit of a place that it does not reach does not apply.
        """
        checks.check_text(source, _FIRST_BOX)
        given = {**settings, "edits": tuple(edits)}
        key = (source, "decoded", *sorted(given.items()))
        return self._once(key, (source, None), lambda model: self._passes(model).translate(source, **given))

    @enough_memory()
    def _once(self, key: Hashable, texts: tuple[str, str | None], make: Callable[[Any], _Kept]) -> _Kept:
        """What is kept under a key; else made, in its turn, and kept. The only way to the model's forward passes."""
        found: _Kept | None = self._results.get(key)
        if found is not None:
            ADMISSION.counts.add("cached")
            return found
        work = partial(self._made, key, self.loaded(*texts), make)
        with ADMISSION.notice() as look:
            return ADMISSION.run((id(self), key), work, look=look)

    def _made(self, key: Hashable, model: Any, make: Callable[[Any], _Kept]) -> _Kept:
        made: _Kept | None = self._results.get(key)  # by another visitor, who was a moment earlier
        if made is None:
            made = make(model)
            self._results.put(key, made)
        return made

    @enough_memory()
    def loaded(self, source: str | None = None, target: str | None = None) -> Any:
        """The model, once it is loaded; the texts of both boxes, if it is to run them, are held against the limits.

        Raises:
            VisformerError: text that is too long, or no model.
        """
        model = self.load().result()
        room, second = model.info.max_tokens, SECOND_BOX[model.info.kind]
        for text, box in ((source, _FIRST_BOX), (target, second)):
            if text is not None:
                checks.check_tokens(len(model.tokenize(text)), room, box=box)
        if source is not None and target is not None and model.info.kind != "encoder-decoder":  # joined in one row
            checks.check_tokens(len(model.tokenize(source, target)), room, box=N_("Both boxes together"))
        return model

    @property
    def kind(self) -> str:
        """Of the model; before it is loaded, that of our own."""
        return self._model.result().info.kind if self._model is not None and self.is_loaded else "encoder-decoder"

    def untrained(self, source: str, target: str, *, norm: str, record: Sequence[str]) -> "Trace":
        """The Trace of the pair through a model of the same sizes that has learned nothing; errors as of ``trace``."""

        def make(model: Any) -> "Trace":
            from visformer.adapters.load import untrained

            return untrained(model, norm=norm).trace(source, target, record=tuple(record))

        key = (source, target, tuple(record), f"untrained {norm}")
        return self._once(key, (source, target), make)


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """The one workbench of this process for the model that every page shows."""
    warm_start.send_at_once()
    return _bench_of(MODEL)


@st.cache_resource(show_spinner=False)
def width() -> int | None:
    """d_model of the model, as its file says it, without importing torch; None where there is no such file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(_folder(MODEL) / "model.safetensors"), framework="numpy") as file:
            return int(json.loads(file.metadata()["config"])["d_model"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None  # the page that needs the model will say what is wrong with it


@st.cache_resource(show_spinner=False, max_entries=limits.BENCHES)
def _other_workbench(name: str) -> Workbench:
    return _bench_of(name, budget=limits.OTHER_TRACE_BYTES)


@st.cache_resource(show_spinner=False, max_entries=limits.UNTRAINED_BENCHES)
def _untrained_workbench(name: str) -> Workbench:
    return _bench_of(name, budget=limits.OTHER_TRACE_BYTES)


def workbench_of(name: str | None) -> Workbench:
    """The workbench of a model that the visitor chose; None: no choice was made.

    Raises:
        VisformerError: the operator does not offer it, or it has to be downloaded first.
    """
    if name is None or name == MODEL:
        return workbench()
    if names_untrained(name):
        checks.check_untrained(Untrained.named(name))
        return _untrained_workbench(name)
    require_allowed(name)
    require_here(name)
    return _other_workbench(name)


def _translation(source: str) -> str:
    """The bundled translator's, which an untrained model reads instead of its own: so both read the same words."""
    bench = workbench() if MODEL in BUNDLED else _other_workbench(BUNDLED[0])
    return str(bench.trace(source, None).meta["target"])


def serve_a_room() -> Workbench:
    """The one workbench, its model loaded now, and with processes of its own: as many as forward passes at a time."""
    bench = workbench()
    wanted = settings.PROCESSES()
    if processes := ADMISSION.at_once if wanted is None else wanted:
        bench.start_workers = partial(WorkerPool, MODEL, processes)
    bench.load()
    return bench


def _bench_of(name: str, *, budget: int = limits.TRACE_BYTES) -> Workbench:
    def load() -> Any:
        from visformer.adapters.load import load_to_serve

        try:
            return load_to_serve(name)
        except VisformerError as error:
            if name in offered():  # what a visitor typed does not reach a log
                logging.getLogger(__name__).error("%s", error)
            raise discreet(error, name, _folder(name)) from error

    lends_target = _translation if names_untrained(name) else None
    return Workbench(load, _folder(name) / "example.safetensors", budget=budget, lends_target=lends_target)


def _folder(model: str) -> Path:
    bundled = Path(visformer.__file__).parent / "model" / "checkpoints" / model
    return bundled if bundled.is_dir() else Path(model)
