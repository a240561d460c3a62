"""Downloads of models: each runs once, however many visitors wait for it, and stops when the last of them cancels."""

import threading
from collections.abc import Callable
from enum import Enum
from importlib.util import find_spec

import streamlit as st

from visformer.adapters.checkpoints import BUNDLED, model_of
from visformer.app.serving import checks
from visformer.app.serving.workers import Killed, Workers
from visformer.errors import N_, BusyError, CheckpointError, ShortageError, VisformerError
from visformer.system import limits
from visformer.system.cache import CACHE
from visformer.system.cancellation import Cancellation
from visformer.system.memory import enough_memory
from visformer.system.progress import reporting_to


class Phase(Enum):
    """The phase of a download."""

    ASKING = "asking the hub for its size"
    OFFERED = "size known, not started"
    RUNNING = "running"
    HERE = "in the cache"
    FAILED = "see error"


class Download:
    """The download of one model from the hub into the operator's cache."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.phase = Phase.ASKING
        self.total = self.done = 0  # bytes
        self.error: VisformerError | None = None
        self._waiting: set[str] = set()  # visitors
        self._lock = threading.Lock()
        self._cancellation = Cancellation()
        self._in_background(self._ask)

    @property
    def is_busy(self) -> bool:
        """Whether it changes by itself, so that a page should update."""
        return self.phase in (Phase.ASKING, Phase.RUNNING)

    def is_wanted_by(self, visitor: str) -> bool:
        """Whether this visitor started or joined it and has not cancelled."""
        return visitor in self._waiting

    def start(self, visitor: str) -> None:
        """Start the download, or join the visitors who wait for it."""
        with self._lock:
            self._waiting.add(visitor)
            if self.phase is not Phase.OFFERED:
                return
            try:
                _reserve(self)
            except BusyError as error:
                self.error, self.phase = error, Phase.FAILED
                return
            self.phase, self.done, self._cancellation = Phase.RUNNING, 0, Cancellation()
        self._in_background(self._run)

    def cancel(self, visitor: str) -> None:
        """Stop waiting; when the last visitor cancels, the download ends."""
        with self._lock:
            self._waiting.discard(visitor)
            self._end_if_unwanted()

    def ask_again(self) -> None:
        """Ask the hub again after a failure: the network may be back, or the disk may have room."""
        with self._lock:
            if self.phase is not Phase.FAILED:
                return
            self.phase, self.error = Phase.ASKING, None
        self._in_background(self._ask)

    def _in_background(self, work: Callable[[], None]) -> None:
        try:
            with enough_memory():
                threading.Thread(target=work, daemon=True).start()
        except ShortageError as error:
            self.error, self.phase = error, Phase.FAILED
            _RESERVED.discard(self)

    def _ask(self) -> None:
        from visformer.adapters.huggingface.files import UNANSWERED, files_of, helpful, require_weights

        try:
            with helpful(self.name, otherwise=UNANSWERED):
                files = files_of(self.name)
                require_weights(files)
            checks.check_download(self.name, files.nbytes)
            self.total, self.phase = files.nbytes, Phase.OFFERED
        except VisformerError as error:
            self.error, self.phase = error, Phase.FAILED

    def _run(self) -> None:
        from huggingface_hub import constants

        from visformer.adapters.huggingface.files import fetch, helpful

        as_here = {"HF_ENDPOINT": constants.ENDPOINT, "HF_HUB_CACHE": constants.HF_HUB_CACHE}
        problem: VisformerError | None = None
        try:
            with (
                helpful(self.name, otherwise=N_("The download of {name!r} failed ({reason}). Try again.")),
                Workers(env=as_here) as workers,
                self._cancellation.current(),
                reporting_to(self._hear),
            ):
                workers.call(fetch, self.name)
        except Killed as killed:
            problem = CheckpointError(
                N_("The download of {name!r} was killed (exit code {code}). Try again."),
                name=self.name,
                code=killed.params["exit_code"],
            )
        except VisformerError as error:
            problem = error
        with self._lock:
            _RESERVED.discard(self)
            if problem is None:
                self.done, self.phase = self.total, Phase.HERE
            elif not self._waiting:
                self.phase = Phase.OFFERED
            else:
                self._waiting.clear()
                self.error, self.phase = problem, Phase.FAILED

    def _hear(self, done: int, _total: int) -> None:
        self.done = max(self.done, done)
        self._end_if_unwanted()  # again: the process may not have been ready when the last visitor cancelled

    def _end_if_unwanted(self) -> None:
        if not self._waiting:
            self._cancellation.cancel(BusyError(N_("Nobody waits for this any more.")))


_RESERVED: set[Download] = set()
"""Running downloads, which together may have as many bytes as may be kept in memory."""
_RESERVING = threading.Lock()


def _reserve(wanted: Download) -> None:
    with _RESERVING:
        running = sum(each.total for each in _RESERVED)
        if running + wanted.total > CACHE.most():
            raise BusyError(
                N_("{name!r} is {size}, and others of {running} are being downloaded: try again when they are here."),
                name=wanted.name,
                size=limits.size(wanted.total),
                running=limits.size(running),
            )
        _RESERVED.add(wanted)


@st.cache_resource(show_spinner=False)
def download_of(name: str) -> Download:
    """Return the only download of this model in this process."""
    return Download(name)


def is_to_be_downloaded(name: str) -> bool:
    """Whether this model is a hub id and not in the cache."""
    name, _ = model_of(name)
    if name in BUNDLED or name.startswith((".", "/", "~", "\\")) or find_spec("transformers") is None:
        return False  # loading it reports what is missing
    from huggingface_hub.errors import HFValidationError

    from visformer.adapters.huggingface.files import is_here

    try:
        return not is_here(name)
    except HFValidationError:
        return True  # asking for its size reports the invalid id


def require_here(name: str) -> None:
    """Require a model that is on this server: a page does not start a download by itself.

    Raises:
        VisformerError: it is not here, or its download failed.
    """
    if is_to_be_downloaded(name):
        failure = download_of(name).error
        if failure is not None:
            where = {"folder": N_("the server")} if "folder" in failure.params else {}
            raise type(failure)(failure.message_id, **{**failure.params, **where})
        raise CheckpointError(
            N_(
                "The model {name!r} has not been downloaded yet. Its size and a download button are below the list "
                "of models."
            ),
            name=name,
        )
