"""Sentences that one silenced head changes visibly, to click on the page that silences heads."""

import json
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

import streamlit as st

from visformer.adapters.checkpoints import BUNDLED, folder_of
from visformer.app.edits import editing
from visformer.app.session import address, boxes
from visformer.app.session.markdown import plain
from visformer.app.session.page import current_page
from visformer.app.session.slots import Slot
from visformer.web.selection import Selection

_CHOSEN: Slot[str | None] = Slot("silence_example", None)


@cache
def examples(model: str | None) -> dict[str, Selection]:
    """Return sentences to the head without which each is translated otherwise, from the model's silences.json."""
    if model not in BUNDLED:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError):  # visformer doctor says what is wrong
        listed = json.loads((folder_of(model) / "silences.json").read_text(encoding="utf-8"))
        return {one.pop("text"): Selection(**one) for one in listed}
    return {}


def offer() -> None:
    """Draw the examples; a click opens one with its head silenced, as a link to it would."""
    _, found = boxes.gettext(), examples(boxes.model())
    if found:
        label = _("Sentences that one silenced head changes")
        st.pills(label, [*found], format_func=plain, key=_CHOSEN.key, on_change=partial(_open, found), wrap=True)


def _open(found: dict[str, Selection]) -> None:
    text = _CHOSEN.get()
    _CHOSEN.set(None)  # without a value the browser would keep the old one, and send it again with every later click
    if text is None:
        return
    head = found[text]
    choices = {"head_view": "silence", editing.HEADS: f"{head.layer + 1}.{head.head + 1}.0"}
    here = replace(address.common(), page=current_page(), lesson="", step="")
    address.restore(replace(here, text=text, target="", selection=head, choices=choices), ())
