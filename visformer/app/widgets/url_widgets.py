"""Streamlit widgets for declared options; the address holds each value that is not the default.

A link's value is set before its widget is drawn; if the widget does not offer it, the visitor sees a remark.
"""

from typing import Any

import streamlit as st

from visformer.app.session import address, boxes
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot, widget_key
from visformer.errors import Message
from visformer.pictures.registry.options import Choice, Number, Option, PlaceOption, Several, Text, resolved
from visformer.pictures.registry.picture import View
from visformer.pictures.registry.setting import Setting, Source

_UNSET = object()


def nothing() -> Setting:
    """Return an empty setting, for options that depend on nothing."""
    return Setting(Source())


def draw(option: Option, setting: Setting, page: str, *, place: Any = st, default: Any = _UNSET, **style: Any) -> Any:
    """Draw an option's widget, store its value in the setting, and return it.

    Args:
        option: the option to draw.
        setting: the values of the options before it.
        page: the page in the option's name in the address.
        place: the container.
        default: overrides the option's own default.
        style: further arguments of Streamlit's widget.

    Raises:
        LinkError: more are selected than a page shows.
    """
    first = option.start(setting) if default is _UNSET else default
    name = option.key(page, setting)
    key = widget_key(name, "" if option.per is None else option.per(setting))
    widget, arguments, shift = _widget(option, setting)
    if isinstance(option, PlaceOption) and widget == "selectbox":
        first = min(first, len(arguments["options"]) - 1)
    if widget == "slider" and arguments["min_value"] >= arguments["max_value"]:  # only one value
        value = arguments["min_value"] - shift
    else:
        offered = arguments.get("options")
        is_free = bool(arguments.get("accept_new_options"))
        if isinstance(option, Choice | Text) and offered and not is_free and Slot(key, first).get() not in offered:
            Slot(key, first).clear()  # chosen with another model
        if not _is_set(option, setting, name, Slot(key, None), first, shift):
            by_index = widget in ("selectbox", "radio")
            initial = [*arguments["options"]].index(first) if by_index else _shifted(first, shift)
            arguments[_INITIAL.get(widget, "value")] = initial
        boxes.keep_choice(key)
        _ = boxes.gettext()
        style.setdefault("help", _(option.tooltip).format(own=setting.source.d_model) if option.tooltip else None)
        value = getattr(place, widget)(label=_(option.label), key=key, **{**arguments, **style})
        if isinstance(option, Choice) and value not in arguments["options"]:  # a label of the options before these
            value = first
        value = value - shift if shift else value
    if isinstance(option, Several):
        option.require_few(value)
    setting[option.name] = value
    address.show(name, None if value == first else option.write(value))
    return value


def draw_all(view: View, setting: Setting, page: str, *, place: Any = st) -> None:
    """Draw the widgets of a view's options that are not set yet, in order."""
    for option in view.options:
        if option.name not in setting:
            default = view.page_defaults.get(option.name, _UNSET)
            draw(option, setting, page, place=place, default=resolved(default, setting))


_INITIAL = {"selectbox": "index", "radio": "index", "segmented_control": "default", "multiselect": "default"}
"""Streamlit's argument for the initial value of a widget; for all others "value"."""


def _widget(option: Option, setting: Setting) -> tuple[str, dict[str, Any], int]:
    """Return an option's Streamlit widget, its arguments, and the shift from the value to the number displayed."""
    match option:
        case Number():
            low, high = resolved(option.least, setting), resolved(option.most, setting)
            return option.widget or "slider", {"min_value": low, "max_value": high, "step": option.step}, 0
        case PlaceOption(tokens=None):
            numbers = [index + option.first for index in option.among(setting) or (0,)]
            if numbers[-1] - numbers[0] >= len(numbers):  # some layers have no attention
                return "select_slider", {"options": numbers}, option.first
            return "slider", {"min_value": numbers[0], "max_value": numbers[-1]}, option.first
        case PlaceOption():
            tokens = resolved(option.tokens, setting)
            named = [f"{i} · {token}" for i, token in enumerate(tokens, 1)] if option.numbered else [*tokens]
            return "selectbox", {"options": range(len(tokens)), "format_func": named.__getitem__}, 0
        case Choice():
            _, labels = boxes.gettext(), resolved(option.values, setting)
            # Only our messages are translated: a visitor's token may happen to equal a message id. The options of a box
            # are text, those of a switch Markdown.
            quoted = str if option.widget == "selectbox" else plain
            shown = {
                value: _(label) if isinstance(label, Message) else quoted(label) for value, label in labels.items()
            }
            # Directly in a column, a switch would otherwise be cut off where it is too wide.
            style = {"required": True, "wrap": True} if option.widget == "segmented_control" else {}
            return option.widget, {"options": [*shown], "format_func": shown.__getitem__, **style}, 0
        case Text(suggested=suggested) if suggested is not None:
            shown = resolved(suggested, setting)
            return (
                "selectbox",
                {
                    "options": [*shown],
                    "format_func": lambda text: shown.get(text, text),
                    "accept_new_options": True,
                },
                0,
            )
        case Text(among=None):
            return "text_input", {}, 0
        case Text(among=among, labels=labels):
            shown = {name: name for name in resolved(among, setting)} | {n: boxes.gettext()(labels[n]) for n in labels}
            return "selectbox", {"options": [*resolved(among, setting)], "format_func": shown.__getitem__}, 0
        case Several():
            return "multiselect", {"options": range(option.count(setting))}, 0
    return "toggle", {}, 0


def _is_set(option: Option, setting: Setting, name: str, slot: Slot[Any], first: Any, shift: int) -> bool:
    """Apply a link's value, if any; return whether the widget has a value, and so must get no initial one."""
    address.take(
        name,
        lambda text: slot.set(_shifted(option.read(text, setting), shift)),
        go_back=lambda: slot.set(_shifted(first, shift)),
    )
    return slot.is_set


def _shifted(value: Any, shift: int) -> Any:
    return value + shift if shift else value
