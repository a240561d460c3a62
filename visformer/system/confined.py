"""A call in a process of its own, whose memory and time are limited: for files of visitors, whatever they unpack to.

``python -m visformer.system.confined`` is that process. It reads a pickle of (function, arguments) from its stdin, and
writes one of (whether it failed, the result or the error) to its stdout. Both sides run this code, and nobody else has
access to the pipes. A system without these limits (Windows; of memory also macOS) still has the process.
"""

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

from visformer.errors import N_, DataError, VisformerError
from visformer.system import limits
from visformer.system.cancellation import CURRENT
from visformer.system.memory import go_first

_R = TypeVar("_R")

_ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""So that libraries reserve no memory ahead, which counts although it is never filled."""


def confined(name: str, work: Callable[..., _R], *given: Any) -> _R:
    """Call a module-level function in a fresh process that may take UPLOAD_MEMORY and WORK_SECONDS of CPU time.

    Args:
        name: of the file that is read, for errors.
        work: the function; it, its arguments and what it returns can be pickled.
        given: its arguments.

    Raises:
        DataError: the process took more, or died.
        VisformerError: as the function raises it.
    """
    current = CURRENT.get()
    with subprocess.Popen(
        [sys.executable, "-m", "visformer.system.confined"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **_ALONE, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        try:
            with current.notifying(stop=process.kill, kill=process.kill) if current else nullcontext():
                response, _ = process.communicate(pickle.dumps((work, given), pickle.HIGHEST_PROTOCOL))
        finally:
            process.kill()  # an error of this thread leaves nothing behind
    if process.returncode:
        raise DataError(
            N_("{name} cannot be read with {memory} of memory in {seconds} seconds: open a smaller file."),
            name=name,
            memory=limits.size(limits.UPLOAD_MEMORY),
            seconds=limits.WORK_SECONDS,
        )
    has_failed, result = pickle.loads(response)
    if has_failed:
        raise result
    return result  # type: ignore[no-any-return]


def _confine() -> None:
    """Limit this process, before it has read anything."""
    go_first()
    if hasattr(os, "nice"):  # pages go first
        os.nice(19)
    with suppress(ImportError):  # Windows
        import resource

        wanted = {
            resource.RLIMIT_AS: limits.UPLOAD_MEMORY,
            resource.RLIMIT_CPU: limits.WORK_SECONDS,
            resource.RLIMIT_CORE: 0,  # nothing of a visitor's is written to a disk
        }
        for kind, most in wanted.items():
            with suppress(ValueError, OSError):  # macOS has no limit of memory; another one may be lower already
                resource.setrlimit(kind, (most, most))


def main() -> None:
    """Run the process; its exit status says whether it has responded."""
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's prints must not get into the response
    _confine()
    try:
        work, given = pickle.load(sys.stdin.buffer)
        try:
            response: tuple[bool, Any] = False, work(*given)
        except VisformerError as error:
            response = True, error
        message = pickle.dumps(response, pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        # Without the message, which may quote a file.
        place = "".join(traceback.format_tb(error.__traceback__))
        print(f"Traceback (most recent call last):\n{place}{type(error).__name__}", file=sys.stderr, flush=True)
        sys.exit(1)
    responses.write(message)
    responses.flush()


if __name__ == "__main__":
    main()
