"""A system without memory for another thread, and calls that are cancelled."""

from concurrent.futures import ThreadPoolExecutor, wait

from tests.waiting import until
from visformer.errors import DeadlineError
from visformer.system.cancellation import Cancellation


def cannot_start(thread):
    """Replace ``threading.Thread.start``: fail as Python does when there is no memory for a thread."""
    raise RuntimeError("can't start new thread")


def call_and_cancel(work, has_begun=lambda: True):
    """Call a function, and cancel it, once it has begun, again and again until it ends."""
    cancellation = Cancellation()

    def call():
        with cancellation.current():
            return work()

    with ThreadPoolExecutor(1) as thread:
        called = thread.submit(call)
        until(has_begun)
        while not called.done():
            cancellation.cancel(DeadlineError("ended"))
            wait([called], 0.02)
    return called.result()
