"""The box beside each picture: the formula in the picture's colours, its section in the paper, our source code."""

import ast
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from threading import Lock
from typing import Any

import streamlit as st

import visformer
from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.errors import N_
from visformer.pictures.claims import Claim, claims_of
from visformer.pictures.style import SYMBOLS, Theme

_FOLDER = Path(visformer.__file__).parent
_SYMBOL = re.compile(r"\\sym\{(\w+)\}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_MATH = re.compile(r"\$([^$]+)\$")
_PARSER = Lock()  # until Python 3.13 one count of nested nodes serves all threads: two at a time end in a SystemError


def theme() -> Theme:
    """Return the visitor's theme."""
    return "dark" if st.context.theme.type == "dark" else "light"


def coloured(tex: str, theme: Theme) -> str:
    r"""Colour symbols as in the pictures: ``\sym{q}{Q}`` becomes Q in the colour of q."""
    return _SYMBOL.sub(lambda match: rf"\textcolor{{{SYMBOLS[match[1]][theme]}}}{{{match[2]}}}", tex)


def coloured_text(text: str, symbol: str) -> str:
    """Return Markdown for a name in the colour of its symbol."""
    return f':color[{text}]{{foreground="{SYMBOLS[symbol][theme()]}"}}'


def formula(
    tex: str, *, code: tuple[tuple[str, str], ...], section: str = "", source: str = "", page: str = ""
) -> None:
    r"""Draw a formula, its section in the paper, and the code that computes it.

    Args:
        tex: lines of LaTeX's ``aligned``, with symbols as ``\sym{name}{tex}``.
        section: of "Attention Is All You Need".
        source: the citation of a formula from another paper.
        code: (file, name) of the functions that compute it, see :func:`excerpt`.
        page: the page whose misprints in course notes are listed; empty: none.
    """
    _ = boxes.gettext()
    # Where there is room, on one line.
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="formula"):
        st.latex(rf"\small\begin{{aligned}} {coloured(tex, theme())} \end{{aligned}}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
            with st.popover(_("Source code"), type="tertiary"):
                for file, name in code:
                    st.caption(f"visformer/{plain(file)}")
                    st.code(excerpt(file, name), language="python")
            if page and (claims := claims_of(page)):
                _misprints(claims)
            sections = _(", ").join(map(plain, section.split(", ")))
            st.caption(_(source or N_("Paper, § {section}")).format(section=sections), width="content")


def place_of(function: Callable[..., Any]) -> tuple[str, str]:
    """Return the (file, name) of a function of the package, for ``code`` of :func:`formula`."""
    return f"{function.__module__.partition('.')[2].replace('.', '/')}.py", function.__qualname__


@cache
def excerpt(file: str, name: str) -> str:
    """Return the source of a function, class or ``Class.method`` of a file in the package, without its docstring.

    The file is parsed, not imported.

    Raises:
        KeyError: the file defines nothing of that name.
    """
    text = (_FOLDER / file).read_text(encoding="utf-8")
    with _PARSER:
        node: Any = ast.parse(text)
    for part in name.split("."):
        matches = [child for child in node.body if getattr(child, "name", None) == part]
        if not matches:
            raise KeyError(f"{file} defines no {name}")
        node = matches[0]
    lines = text.splitlines()[: node.end_lineno]
    if ast.get_docstring(node) is not None:
        del lines[node.body[0].lineno - 1 : node.body[0].end_lineno]
    return dedent("\n".join(lines[node.lineno - 1 :]))


def _misprints(claims: Sequence[Claim]) -> None:
    """List what course notes print, and what is right."""
    _ = boxes.gettext()
    about = _("What course notes on the Transformer print, and what is right: more on the page “Course notes”.")
    with st.popover(_("Misprints"), type="tertiary", help=about):
        st.caption(about)
        draw_claims(claims)


def draw_claims(claims: Sequence[Claim]) -> None:
    """Draw what is printed, what is right, and why, of each claim."""
    _ = boxes.gettext()
    printed = _("printed")
    for claim in claims:
        right = _("here") if claim.convention else _("right")
        st.markdown(f":gray[{printed}] {_small(_(claim.printed))}  \n:gray[{right}] {_small(_(claim.right))}")
        st.caption(_(claim.why))


def _small(text: str) -> str:
    """Set formulas in the size of the text around them; KaTeX makes them larger."""
    return _MATH.sub(r"$\\small \1$", text)
