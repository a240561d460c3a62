"""Widgets of declared options: Streamlit's own, but what is not at its default stands in the address.

What a link asks for goes into the widget before it is drawn; where the widget does not offer it, the visitor is told.
"""

from collections.abc import Callable
from typing import Any

import streamlit as st

from visformer.app.session import address, boxes, visit
from visformer.app.session.slots import Slot, widget_key
from visformer.errors import Message
from visformer.pictures.options import Choice, Flag, Number, Option, Place, Several, resolved
from visformer.pictures.picture import View
from visformer.pictures.setting import Setting, Source

_UNSET = object()


def nothing() -> Setting:
    """For options that depend on nothing."""
    return Setting(Source())


def draw(option: Option, setting: Setting, page: str, *, place: Any = st, default: Any = _UNSET, **look: Any) -> Any:
    """Draw an option's widget; its value goes into the setting, too.

    Args:
        option: what can be set.
        setting: the values of the options before it.
        page: whose address names it.
        place: the container.
        default: the value at first, where it is not the option's own.
        look: as the widget has it.
    """
    first = option.start(setting) if default is _UNSET else default
    name = option.key(page, setting)
    key = widget_key(name, "" if option.per is None else option.per(setting))
    _ = boxes.gettext()
    look.setdefault("help", _(option.tooltip).format(own=setting.source.d_model) if option.tooltip else None)
    arguments: dict[str, Any] = {"label": _(option.label), "key": key, **look}
    setting[option.name] = value = _DRAWN[type(option)](option, setting, place, name, first, arguments)
    address.show(name, None if value == first else option.write(value))
    return value


def draw_all(view: View, setting: Setting, page: str, *, place: Any = st) -> None:
    """Draw the widgets of a view's options that are not set yet, in their order."""
    for option in view.options:
        if option.name not in setting:
            default = view.page_defaults.get(option.name, _UNSET)
            draw(option, setting, page, place=place, default=resolved(default, setting))


def _number(option: Number, setting: Setting, place: Any, name: str, first: Any, arguments: dict[str, Any]) -> Any:
    low, high = resolved(option.least, setting), resolved(option.most, setting)
    begin = {} if _is_set(option, setting, name, arguments["key"], first) else {"value": first}
    if option.step is not None:
        arguments["step"] = option.step
    widget = place.number_input if option.widget == "number_input" else place.slider
    return widget(min_value=low, max_value=high, **begin, **arguments)


def _place(option: Place, setting: Setting, place: Any, name: str, first: int, arguments: dict[str, Any]) -> int:
    count = option.count(setting) or 0
    if option.tokens is not None:
        tokens = option.tokens(setting)
        first = min(first, count - 1)
        begin = {} if _is_set(option, setting, name, arguments["key"], first) else {"index": first}
        shown: Callable[[int], str] = lambda i: f"{i + 1} · {tokens[i]}"  # noqa: E731
        return int(place.selectbox(options=range(count), format_func=shown, **begin, **arguments))
    if count < 2:
        return 0
    shift = option.first
    begin = {"value": first + shift}
    if _is_set(option, setting, name, arguments["key"], first, shown=lambda value: value + shift):
        begin = {}
    return int(place.slider(min_value=shift, max_value=count - 1 + shift, **begin, **arguments)) - shift


def _choice(option: Choice, setting: Setting, place: Any, name: str, first: Any, arguments: dict[str, Any]) -> Any:
    _, labels = boxes.gettext(), resolved(option.values, setting)
    values, key = [*labels], arguments["key"]
    if Slot(key, first).get() not in values:  # chosen where another model was shown
        Slot(key, first).clear()
    begin = {"default": first} if option.widget == "segmented_control" else {"index": values.index(first)}
    if option.widget == "segmented_control":
        arguments["required"] = True
    if _is_set(option, setting, name, key, first):
        begin = {}

    def shown(value: Any) -> str:
        label = labels[value]
        return _(label) if isinstance(label, Message) else label  # a visitor's words may be a message, too

    return getattr(place, option.widget)(options=values, format_func=shown, **begin, **arguments)


def _flag(option: Flag, setting: Setting, place: Any, name: str, first: bool, arguments: dict[str, Any]) -> bool:
    begin = {} if _is_set(option, setting, name, arguments["key"], first) else {"value": first}
    return bool(place.toggle(**begin, **arguments))


def _several(option: Several, setting: Setting, place: Any, name: str, first: Any, arguments: dict[str, Any]) -> Any:
    begin = {} if _is_set(option, setting, name, arguments["key"], first) else {"default": first}
    return place.multiselect(options=range(option.count(setting)), **begin, **arguments)


_DRAWN: dict[type[Option], Callable[..., Any]] = {
    Number: _number,
    Place: _place,
    Choice: _choice,
    Flag: _flag,
    Several: _several,
}


def _is_set(
    option: Option, setting: Setting, name: str, key: str, first: Any, shown: Callable[[Any], Any] = lambda value: value
) -> bool:
    """Give the widget what a link asks for; whether it has a value, and must be given no other."""
    slot = Slot(key, first)
    visit.take(name, lambda asked: slot.set(shown(option.read(asked, setting))), go_back=lambda: slot.set(shown(first)))
    return slot.is_set
