"""Forward passes in processes of their own, for a server with many visitors (docs/adr/0017).

In the server's own process they take turns with the pages of other visitors for Python's interpreter, which a sentence
has to get back a thousand times. The other side is :mod:`visformer.app.serving.worker`. Both are this code, and the
pipes between them are nobody else's: only so may they pickle.
"""

import atexit
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from visformer.errors import N_, ShortageError

if TYPE_CHECKING:  # torch
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace


class _Process:
    """One process with the model. Asked by one thread at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start()

    def _start(self) -> None:
        # Not multiprocessing: it would run the main module in the new process, and Streamlit puts the page there.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "visformer.app.serving.worker", self._name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._is_ready = False

    def wait(self) -> None:
        """Until the model is loaded, or raise what loading it raised; where the process was ended, in another one."""
        if self.process.poll() is not None:
            self.close()
            self._start()
        if not self._is_ready:
            try:
                self._answer()
            except BaseException:
                self.close()
                raise
            self._is_ready = True

    def ask(self, method: str, *given: Any, **named: Any) -> Any:
        """What the model's method returns, or raises; ShortageError: the process was ended, and is being replaced."""
        message = pickle.dumps((method, given, named), pickle.HIGHEST_PROTOCOL)
        self.wait()
        with suppress(OSError):  # it was ended in this moment, and answers nothing
            self._pipe("stdin").write(message)
            self._pipe("stdin").flush()
        return self._answer()

    def _answer(self) -> Any:
        try:
            has_failed, found = pickle.load(self._pipe("stdout"))
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            self._start()
            raise ShortageError(
                N_(
                    "The computation was killed, most likely because the server ran out of memory. It is "
                    "restarting: try again in a moment."
                )
            ) from None
        if has_failed:
            raise found
        return found

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] = getattr(self.process, name)
        return pipe

    def close(self) -> None:
        """End it; what it computes is lost."""
        self.process.kill()
        with suppress(OSError):  # of what was still to be sent
            self._pipe("stdin").close()
        self._pipe("stdout").close()
        self.process.wait()


class WorkerPool:
    """The forward passes of one model, as many at a time as there are processes; arguments can be pickled.

    Each raises what the model raises, and ShortageError where the process was ended while it computed.
    """

    def __init__(self, name: str, processes: int) -> None:
        """Start them; they load the model of this name at the same time, and are ready when this returns.

        Raises:
            Exception: what loading it raised.
        """
        self._all: list[_Process] = []
        self._free: SimpleQueue[_Process] = SimpleQueue()
        atexit.register(self.close)
        try:
            self._all += [_Process(name) for _ in range(processes)]
            for process in self._all:
                process.wait()
                self._free.put(process)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the processes as they are now."""
        return tuple(one.process.pid for one in self._all)

    def trace(self, *given: Any, **named: Any) -> "Trace":
        """As the model's own, see :class:`visformer.adapters.base.TracedModel`."""
        made: Trace = self._asked("trace", *given, **named)
        return made

    def translate(self, *given: Any, **named: Any) -> "Decoding":
        """As the model's own."""
        made: Decoding = self._asked("translate", *given, **named)
        return made

    def _asked(self, method: str, *given: Any, **named: Any) -> Any:
        process = self._free.get()
        try:
            return process.ask(method, *given, **named)
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End them all."""
        atexit.unregister(self.close)
        for process in self._all:
            process.close()
