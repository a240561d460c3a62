"""Tables of a page. A presentation draws their rows itself, as text: Streamlit's canvas would be blurred and cut."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import run
from visformer.app.session.run import Table

if TYPE_CHECKING:
    import pandas as pd


def draw(table: "pd.DataFrame", *, title: str, **look: Any) -> None:
    """Draw a table without its index.

    Args:
        table: named columns; floats are shown to four decimals.
        title: in the visitor's language. Only a presentation adds it: the page has it above the table.
        look: further arguments of Streamlit's dataframe.
    """
    decimals = {name: st.column_config.NumberColumn(format="%.4f") for name in table.select_dtypes("float")}
    st.dataframe(table, hide_index=True, column_config=decimals, **look)
    present(title, table.itertuples(index=False), columns=[*table])


def present(title: str, rows: Iterable[Iterable[object]], *, columns: Sequence[str] = ()) -> None:
    """Let a presentation draw a table that the page draws otherwise."""
    texts = tuple(tuple(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)
    run.current().tables.append(Table(title, tuple(columns), texts))
