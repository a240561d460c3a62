"""What stands beside each picture: the formula in the picture's colours, its section in the paper, our own lines."""

import re

import streamlit as st

from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets.source import excerpt
from visformer.pictures.examples.claims import claims_of
from visformer.pictures.theme import SYMBOLS, Theme

_SYMBOL = re.compile(r"\\sym\{(\w+)\}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_MATH = re.compile(r"\$([^$]+)\$")


def theme() -> Theme:
    """The visitor's theme."""
    return "dark" if st.context.theme.type == "dark" else "light"


def coloured(tex: str, theme: Theme) -> str:
    r"""``\sym{q}{Q}`` becomes Q in the colour that q has in the pictures."""
    return _SYMBOL.sub(lambda match: rf"\textcolor{{{SYMBOLS[match[1]][theme]}}}{{{match[2]}}}", tex)


def coloured_text(text: str, symbol: str) -> str:
    """Markdown for a name in the colour that its symbol has in the pictures."""
    return f':color[{text}]{{foreground="{SYMBOLS[symbol][theme()]}"}}'


def formula(
    tex: str, *, section: str = "", source: str = "", code: tuple[tuple[str, str], ...] = (), page: str = ""
) -> None:
    r"""A formula, where it stands in the paper, and what computes it here.

    Args:
        tex: lines of LaTeX's ``aligned``, with symbols as ``\sym{name}{tex}``.
        section: of "Attention Is All You Need".
        source: another paper, where it does not stand in that one.
        code: (file, name) of what computes it, see :func:`visformer.app.widgets.source.excerpt`.
        page: whose claims of course notes are set right below; empty: none.
    """
    _ = boxes.gettext()
    with st.container(gap="xsmall"):
        st.latex(rf"\small\begin{{aligned}} {coloured(tex, theme())} \end{{aligned}}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if code:
                with st.popover(_("Our own lines"), type="tertiary"):
                    for file, name in code:
                        st.caption(f"visformer/{file}")
                        st.code(excerpt(file, name), language="python")
            claims(page)
            st.caption(source or _("Paper, § {section}").format(section=section), width="content")


def written_out(text: str, *, back: str) -> None:
    """The arithmetic of one cell in the formula's place; ``back``: the key of the cell's slot."""
    _ = boxes.gettext()
    with st.container(gap="xsmall"):
        st.code(text, language=None, wrap_lines=True, height=112)
        st.button(_("Back to the formula"), type="tertiary", on_click=Slot(back, None).clear)


def claims(page: str) -> None:
    """What course notes print about this page's subject, and what is right; nothing where there is nothing."""
    _ = boxes.gettext()
    found = claims_of(page)
    if not found:
        return
    printed = _("printed")
    about = _(
        "Course notes on the Transformer, from which the lab has its examples: what they print, and what is right."
    )
    with st.popover(_("Misprints"), type="tertiary", help=about):
        st.caption(about)
        for claim in found:
            right = _("here") if claim.convention else _("right")
            st.markdown(f":gray[{printed}] {_small(_(claim.printed))}  \n:gray[{right}] {_small(_(claim.right))}")
            st.caption(_(claim.why))


def _small(text: str) -> str:
    """Formulas in the size of the words around them; KaTeX makes them larger."""
    return _MATH.sub(r"$\\small \1$", text)
