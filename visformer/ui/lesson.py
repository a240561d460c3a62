"""What stands beside each picture: the formula in the picture's colours, its section in the paper, our own lines."""

import re

import streamlit as st

from visformer.figures.theme import SYMBOLS, Theme
from visformer.source import excerpt
from visformer.ui import state

_SYMBOL = re.compile(r"\\sym\{(\w+)\}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")


def theme() -> Theme:
    """The visitor's theme."""
    return "dark" if st.context.theme.type == "dark" else "light"


def coloured(tex: str, theme: Theme) -> str:
    r"""``\sym{q}{Q}`` becomes Q in the colour that q has in the pictures."""
    return _SYMBOL.sub(lambda match: rf"\textcolor{{{SYMBOLS[match[1]][theme]}}}{{{match[2]}}}", tex)


def formula(tex: str, *, section: str, code: tuple[tuple[str, str], ...] = ()) -> None:
    r"""A formula, where it stands in the paper, and what computes it here.

    Args:
        tex: lines of LaTeX's ``aligned``, with symbols as ``\sym{name}{tex}``.
        section: of "Attention Is All You Need".
        code: (file, name) of what computes it, see :func:`visformer.source.excerpt`.
    """
    _ = state.gettext()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.latex(rf"\small\begin{{aligned}} {coloured(tex, theme())} \end{{aligned}}", width="content")
        with st.container(width="content", gap="xsmall"):
            if code:
                with st.popover(_("Our own lines"), type="tertiary"):
                    for file, name in code:
                        st.caption(f"visformer/{file}")
                        st.code(excerpt(file, name), language="python")
            st.caption(_("Paper, § {section}").format(section=section), width="content")
