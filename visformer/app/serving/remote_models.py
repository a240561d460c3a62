"""Models in worker processes, by name: those for sentences hold one, that for long work as many as there is room for.

Functions and arguments must be picklable, and models are passed by name, so that waiting work holds no model. Without
processes (VISFORMER_PROCESSES=0, the default), all of this runs in the server's own.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from visformer.app.serving.models import discreetly
from visformer.app.serving.workers import Workers
from visformer.system.cache import CACHE
from visformer.system.settings import trace_bytes
from visformer.trace.overview import PatternOnDemand
from visformer.web.tiles import part_of

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text
    from visformer.edits import Edit
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace

_R = TypeVar("_R")


class RemoteModel:
    """A model by its name, loaded where its calls run: in processes for sentences, or where long work is done."""

    def __init__(self, name: str, workers: Workers | None = None) -> None:
        """Use a model; ``workers``: processes that hold it, see :func:`in_processes`; None: that for long work."""
        self._name, self._workers = name, workers

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of processes of its own."""
        return self._workers.pids if self._workers is not None else ()

    def trace(
        self,
        source: "Text",
        target: "Text | None" = None,
        *,
        pair: "Text | None" = None,
        record: Sequence[str] = ("*.pattern",),
        edits: "Sequence[Edit]" = (),
    ) -> "Trace":
        """See :meth:`visformer.adapters.base.TracedModel.trace`."""
        return self.analyse(partial(_trace, source=source, target=target, pair=pair, record=record, edits=edits))

    def translate(self, source: "Text", **settings: Any) -> "Decoding":
        """See :meth:`visformer.adapters.base.TracedModel.translate`."""
        return self.analyse(partial(_translate, source=source, **settings))

    def outline(self) -> "TracedModel":
        """See :meth:`visformer.adapters.base.TracedModel.outline`."""
        return self.analyse(_outline)

    def analyse(self, work: "Callable[[TracedModel], _R]") -> _R:
        """Call a function that can be pickled with the model."""
        call = partial(_with_model, self._name, work)
        return self._workers.call(call) if self._workers is not None else LONG_WORK.run(call, models=[self._name])


def in_processes(name: str, processes: int) -> RemoteModel:
    """Start so many processes for sentences, which load the model in parallel, and wait until they are ready.

    Raises:
        VisformerError: it cannot be loaded.
    """
    return RemoteModel(name, Workers(partial(model, name), processes=processes))


class LongWork:
    """Runs long computations at low priority, one at a time, as admission grants them."""

    def __init__(self) -> None:
        self._workers: Workers | None = None
        self._evictions = ThreadPoolExecutor(1, "evictions")

    def start(self) -> None:
        """Start the process."""
        self._workers = self._workers or Workers(_import_torch, nice=19)

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process id; empty if there is none."""
        return self._workers.pids if self._workers is not None else ()

    def run(self, work: Callable[[], _R], *, models: Iterable[str] = ()) -> _R:
        """Call a function in that process, if there is one; ``models``: names of those that it loads.

        Raises:
            BudgetError: there is no room for its models, so it was not called.
        """
        with ExitStack() as used:
            for name in models:
                from visformer.adapters.load import nbytes_of

                key, make_room = ("model", name), partial(self._evictions.submit, self._call, partial(_forget, name))
                used.enter_context(CACHE.using(key, CACHE.get(key) or nbytes_of(name), make_room))
            self._evictions.submit(int).result()  # models that made room are gone before others are loaded
            return self._call(work)

    def _call(self, work: Callable[[], _R]) -> _R:
        return work() if self._workers is None else self._workers.call(work)


LONG_WORK = LongWork()

# What runs in the processes -------------------------------------------------------------------------------------------

_MODELS: "dict[str, TracedModel]" = {}
"""Models loaded in this process; where several are, the server decides which of them to drop."""


def model(name: str) -> "TracedModel":
    """Return a model, loaded in this process.

    Raises:
        VisformerError: it cannot be loaded.
    """
    from visformer.adapters.load import load_to_serve

    if name not in _MODELS:
        with discreetly(name):
            _MODELS[name] = load_to_serve(name)
    return _MODELS[name]


def receive(name: str, weights: Mapping[str, Any]) -> None:
    """Take the weights of a model that was trained elsewhere on this server, see :func:`visformer.adapters.load`."""
    from visformer.adapters.load import trained_here

    _MODELS.setdefault(name, trained_here(name, weights))


def _import_torch() -> None:
    import visformer.adapters.load  # noqa: F401  # before anybody waits for it


def _forget(name: str) -> None:
    _MODELS.pop(name, None)


def _with_model(name: str, work: "Callable[[TracedModel], _R]") -> _R:
    return work(model(name))


def _trace(used: "TracedModel", **how: Any) -> "Trace":
    return used.reading(how["source"]).trace(**how)


class LongTexts:
    """Traces of long texts that were computed in this process: what their heads are computed from stays here."""

    def __init__(self) -> None:
        self._traces: OrderedDict[Hashable, Trace] = OrderedDict()
        self._lock = Lock()

    def trace(self, used: "TracedModel", how: Mapping[str, Any]) -> "Trace":
        """Return a Trace as it is held, or compute it; ``how``: arguments of its method, hashable."""
        key = (used.info.name, *sorted(how.items()))
        with self._lock:
            trace = self._traces.pop(key, None)
        trace = trace or used.reading(how["source"]).trace(**how)
        with self._lock:
            self._traces[key] = trace
            while len(self._traces) > 1 and sum(each.nbytes for each in self._traces.values()) > trace_bytes():
                self._traces.popitem(last=False)
        return trace


_LONG_TEXTS = LongTexts()


def overview(used: "TracedModel", **how: Any) -> "Trace":
    """Return a Trace of a long text without what its heads are computed from, which :func:`part` reads here."""
    trace = _LONG_TEXTS.trace(used, how)
    tensors = {
        name: tensor.without_heads() if isinstance(tensor, PatternOnDemand) else tensor
        for name, tensor in trace.tensors.items()
    }
    return replace(trace, tensors=tensors)


def part(used: "TracedModel", path: str, **how: Any) -> bytes | None:
    """Compute a part of a head of a Trace that :func:`overview` returned; see :mod:`visformer.web.tiles`."""
    return part_of(_LONG_TEXTS.trace(used, how), path)


def _translate(used: "TracedModel", **how: Any) -> "Decoding":
    return used.reading(how["source"]).translate(**how)


def _outline(used: "TracedModel") -> "TracedModel":
    return used.outline()


def history_file(name: str, source: str, target: str | None, *, start: Mapping[str, Any], language: str) -> bytes:
    """Return the page of a sentence at every moment of a model's training, see :mod:`visformer.web.page`."""
    from visformer.export.drawables import Options
    from visformer.export.formats import file_of
    from visformer.figures import source_of
    from visformer.pictures.attention import HISTORY

    used = model(name)
    second = {"pair" if used.info.kind == "encoder" else "target": target}
    head = {place: start[place] for place in ("stack", "layer", "head")}
    history = HISTORY.make(source_of(used, source, **second), head)
    return file_of("HTML", history, Options(start=start, lang=language))
