"""Which attention, layer, head and query a page looks at. On screen they count from 1, in code from 0."""

from typing import Any

import streamlit as st

from visformer.canvas.words import STACKS, Stack
from visformer.trace import Trace
from visformer.ui import state


def place(trace: Trace, *, key: str, query: bool = False, first: str = STACKS[0].name) -> tuple[Any, ...]:
    """Attention, layer and head in one row, and a query with them where one is wanted; ``first``: see :func:`stack`."""
    _ = state.gettext()
    left, *rest = st.columns([13, 4, 4, 6] if query else [6, 3, 3], vertical_alignment="bottom")
    with left:
        found = stack(key=f"{key}_stack", first=first)
    with rest[0]:
        at_layer = layer(trace, found, key=f"{key}_layer")
    with rest[1]:
        at_head = head(trace, found, key=f"{key}_head")
    if not query:
        return found, at_layer, at_head
    with rest[2]:
        read_by = "src" if found.part == "encoder" else "tgt"
        return found, at_layer, at_head, token(trace, read_by, _("Query"), key=f"{key}_query", default=1)


def scope(trace: Trace, *, key: str, first: str = STACKS[0].name) -> tuple[Stack, int | None, int | None]:
    """Attention, layer and head, of which an edit may go to all: None; ``first``: see :func:`stack`."""
    _ = state.gettext()
    left, second, third = st.columns([6, 3, 3], vertical_alignment="bottom")
    with left:
        found = stack(key=f"{key}_stack", first=first)
    n_layers, n_heads = trace.stack(found.part, found.kind).shape[:2]
    with second:
        at_layer = _one_or_all(_("Layer"), n_layers, key=f"{key}_layer")
    with third:
        at_head = _one_or_all(_("Head"), n_heads, key=f"{key}_head")
    return found, at_layer, at_head


def _one_or_all(label: str, count: int, *, key: str) -> int | None:
    _ = state.gettext()
    chosen = st.selectbox(
        label, range(-1, count), format_func=lambda i: _("all") if i < 0 else str(i + 1), key=f"{key}_{count}"
    )
    return None if chosen < 0 else chosen


def stack(*, key: str, first: str = STACKS[0].name) -> Stack:
    """One of the three attentions; ``first``: the name of the one that is chosen at the beginning."""
    _ = state.gettext()
    chosen = st.segmented_control(
        _("Attention"),
        [s.name for s in STACKS],
        format_func=lambda name: _(next(s.label for s in STACKS if s.name == name)),
        key=key,
        default=None if key in st.session_state else first,
        required=True,
    )
    return next(s for s in STACKS if s.name == chosen)


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
    chosen = st.selectbox(
        label,
        range(len(tokens)),
        index=min(default, len(tokens) - 1),
        format_func=lambda i: f"{i + 1} · {tokens[i]}",
        key=f"{key}_{len(tokens)}",
    )
    return int(chosen)


def number(label: str, count: int, *, key: str) -> int:
    """One of ``count``, from 0."""
    if count < 2:
        return 0
    return int(st.slider(label, 1, count, key=f"{key}_{count}")) - 1
