"""The only place that says ``st.session_state``: whatever is remembered of a visit has a slot of its own."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st

T = TypeVar("T")
_BROUGHT_BACK: "list[Slot[object]]" = []


@dataclass(frozen=True)
class Slot(Generic[T]):
    """One value of the visitor's session."""

    key: str  # its name there; a widget of this key shows it
    default: T  # never changed in place
    resets: bool = field(default=False, kw_only=True)  # cleared when a link or a file brings a state back

    def __post_init__(self) -> None:
        if self.resets:
            _BROUGHT_BACK.append(self)  # type: ignore[arg-type]  # only to be cleared

    @property
    def is_set(self) -> bool:
        """Whether it holds a value."""
        return self.key in st.session_state

    def get(self) -> T:
        """The value, or the default."""
        value: T = st.session_state.get(self.key, self.default)
        return value

    def set(self, value: T) -> None:
        """Hold this value from now on; for a widget's key only before the widget is drawn."""
        st.session_state[self.key] = value

    def clear(self) -> None:
        """Go back to the default."""
        st.session_state.pop(self.key, None)

    def pop(self) -> T:
        """The value, once."""
        value = self.get()
        self.clear()
        return value


def reset() -> None:
    """Clear every slot that resets."""
    for slot in _BROUGHT_BACK:
        slot.clear()


def forget(begins: str) -> None:
    """Clear what is held under every key that begins so."""
    for key in [key for key in st.session_state if str(key).startswith(begins)]:
        del st.session_state[key]


def hold(*keys: str) -> None:
    """Keep what these widgets hold although this run does not draw them: Streamlit would forget it."""
    for key in keys:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def widget_key(name: str, suffix: object = "") -> str:
    """The key of a widget by its name in the address; ``suffix``: what its range depends on."""
    return f"{name}_{suffix}" if suffix != "" else name


def version(name: str) -> int:
    """Part of the key of widgets that :func:`renew` sets back."""
    return Slot(f"{name}_version", 0).get()


def renew(name: str) -> None:
    """Set the widgets of this name back to what they show first."""
    Slot(f"{name}_version", 0).set(version(name) + 1)
