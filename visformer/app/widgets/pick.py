"""Which attention, layer, head and query a page looks at. On screen they count from 1, in code from 0."""

from dataclasses import replace

import streamlit as st

from visformer.app.session import selection
from visformer.app.widgets import url_widgets
from visformer.errors import N_
from visformer.pictures.options import Choice, Place
from visformer.pictures.places import HEAD, LAYER, QUERY, STACK
from visformer.pictures.setting import Setting
from visformer.trace.stacks import STACKS, Stack

_QUERY = 1  # place of the token that reads, at first


def selected(setting: Setting) -> None:
    """Attention, layer, head and query of the selection, which is also the explorer's."""
    before = selection.selection(setting.patterns).query
    place(setting, page="head", query=True)
    query = setting["query"]
    kept = None if before is None and query == _QUERY else query  # not locked before it was chosen
    selection.keep_place(stack=setting["stack"], layer=setting["layer"], head=setting["head"], query=kept)


def selected_stack(setting: Setting) -> Stack:
    """The attention of the selection alone."""
    selection.selection(setting.patterns)
    found = url_widgets.draw(STACK, setting, "head")
    selection.keep_place(stack=found)
    return stack_of(setting)


def stack_of(setting: Setting) -> Stack:
    """The chosen attention."""
    return next(stack for stack in STACKS if stack.name == setting["stack"])


def place(setting: Setting, *, page: str, query: bool = False, first: str | None = None) -> None:
    """Attention, layer and head in one row, and a query with them where one is wanted.

    The address of ``page`` names them; ``first`` is the attention at the beginning, None: the first that there is.
    """
    columns = st.columns([13, 4, 4, 6] if query else [6, 3, 3], vertical_alignment="bottom")
    begins = {} if first is None else {"default": first}
    with columns[0]:
        url_widgets.draw(STACK, setting, page, **begins)
    for option, column in zip((LAYER, HEAD), columns[1:3], strict=True):
        with column:
            url_widgets.draw(option, setting, page)
    if query:
        with columns[3]:
            url_widgets.draw(QUERY, setting, page, default=_QUERY)


def scope(setting: Setting, *, page: str, first: str) -> tuple[Stack, int | None, int | None]:
    """Attention, layer and head, of which an edit may go to all: None; arguments as for :func:`place`."""
    columns = st.columns([6, 3, 3], vertical_alignment="bottom")
    with columns[0]:
        url_widgets.draw(STACK, setting, page, default=first)
    for option, column in zip((LAYER, HEAD), columns[1:], strict=True):
        with column:
            url_widgets.draw(_or_all(option), setting, page)
    at_layer, at_head = (None if setting[one] < 0 else int(setting[one]) for one in ("layer", "head"))
    return stack_of(setting), at_layer, at_head


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


def token(setting: Setting, name: str, label: str, *, page: str, default: int = 0) -> int:
    """The place of one of a side's tokens, from 0; ``label``: a message id, ``page``: whose address names it."""
    return int(url_widgets.draw(replace(QUERY, name=name, label=label), setting, page, default=default))


def number(label: str, count: int, *, key: str) -> int:
    """One of ``count``, from 0; ``label``: a message id, ``key``: also the name in the address."""
    option = Place(name=key, label=label, link=None, count=lambda _: count, per=lambda _: count)
    return int(url_widgets.draw(option, url_widgets.nothing(), ""))
