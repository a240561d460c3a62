"""What holds while a pass of ours runs: a model is the caller's, and is given back as it was."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from torch import nn

from visformer.errors import N_, VisformerError


class Passes:
    """The passes of all threads through one module, which is in evaluation mode while any of them runs."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._running, self._undo, self._lock = 0, ExitStack(), Lock()
        self._is_closed = False

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have the model ready inside the block; what was there before is there again after the last one.

        Raises:
            VisformerError: the model was closed.
        """
        with self._lock:
            if self._is_closed:
                raise VisformerError(N_("This model was closed: wrap or load it again."))
            if not self._running:
                with ExitStack() as undo:
                    self._begin(undo)
                    self._undo = undo.pop_all()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._undo.close()

    def close(self) -> None:
        """Let no further pass begin."""
        self._is_closed = True

    def _begin(self, undo: ExitStack) -> None:
        for module in self._module.modules():
            if module.training:
                module.training = False
                undo.callback(setattr, module, "training", True)
