"""Widgets for the attention, layer, head and query that a page shows. On screen they count from 1, in code from 0."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from visformer.app.session import address, boxes, selection
from visformer.app.session.page import IS_NEW, page_named
from visformer.app.widgets import url_widgets
from visformer.errors import N_
from visformer.pictures.head import telling_query
from visformer.pictures.registry.options import HEAD, LAYER, QUERY, STACK, Choice, Option, PlaceOption
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace
from visformer.web.selection import Selection

_WITHIN = (LAYER, HEAD, replace(QUERY, default=telling_query))


def selected(setting: Setting, picture: Picture) -> None:
    """Draw those of attention, layer, head and query that the picture has; the explorer shares the selection."""
    own = {option.name for option in picture.options}
    options = [option for option in _WITHIN if option.name in own]
    before = selection.selection(setting.patterns, absent=_undrawn(options)).query
    place(setting, page="head", options=options)
    selected = {option.name: setting[option.name] for option in (STACK, *options)}
    is_default = "query" in selected and selected["query"] == telling_query(setting)
    if is_default and before is None:  # it locks no row in the explorer
        selected["query"] = None
    selection.keep_place(**selected)


def selected_stack(setting: Setting) -> None:
    """Draw the attention of the selection alone; one that only stands in for the visitor's is not remembered."""
    before, stacks = selection.selection(setting.patterns, absent=_undrawn(())).stack, setting.source.stacks
    stack = url_widgets.draw(STACK, setting, "head")
    if before in stacks or stack != stacks[0]:
        selection.keep_place(stack=stack)


def _undrawn(options: Sequence[Option]) -> set[str]:
    """Return the widgets of the selection that were not drawn before, or will not be now.

    Streamlit drops the values of widgets with the page that drew them.
    """
    drawn = set() if IS_NEW.get() else {STACK.name, *(option.name for option in options)}
    return {name for name in selection.NAMES if name.removeprefix("head_") not in drawn}


def place(setting: Setting, *, page: str, options: Sequence[Option] = (LAYER, HEAD), first: str | None = None) -> None:
    """Draw attention, layer and head in one row, and a query if it is among the options.

    In an address they have the names of ``page``; ``first`` is the default attention, None: the model's first.
    """
    columns = st.columns([13, 4, 4, 6] if len(options) == 3 else [6, 3, 3], vertical_alignment="bottom")
    for option, column in zip((replace(STACK, default=first), *options), columns, strict=True):
        url_widgets.draw(option, setting, page, place=column)


def scope(setting: Setting, *, page: str, first: str) -> tuple[int | None, ...]:
    """Draw attention, layer and head of an edit; return layer and head, None: all. Arguments as for :func:`place`."""
    place(setting, page=page, options=(_or_all(LAYER), _or_all(HEAD)), first=first)
    return tuple(None if setting[name] < 0 else int(setting[name]) for name in ("layer", "head"))


def _or_all(option: PlaceOption) -> Choice:
    """Add "all", as -1, to the places of an option."""

    def values(setting: Setting) -> dict[int, str]:
        return {-1: N_("all"), **{i: str(i + 1) for i in option.among(setting) or ()}}

    return Choice(
        name=option.name,
        label=option.label,
        values=values,
        spell=lambda i: "all" if i < 0 else str(i + 1),
        default=-1,
        per=option.per,
        widget="selectbox",
    )


def counted(option: PlaceOption, count: int) -> PlaceOption:
    """Return the option with a fixed number of places."""
    return replace(option, among=lambda _: range(count), per=lambda _: count)


def link_inside(trace: Trace, selected: Selection) -> None:
    """Link to the inside of a head, if the model shows it."""
    _ = boxes.gettext()
    if trace.lacks(f"{selected.stack.replace('.', f'.{selected.layer}.')}.q") is None:
        label = _("Inside this head: layer {layer}, head {head}")
        st.page_link(
            page_named("head"),
            label=label.format(layer=selected.layer + 1, head=selected.head + 1),
            query_params=address.to_query(),
        )
