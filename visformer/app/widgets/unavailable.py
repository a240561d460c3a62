"""What a model does not have, in one sentence: what, and why. A page then shows what there is."""

import streamlit as st

from visformer.app.session import address, boxes
from visformer.errors import N_, Message
from visformer.model.positions import PAPERS, described
from visformer.trace import Trace

NOTHING_BETWEEN = N_("This model shows its attention patterns, but not how they are computed: {reason}.")
NOT_TO_CHANGE = N_("What this model computes can be viewed but not changed: {reason}.")
_UNKNOWN = N_("it does not store this value separately")


def tell(trace: Trace, name: str, said: str) -> bool:
    """Whether the model lacks a tensor; if so, the page says it; ``said``: a message id with ``{reason}``."""
    if name in trace:
        return False
    say(said, trace.lacks(name) or _UNKNOWN)
    return True


def say(said: str, reason: str | Message = "") -> None:
    """The sentence; both are message ids."""
    _ = boxes.gettext()
    st.info(_(said).format(reason=_(reason) if reason else ""))


def positions(trace: Trace, said: str) -> None:
    """How the model knows the order of tokens, where it is not as in the paper; ``said``: as for :func:`tell`."""
    kind = trace.meta.get("position", PAPERS)
    if kind != PAPERS:
        say(said, described(kind))


def elsewhere() -> None:
    """Where a model of which a page shows nothing can be seen all the same."""
    _ = boxes.gettext()
    st.page_link(
        "pages/see/attention.py", label=_("See what each of its heads attends to"), query_params=address.address()
    )


def kind_of(trace: Trace) -> str:
    """Of the model: "encoder", "decoder" or "encoder-decoder", by what it reads."""
    sides = [name for name, side in (("encoder", "src"), ("decoder", "tgt")) if trace.tokens.get(side)]
    return "-".join(sides)


def shown(options: dict[str, str], trace: Trace) -> dict[str, str]:
    """Of "src" and "tgt" those that the model has; of "encoder" and "decoder" likewise."""
    side = {"encoder": "src", "decoder": "tgt"}
    return {name: label for name, label in options.items() if trace.tokens.get(side.get(name, name))}
