"""What all sessions share: the model, loaded behind the first picture, and the Traces made with it.

The first picture is the shipped Trace of the first example. It is painted before torch is imported.
"""

import gc
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

import visformer
from visformer.errors import VisformerError
from visformer.ui import limits
from visformer.ui.models import MODEL, require_allowed

if TYPE_CHECKING:  # torch, and numpy
    from visformer.edits import Edit
    from visformer.trace import Trace

TRACE_BYTES = 256 * 2**20
"""Traces kept for all visitors together: a short sentence's takes 50 kB, the longest's 20 MB."""

PATTERNS = ("*.pattern",)
"""What the attention page records, and the shipped Trace holds."""

HEAD_START = 2.0
"""Seconds that the first picture gets before torch is imported: both want the same cores. Nobody types faster, and a
sentence that comes earlier does not wait for it."""


class TraceCache:
    """Traces by key; the least recently used go when they hold too many bytes together."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._traces: OrderedDict[Hashable, Trace] = OrderedDict()

    def get(self, key: Hashable) -> "Trace | None":
        """The Trace, now the most recently used, or None."""
        with self._lock:
            if key in self._traces:
                self._traces.move_to_end(key)
            return self._traces.get(key)

    def put(self, key: Hashable, trace: "Trace") -> None:
        """Keep a Trace; one larger than the whole budget is not kept."""
        with self._lock:
            self._traces[key] = trace
            self._traces.move_to_end(key)
            while self._traces and self.nbytes > self._budget:
                self._traces.popitem(last=False)

    @property
    def nbytes(self) -> int:
        """Bytes held at present."""
        return sum(trace.nbytes for trace in self._traces.values())

    def __len__(self) -> int:
        return len(self._traces)


class Workbench:
    """The model, and the Traces made with it. Shared by all sessions: frozen Traces, no lock around the model."""

    def __init__(self, load: Callable[[], Any], example: Path, budget: int = TRACE_BYTES) -> None:
        self._load = load
        self._model: Future[Any] | None = None
        self._lock = threading.Lock()
        self._traces = TraceCache(budget)
        self._take_example(example)

    def _take_example(self, path: Path) -> None:
        from visformer.trace import Trace

        try:
            trace = Trace.load(path)
        except VisformerError:
            return  # a model of the operator's own may ship none: the first picture then waits for the model
        self._traces.put((trace.meta.get("source"), None, PATTERNS, ()), trace)

    @property
    def is_loaded(self) -> bool:
        """Whether a sentence can be run without waiting for the model."""
        return self._model is not None and self._model.done()

    def load_soon(self) -> None:
        """Load the model in the background, once the page that asks for it has been painted."""
        if self._model is None:
            timer = threading.Timer(HEAD_START, self._start)
            timer.daemon = True
            timer.start()

    def _start(self) -> Future[Any]:
        with self._lock:
            if self._model is not None:
                return self._model
            model = self._model = Future()
        # No daemon: torch aborts the process if it is cut off in the middle of its import.
        threading.Thread(target=self._run, args=(model,)).start()
        return model

    def _run(self, model: Future[Any]) -> None:
        try:
            loaded = self._load()
        except BaseException as error:
            self._model = None  # the next request tries again: the operator may have restored the file
            model.set_exception(error)
            return
        # Streamlit collects garbage after every run; with torch's objects that would take 200 ms each time.
        gc.collect()
        gc.freeze()
        model.set_result(loaded)

    def holds(self, source: str, target: str | None, record: Sequence[str] = PATTERNS) -> bool:
        """Whether this Trace is at hand, without running or waiting for the model."""
        return self._traces.get((source, target, tuple(record), ())) is not None

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
            target: to be forced, as text or as ids; None: the model's own translation, made under the edits.
            record: what the page shows.
            edits: change the model for this Trace alone.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """
        limits.check_text(source)
        text = target if isinstance(target, str) else None
        if text is not None:
            limits.check_text(text)
        elif target is not None:
            limits.check_tokens(len(target))
        key = (source, target, tuple(record), tuple(edits))
        found = self._traces.get(key)
        if found is None:
            model = self.loaded(source, text)
            found = model.trace(source, target, record=tuple(record), edits=tuple(edits))
            self._traces.put(key, found)
        return found

    def translated(self, source: str, edits: "Sequence[Edit]") -> str:
        """The model's translation under edits. An edit of a place that it does not reach does not apply to it.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """
        limits.check_text(source)
        return str(self.loaded(source).translate(source, edits=tuple(edits)).text)

    def loaded(self, *texts: str | None) -> Any:
        """The model, once it is loaded; texts that it is to run are held against the limits first.

        Raises:
            VisformerError: text that is too long, or no model.
        """
        model = self._start().result()
        for text in texts:
            if text is not None:
                limits.check_tokens(len(model.tokenize(text)), model.info.max_tokens)
        return model

    def untrained(self, source: str, target: str, *, norm: Literal["pre", "post"], record: Sequence[str]) -> "Trace":
        """The Trace of the pair through a model of the same sizes that has learned nothing.

        Raises:
            VisformerError: text that cannot be shown, or no model.
        """
        key = (source, target, tuple(record), f"untrained {norm}")
        found = self._traces.get(key)
        if found is None:
            from visformer.loading import untrained

            found = untrained(self.loaded(source, target), norm=norm).trace(source, target, record=tuple(record))
            self._traces.put(key, found)
        return found


BENCHES = 3
"""Models besides the first that are kept loaded; the one that was used longest ago goes."""


@st.cache_resource(show_spinner=False)
def workbench() -> Workbench:
    """The one workbench of this process for the model that every page shows."""
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


@st.cache_resource(show_spinner=False, max_entries=BENCHES)
def _other_workbench(name: str) -> Workbench:
    return _bench_of(name)


def workbench_of(name: str | None) -> Workbench:
    """The workbench of a model that the visitor chose; None: no choice was made.

    Raises:
        VisformerError: the operator does not offer it.
    """
    if name is None or name == MODEL:
        return workbench()
    require_allowed(name)
    return _other_workbench(name)


def _bench_of(name: str) -> Workbench:
    def load() -> Any:
        from visformer.loading import load_to_serve

        return load_to_serve(name)

    return Workbench(load, _folder(name) / "example.safetensors")


def _folder(model: str) -> Path:
    bundled = Path(visformer.__file__).parent / "checkpoints" / model
    return bundled if bundled.is_dir() else Path(model)
