"""How a translation is searched: what reshapes the distribution, and how beam search came to its winner."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import url_widgets
from visformer.pictures.decoding import DRAWS, SEED, TEMPERATURE, TOP_K, TOP_P, shape
from visformer.pictures.setting import Setting


def settings(setting: Setting) -> dict[str, Any]:
    """Draw temperature, top-k and top-p; all of them and a seed where decoding draws, nothing where it does not."""
    columns = st.columns(4, vertical_alignment="bottom")
    for option, box in zip((TEMPERATURE, TOP_K, TOP_P), columns[:3], strict=True):
        with box:
            url_widgets.draw(option, setting, "decoding")
    with columns[3]:
        draws = url_widgets.draw(DRAWS, setting, "decoding")
        if not draws:
            return {}
        url_widgets.draw(SEED, setting, "decoding")
    return {**shape(setting), "seed": setting["seed"]}


def tell_winner(path: Sequence[int]) -> None:
    """Whether the winner looked worse on its way; ``path``: its place at each step, from 0."""
    _ = boxes.gettext()
    if any(path):
        lowest = max(range(len(path)), key=path.__getitem__)
        said = _("The winner was number {place} at step {step}: what looked worse then won in the end.")
        st.text(said.format(place=path[lowest] + 1, step=lowest + 1))
    else:
        st.text(_("Here the top line wins from start to end: always taking the likeliest token finds it too."))
