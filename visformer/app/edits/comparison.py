"""The effect of an edit of the model: on its output, its confidence in each next token, and a pattern."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from visformer.app.edits import editing
from visformer.app.session import boxes
from visformer.app.widgets import controls
from visformer.app.widgets.unavailable import kind_of
from visformer.errors import N_, VisformerError
from visformer.panel import Panel, traced
from visformer.pictures import masks
from visformer.pictures.registry.setting import PATTERNS
from visformer.pictures.style import LEAST, decoded_text, probability, visible
from visformer.trace import Trace
from visformer.trace.stacks import stack_named

if TYPE_CHECKING:  # visformer.edits imports torch
    from visformer.edits import Edit

_RECORD = ("*.pattern", "logits")


def compare(trace: Trace, edits: "Sequence[Edit]", scope: editing.Scope | None = None) -> None:
    """Draw what the model does without and, beside it, with the edits.

    The pattern is of one of the heads in ``scope``, whose masks were changed; None: of any head.
    """
    _ = boxes.gettext()
    kind = kind_of(trace)
    if not edits:
        said = _("No change yet. Attention before and after will appear here side by side.")
        if kind != "encoder":
            said = _("No change yet. Output and attention before and after will appear here.")
        st.caption(said)
        return
    bench, source = controls.bench(), boxes.source()
    try:
        texts = () if kind == "encoder" else (bench.decoded(source).text, bench.decoded(source, edits=edits).text)
        target, record = _as_shown(trace, kind)
        plain, forced = (bench.trace(source, target, record=record, edits=e) for e in ((), edits))
    except VisformerError as error:
        st.text(error.localized(_))
        return
    peeked = _future_share(forced) if scope is not None and scope.attention == "decoder.self_attn" else 0.0
    if peeked:
        _tell_future_reading(peeked, changes=len({*texts}) > 1)
    if texts:
        before, after = st.columns(2)
        before.text(_("Before: {text}").format(text=decoded_text(texts[0], _)))
        after.text(_("After: {text}").format(text=decoded_text(texts[1], _)))
        told = masks.next_tokens([(_("before"), plain), (_("after"), forced)])
        if texts[0] == texts[1]:
            _tell_moved(told)
        controls.draw([told], key="compare_told", share=0.4)
    if peeked:
        st.caption(
            _(
                "This model was trained with the mask and never learned to use later tokens. So the numbers show "
                "how seeing them disturbs it, not what a model trained without the mask would do: that one would "
                "learn to copy the next token and could write nothing by itself."
            )
        )
    _most_changed(plain, forced, scope, acts=len({*texts}) > 1 or masks.answers_otherwise(plain, forced))


def _as_shown(trace: Trace, kind: str) -> tuple[str | tuple[int, ...] | None, Sequence[str]]:
    """Return the target as the masks show it, and what to record."""
    if kind == "encoder":
        return boxes.target(), PATTERNS
    if kind == "decoder":
        return boxes.target(), _RECORD
    ids = list(zip(trace.meta["ids"]["next"][:-1], trace.special["next"], strict=False))
    begins = next((at for at, (_, special) in enumerate(ids) if not special), 0)  # behind the language token
    return tuple(i for i, _ in ids[begins:]), _RECORD  # not as text, which might be tokenized differently


def _tell_moved(told: Panel) -> None:
    """Say that no word changes, and which probability moves most; ``told``: by :func:`masks.next_tokens`."""
    _ = boxes.gettext()
    before, after = told.values
    at = int(np.abs(after - before).argmax())
    said = _("No word changes, and no probability by as much as 0.001.")
    if abs(after[at] - before[at]) >= LEAST:
        said = _("No word changes. The probability of {token} ({place}) moves most: from {before} to {after}.")
    numbers = {"before": probability(float(before[at])), "after": probability(float(after[at]))}
    st.text(said.format(token=visible(told.columns.texts[at]), place=at + 1, **numbers))


def _most_changed(plain: Trace, forced: Trace, scope: editing.Scope | None, *, acts: bool) -> None:
    """Draw the pattern that the edits change most, before and after; ``acts``: whether they change the output."""
    _ = boxes.gettext()
    among, only = ("*", None) if scope is None else (scope.path, scope.head)
    place = masks.changed_most(plain, forced, among=among, head=only)
    if place is None:
        said = _("No pattern changes: the edit comes after the last attention, or has no effect.")
        if acts:
            said = _("No pattern changes: the edit acts on the output alone, after the last pattern.")
        st.caption(said)
        return
    path, head = place
    stack, layer, kind = path.split(".")
    attention = _(stack_named(f"{stack}.{kind}").label)
    said = _("The pattern that changes most: {attention}, layer {layer}, head {head}.")
    if scope is not None:
        said = _(
            "Among the heads with an edited mask, this pattern changes most: {attention}, layer {layer}, head {head}."
        )
    st.caption(said.format(attention=attention, layer=int(layer) + 1, head=head + 1))
    shown = ((plain, N_("before"), "pattern"), (forced, N_("after"), "out"))
    patterns = [traced(t, f"{path}.pattern", head, title=title, scale="weight", name=name) for t, title, name in shown]
    controls.draw(patterns, key="compare_patterns", share=0.6)


def _future_share(forced: Trace) -> float:
    """Return the share of the decoder's attention that goes to later tokens, from 0 to 1."""
    names = [name for name in forced if name.startswith("decoder") and name.endswith("self_attn.pattern")]
    return float(np.mean([masks.future_mass(forced, name) for name in names]))


def _tell_future_reading(share: float, *, changes: bool) -> None:
    """Say how much attention goes to the future, and why the translation changes, or is the one of before."""
    _ = boxes.gettext()
    st.text(_("{share:.1%} of the decoder's attention goes to later tokens.").format(share=share))
    if changes:
        st.caption(
            _(
                "Step by step, the tokens already written now also read those after them. This model never learned "
                "to read so, and translates differently. The table is for the whole text given at once."
            )
        )
        return
    st.caption(
        _(
            "Translation and table are both right. When the model writes step by step, nothing follows the "
            "newest token yet; the table is for the whole text given at once, where each token also reads "
            "those after it."
        )
    )
