"""A process that makes the forward passes of one model, one at a time: ``python -m visformer.app.serving.worker NAME``.

:mod:`visformer.app.serving.worker_pool` starts it, asks over its standard input, and is answered over its output.
"""

import copyreg
import gc
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

import torch

from visformer.adapters.load import load_to_serve
from visformer.app.serving.stop_signal import STOP, Stopped
from visformer.errors import VisformerError


def serve(name: str, asked: IO[bytes], answered: IO[bytes]) -> None:
    """Load the model, then answer until nobody can ask any more.

    Asked are pickles of method, arguments and named arguments; answered, the first time once the model is loaded, of
    whether it failed and the result or the exception.
    """
    model: Any = None
    is_computing = False

    def stop(_signal: int, _frame: object) -> None:
        if is_computing:
            raise Stopped

    def compute(make: Callable[[], Any]) -> Any:
        nonlocal is_computing
        is_computing = True
        try:
            return make()
        finally:
            is_computing = False

    def answer(make: Callable[[], Any]) -> None:
        try:
            made = compute(make)
            message = pickle.dumps((False, made), pickle.HIGHEST_PROTOCOL)  # whole, before a part is on its way
        except Exception as error:
            if not isinstance(error, VisformerError | Stopped):
                # Without its words, which may quote a sentence. The server's log tells only where it asked.
                place = "".join(traceback.format_tb(error.__traceback__))
                print(f"Traceback (most recent call last):\n{place}{type(error).__name__}", file=sys.stderr, flush=True)
            message = pickle.dumps((True, _portable(error)), pickle.HIGHEST_PROTOCOL)
        answered.write(message)
        answered.flush()

    def load() -> None:
        nonlocal model
        model = load_to_serve(name)

    signal.signal(STOP, stop)
    answer(load)
    gc.collect()
    gc.freeze()  # a full collection would look through torch's objects each time, for 200 ms
    with suppress(EOFError, OSError):
        while model is not None:
            method, given, named = pickle.load(asked)
            answer(partial(getattr(model, method), *given, **named))


def _portable(error: Exception) -> Exception:
    """The same, or one of the same words where it cannot be taken to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def main() -> None:
    """The process."""
    # torch pickles a tensor as a file of its own, and the whole of what it is a view of.
    copyreg.pickle(torch.Tensor, lambda tensor: (torch.from_numpy, (tensor.numpy(),)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then closes the pipe
    # Where memory runs out, Linux ends one of these before the server with everybody's pages (proc(5)).
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")
    answered = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    serve(sys.argv[1], sys.stdin.buffer, answered)


if __name__ == "__main__":
    main()
