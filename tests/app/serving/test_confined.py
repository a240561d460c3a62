"""A process whose memory and time are limited: what it returns, and the sentence if it does not."""

import os
import resource
import time
from functools import partial

import pytest

from tests.app.serving.support import call_and_cancel
from visformer.app.serving.workers import confined
from visformer.errors import DataError, TextError
from visformer.system import limits

TOO_MUCH = "mine.zip cannot be read with 800 MB of memory in 30 seconds: open a smaller file"


def refuse(text):
    raise TextError("{text} is refused", text=text)


@pytest.mark.full
def test_a_call_returns_or_raises_as_it_would_here():
    assert confined("mine.zip", divmod, 7, 2) == (3, 1)
    with pytest.raises(TextError, match="this is refused"):
        confined("mine.zip", refuse, "this")


@pytest.mark.parametrize(
    "call",
    [(bytes, limits.UPLOAD_MEMORY), (os.abort,), (os._exit, 3), (int, "no number"), (eval, "lambda: 0")],
    ids=["memory", "abort", "exit", "a fault of ours", "a result that cannot be sent"],
)
def test_a_process_that_ends_gets_a_sentence(call, capfd):
    with pytest.raises(DataError, match=TOO_MUCH):
        confined("mine.zip", *call)
    assert "no number" not in capfd.readouterr().err, "the server's log quotes no file"


@pytest.mark.parametrize(("kind", "most"), [("AS", limits.UPLOAD_MEMORY), ("CPU", limits.WORK_SECONDS), ("CORE", 0)])
def test_its_limits_are_set_for_good(kind, most):
    assert confined("mine.zip", resource.getrlimit, getattr(resource, f"RLIMIT_{kind}")) == (most, most)
    assert resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) != (most, most) or kind == "CORE", "not here"


def test_it_ends_once_nobody_waits_for_it():
    with pytest.raises(DataError):
        call_and_cancel(partial(confined, "mine.zip", time.sleep, 600))
