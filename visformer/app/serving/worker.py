"""What runs in a worker process: it receives calls, computes one at a time, reports how far it is, and answers.

:class:`visformer.app.serving.workers.Workers` starts it, writes calls to its stdin and reads answers from its stdout.
Itself it imports no more than this, so that it can be limited before any library is there.
"""

import gc
import io
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import IO, Any

from visformer.errors import VisformerError
from visformer.system import limits
from visformer.system.cancellation import Cancellation
from visformer.system.memory import go_first
from visformer.system.progress import Listener, reporting_to

STOP = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""The signal that makes a worker give up its computation. Windows has none: there the process ends, and is replaced."""

_EVERY = 0.1  # seconds between two reports, unless a hundredth of the work is done earlier
_IMPORT = "<frozen importlib._bootstrap>"


class Stopped(Exception):
    """The answer of a process that has given up its computation."""


def main() -> None:
    """Run the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    go_first()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's prints must not get among the answers
    serve(sys.stdin.buffer, answers)


def prepare(nice: int, memory: int | None, hold: Callable[[], object] | None) -> None:
    """Do what a process does first; arguments: see :class:`visformer.app.serving.workers.Workers`."""
    if hasattr(os, "nice"):
        os.nice(nice)
    if memory is not None:
        _limit(memory)
    if hold is not None:
        hold()
    gc.collect()
    gc.freeze()  # otherwise each full garbage collection would traverse torch's objects, for 200 ms


def _limit(memory: int) -> None:
    """Limit this process for good; Windows has none of these limits, macOS none of memory."""
    with suppress(ImportError):  # Windows
        import resource

        wanted = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_CPU: limits.WORK_SECONDS,
            resource.RLIMIT_CORE: 0,  # nothing of a visitor's is written to a disk
        }
        for kind, most in wanted.items():
            with suppress(ValueError, OSError):  # another one may be lower already
                resource.setrlimit(kind, (most, most))


def serve(calls: IO[bytes], answers: IO[bytes]) -> None:
    """Compute calls until their pipe is closed.

    A call is a pickle of a function without arguments; an answer is one of (whether it failed, the result or the
    exception). Reports of progress come before it, each a pickle of (None, (runs done, all runs)).
    """
    is_computing = False

    def stop(_signal: int, frame: FrameType | None) -> None:
        if is_computing and not _is_importing(frame):
            raise Stopped

    def compute(call: Callable[[], object]) -> object:
        nonlocal is_computing
        is_computing = True
        try:
            with Cancellation().current(), reporting_to(_reporter(answers)):
                return call()
        finally:
            is_computing = False

    signal.signal(STOP, stop)
    with suppress(EOFError, OSError):  # the server has ended
        while True:
            call = pickle.load(calls)
            try:
                # Pickled before anything is sent, since this may fail, too.
                answer = _pickled((False, compute(call)))
            except BrokenPipeError:
                raise
            except Exception as error:
                if not isinstance(error, VisformerError | Stopped):
                    # Without the message, which may quote a sentence. The server's log has only its own traceback.
                    place = "".join(traceback.format_tb(error.__traceback__))
                    said = f"Traceback (most recent call last):\n{place}{type(error).__name__}"
                    print(said, file=sys.stderr, flush=True)
                answer = _pickled((True, _portable(error)))
            answers.write(answer)
            answers.flush()


def _reporter(answers: IO[bytes]) -> Listener:
    """Return what writes reports of progress; the signal cuts none, a buffer keeps what it has left."""
    told, told_at = 0, 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told, told_at
        now = time.monotonic()
        if now - told_at > _EVERY or done - told > total / 100:
            told, told_at = done, now
            answers.write(_pickled((None, (done, total))))
            answers.flush()

    return tell


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, some of which could never be imported again; the signal comes again."""
    while frame is not None and frame.f_code.co_filename != _IMPORT:
        frame = frame.f_back
    return frame is not None


class _Pickler(pickle.Pickler):
    """Pickles tensors as arrays: torch would use its file format, with the whole storage that each is a view of."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            return torch.from_numpy, (value.numpy(),)
        return NotImplemented


def _pickled(message: tuple[bool | None, object]) -> bytes:
    written = io.BytesIO()
    _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(message)
    return written.getvalue()


def _portable(error: Exception) -> Exception:
    """Return the error, or one with the same message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
