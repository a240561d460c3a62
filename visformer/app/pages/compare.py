"""Views of the page that compares two of anything: each has boxes for its second side."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import boxes, selection
from visformer.app.widgets import controls, pick, url_widgets
from visformer.pictures.compare import FOCUS, PAGE
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting

if TYPE_CHECKING:
    from visformer.panel import Panel
    from visformer.web.panels import Click

_OVERVIEW = 0.32  # share of the window's height


def drawn(picture: Picture, setting: Setting, bar: Any) -> "list[Panel]":
    """Draw the widgets of a picture's own options and of the head that both sides show, and return its panels."""
    names = {option.name for option in FOCUS}
    with bar:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for option in picture.options:
                if option.name not in names:
                    url_widgets.draw(option, setting, PAGE.name)
        pick.selected(setting, picture)
    panels: list[Panel] = picture.draw(setting)
    return panels


def show(setting: Setting, panels: "list[Panel]", beside: Any, key: str) -> None:
    """Draw the distances of all heads in ``beside``, where a click selects one, and below it the head of both sides."""
    overview, *both = panels
    with beside:
        controls.draw([overview], key="compare_heads", share=_OVERVIEW, on_click=lambda click: _focus(setting, click))
    controls.draw(both, key=f"compare_{key}", share=0.7)
    st.caption(
        boxes.gettext()("It shows where heads read in these two passes: not why, nor what the model makes of it.")
    )


def _focus(setting: Setting, click: "Click") -> None:
    if click.row is None or click.column is None:
        return
    layer = [*setting.patterns.layers(setting.part, setting.kind)][click.row]
    place = {"stack": setting["stack"], "layer": layer, "head": click.column}
    selection.take({**selection.chosen().start(), **place}, setting.patterns)
