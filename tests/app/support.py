"""A session state and an address without a server."""

from contextlib import contextmanager
from unittest.mock import patch

import streamlit as st

from benchmarks.messages import read_message
from tests.addresses import fields_of

_OTHERS = ("visformer_link", "visformer_connection", "visformer_present", "visformer_words")


def pictures(app):
    """What the canvas of a page draws, and what feeds it; not what stands in the head of every page.

    A picture that went ahead of the page comes behind its view.
    """
    found = [one for one in app.get("bidi_component") if one.proto.component_name not in _OTHERS]
    (early,) = [one for one in found if one.proto.id.endswith("attention_ahead")] or [None]
    view, *feeds = [one for one in found if one is not early and not one.proto.id.endswith("present_words")] or [None]
    ahead = [early] if early is not None and read_message(early.proto.bytes)[0]["to"] else []
    return [one for one in (view, *ahead, *feeds) if one is not None]


def went_ahead(app):
    """Whether the picture of the explorer went ahead of the page."""
    (early,) = [one for one in app.get("bidi_component") if one.proto.id.endswith("attention_ahead")]
    return read_message(early.proto.bytes)[0]["kind"] == "attention"


def presented(app):
    """What a presentation of the page is told."""
    (feed,) = [one for one in app.get("bidi_component") if one.proto.id.endswith("present_words")]
    return read_message(feed.proto.bytes)[0]


def address_of(app):
    """The fields of a session's address."""
    fields = {name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()}
    return fields_of(fields)


@contextmanager
def in_a_session(values):
    """``st.session_state`` is this dict."""
    with patch.object(st, "session_state", dict(values)) as session:
        yield session


@contextmanager
def address():
    """``st.query_params`` is this dict."""
    with patch.object(st, "query_params", _Address()) as link:
        yield link


class _Address(dict):
    """As much of Streamlit's as is used."""

    def to_dict(self):
        return dict(self)

    def from_dict(self, wanted):
        self.clear()
        self.update(wanted)
