"""Views of the page that compares two of anything: each has boxes for its second side."""

from dataclasses import replace
from typing import Any

import streamlit as st

from visformer.app.edits import current, editing
from visformer.app.session import address, boxes, run, selection, visit
from visformer.app.session.page import page_named
from visformer.app.widgets import component, controls, downloads, url_widgets
from visformer.pictures.compare import EDITED, FOCUS, MODELS, PAGE, SIDES, mapped, panels
from visformer.pictures.comparing import carried
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS

_MASKS = ("*.pattern", "*.mask")


def boxes_of(picture: Picture, setting: Setting) -> None:
    """Draw what selects the second side, and take attention, layer and head of both from the selection."""
    focus = {option.name for option in FOCUS}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for option in picture.options:
            if option in carried.OPTIONS[1:] and setting[carried.PATCH.name] == carried.NOTHING:
                setting[option.name] = option.start(setting)
            elif option.name not in focus:
                url_widgets.draw(option, setting, PAGE.name)
    if picture is MODELS:
        _in_common(setting)
    if picture is EDITED:
        _edits(setting)
    _take_selection(setting)


def _take_selection(setting: Setting) -> None:
    """Take the visitor's selection or, in place of an attention that only one side has, the first that both have."""
    selected, stacks = selection.selection(setting.patterns), setting.source.stacks
    if selected.stack not in stacks:
        selected = replace(selected, stack=stacks[0]).within(setting.patterns)
    setting.update(stack=selected.stack, layer=selected.layer, head=selected.head)


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
            ("head", "head_view=silence", _("Silence heads")),
            ("masks", "masks_view=edit", _("Change a mask")),
        ):
            name, value = view.split("=")
            st.page_link(page_named(page), label=label, query_params={**address.address(), name: value})
        st.button(_("Reset"), on_click=editing.reset, disabled=not edits, key="compare_reset")


def show(picture: Picture, setting: Setting) -> None:
    """Draw both explorers, linked."""
    _, key = boxes.gettext(), f"compare_{picture.view}"
    sides = mapped(setting, SIDES[picture.view](setting))
    start = {**selection.start(setting.patterns).start(), "opened": visit.OPENED.get()}
    component.pair_picture(sides, start=start, file=downloads.file_name(key), on_select=_select)
    # In files, which nobody can point at, the head of both and its difference.
    run.current().exports.extend([("panels", panels(setting, sides), key), ("pair", sides, component.PAIR)])
    st.caption(_("It shows where heads read in these two passes: not why, nor what the model makes of it."))


def _select(value: Any) -> None:
    trace = controls.current_trace()
    if trace is not None:
        selection.take(value, trace)
