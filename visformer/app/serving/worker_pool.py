"""Worker processes for forward passes and for long computations, for a server with many visitors (docs/adr/0017).

In the server's own process, forward passes and other visitors' pages compete for Python's global interpreter lock,
which a sentence acquires a thousand times. The other side is :mod:`visformer.app.serving.worker`. Pickle is safe here:
both sides run this code, and nobody else has access to the pipes.
"""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any
from weakref import WeakSet

from visformer.app.serving.models import discreetly
from visformer.app.serving.stop_signal import STOP
from visformer.errors import N_, ShortageError
from visformer.system.cancellation import CURRENT, Cancellation
from visformer.system.progress import report

if TYPE_CHECKING:  # torch
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace


class _Process:
    """One worker process. Used by one thread at a time."""

    def __init__(self, name: str | None) -> None:
        self._name, self._is_over = name, False
        self._start()

    def _start(self) -> None:
        # Not multiprocessing: it would run the main module in the new process, which under Streamlit is the page.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "visformer.app.serving.worker", *([self._name] if self._name is not None else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._is_ready = False

    def wait(self) -> None:
        """Wait until the model is loaded, or raise its error; first replace the process if it was killed."""
        if self.process.poll() is not None:
            self.close()
            self._start()
        if not self._is_ready:
            try:
                with discreetly(self._name or ""):
                    self._exchange()
            except BaseException:
                self.close()
                raise
            self._is_ready = True

    def call(self, what: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the model or a function; ShortageError: the process was killed, and is being replaced."""
        message = pickle.dumps((what, args, kwargs), pickle.HIGHEST_PROTOCOL)
        self.wait()
        return self._exchange(message)

    def _exchange(self, message: bytes = b"") -> Any:
        """Send a call, if any, and return or raise the response; after loading, the process responds unasked."""
        try:
            with suppress(OSError):  # killed just now: receiving its response will fail
                self._pipe("stdin").write(message)
                self._pipe("stdin").flush()
            has_failed, result = pickle.load(self._pipe("stdout"))
            while has_failed is None:
                report(*result)
                has_failed, result = pickle.load(self._pipe("stdout"))
        except BaseException as error:
            # The next visitor would get whatever is left in the pipes: the rest of this call, or the response to it.
            self.close()
            if self._is_over or not isinstance(error, OSError | EOFError | MemoryError | pickle.UnpicklingError):
                raise
            self._start()
            raise ShortageError(
                N_(
                    "The computation was killed, most likely because the server ran out of memory. It is "
                    "restarting: try again in a moment."
                )
            ) from None
        if has_failed:
            raise result
        return result

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] = getattr(self.process, name)
        return pipe

    def stop(self) -> None:
        """Make it give up its computation."""
        self.process.send_signal(STOP)

    def kill(self) -> None:
        """End it, even if it was suspended; :meth:`call` then replaces it."""
        self.process.kill()

    def kill_if_suspended(self) -> None:
        """End it if somebody has suspended it: whoever waits for it would wait for ever."""
        if hasattr(os, "waitid"):  # not on Windows, where nobody can, nor on macOS
            with suppress(ChildProcessError):  # it has ended
                if os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None:
                    self.kill()

    def end(self) -> None:
        """Kill it, and start no other in its place."""
        self._is_over = True
        self.kill()

    def close(self) -> None:
        """Kill the process; a computation in it is lost."""
        self.kill()
        with suppress(OSError):  # from flushing what was still to be sent
            self._pipe("stdin").close()
        self._pipe("stdout").close()
        self.process.wait()


class WorkerPool:
    """The forward passes of one model, as many at a time as there are processes; arguments must be picklable.

    Methods raise what the model raises, and ShortageError if the process was killed meanwhile.
    """

    def __init__(self, name: str | None, processes: int) -> None:
        """Start the processes, which load the model of this name in parallel, and wait until they are ready.

        Without a name they have no model, run at low priority, and can only :meth:`call` functions.

        Raises:
            Exception: raised by loading the model.
        """
        self._all: list[_Process] = []
        self._free: SimpleQueue[_Process] = SimpleQueue()
        _POOLS.add(self)
        try:
            for _ in range(processes):
                self._all.append(_Process(name))
            for process in self._all:
                process.wait()
                self._free.put(process)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids at present: a killed process is replaced."""
        return tuple(worker.process.pid for worker in self._all)

    def trace(self, *args: Any, **kwargs: Any) -> "Trace":
        """Call the model's ``trace``, see :class:`visformer.adapters.base.TracedModel`."""
        trace: Trace = self.call("trace", *args, **kwargs)
        return trace

    def translate(self, *args: Any, **kwargs: Any) -> "Decoding":
        """Call the model's ``translate``."""
        decoding: Decoding = self.call("translate", *args, **kwargs)
        return decoding

    def call(self, what: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a method of the model, or a function of a module."""
        process, current = self._free.get(), CURRENT.get()
        try:
            with _notifying(current, process) if current else nullcontext():
                return process.call(what, *args, **kwargs)
        finally:
            self._free.put(process)

    def close(self) -> None:
        """Kill all processes."""
        _POOLS.discard(self)
        for process in self._all:
            process.end()
        with ExitStack() as each:
            for process in self._all:
                each.callback(process.close)


def _notifying(current: Cancellation, process: _Process) -> AbstractContextManager[None]:
    return current.notifying(stop=process.stop, kill=process.kill, look=process.kill_if_suspended)


_POOLS: "WeakSet[WorkerPool]" = WeakSet()


def close_all() -> None:
    """Kill the processes of all pools: threads that wait for them would keep this process from ending."""
    for pool in [*_POOLS]:
        pool.close()


atexit.register(close_all)
