"""What all sessions share: the model, loaded behind the first picture, and the Traces made with it.

The first picture is the shipped Trace of the first example. It is painted before torch is imported.
"""

import gc
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import streamlit as st

import visformer
from visformer.adapters.bundled import BUNDLED
from visformer.app.serving import checks, sockets
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.model_downloads import require_here
from visformer.app.serving.models import MODEL, SECOND_BOX, discreet, offered, require_allowed
from visformer.app.serving.worker_pool import WorkerPool
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


class _Result(Protocol):
    @property
    def nbytes(self) -> int: ...


_Kept = TypeVar("_Kept", bound=_Result)


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

    def put(self, key: Hashable, result: Any, nbytes: int) -> None:
        """Keep a result that holds so many bytes; one larger than the whole budget is not kept."""
        if nbytes > self._budget:
            return
        with self._lock:
            self.nbytes += nbytes - self._results.pop(key, (None, 0))[1]
            self._results[key] = (result, nbytes)
            while self.nbytes > self._budget:
                self.nbytes -= self._results.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._results)


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
        self._load, self._lends_target = load, lends_target
        self._move_out: Callable[[], WorkerPool] | None = None
        self._workers: WorkerPool | None = None
        self._model: Future[Any] | None = None
        self._lock = threading.Lock()
        self._results = Cache(budget)
        self.problem: BaseException | None = None  # why the last attempt to load the model came to nothing
        self._take_example(example)

    def _take_example(self, path: Path) -> None:
        from visformer.trace import Trace

        try:
            trace = Trace.load(path)
        except VisformerError:
            return  # a model of the operator's own may ship none: the first picture then waits for the model
        self._results.put((trace.meta.get("source"), None, PATTERNS, ()), trace, trace.nbytes)

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

    def move_out(self, start: Callable[[], WorkerPool]) -> None:
        """Have forward passes made by processes of their own, which start when the model is loaded."""
        self._move_out = start

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
            if self._model is not None:
                return self._model
            model: Future[Any] = Future()
            # No daemon: torch aborts the process if it is cut off in the middle of its import.
            thread = threading.Thread(target=self._run, args=(model,))
            self._model = model
            try:
                thread.start()
            except RuntimeError:  # no memory for it: the next request tries again
                self._model = None
                raise
        return model

    def _run(self, model: Future[Any]) -> None:
        try:
            loaded = self._load()
            self._workers = self._move_out() if self._move_out is not None else None
        except BaseException as error:
            self.problem = error
            self._model = None  # the next request tries again: the operator may have restored the file
            model.set_exception(error)
            return
        # A full collection of garbage would look through torch's objects each time, for 200 ms.
        gc.collect()
        gc.freeze()
        self.problem = None
        model.set_result(loaded)

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
            Where it will be; None: it is here, or was not begun.

        Raises:
            VisformerError: as :meth:`trace` will raise it.
        """
        if not self.is_loaded or (target is None and self._lends_target is not None):
            return None
        key, load, make = self._asked(source, target, tuple(record), ())
        if self._results.get(key) is not None:
            return None
        return ADMISSION.begin((id(self), key), self._work(key, load(), make))

    def _asked(
        self, source: str, target: str | tuple[int, ...] | None, record: tuple[str, ...], edits: "tuple[Edit, ...]"
    ) -> "tuple[Hashable, Callable[[], Any], Callable[[Any], Trace]]":
        """Under which key a Trace is kept, what loads its model, and what makes it."""
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
            made: Trace = self._passes(model).trace(source, **given, record=record, edits=edits)
            return made

        return (source, target, record, edits), lambda: self.loaded(source, text), make

    def _of_the_same(self, model: Any, source: str, record: tuple[str, ...]) -> "Trace | None":
        """More tensors of a translation that is known: finding it anew would take most of the time."""
        known: Trace | None = self._results.get((source, None, PATTERNS, ()))
        ids = known.meta.get("ids") if known is not None and model.info.kind == "encoder-decoder" else None
        if known is None or not isinstance(ids, dict) or not ids.get("next"):
            return None
        made: Trace = self._passes(model).trace(source, target=tuple(ids["next"][:-1]), record=record, edits=())
        return replace(made, meta=known.meta) if made.meta.get("ids") == ids else None  # it may have been cut off

    def _passes(self, model: Any) -> Any:
        """Who makes the model's forward passes."""
        return self._workers if self._workers is not None else model

    def decoded(self, source: str, *, edits: "Sequence[Edit]" = (), **settings: Any) -> "Decoding":
        """The model's translation, and how it came about. An edit of a place that it does not reach does not apply.

        Args:
            source: the sentence.
            edits: change the model for this decoding alone.
            settings: as ``translate`` takes them.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """
        checks.check_text(source, _FIRST_BOX)
        given = {**settings, "edits": tuple(edits)}

        def make(model: Any) -> "Decoding":
            made: Decoding = self._passes(model).translate(source, **given)
            return made

        return self._once((source, "decoded", *sorted(given.items())), lambda: self.loaded(source), make)

    @enough_memory()
    def _once(self, key: Hashable, load: Callable[[], Any], make: Callable[[Any], _Kept]) -> _Kept:
        """What is kept under a key; else made, in its turn, and kept. The only way to the model's forward passes."""
        found: _Kept | None = self._results.get(key)
        if found is not None:
            ADMISSION.counts.add("cached")
            return found
        work = self._work(key, load(), make)
        with ADMISSION.notice() as look:
            return ADMISSION.run((id(self), key), work, look=look)

    def _work(self, key: Hashable, model: Any, make: Callable[[Any], _Kept]) -> Callable[[], _Kept]:
        """What makes it, once."""

        def work() -> _Kept:
            made: _Kept | None = self._results.get(key)  # by another visitor, who was a moment earlier
            if made is None:
                made = make(model)
                self._results.put(key, made, made.nbytes)
            return made

        return work

    @enough_memory()
    def loaded(self, source: str | None = None, target: str | None = None) -> Any:
        """The model, once it is loaded; texts that it is to run are held against the limits first.

        Args:
            source: the sentence.
            target: what stands in the second box; except of an encoder-decoder it joins the sentence in one row.

        Raises:
            VisformerError: text that is too long, or no model.
        """
        model = self.load().result()
        room, second = model.info.max_tokens, SECOND_BOX[model.info.kind]
        for text, box in ((source, _FIRST_BOX), (target, second)):
            if text is not None:
                checks.check_tokens(len(model.tokenize(text)), room, box=box)
        if source is not None and target is not None and model.info.kind != "encoder-decoder":
            checks.check_tokens(len(model.tokenize(source, target)), room, box=N_("Both boxes together"))
        return model

    @property
    def kind(self) -> str:
        """Of the model; before it is loaded, that of our own."""
        return self._model.result().info.kind if self._model is not None and self.is_loaded else "encoder-decoder"

    def untrained(self, source: str, target: str, *, norm: str, record: Sequence[str]) -> "Trace":
        """The Trace of the pair through a model of the same sizes that has learned nothing.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """

        def make(model: Any) -> "Trace":
            from visformer.adapters.load import untrained

            return untrained(model, norm=norm).trace(source, target, record=tuple(record))

        key = (source, target, tuple(record), f"untrained {norm}")
        return self._once(key, lambda: self.loaded(source, target), make)


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """The one workbench of this process for the model that every page shows."""
    sockets.send_at_once()
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


@st.cache_resource(show_spinner=False)
def _bundled_workbench() -> Workbench:
    return _bench_of(BUNDLED[0])


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
    bench = workbench() if MODEL in BUNDLED else _bundled_workbench()
    return str(bench.trace(source, None).meta["target"])


def serve_a_room() -> Workbench:
    """The one workbench, its model loaded now, and with processes of its own: as many as forward passes at a time."""
    bench = workbench()
    wanted = settings.PROCESSES()
    if processes := ADMISSION.at_once if wanted is None else wanted:
        bench.move_out(lambda: WorkerPool(MODEL, processes))
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
