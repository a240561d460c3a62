"""Which attention, layer, head and query a page looks at. On screen they count from 1, in code from 0."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from visformer.app.session import selection
from visformer.app.widgets import url_widgets
from visformer.errors import N_
from visformer.pictures.options import Choice, Option, Place
from visformer.pictures.places import HEAD, LAYER, QUERY, STACK
from visformer.pictures.setting import Setting

_QUERY = 1  # place of the token that reads, at first


def selected(setting: Setting) -> None:
    """Attention, layer, head and query of the selection, which is also the explorer's."""
    before = selection.selection(setting.patterns).query
    place(setting, page="head", options=(LAYER, HEAD, replace(QUERY, default=_QUERY)))
    is_chosen = before is not None or setting["query"] != _QUERY  # not locked before
    selection.keep_place(**{**setting, "query": setting["query"] if is_chosen else None})


def selected_stack(setting: Setting) -> None:
    """The attention of the selection alone."""
    selection.selection(setting.patterns)
    selection.keep_place(stack=url_widgets.draw(STACK, setting, "head"))


def place(setting: Setting, *, page: str, options: Sequence[Option] = (LAYER, HEAD), first: str | None = None) -> None:
    """Attention, layer and head in one row, and a query with them where one is wanted.

    The address of ``page`` names them; ``first`` is the attention at the beginning, None: the first that there is.
    """
    columns = st.columns([13, 4, 4, 6] if len(options) == 3 else [6, 3, 3], vertical_alignment="bottom")
    for option, column in zip((replace(STACK, default=first), *options), columns, strict=True):
        url_widgets.draw(option, setting, page, place=column)


def scope(setting: Setting, *, page: str, first: str) -> tuple[int | None, ...]:
    """Attention, and the layer and head that an edit goes to, None: to all; arguments as for :func:`place`."""
    place(setting, page=page, options=(_or_all(LAYER), _or_all(HEAD)), first=first)
    return tuple(None if setting[one] < 0 else int(setting[one]) for one in ("layer", "head"))


def _or_all(option: Place) -> Choice:
    """One of the places of an option, or all of them: -1."""

    def values(setting: Setting) -> dict[int, str]:
        return {-1: N_("all"), **{i: str(i + 1) for i in range(option.count(setting) or 0)}}

    return Choice(
        name=option.name,
        label=option.label,
        values=values,
        spell=lambda i: "all" if i < 0 else str(i + 1),
        default=-1,
        per=option.per,
        widget="selectbox",
    )


def counted(option: Place, count: int) -> Place:
    """The option where there are so many."""
    return replace(option, count=lambda _: count, per=lambda _: count)
