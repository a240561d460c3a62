"""Widgets whose choice a link brings back: Streamlit's own, but what is not as at first stands in the address.

The key is the name in the address. What a link asks for is held against what the widget offers, and told where the
widget does not have it. A widget is a method of ``st`` or of any container, such as ``st.slider`` or ``left.slider``.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from visformer.app.session import state
from visformer.app.session.slots import Slot, widget_key
from visformer.errors import N_, LinkError
from visformer.web.selection import one_of, read_flag

T = TypeVar("T")
Widget = Callable[..., Any]
_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_MANY = 12  # choices that are told; more would be no help


def number(
    widget: Widget, label: str, low: float, high: float, first: float, *, key: str, suffix: object = "", **more: Any
) -> Any:
    """A slider, or a box for a number.

    Args:
        widget: ``slider`` or ``number_input``.
        label: of the widget.
        low: the least; where all three are whole, only whole numbers are taken.
        high: the greatest.
        first: at the beginning.
        key: and name in the address.
        suffix: of the key alone: what low, high and first depend on.
        more: as the widget has it.
    """
    whole = all(isinstance(one, int) for one in (low, high, first))

    def read(text: str) -> float:
        if not _NUMBER.fullmatch(text) or (whole and "." in text) or not low <= float(text) <= high:
            needed = N_("a number from {low} to {high} is needed.")
            if whole:
                needed = N_("a whole number from {low} to {high} is needed.")
            raise LinkError(needed, low=_written(low), high=_written(high))
        return int(text) if whole else float(text)

    key, name = widget_key(key, suffix), key
    begin = {} if _is_set(name, key, first, read) else {"value": first}
    value = widget(label, low, high, key=key, **begin, **more)
    state.show(name, None if value == first else _written(value))
    return value


slider = partial(number, st.slider)


def flag(widget: Widget, label: str, *, key: str, first: bool = False, **more: Any) -> bool:
    """A switch: ``toggle`` or ``checkbox``."""
    begin = {} if _is_set(key, key, first, read_flag) else {"value": first}
    value = bool(widget(label, key=key, **begin, **more))
    state.show(key, None if value == first else str(int(value)))
    return value


def option(
    widget: Widget,
    label: str,
    values: Sequence[T],
    first: T,
    *,
    key: str,
    names: Callable[[T], str] = str,
    suffix: object = "",
    **more: Any,
) -> T:
    """One of several.

    Args:
        widget: ``segmented_control``, ``radio`` or ``selectbox``.
        label: of the widget.
        values: what there is to choose from.
        first: the one at the beginning.
        key: and name in the address.
        names: of the values in the address.
        suffix: of the key alone: what the values depend on.
        more: as the widget has it.
    """
    by_name = {names(value): value for value in values}

    def read(text: str) -> T:
        if text not in by_name:
            raise one_of([*by_name][:_MANY] + ["…"] * (len(by_name) > _MANY))
        return by_name[text]

    key, name = widget_key(key, suffix), key
    begin: dict[str, Any] = {"index": [*values].index(first)}
    if widget.__name__ == "segmented_control":
        begin = {"default": first}
    if Slot(key, first).get() not in values:  # chosen where another model was shown
        Slot(key, first).clear()
    begin = {} if _is_set(name, key, first, read) else begin
    chosen: T = widget(label, values, key=key, **begin, **more)
    state.show(name, None if chosen == first else names(chosen))
    return chosen


def several(label: str, values: Iterable[int], first: list[int], *, key: str, suffix: object = "") -> list[int]:
    """Any number of whole numbers; see :func:`option`."""
    offered = [*values]

    def read(text: str) -> list[int]:
        found = [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 6]
        if set(found) - set(offered) or _joined(found) != text:
            needed = N_("whole numbers from {low} to {high} are needed, with dots between.")
            raise LinkError(needed, low=offered[0], high=offered[-1])
        return found

    key, name = widget_key(key, suffix), key
    begin: dict[str, Any] = {} if _is_set(name, key, first, read) else {"default": first}
    chosen: list[int] = st.multiselect(label, offered, key=key, **begin)
    state.show(name, None if chosen == first else _joined(chosen))
    return chosen


def _is_set(name: str, key: str, first: Any, read: Callable[[str], Any]) -> bool:
    """Give the widget what a link asks for; whether it has a value, and must be given no other."""
    asked, slot = state.asked_for(name), Slot(key, first)
    if asked is not None or state.goes_back(name):
        slot.set(first)
    if asked is not None:
        try:
            slot.set(read(asked))
        except LinkError as error:
            state.ignore({name: asked}, {name: error})
    return slot.is_set


def _joined(numbers: list[int]) -> str:
    return ".".join(map(str, numbers))


def _written(value: float) -> str:
    return format(value, ".10g")
