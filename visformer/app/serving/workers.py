"""Worker processes: for sentences, long computations, trainings, downloads and files of visitors (docs/adr/0017).

In the server's own process, forward passes and other visitors' pages compete for Python's global interpreter lock,
which a sentence acquires a thousand times. What runs in a process is :mod:`visformer.app.serving.worker`. Pickle is
safe here: both sides run this code, and nobody else has access to the pipes.
"""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from queue import SimpleQueue
from typing import IO, Any, ParamSpec, Self, TypeVar
from weakref import WeakSet

from visformer.app.serving import worker
from visformer.errors import N_, DataError, ShortageError, VisformerError
from visformer.system import limits
from visformer.system.cancellation import CURRENT
from visformer.system.progress import report

_P = ParamSpec("_P")
_R = TypeVar("_R")

_COMMAND = [sys.executable, "-c", "from visformer.app.serving import worker; worker.main()"]

_ENDING = 1.0  # seconds that a process has to end by itself once nobody needs it


class Killed(ShortageError):
    """A process was killed while it computed; ``exit_code`` is a parameter of the error."""


class Workers:
    """Processes that compute calls, as many at a time as there are processes. One that dies is replaced."""

    def __init__(
        self,
        hold: Callable[[], object] | None = None,
        *,
        processes: int = 1,
        nice: int = 0,
        memory: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start the processes, and wait until they are ready.

        Args:
            hold: called in each of them before anything else, to load what calls need; can be pickled.
            processes: how many.
            nice: added to their niceness; 19: pages and ordinary sentences go first.
            memory: bytes that each may have, with WORK_SECONDS of CPU time for all its calls; None: no limit.
            env: variables of the environment besides this process's.

        Raises:
            Exception: raised by ``hold``.
        """
        first = partial(worker.prepare, nice, memory, hold)
        self._all: list[_Process] = []
        self._free: SimpleQueue[_Process] = SimpleQueue()
        _STARTED.add(self)
        try:
            for _ in range(processes):
                self._all.append(_Process(first, env or {}))
            for process in self._all:
                process.wait()
                self._free.put(process)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids at present: a killed process is replaced."""
        return tuple(process.pid for process in self._all)

    def call(self, work: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> _R:
        """Call a function of a module in the first process that is free; arguments and result can be pickled.

        The current cancellation ends it, and the current listener hears how far it is.

        Raises:
            Killed: the process was killed meanwhile.
            Exception: raised by the function.
        """
        call = pickle.dumps(partial(work, *given, **named), pickle.HIGHEST_PROTOCOL)
        process, current = self._free.get(), CURRENT.get()
        notifying: AbstractContextManager[None] = nullcontext()
        if current is not None:
            notifying = current.notifying(stop=process.stop, kill=process.kill, look=process.kill_if_suspended)
        try:
            with notifying:
                result: _R = process.compute(call)
                return result
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End all processes; computations in them are lost."""
        _STARTED.discard(self)
        for process in self._all:
            process.end()
        with ExitStack() as each:
            for process in self._all:
                each.callback(process.close, _ENDING)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Process:
    """One worker process, which is replaced when it dies. Used by one thread at a time."""

    def __init__(self, first: Callable[[], None], env: Mapping[str, str]) -> None:
        self._first, self._env, self._is_over = pickle.dumps(first), env, False
        self._start()

    def _start(self) -> None:
        # Not multiprocessing: it would run the main module in the new process, which under Streamlit is the page.
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._is_ready = False
        self._send(self._first)  # it gets ready before anybody waits for it

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Wait until it is ready, or raise why it is not; first replace it if it was killed."""
        if self._process.poll() is not None:
            self.close()
            self._start()
        if not self._is_ready:
            try:
                self._receive()
            except BaseException:
                self.close()
                raise
            self._is_ready = True

    def compute(self, call: bytes) -> Any:
        """Return or raise what a call does; Killed: the process was killed, and is being replaced."""
        self.wait()
        self._send(call)
        return self._receive()

    def _send(self, call: bytes) -> None:
        with suppress(OSError):  # killed just now: receiving its answer will fail
            self._pipe("stdin").write(call)
            self._pipe("stdin").flush()

    def _receive(self) -> Any:
        try:
            has_failed, result = pickle.load(self._pipe("stdout"))
            while has_failed is None:
                report(*result)
                has_failed, result = pickle.load(self._pipe("stdout"))
        except BaseException as error:
            # The next visitor would get whatever is left in the pipes: the rest of this call, or the answer to it.
            self.close()
            if self._is_over or not isinstance(error, OSError | EOFError | MemoryError | pickle.UnpicklingError):
                raise
            code = self._process.returncode
            self._start()
            raise Killed(
                N_(
                    "The computation was killed, most likely because the server ran out of memory. It is "
                    "restarting: try again in a moment."
                ),
                exit_code=code,
            ) from None
        if has_failed:
            raise result
        return result

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] = getattr(self._process, name)
        return pipe

    def stop(self) -> None:
        """Make it give up its computation."""
        self._process.send_signal(worker.STOP)

    def kill(self) -> None:
        """End it, even if it was suspended; :meth:`wait` then replaces it."""
        self._process.kill()

    def kill_if_suspended(self) -> None:
        """End it if somebody has suspended it: whoever waits for it would wait for ever."""
        if hasattr(os, "waitid"):  # not on Windows, where nobody can, nor on macOS
            with suppress(ChildProcessError):  # it has ended
                if os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None:
                    self.kill()

    def end(self) -> None:
        """Ask it to end, and start no other in its place."""
        self._is_over = True
        self._process.terminate()

    def close(self, patience: float = 0.0) -> None:
        """Kill the process unless it ends within so many seconds; a computation in it is lost."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()
        with suppress(OSError):  # from flushing what was still to be sent
            self._pipe("stdin").close()
        self._pipe("stdout").close()
        self._process.wait()


_STARTED: "WeakSet[Workers]" = WeakSet()


def close_all() -> None:
    """End all worker processes: threads that wait for them would keep this process from ending."""
    for workers in [*_STARTED]:
        workers.close()


atexit.register(close_all)


_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""So that libraries reserve no memory ahead, which counts although it is never filled."""


def confined(name: str, work: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> _R:
    """Read a visitor's file, whatever it unpacks to, in a process of its own with UPLOAD_MEMORY.

    Args:
        name: of the file, for errors.
        work: reads it, as for :meth:`Workers.call`.
        given: its arguments.
        named: its arguments.

    Raises:
        DataError: the process took more, or died.
        VisformerError: as the function raises it.
    """
    try:
        with Workers(nice=19, memory=limits.UPLOAD_MEMORY, env=_ALONE) as workers:
            return workers.call(work, *given, **named)
    except Exception as error:
        if isinstance(error, VisformerError) and not isinstance(error, Killed):
            raise
        raise DataError(
            N_("{name} cannot be read with {memory} of memory in {seconds} seconds: open a smaller file."),
            name=name,
            memory=limits.size(limits.UPLOAD_MEMORY),
            seconds=limits.WORK_SECONDS,
        ) from None
