"""What pages and widgets ask of a session, in one place."""

from typing import TYPE_CHECKING

from visformer.app.session import run
from visformer.app.session.address import address, keep_selection, show
from visformer.app.session.boxes import (
    EXAMPLE,
    LANGUAGE,
    MODEL,
    SOURCE,
    TARGET,
    gettext,
    language,
    model,
    source,
    target,
)
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import current_page
from visformer.app.session.remarks import ignore
from visformer.app.session.selection import keep_place, selection, start
from visformer.app.session.slots import Slot, renew, version
from visformer.app.session.visit import asked_for, goes_back, opened

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

__all__ = [
    "CANVAS",
    "EXAMPLE",
    "EXAMPLES",
    "LANGUAGE",
    "MODEL",
    "SOURCE",
    "TARGET",
    "Slot",
    "address",
    "ahead",
    "asked_for",
    "current_page",
    "gettext",
    "goes_back",
    "ignore",
    "is_new",
    "keep_place",
    "keep_selection",
    "language",
    "look_for",
    "model",
    "opened",
    "renew",
    "selection",
    "send_ahead",
    "show",
    "source",
    "start",
    "target",
    "version",
]

CANVAS = "attention"
"""The key of the explorer."""


def look_for(text: str) -> None:
    """What the page says to look for."""
    run.current().caption = text


def is_new() -> bool:
    """Whether the session has just begun: its browser has drawn nothing yet."""
    return run.current().is_new


def send_ahead(trace: "Trace") -> None:
    """The picture of the sentence's Trace went ahead of the page."""
    run.current().ahead = trace


def ahead() -> "Trace | None":
    """The Trace whose picture went ahead of the page, if one did in this run."""
    return run.current().ahead
