"""What an edit of the model changes: the translation, a pattern, and how sure the model is of each next token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from visformer.canvas.words import STACKS
from visformer.errors import N_, VisformerError
from visformer.panel import traced
from visformer.pictures import masks
from visformer.trace import Trace
from visformer.ui import controls, state
from visformer.ui.resources import workbench

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

_RECORD = ("*.pattern", "logits")


def compare(trace: Trace, edits: "Sequence[Edit]", where: tuple[str, int] | None = None) -> None:
    """As it was, and beside it as it is under the edits.

    Args:
        trace: without them.
        edits: what was changed; nothing: says so.
        where: path and head of the pattern that is shown, from 0; None: the one that changes most.
    """
    _ = state.gettext()
    if not edits:
        st.caption(
            _("Nothing is changed yet. Translation and attention, before and after, will stand here side by side.")
        )
        return
    bench, source, target = workbench(), state.source(), str(trace.meta["target"])
    try:
        after = bench.trace(source, state.target(), edits=edits)
        plain, forced = (bench.trace(source, target, record=_RECORD, edits=e) for e in ((), edits))
    except VisformerError as error:
        st.text(error.localized(_))
        return
    before_text, after_text = st.columns(2)
    before_text.text(_("Before: {text}").format(text=target))
    after_text.text(_("After: {text}").format(text=after.meta["target"]))
    path, head = where or masks.changed_most(plain, forced)
    stack, layer, kind = path.split(".")
    attention = next(_(s.label) for s in STACKS if s.name == f"{stack}.{kind}")
    st.caption(
        _("{attention}, layer {layer}, head {head}, both times on the translation before.").format(
            attention=attention, layer=int(layer) + 1, head=head + 1
        )
    )
    shown = ((plain, N_("before"), "pattern"), (forced, N_("after"), "out"))
    patterns = [traced(t, f"{path}.pattern", head, title=title, scale="weight", name=name) for t, title, name in shown]
    controls.draw(patterns, key="compare_patterns", share=0.7)
    if path.startswith("decoder") and path.endswith("self_attn"):
        _tell_of_the_future(forced)
    controls.draw([masks.told_next([(_("as trained"), plain), (_("changed"), forced)])], key="compare_told")


def _tell_of_the_future(forced: Trace) -> None:
    """How much is read from the future, and what that can show: with a mask as it was, nothing."""
    _ = state.gettext()
    names = [name for name in forced if name.startswith("decoder") and name.endswith("self_attn.pattern")]
    share = float(np.mean([masks.future_mass(forced, name) for name in names]))
    if share == 0:
        return
    st.text(_("Read from the future: {share:.1%} of the decoder's attention.").format(share=share))
    st.caption(
        _(
            "This model was trained with the mask and has never learned to use what comes later. So the numbers show "
            "how it is disturbed by a future that it is not used to. They do not show what a model trained without "
            "the mask would do: that one would learn to copy the next token, and could write nothing by itself."
        )
    )
