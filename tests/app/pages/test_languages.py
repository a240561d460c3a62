"""Texts in rare states, in a pseudo-language, which is one more catalogue: every text must come from it.

``test_pages.py`` walks through every page, view, control and model in it.
"""

import pytest

from tests import pseudo
from tests.app.pages.words import shown_texts, untranslated
from tests.app.support import enter

BAD_TEXTS = ("", "word " * 2000, "qxzjkv " * 120)
BAD_LINK = {
    **{"layer": "99", "head": "x", "stack": "none", "order": "none", "limit": "a", "combine": "2", "view": "none"},
    **{"model": "none", "lang": "yy", "text": "a" * 2000, "embedding_side": "9", "none": "1", "x y": "1"},
}


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_errors_are_translated(in_brackets, text):
    app = enter(in_brackets("see/masks"), text)
    assert not untranslated(app)
    assert app.text


def test_remarks_on_a_link_are_translated(in_brackets):
    app = in_brackets("see/embedding", locale=pseudo.CODE, **BAD_LINK)
    assert not [item for item in untranslated(app) if item[0] != "text"]  # remarks quote the link
    (lines,) = [text for kind, _, text in shown_texts(app) if kind == "text" and "\n" in text]
    assert all("⟦" in line for line in lines.splitlines())
