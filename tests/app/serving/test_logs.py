"""Logs do not contain what visitors type."""

import asyncio
import logging

import pytest
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from visformer.app.streamlit_private import logs
from visformer.app.streamlit_private.words import ICONS
from visformer.errors import TextError

MARKER = "zyxmarker"


@pytest.fixture
def log(caplog):
    """Log an error with the logger of this name, and return the text of the log."""
    logs.keep_typed_text_out()

    def logged(name, *args, **kwargs):
        logger = logging.getLogger(name)
        logger.addHandler(caplog.handler)
        try:
            logger.error(*args, **kwargs)
        finally:
            logger.removeHandler(caplog.handler)
        return caplog.text

    return logged


def test_only_the_place_and_type_of_an_exception_are_logged(log):
    def deep():
        try:
            raise KeyError(MARKER)
        except KeyError as error:
            raise TextError("{given} characters of {text}", given=3, text=MARKER) from error

    with pytest.raises(TextError) as caught:
        deep()
    text = log("streamlit.error_util", "Uncaught app execution", exc_info=caught.value)
    assert MARKER not in text
    for part in ("Uncaught app execution", "KeyError", "in deep", "TextError: {given} characters of {text}", "Then:"):
        assert part in text


def test_a_failed_download_is_one_sentence_to_the_visitor_and_its_place_in_the_log(caplog, monkeypatch):
    def make():
        raise KeyError(MARKER)

    logs.keep_typed_text_out()
    monkeypatch.setattr(logging.getLogger(DeferredFileHandler.__module__), "propagate", True)
    downloads = MediaFileManager(MemoryMediaFileStorage("/media"))
    request = BackendOperationRequest()
    request.deferred_file.file_id = downloads.add_deferred(make, "text/html", "place", "x.html")
    answer = asyncio.run(DeferredFileHandler(lambda: downloads).handle(request, "session"))
    assert answer.error_msg in ICONS, "the page replaces it"
    assert "in make\n" in caplog.text and "KeyError" in caplog.text
    assert MARKER not in caplog.text


def test_only_the_path_of_a_request_is_logged(log):
    text = log("uvicorn.access", '%s - "%s %s"', "1.2.3.4", "GET", f"/?text={MARKER}", extra={"x": 1})
    assert '1.2.3.4 - "GET /"' in text
    assert MARKER not in text


def test_names_of_sessions_and_files_are_not_logged(log):
    for path in ("/_stcore/upload_file/", "/media/"):
        text = log("uvicorn.access", '%s - "%s %s HTTP/%s" %d', "::1", "PUT", f"{path}abc/def?x", "1.1", 204)
        assert f'"PUT {path} HTTP/1.1" 204' in text
