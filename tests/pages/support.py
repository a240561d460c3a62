"""A session state and an address without a server."""

from contextlib import contextmanager
from unittest.mock import patch

import streamlit as st


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
