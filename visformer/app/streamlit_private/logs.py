"""Filters that keep what visitors type out of the logs, where addresses and messages of exceptions would put it.

A visitor loses: the privacy of the sentence, which an operator could read in the logs, with the ids of the session and
its files, which let whoever knows them take it over and read them.
"""

import logging
import re
import traceback

from streamlit.runtime.media_file_storage import MediaFileStorageError

from visformer.errors import VisformerError


def keep_typed_text_out() -> None:
    """Install the filters in this process; calling this again does no harm."""
    logging.getLogger("uvicorn.access").addFilter(_without_query)
    for name in ("streamlit.error_util", "streamlit.runtime.backend_operation_handler"):  # pages, downloads
        logging.getLogger(name).addFilter(_without_message)


def _without_query(record: logging.LogRecord) -> bool:
    """Log only the path of an address: its query holds the sentence. For uploads and downloads, only their folder."""
    if isinstance(record.args, tuple):
        record.args = tuple(_PRIVATE.sub("", a) if isinstance(a, str) and a.startswith("/") else a for a in record.args)
    return True


_PRIVATE = re.compile(r"(?<=^/media/).*|(?<=^/_stcore/upload_file/).*|\?.*")


def _without_message(record: logging.LogRecord) -> bool:
    """Log only the place and the type of an error: its message may quote a sentence or a token.

    Log nothing for a file that was refused, since its visitor is told, or that does not exist: its name may be made up.
    """
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        if isinstance(error, MediaFileStorageError) and isinstance(error.__cause__, VisformerError | None):
            return False
        record.exc_text = _place(record.exc_info[1])
        record.exc_info = None
    return True


def _place(error: BaseException) -> str:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = [_place(cause), "\nThen:\n"] if cause is not None else []
    frames = traceback.format_tb(error.__traceback__)
    message = f": {error.message_id}" if isinstance(error, VisformerError) else ""  # without its parameters
    return "".join([*before, "Traceback (most recent call last):\n", *frames, type(error).__name__, message])
