"""A process that runs the forward passes of one model, one at a time: ``python -m visformer.app.serving.worker NAME``.

Without a name it runs long computations at low priority (:mod:`visformer.app.serving.long_work`).

:mod:`visformer.app.serving.worker_pool` starts it, writes requests to its stdin and reads responses from its stdout.
"""

import copyreg
import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import IO, Any

import torch

from visformer.adapters.load import load_to_serve
from visformer.app.serving.stop_signal import STOP, Stopped
from visformer.errors import VisformerError
from visformer.system.cancellation import Cancellation
from visformer.system.memory import go_first
from visformer.system.progress import Listener, heard_by

_EVERY = 0.1  # seconds between two reports
_IMPORT = "<frozen importlib._bootstrap>"


def serve(name: str | None, requests: IO[bytes], responses: IO[bytes]) -> None:
    """Load the model, if any, then handle requests until the pipe is closed.

    A request is a pickle of (method of the model or function, args, kwargs); a response, the first one after loading
    the model, is a pickle of (whether it failed, the result or the exception). Reports of progress come before it, each
    a pickle of (None, (runs done, all runs)).
    """
    model: Any = None
    is_computing = False

    def stop(_signal: int, frame: FrameType | None) -> None:
        if is_computing and not _is_importing(frame):
            raise Stopped

    def compute(make: Callable[[], Any]) -> Any:
        nonlocal is_computing
        is_computing = True
        try:
            with Cancellation().current(), heard_by(_reporter(responses)):
                return make()
        finally:
            is_computing = False

    def respond(make: Callable[[], Any]) -> None:
        try:
            # Pickled before anything is sent, since this may fail, too.
            message = pickle.dumps((False, compute(make)), pickle.HIGHEST_PROTOCOL)
        except BrokenPipeError:  # the server has ended
            raise
        except Exception as error:
            if not isinstance(error, VisformerError | Stopped):
                # Without the message, which may quote a sentence. The server's log has only its own side's traceback.
                place = "".join(traceback.format_tb(error.__traceback__))
                print(f"Traceback (most recent call last):\n{place}{type(error).__name__}", file=sys.stderr, flush=True)
            message = pickle.dumps((True, _portable(error)), pickle.HIGHEST_PROTOCOL)
        responses.write(message)
        responses.flush()

    def load() -> None:
        nonlocal model
        model = load_to_serve(name) if name is not None else ()

    signal.signal(STOP, stop)
    respond(load)
    gc.collect()
    gc.freeze()  # otherwise each full garbage collection would traverse torch's objects, for 200 ms
    with suppress(EOFError, OSError):
        while model is not None:
            what, args, kwargs = pickle.load(requests)
            respond(partial(getattr(model, what) if isinstance(what, str) else what, *args, **kwargs))


def _reporter(responses: IO[bytes]) -> Listener:
    """Return what writes reports of progress, a few a second; the signal cuts none, a buffer keeps what it has left."""
    told = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            responses.write(pickle.dumps((None, (done, total)), pickle.HIGHEST_PROTOCOL))
            responses.flush()

    return tell


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported, some of which could never be imported again; the signal comes again."""
    while frame is not None and frame.f_code.co_filename != _IMPORT:
        frame = frame.f_back
    return frame is not None


def _portable(error: Exception) -> Exception:
    """Return the error, or one with the same message if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main() -> None:
    """Run the worker process."""
    # torch would pickle a tensor in its file format, and with the whole storage that it is a view of.
    copyreg.pickle(torch.Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    go_first()
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library's prints must not get among the responses
    name = sys.argv[1] if len(sys.argv) > 1 else None
    if name is None and hasattr(os, "nice"):  # pages and ordinary sentences go first
        os.nice(19)
    serve(name, sys.stdin.buffer, responses)


if __name__ == "__main__":
    main()
