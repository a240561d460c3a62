"""Views of the page that compares two of anything: each has boxes for its second side."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from visformer.app.edits import current, editing
from visformer.app.session import address, boxes, selection
from visformer.app.widgets import controls, pick, url_widgets
from visformer.pictures.compare import ALIGN, EDITED, FOCUS, MATCHES, MODELS, PAGE
from visformer.pictures.comparing import carried
from visformer.pictures.registry.options import resolved
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:
    from visformer.web.panels import Click

_SHARE = 1.2  # of the window's height: in one row the four panels would be too small for their numbers
_MASKS = ("*.pattern", "*.mask")


def boxes_of(picture: Picture, setting: Setting) -> None:
    """Draw what selects the second side, and then the attention, layer and head that both sides show."""
    focus = {option.name for option in FOCUS}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for option in picture.options:
            if option is ALIGN and len(resolved(ALIGN.values, setting)) == 1:
                setting[ALIGN.name] = ALIGN.start(setting)
            elif option in carried.OPTIONS[1:] and setting[carried.PATCH.name] == carried.NOTHING:
                setting[option.name] = option.start(setting)
            elif option.name not in focus:
                url_widgets.draw(option, setting, PAGE.name)
    if picture in (MODELS, MATCHES):
        _in_common(setting)
    if picture is EDITED:
        _edits(setting)
    if picture is MATCHES:
        pick.selected_stack(setting)
    else:
        pick.selected(setting, picture)


def _in_common(setting: Setting) -> None:
    """Offer only the attentions that the other model has, too."""
    second = setting.source.read(str(setting.patterns.meta["source"]), model=setting["other_model"])
    shared = tuple(stack.name for stack in STACKS if stack.name in setting.source.stacks and stack.in_trace(second))
    if shared:
        setting.source = replace(setting.source, stacks=shared)


def _edits(setting: Setting) -> None:
    """Take the visitor's edits, and say where they are made."""
    _ = boxes.gettext()
    masked = controls.current_trace(_MASKS)
    edits = current.edits(masked if masked is not None else setting.patterns)
    setting.source = replace(setting.source, edits=edits)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for page, view, label in (
            ("understand/head", "head_view=silence", _("Silence heads")),
            ("see/masks", "masks_view=edit", _("Change a mask")),
        ):
            name, value = view.split("=")
            st.page_link(f"pages/{page}.py", label=label, query_params={**address.address(), name: value})
        st.button(_("Reset"), on_click=editing.reset, disabled=not edits, key="compare_reset")


def show(picture: Picture, setting: Setting) -> None:
    """Draw a picture: a number of each head, where a click selects one, and the head of both sides."""
    controls.draw(picture.draw(setting), key=f"compare_{picture.view}", share=_SHARE, on_click=partial(_focus, setting))
    _ = boxes.gettext()
    st.caption(_("It shows where heads read in these two passes: not why, nor what the model makes of it."))


def _focus(setting: Setting, click: "Click") -> None:
    if click.row is None or click.column is None:  # a label
        return
    layer = [*setting.patterns.layers(setting.part, setting.kind)][click.row]
    place = {"stack": setting["stack"], "layer": layer, "head": click.column}
    selection.take({**selection.chosen().start(), **place}, setting.patterns)
