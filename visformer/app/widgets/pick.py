"""Which attention, layer, head and query a page looks at. On screen they count from 1, in code from 0."""

from typing import Any

import streamlit as st

from visformer.app.session import selection, state
from visformer.app.widgets import url_widgets
from visformer.trace import Trace
from visformer.web.selection import short_name
from visformer.web.words import STACKS, Stack

_QUERY = 1  # place of the token that reads, at first


def selected(trace: Trace) -> tuple[str, int, int]:
    """Path of the attention, head and query of the selection, which is also the explorer's."""
    before = state.selection(trace).query
    found, layer, head, query = place(trace, key=selection.WIDGETS, query=True)
    kept = None if before is None and query == _QUERY else query  # not locked before it was chosen
    state.keep_place(stack=found.name, layer=layer, head=head, query=kept)
    return f"{found.part}.{layer}.{found.kind}", head, query


def selected_stack(trace: Trace) -> Stack:
    """The attention of the selection alone."""
    state.selection(trace)
    found = stack(trace, key=f"{selection.WIDGETS}_stack")
    state.keep_place(stack=found.name)
    return found


def place(trace: Trace, *, key: str, query: bool = False, first: str = STACKS[0].name) -> tuple[Any, ...]:
    """Attention, layer and head in one row, and a query with them where one is wanted; ``first``: see :func:`stack`."""
    _ = state.gettext()
    left, *rest = st.columns([13, 4, 4, 6] if query else [6, 3, 3], vertical_alignment="bottom")
    with left:
        found = stack(trace, key=f"{key}_stack", first=first)
    with rest[0]:
        at_layer = layer(trace, found, key=f"{key}_layer")
    with rest[1]:
        at_head = head(trace, found, key=f"{key}_head")
    if not query:
        return found, at_layer, at_head
    with rest[2]:
        read_by = "src" if found.part == "encoder" else "tgt"
        return found, at_layer, at_head, token(trace, read_by, _("Query"), key=f"{key}_query", default=_QUERY)


def scope(trace: Trace, *, key: str, first: str = STACKS[0].name) -> tuple[Stack, int | None, int | None]:
    """Attention, layer and head, of which an edit may go to all: None; ``first``: see :func:`stack`."""
    _ = state.gettext()
    left, second, third = st.columns([6, 3, 3], vertical_alignment="bottom")
    with left:
        found = stack(trace, key=f"{key}_stack", first=first)
    n_layers, n_heads = trace.stack(found.part, found.kind).shape[:2]
    with second:
        at_layer = _one_or_all(_("Layer"), n_layers, key=f"{key}_layer")
    with third:
        at_head = _one_or_all(_("Head"), n_heads, key=f"{key}_head")
    return found, at_layer, at_head


def _one_or_all(label: str, count: int, *, key: str) -> int | None:
    _ = state.gettext()
    chosen = url_widgets.option(
        st.selectbox,
        label,
        range(-1, count),
        -1,
        key=key,
        names=lambda i: "all" if i < 0 else str(i + 1),
        suffix=count,
        format_func=lambda i: _("all") if i < 0 else str(i + 1),
    )
    return None if chosen < 0 else chosen


def stack(trace: Trace, *, key: str, first: str = STACKS[0].name) -> Stack:
    """One of the attentions that the Trace has; ``first``: the name of the one that is chosen at the beginning."""
    _ = state.gettext()
    by_name = {s.name: s for s in STACKS if s.in_trace(trace)}
    chosen = url_widgets.option(
        st.segmented_control,
        _("Attention"),
        [*by_name],
        first if first in by_name else next(iter(by_name)),
        key=key,
        names=short_name,
        format_func=lambda name: _(by_name[name].label),
        required=True,
    )
    return by_name[chosen]


def layer(trace: Trace, stack: Stack, *, key: str) -> int:
    """A layer of the stack, from 0."""
    _ = state.gettext()
    return number(_("Layer"), len(trace.stack(stack.part, stack.kind)), key=key)


def head(trace: Trace, stack: Stack, *, key: str) -> int:
    """A head, from 0."""
    _ = state.gettext()
    return number(_("Head"), trace.stack(stack.part, stack.kind).shape[1], key=key)


def token(trace: Trace, side: str, label: str, *, key: str, default: int = 0) -> int:
    """The place of one of a side's tokens, from 0."""
    tokens = trace.tokens[side]
    return url_widgets.option(
        st.selectbox,
        label,
        range(len(tokens)),
        min(default, len(tokens) - 1),
        key=key,
        names=lambda i: str(i + 1),
        suffix=len(tokens),
        format_func=lambda i: f"{i + 1} · {tokens[i]}",
    )


def number(label: str, count: int, *, key: str) -> int:
    """One of ``count``, from 0."""
    if count < 2:
        return 0
    return int(url_widgets.slider(label, 1, count, 1, key=key, suffix=count)) - 1
