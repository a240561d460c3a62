"""The tables of pages."""

import pandas as pd
import streamlit as st

from tests.app.support import in_a_session
from visformer.app.widgets import tables


def test_a_column_of_text_is_as_wide_as_its_longest_text(monkeypatch):
    """Otherwise a narrow window cuts it without a sign; a table that is wider than its frame scrolls."""
    drawn = {}
    monkeypatch.setattr(st, "dataframe", lambda table, **look: drawn.update(look["column_config"]))
    table = pd.DataFrame({"id": [1, 2], "what it is": ["", "the sentence ends here"], "share": [0.5, 0.25]})
    with in_a_session({}):
        tables.draw(table, title="")
    assert sorted(drawn) == ["share", "what it is"]
    assert 150 <= drawn["what it is"]["width"] <= 210
