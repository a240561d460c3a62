"""Compare: two sentences, models or moments side by side, or one before and after an edit."""

from dataclasses import replace
from typing import Any

import streamlit as st

from visformer.app.edits import editing
from visformer.app.session import address, boxes, run, selection
from visformer.app.session.markdown import plain
from visformer.app.session.page import page_named
from visformer.app.widgets import component, controls, downloads, formula_box, unavailable, url_widgets
from visformer.errors import N_, TraceError, VisformerError
from visformer.pictures.compare import CARRIED, EDITED, MODELS, NOTHING, PAGE, PATCH, SIDES, mapped, panels
from visformer.pictures.registry.options import SELECTED
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS
from visformer.web.selection import START_VIEW

FORMULA = r"""&\textstyle \mathrm{TV}(\sym{pattern}{p}, \sym{pattern}{q})
= \frac{1}{2} \sum_k |\sym{pattern}{p}_k - \sym{pattern}{q}_k|"""
CODE = (("analysis/comparing.py", "row_distances"), ("analysis/comparing.py", "token_partners"))
TOLD = N_("Total variation distance of two rows")

_ = boxes.gettext()


def draw() -> None:
    """Draw the page. A session keeps what is called on a selection: no global of this script may hold a Trace."""
    trace = controls.current_trace()
    if trace is None:
        return
    view = PAGE.view(controls.view(_("View"), PAGE.titles, key="compare_view"))
    assert isinstance(view, Picture)
    words, beside = st.columns([58, 42], gap="medium")
    with words:
        controls.look_for(_(view.look_for))
    setting = controls.setting_of(view, trace)
    try:
        with words:
            draw_second_side(view, setting)
        draw_explorers(view, setting)
    except TraceError as error:
        st.info(plain(error.localized(_)))
        unavailable.elsewhere()
    except VisformerError as error:
        st.text(error.localized(_))
    with beside:
        formula_box.formula(FORMULA, code=CODE, source=TOLD)


def draw_second_side(picture: Picture, setting: Setting) -> None:
    """Draw what selects the second side, and take attention, layer and head of both from the selection."""
    focus = {option.name for option in SELECTED[:3]}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for option in picture.options:
            if option in CARRIED[1:] and setting[PATCH.name] == NOTHING:
                setting[option.name] = option.start(setting)
            elif option.name not in focus:
                url_widgets.draw(option, setting, PAGE.name)
    if picture is MODELS:  # offer only the attentions that the other model has, too
        second = setting.source.read(str(setting.patterns.meta["source"]), model=setting["other_model"])
        shared = tuple(each.name for each in STACKS if each.name in setting.source.stacks and each.in_trace(second))
        if shared:
            setting.source = replace(setting.source, stacks=shared)
    if picture is EDITED:
        masked = controls.current_trace(("*.pattern", "*.mask"))
        edits = editing.edits_of(masked if masked is not None else setting.patterns)
        setting.source = replace(setting.source, edits=edits)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            for page, name, value, label in (
                ("head", "head_view", "silence", _("Silence heads")),
                ("masks", "masks_view", "edit", _("Change a mask")),
            ):
                st.page_link(page_named(page), label=label, query_params={**address.to_query(), name: value})
            st.button(_("Reset"), on_click=editing.reset, disabled=not edits, key="compare_reset")
    selected, stacks = selection.selection(setting.patterns), setting.source.stacks
    if selected.stack not in stacks:  # only one side has it
        selected = replace(selected, stack=stacks[0]).within(setting.patterns)
    setting.update(stack=selected.stack, layer=selected.layer, head=selected.head)


def draw_explorers(picture: Picture, setting: Setting) -> None:
    """Draw both explorers, linked."""
    key = f"compare_{picture.view}"
    sides = mapped(setting, SIDES[picture.view](setting))
    start = {**selection.start(setting.patterns).start(), "opened": address.OPENED.get()}
    if start["view"] == START_VIEW:  # two matrices, whose difference is the third
        start["view"] = "heatmap"
    component.pair_picture(sides, start=start, file=downloads.file_name(key), on_select=select)
    # In files, which nobody can point at, the head of both and its difference.
    run.current().exports.extend([(panels(setting, sides), key), (sides, component.PAIR)])
    st.caption(_("It shows where heads read in these two passes: not why, nor what the model makes of it."))


def select(value: Any) -> None:
    trace = controls.current_trace()
    if trace is not None:
        selection.take(value, trace)


draw()
