"""What an edit of the model changes: the translation, a pattern, and how sure the model is of each next token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from visformer.errors import VisformerError
from visformer.panel import traced
from visformer.pictures import masks
from visformer.trace import Trace
from visformer.ui import controls, state
from visformer.ui.resources import workbench

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

_RECORD = ("*.pattern", "logits")


def compare(trace: Trace, edits: "Sequence[Edit]", path: str, head: int) -> None:
    """As it was, and under the edits.

    Args:
        trace: without them.
        edits: what was changed.
        path: of the attention whose pattern is shown.
        head: of the pattern, from 0.
    """
    _ = state.gettext()
    bench, source, target = workbench(), state.source(), str(trace.meta["target"])
    try:
        after = bench.trace(source, state.target(), edits=edits)
        plain, forced = (bench.trace(source, target, record=_RECORD, edits=e) for e in ((), edits))
    except VisformerError as error:
        st.text(error.localized(_))
        return
    st.text(_("Before: {text}").format(text=target))
    st.text(_("After: {text}").format(text=after.meta["target"]))
    if path.startswith("decoder") and path.endswith("self_attn"):
        names = [name for name in forced if name.startswith("decoder") and name.endswith("self_attn.pattern")]
        future = np.mean([masks.future_mass(forced, name) for name in names])
        st.text(_("Read from the future: {share:.1%} of the decoder's attention.").format(share=future))
    shown = [
        traced(t, f"{path}.pattern", head, title=title, scale="weight", name=name)
        for t, title, name in ((trace, _("pattern before"), "pattern"), (after, _("pattern after"), "out"))
    ]
    controls.draw(shown, key="compare_patterns")
    controls.draw([masks.told_next([(_("as trained"), plain), (_("changed"), forced)])], key="compare_told")
