"""What visitors type does not reach a log."""

import logging
import socket

import pytest

from visformer.app.streamlit_private import logs, warm_start
from visformer.errors import TextError

MARKER = "zyxmarker"


@pytest.fixture
def written(caplog):
    """What has been logged under a name."""
    logs.keep_typed_text_out()

    def log(name, level, *given, **settings):
        logger = logging.getLogger(name)
        logger.addHandler(caplog.handler)
        try:
            logger.log(level, *given, **settings)
        finally:
            logger.removeHandler(caplog.handler)
        return caplog.text

    return log


def test_of_an_exception_only_the_place_and_the_kind(written):
    def deep():
        try:
            raise KeyError(MARKER)
        except KeyError as error:
            raise TextError("{given} characters of {text}", given=3, text=MARKER) from error

    with pytest.raises(TextError) as caught:
        deep()
    said = written("streamlit.error_util", logging.ERROR, "Uncaught app execution", exc_info=caught.value)
    assert MARKER not in said
    for kept in ("Uncaught app execution", "KeyError", "in deep", "TextError: {given} characters of {text}", "Then:"):
        assert kept in said


def test_of_a_request_only_the_path(written):
    said = written(
        "uvicorn.access", logging.ERROR, '%s - "%s %s"', "1.2.3.4", "GET", f"/?text={MARKER}", extra={"x": 1}
    )
    assert '1.2.3.4 - "GET /"' in said
    assert MARKER not in said


def test_what_is_accepted_answers_at_once():
    """As Streamlit binds: without naming the protocol, where asyncio leaves it to the system."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        warm_start.send_at_once()
        with socket.create_connection(listening.getsockname()) as caller:
            accepted, _ = listening.accept()
            with accepted, caller:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
