"""Widgets of declared options: Streamlit's own, but what is not at its default stands in the address.

What a link asks for goes into the widget before it is drawn; where the widget does not offer it, the visitor is told.
"""

from typing import Any

import streamlit as st

from visformer.app.session import address, boxes, visit
from visformer.app.session.slots import Slot, widget_key
from visformer.errors import Message
from visformer.pictures.options import Choice, Number, Option, Place, Several, resolved
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
    widget, arguments, shift = _widget(option, setting)
    if isinstance(option, Place) and widget == "selectbox":
        first = min(first, len(arguments["options"]) - 1)
    if widget == "slider" and arguments["min_value"] >= arguments["max_value"]:  # there is nothing to choose
        value = arguments["min_value"] - shift
    else:
        if isinstance(option, Choice) and Slot(key, first).get() not in arguments["options"]:
            Slot(key, first).clear()  # chosen where another model was shown
        if not _is_set(option, setting, name, Slot(key, None), first, shift):
            in_order = widget in ("selectbox", "radio")
            begin = [*arguments["options"]].index(first) if in_order else _shifted(first, shift)
            arguments[_BEGIN.get(widget, "value")] = begin
        _ = boxes.gettext()
        look.setdefault("help", _(option.tooltip).format(own=setting.source.d_model) if option.tooltip else None)
        value = getattr(place, widget)(label=_(option.label), key=key, **arguments, **look)
        value = value - shift if shift else value
    setting[option.name] = value
    address.show(name, None if value == first else option.write(value))
    return value


def draw_all(view: View, setting: Setting, page: str, *, place: Any = st) -> None:
    """Draw the widgets of a view's options that are not set yet, in their order."""
    for option in view.options:
        if option.name not in setting:
            default = view.page_defaults.get(option.name, _UNSET)
            draw(option, setting, page, place=place, default=resolved(default, setting))


_BEGIN = {"selectbox": "index", "radio": "index", "segmented_control": "default", "multiselect": "default"}
"""What Streamlit calls the value at first; of its other widgets "value"."""


def _widget(option: Option, setting: Setting) -> tuple[str, dict[str, Any], int]:
    """Streamlit's widget of an option, its arguments, and by how much it shows more than the value."""
    match option:
        case Number():
            low, high = resolved(option.least, setting), resolved(option.most, setting)
            return option.widget or "slider", {"min_value": low, "max_value": high, "step": option.step}, 0
        case Place(tokens=None):
            low, count = option.first, option.count(setting) or 0
            return "slider", {"min_value": low, "max_value": low + count - 1}, low
        case Place():
            tokens = resolved(option.tokens, setting)
            return "selectbox", {"options": range(len(tokens)), "format_func": lambda i: f"{i + 1} · {tokens[i]}"}, 0
        case Choice():
            _, labels = boxes.gettext(), resolved(option.values, setting)
            # Translated is what we say: a visitor's words may be a message, too.
            shown = {value: _(label) if isinstance(label, Message) else label for value, label in labels.items()}
            required = {"required": True} if option.widget == "segmented_control" else {}
            return option.widget, {"options": [*shown], "format_func": shown.__getitem__, **required}, 0
        case Several():
            return "multiselect", {"options": range(option.count(setting))}, 0
    return "toggle", {}, 0


def _is_set(option: Option, setting: Setting, name: str, slot: Slot[Any], first: Any, shift: int) -> bool:
    """Give the widget what a link asks for; whether it has a value, and must be given no other."""
    visit.take(
        name,
        lambda text: slot.set(_shifted(option.read(text, setting), shift)),
        go_back=lambda: slot.set(_shifted(first, shift)),
    )
    return slot.is_set


def _shifted(value: Any, shift: int) -> Any:
    return value + shift if shift else value
