"""The parts of a block as a table: what was measured on each, and what course notes print."""

from collections.abc import Sequence

import streamlit as st

from visformer.pictures.block import Part
from visformer.ui import state


def table(found: Sequence[Part]) -> None:
    """A row for each part, with the number behind "yes" and "no"."""
    _ = state.gettext()
    say, moved = {True: _("yes"), False: _("no")}, _("largest change of another token's output")
    rows = [
        {
            _("part"): _(part.name),
            _("tokens talk to each other"): say[part.talks],
            moved: part.moved,
            _("has parameters"): say[part.trained],
            _("printed"): say[part.printed] + " ≠" * part.misprinted,
            _("parameters in one layer"): part.parameters,
        }
        for part in found
    ]
    st.dataframe(rows, column_config={moved: st.column_config.NumberColumn(format="%.4f")})
