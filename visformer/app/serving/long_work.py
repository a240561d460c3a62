"""Long computations, in a process of their own at low priority; in this process where there is none (app.py).

Functions and arguments must be picklable, and models are passed by name, so that waiting work holds no model.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from visformer.adapters.bundled import TRANSLATOR
from visformer.app.serving import checks
from visformer.app.serving.models import discreetly
from visformer.app.serving.worker_pool import WorkerPool
from visformer.model.untrained import names_untrained
from visformer.system.kept import KEPT

if TYPE_CHECKING:  # torch
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace

_R = TypeVar("_R")


class LongWork:
    """Runs long computations, one at a time, as admission grants them."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None
        self._errands = ThreadPoolExecutor(1, "errands")

    def start(self) -> None:
        """Start the process."""
        self._pool = self._pool or WorkerPool(None, 1)

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process id; empty if there is none."""
        return self._pool.pids if self._pool is not None else ()

    def run(self, work: Callable[..., _R], *given: Any, models: Iterable[str] = (), **named: Any) -> _R:
        """Call a module-level function in that process, if there is one; ``models``: names of those that it loads.

        Raises:
            BudgetError: there is no room for its models, so it was not called.
        """
        with ExitStack() as used:
            for name in models:
                from visformer.adapters.load import nbytes_of

                key, forget = ("model", name), partial(self._errands.submit, self._call, _forget, name)
                used.enter_context(KEPT.using(key, KEPT.get(key) or nbytes_of(name), forget))
            self._errands.submit(int).result()  # models that made room are gone before others are loaded
            return self._call(work, *given, **named)

    def _call(self, work: Callable[..., _R], *given: Any, **named: Any) -> _R:
        if self._pool is None:
            return work(*given, **named)
        result: _R = self._pool.call(work, *given, **named)
        return result


LONG_WORK = LongWork()


class Named:
    """A model by its name, loaded where long computations run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def outline(self) -> Any:
        """See :meth:`visformer.adapters.base.TracedModel.outline`."""
        return self._run(_call, "outline")

    def trace(self, *given: Any, **named: Any) -> "Trace":
        """See :class:`visformer.adapters.base.TracedModel`."""
        return self._run(_call, "trace", *given, **named)  # type: ignore[no-any-return]

    def translate(self, *given: Any, **named: Any) -> "Decoding":
        """See :class:`visformer.adapters.base.TracedModel`."""
        return self._run(_call, "translate", *given, **named)  # type: ignore[no-any-return]

    def analyse(self, work: Callable[[Any], _R]) -> _R:
        """Call a function that can be pickled with the model."""
        return self._run(_analyse, work)  # type: ignore[no-any-return]

    def _run(self, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        return LONG_WORK.run(work, self._name, *given, models=[self._name], **named)


_MODELS: dict[str, Any] = {}
"""Models loaded in the process for long computations; the server decides which of them to drop."""


def model(name: str) -> Any:
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


def _forget(name: str) -> None:
    _MODELS.pop(name, None)


def _call(name: str, method: str, *given: Any, **named: Any) -> Any:
    return getattr(model(name), method)(*given, **named)


def _analyse(name: str, work: Callable[[Any], _R]) -> _R:
    return work(model(name))


def spoken(source: str) -> str:
    """Return the bundled model's translation; untrained models borrow it, so that both read the same words."""
    return str(model(TRANSLATOR).trace(source).meta["target"])


def history_file(name: str, source: str, target: str | None, *, start: Mapping[str, Any], language: str) -> bytes:
    """Return the page of a sentence at every moment of a model's training, see :mod:`visformer.web.history`."""
    from visformer.export.formats import Options, file_of
    from visformer.figures import source_of
    from visformer.pictures.attention import HISTORY

    used = model(name)
    second = {"pair" if used.info.kind == "encoder" else "target": target}
    head = {place: start[place] for place in ("stack", "layer", "head")}
    history = HISTORY.make(source_of(used, source, **second), head)
    return file_of("HTML", "history", history, Options(start=start, lang=language))


class Limited:
    """A model for a lesson's pictures, with the limits of the pages."""

    def __init__(self, name: str) -> None:
        self._name, self._model = name, model(name)
        self.info, self.text, self.available = self._model.info, self._model.text, self._model.available

    def trace(self, source: str, target: str | None, **named: Any) -> "Trace":
        """Return the Trace that a page shows."""
        self._check(source, target)
        if target is None and names_untrained(self._name):
            target = spoken(source)
        second = {"pair" if self.info.kind == "encoder" else "target": target}
        trace: Trace = self._model.trace(source, **second, **named)
        return trace

    def translate(self, source: str, **named: Any) -> "Decoding":
        """Return the decoding that a page shows."""
        self._check(source)
        decoding: Decoding = self._model.translate(source, **named)
        return decoding

    def _check(self, *texts: str | None) -> None:
        for text in filter(None, texts):
            checks.check_text(text)
            checks.check_tokens(len(self._model.tokenize(text)), self.info.max_tokens)
