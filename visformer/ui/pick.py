"""Which attention, layer, head and query a page looks at. On screen they count from 1, in code from 0."""

import streamlit as st

from visformer.canvas.words import STACKS, Stack
from visformer.trace import Trace
from visformer.ui import state


def stack(*, key: str) -> Stack:
    """One of the three attentions."""
    _ = state.gettext()
    chosen = st.segmented_control(
        _("Attention"),
        [s.name for s in STACKS],
        format_func=lambda name: _(next(s.label for s in STACKS if s.name == name)),
        key=key,
        default=None if key in st.session_state else STACKS[0].name,
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
