"""A visitor's own list of sentences: its limits, by the number of the line."""

from types import SimpleNamespace

import pytest

from tests.app.support import in_a_session
from visformer.app.widgets import controls
from visformer.app.widgets.sentence_list import ChosenSentences
from visformer.errors import TextError
from visformer.system import limits


@pytest.fixture
def chosen(monkeypatch):
    """Return what reads a list, for a decoder of at most eight tokens that are words."""
    info = SimpleNamespace(kind="decoder", max_tokens=8)
    model = SimpleNamespace(tokenize=str.split, info=info)
    monkeypatch.setattr(controls, "bench", lambda: SimpleNamespace(loaded=lambda: model))

    def read(text):
        with in_a_session({"sentence_list": text}):
            return ChosenSentences(is_own=True, first=50).sentences()

    return read


def test_a_list_holds_texts_and_pairs(chosen):
    assert chosen("the cat\n\nthe dog\tle chien") == ("the cat", ("the dog", "le chien"))
    assert chosen("\ufeff\nthe cat\n\t\n\ufeffthe dog") == ("the cat", "the dog"), "byte order marks, and nothing else"
    with in_a_session({}):
        bundled = ChosenSentences(is_own=False, first=10).sentences()
    assert len(bundled) == 10 and bundled[0][0].startswith("My sister")


def test_what_cannot_be_used_is_named(chosen):
    for text, message in (
        ("the cat\n\n" + "cat " * 9, "Line 3 is too long: 9 tokens; at most 8"),
        ("the cat\ncat", "Line 2 is a single token"),
        ("a\tb\nthe cat\n" + "c " + "d" * limits.MAX_CHARACTERS, "Line 3 is too long"),
        ("the cat\n" * (limits.LISTED + 1), f"The list has {limits.LISTED + 1} sentences"),
        ("", "The list is empty"),
    ):
        with pytest.raises(TextError, match=message):
            chosen(text)
