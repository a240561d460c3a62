"""How a translation is searched: what reshapes the distribution, and how beam search came to its winner."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from visformer.app.session import state
from visformer.app.widgets import url_widgets


def settings() -> tuple[dict[str, Any], dict[str, Any]]:
    """Temperature, top-k and top-p; and what of them decoding uses: all where it draws, nothing where it does not."""
    _ = state.gettext()
    boxes = st.columns(4, vertical_alignment="bottom")
    with boxes[0]:
        temperature = url_widgets.slider(_("Temperature"), 0.1, 3.0, 1.0, step=0.1, key="decoding_temperature")
    with boxes[1]:
        top_k = url_widgets.slider(_("top-k (0: all)"), 0, 50, 0, key="decoding_top_k")
    with boxes[2]:
        top_p = url_widgets.slider("top-p", 0.05, 1.0, 1.0, step=0.05, key="decoding_top_p")
    shape = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p}
    with boxes[3]:
        about = _("Draw instead of taking the likeliest")
        draws = url_widgets.flag(st.toggle, _("Draw"), key="decoding_draws", help=about)
        seed = url_widgets.number(st.number_input, _("Seed"), 0, 10_000, 0, key="decoding_seed") if draws else 0
    return shape, {**shape, "seed": seed} if draws else {}


def tell_winner(path: Sequence[int]) -> None:
    """Whether the winner looked worse on its way; ``path``: its place at each step, from 0."""
    _ = state.gettext()
    if any(path):
        lowest = max(range(len(path)), key=path.__getitem__)
        said = _("The winner was number {place} at step {step}: what looked worse then won in the end.")
        st.text(said.format(place=path[lowest] + 1, step=lowest + 1))
    else:
        st.text(_("Here the top line wins from start to end: always taking the likeliest token finds it too."))
