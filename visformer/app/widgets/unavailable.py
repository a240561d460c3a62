"""Say in one sentence what a model lacks and why; the page then shows the rest."""

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

from visformer.app.session import address, boxes
from visformer.app.session.markdown import plain
from visformer.app.session.page import page_named
from visformer.errors import N_, Message
from visformer.model.positions import PAPERS, described
from visformer.trace import Trace

NOTHING_BETWEEN = N_("This model shows its attention patterns, but not how they are computed: {reason}.")
NOT_TO_CHANGE = N_("What this model computes can be viewed but not changed: {reason}.")
_N = TypeVar("_N", bound=str)
_UNKNOWN = N_("it does not store this value separately")


def tell(trace: Trace, name: str, message: str) -> bool:
    """Return whether the model lacks a tensor, and if so show why; ``message``: an id with ``{reason}``."""
    if name in trace:
        return False
    say(message, trace.lacks(name) or _UNKNOWN)
    return True


def say(message: str, reason: str | Message = "") -> None:
    """Show a sentence; both arguments are message ids."""
    _ = boxes.gettext()
    st.info(_(message).format(reason=plain(_(reason)) if reason else ""))


def positions(trace: Trace, message: str) -> None:
    """Show how the model encodes positions, unless as in the paper; ``message``: as for :func:`tell`."""
    kind = trace.meta.get("position", PAPERS)
    if kind != PAPERS:
        say(message, described(kind))


def elsewhere() -> None:
    """Link to the page that shows any model."""
    _ = boxes.gettext()
    label = _("See what each of its heads attends to")
    st.page_link(page_named("attention"), label=label, query_params=address.to_query())


def kind_of(trace: Trace) -> str:
    """Return "encoder", "decoder" or "encoder-decoder", by the sides that the model reads."""
    sides = [name for name, side in (("encoder", "src"), ("decoder", "tgt")) if trace.tokens.get(side)]
    return "-".join(sides)


def predicts(trace: Trace) -> bool:
    """Whether the model predicts next tokens."""
    return "decoder" in kind_of(trace) and has_logits(trace) and not trace.meta.get("labels")


def has_logits(trace: Trace) -> bool:
    """Whether the model predicts anything: tokens or labels."""
    return (trace.blocks is None or trace.blocks.logits) and trace.lacks("logits") is None


def shown(options: Mapping[_N, str], trace: Trace) -> dict[_N, str]:
    """Filter options named "src" and "tgt", or "encoder" and "decoder", by what the model has."""
    side = {"encoder": "src", "decoder": "tgt"}
    return {name: label for name, label in options.items() if trace.tokens.get(side.get(name, name))}
