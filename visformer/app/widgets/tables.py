"""Tables of a page. A presentation draws their rows itself, as text: Streamlit's canvas would be blurred and cut."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import run
from visformer.app.session.run import PresentedTable
from visformer.export.marks import width_of

if TYPE_CHECKING:
    import pandas as pd

_SIZE, _BESIDE = 14, 20  # pixels: of Streamlit's text, and beside it in a cell


def draw(table: "pd.DataFrame", *, title: str, **style: Any) -> None:
    """Draw a table without its index.

    Args:
        table: named columns; floats are shown to four decimals.
        title: in the visitor's language. Only a presentation adds it: the page has it above the table.
        style: further arguments of Streamlit's dataframe.
    """
    columns: dict[str, Any] = {
        name: st.column_config.NumberColumn(format="%.4f") for name in table.select_dtypes("float")
    }
    for name in table.select_dtypes(["object", "string"]):
        columns[name] = st.column_config.TextColumn(width=width_for([name, *map(str, table[name])]))
    st.dataframe(table, hide_index=True, column_config=columns, **style)
    present(title, table.itertuples(index=False), columns=[*table])


def width_for(texts: Iterable[str]) -> int:
    """Return the width, in pixels, of a column with these texts: a table cuts what is longer, and scrolls if wider."""
    return ceil(max(width_of(text, _SIZE) for text in texts)) + _BESIDE


def present(title: str, rows: Iterable[Iterable[object]], *, columns: Sequence[str] = ()) -> None:
    """Let a presentation draw a table that the page draws otherwise."""
    texts = tuple(tuple(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)
    run.current().tables.append(PresentedTable(title, tuple(columns), texts))
