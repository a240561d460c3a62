"""Work that may take long: in a process of its own, at low priority; in this one where there is none (app.py).

It takes functions with their arguments, which can be pickled, and models by name: what waits holds no model.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from visformer.adapters.bundled import BUNDLED
from visformer.app.serving import checks
from visformer.app.serving.models import discreetly
from visformer.app.serving.worker_pool import WorkerPool
from visformer.model.untrained import names_untrained
from visformer.system import limits

if TYPE_CHECKING:  # torch
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace

_R = TypeVar("_R")


class LongWork:
    """Where work that may take long is done; one piece at a time, as admission grants it."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None

    def start(self) -> None:
        """Start the process."""
        self._pool = self._pool or WorkerPool(None, 1)

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process id; empty if there is none."""
        return self._pool.pids if self._pool is not None else ()

    def run(self, work: Callable[..., _R], *given: Any, **named: Any) -> _R:
        """Call a function of a module, there or here."""
        if self._pool is None:
            return work(*given, **named)
        result: _R = self._pool.call(work, *given, **named)
        return result


LONG_WORK = LongWork()


class Named:
    """A model by its name, loaded where the long work is done, and only for as long."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def pids(self) -> tuple[int, ...]:
        """See :class:`LongWork`."""
        return LONG_WORK.pids

    def trace(self, *given: Any, **named: Any) -> "Trace":
        """See :class:`visformer.adapters.base.TracedModel`."""
        return LONG_WORK.run(_call, self._name, "trace", *given, **named)  # type: ignore[no-any-return]

    def translate(self, *given: Any, **named: Any) -> "Decoding":
        """See :class:`visformer.adapters.base.TracedModel`."""
        return LONG_WORK.run(_call, self._name, "translate", *given, **named)  # type: ignore[no-any-return]


def _call(name: str, method: str, *given: Any, **named: Any) -> Any:
    return getattr(model(name), method)(*given, **named)


_MODELS: OrderedDict[str, Any] = OrderedDict()  # the least recently used first
_LOADING = threading.Lock()


def model(name: str) -> Any:
    """Return a model, loaded in this process; others are dropped for it beyond ``limits.LONG_BYTES``.

    Raises:
        VisformerError: it cannot be loaded.
    """
    from visformer.adapters.load import load_to_serve, outline

    with _LOADING:
        if name not in _MODELS:
            room = limits.LONG_BYTES - (_size(outline(name)) if names_untrained(name) else 0)
            while sum(map(_size, _MODELS.values())) > room and _MODELS:
                _MODELS.popitem(last=False)
            with discreetly(name):
                _MODELS[name] = load_to_serve(name)
        _MODELS.move_to_end(name)
        return _MODELS[name]


def _size(loaded: Any) -> int:
    return sum(weight.nbytes for weight in loaded.module.parameters())


def spoken(source: str) -> str:
    """Return the bundled model's translation; untrained models borrow it, so that both read the same words."""
    return str(model(BUNDLED[0]).trace(source).meta["target"])


class Limited:
    """A model for a lesson's pictures, with the limits of the pages."""

    def __init__(self, name: str) -> None:
        self._name, self._model = name, model(name)
        self.info, self.text = self._model.info, self._model.text

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
