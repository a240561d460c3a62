"""A system without memory for another thread."""


def cannot_start(thread):
    """Replace ``threading.Thread.start``: fail as Python does when there is no memory for a thread."""
    raise RuntimeError("can't start new thread")
