"""Text as Markdown: what Streamlit reads as Markdown gets our own words, or goes through :func:`plain`."""

import re

_JOINED = "\u2060"  # invisible, and no part of a word
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_STARTS = re.compile(r"(:|@|www(?=\\\.)|[-<>~](?=\\[-=>]))", re.IGNORECASE)
"""What escaping does not end: :icons:, links and addresses without brackets, and signs such as -> that are replaced."""


def plain(text: object) -> str:
    """Return a text as Markdown that shows it as it is, on one line: no link, formula, icon, colour or HTML."""
    escaped = _PUNCTUATION.sub(r"\\\1", " ".join(str(text).split()))
    return _STARTS.sub(rf"\1{_JOINED}", escaped)
