"""The stream of a model beside that of untrained ones with either kind of norm."""

import streamlit as st

from visformer.app.session import state
from visformer.app.widgets import controls
from visformer.errors import VisformerError
from visformer.pictures import block
from visformer.trace import Trace


def norms(trace: Trace, stack: block.Stack) -> None:
    """How long the vectors grow, untrained with post-norm and with pre-norm, and in this model.

    Untrained ones have the sizes of this one, which only our own can have; of another the stream stands alone.
    """
    _ = state.gettext()
    untrained: dict[str, Trace] = {}
    try:
        for norm in block.UNTRAINED:
            untrained[norm] = controls.bench().untrained(
                state.source(), str(trace.meta["target"]), norm=norm, record=block.RECORD
            )
    except VisformerError as error:
        st.info(error.localized(_))
    shown = block.norms(trace, stack, untrained)
    controls.draw(block.noted(shown, _("strongest colour: {limit:.1f}")), key="block_norms")
