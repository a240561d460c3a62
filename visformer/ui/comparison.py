"""What an edit of the model changes: the translation, how sure the model is of each next token, and a pattern."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from visformer.canvas.words import STACKS
from visformer.errors import N_, VisformerError
from visformer.panel import traced
from visformer.pictures import masks
from visformer.trace import Trace
from visformer.ui import controls, editing, state
from visformer.ui.resources import workbench

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

_RECORD = ("*.pattern", "logits")


def compare(trace: Trace, edits: "Sequence[Edit]", scope: editing.Scope | None = None) -> None:
    """As it was, and beside it as it is under the edits.

    Args:
        trace: without them.
        edits: what was changed; nothing: says so.
        scope: the heads whose masks were changed, one of which is shown; None: any head may be.
    """
    _ = state.gettext()
    if not edits:
        st.caption(
            _("Nothing is changed yet. Translation and attention, before and after, will stand here side by side.")
        )
        return
    bench, source = workbench(), state.source()
    try:
        before, after = bench.trace(source, None).meta["target"], bench.translated(source, edits)
        ids = tuple(trace.meta["ids"]["next"][:-1])  # as the masks show them: their text might be cut otherwise
        plain, forced = (bench.trace(source, ids, record=_RECORD, edits=e) for e in ((), edits))
    except VisformerError as error:
        st.text(error.localized(_))
        return
    before_text, after_text = st.columns(2)
    before_text.text(_("Before: {text}").format(text=before))
    after_text.text(_("After: {text}").format(text=after))
    controls.draw([masks.told_next([(_("before"), plain), (_("after"), forced)])], key="compare_told", share=0.4)
    if scope is not None and scope.attention == "decoder.self_attn":
        _tell_of_the_future(forced)
    _most_changed(plain, forced, scope)


def _most_changed(plain: Trace, forced: Trace, scope: editing.Scope | None) -> None:
    """The pattern that the edits change most, before and after."""
    _ = state.gettext()
    among, only = ("*", None) if scope is None else (scope.path, scope.head)
    found = masks.changed_most(plain, forced, among=among, head=only)
    if found is None:
        st.caption(_("No pattern changes: what was edited comes behind the last attention, or makes no difference."))
        return
    path, head = found
    stack, layer, kind = path.split(".")
    attention = next(_(s.label) for s in STACKS if s.name == f"{stack}.{kind}")
    said = _("The pattern that changes most: {attention}, layer {layer}, head {head}.")
    if scope is not None:
        said = _("Of the edited masks, this pattern changes most: {attention}, layer {layer}, head {head}.")
    st.caption(said.format(attention=attention, layer=int(layer) + 1, head=head + 1))
    shown = ((plain, N_("before"), "pattern"), (forced, N_("after"), "out"))
    patterns = [traced(t, f"{path}.pattern", head, title=title, scale="weight", name=name) for t, title, name in shown]
    controls.draw(patterns, key="compare_patterns", share=0.6)


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
            "Translation and table are both right. Writing step by step, the newest token has no future that it could "
            "read; the table is for the whole target given at once, where each token reads those behind it."
        )
    )
    st.caption(
        _(
            "This model was trained with the mask and has never learned to use what comes later. So the numbers show "
            "how it is disturbed by a future that it is not used to. They do not show what a model trained without "
            "the mask would do: that one would learn to copy the next token, and could write nothing by itself."
        )
    )
