"""Inside a head: every number from the query to the output, the sum behind each, and heads that can be silenced."""

import numpy as np
import streamlit as st

from visformer.errors import N_
from visformer.panel import Panel, numbered
from visformer.pictures import head as pictures
from visformer.ui import comparison, controls, editing, lesson, pick, state

FORMULA = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V}) \\[4pt]
&= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
CODE = (("model/attention.py", "attention"), ("model/attention.py", "MultiHeadAttention.forward"))
SHOWN = "head_cell"


def show(click):
    st.session_state[SHOWN] = click


_ = state.gettext()
trace = controls.current_trace()
if trace is not None:
    st.caption(
        _(
            "One query, from left to right: q times every key, scaled, masked, softmax, and the values weighted by it. "
            "Click a cell to read the sum behind it."
        )
    )
    left, *rest = st.columns([3, 2, 2, 3], vertical_alignment="bottom")
    with left:
        stack = pick.stack(key="head_stack")
    with rest[0]:
        layer = pick.layer(trace, stack, key="head_layer")
    with rest[1]:
        number = pick.head(trace, stack, key="head_head")
    with rest[2]:
        side_read = "src" if stack.part == "encoder" else "tgt"
        query = pick.token(trace, side_read, _("Query"), key="head_query", default=1)
    path = f"{stack.part}.{layer}.{stack.kind}"
    place = pictures.Place(path, number, query)
    full = controls.current_trace((*place.record, f"{path}.w_*", f"{path}.b_*"))

    picture, side = st.columns([68, 32], gap="large")
    with picture:
        steps, joined = pictures.steps(full, place), pictures.joined(full, place)
        controls.draw(steps, key="head_steps", on_click=show, stacked=True)
        controls.draw(joined, key="head_joined", stacked=True)
    with side:
        lesson.formula(FORMULA, section="3.2", code=CODE, page="head")
        click = st.session_state.get(SHOWN)
        if click is not None and click.row is not None and click.column is not None:
            st.code(pictures.written_out(full, place, click.panel, click.column, click.row), language=None)
        n, m = full[f"{path}.pattern"].shape[1:]
        d, h = full[f"{path}.out"].shape[-1], full[f"{path}.pattern"].shape[0]
        st.caption(
            f"x (1, {n}, {d}) → q (1, {n}, {d}) → (1, {h}, {n}, {d // h}); k, v (1, {h}, {m}, {d // h}); "
            f"pattern (1, {h}, {n}, {m}) → heads (1, {h}, {n}, {d // h}) → (1, {n}, {d}) → out (1, {n}, {d})"
        )

    st.subheader(_("Silence a head"), anchor=False)
    st.caption(_("Click a head: its output is multiplied by the factor, and the model translates again without it."))
    n_layers, n_heads = trace.stack(stack.part, stack.kind).shape[:2]
    factor = st.slider(_("Factor"), 0.0, 2.0, 0.0, 0.25, key="head_factor")
    scales = editing.scales(stack.name, n_layers, n_heads)
    heads = Panel(
        name="factors",
        title=N_("factor of each head"),
        values=scales,
        rows=numbered(n_layers, N_("layer"), first=1),
        columns=numbered(n_heads, N_("head"), first=1),
        limit=2.0,
        outlined=scales != 1,
        click="changes",
    )
    controls.draw([heads], key="head_scales", on_click=lambda c: editing.scale_all(stack.name, c, scales.shape, factor))
    st.button(_("Reset"), on_click=editing.reset, disabled=bool(np.all(scales == 1)), key="head_reset")
    if not np.all(scales == 1):
        comparison.compare(trace, editing.head_edits(stack.name), path, number)
