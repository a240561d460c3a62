"""Slots: typed values in ``st.session_state``, which no other module accesses."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st

T = TypeVar("T")
_RESETTING: set[str] = set()  # keys, as the script of a page makes its slots anew in each run


@dataclass(frozen=True)
class Slot(Generic[T]):
    """One value of the visitor's session."""

    key: str  # in st.session_state; a widget with this key shows the value
    default: T  # never changed in place
    resets: bool = field(default=False, kw_only=True)  # cleared when a link or a file restores a state

    def __post_init__(self) -> None:
        if self.resets:
            _RESETTING.add(self.key)

    @property
    def is_set(self) -> bool:
        """Whether it holds a value."""
        return self.key in st.session_state

    def get(self) -> T:
        """Return the value, or the default."""
        value: T = st.session_state.get(self.key, self.default)
        return value

    def set(self, value: T) -> None:
        """Set the value; for a widget's key only before the widget is drawn."""
        st.session_state[self.key] = value

    def clear(self) -> None:
        """Go back to the default."""
        st.session_state.pop(self.key, None)

    def pop(self) -> T:
        """Return the value, or the default, and clear the slot."""
        value = self.get()
        self.clear()
        return value


def reset() -> None:
    """Clear every slot that resets."""
    for key in [*_RESETTING]:
        st.session_state.pop(key, None)


def forget(prefix: str) -> None:
    """Clear the values of all keys with this prefix."""
    for key in [key for key in st.session_state if str(key).startswith(prefix)]:
        del st.session_state[key]


def hold(*keys: str) -> None:
    """Keep the values of widgets that this run does not draw: Streamlit would drop them."""
    for key in keys:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def widget_key(name: str, suffix: object = "") -> str:
    """Return the key of a widget with this name in the address; ``suffix``: what the widget's range depends on."""
    return f"{name}_{suffix}" if suffix != "" else name


def version(name: str) -> int:
    """Return the part of a key that :func:`renew` changes."""
    return Slot(f"{name}_version", 0).get()


def renew(name: str) -> None:
    """Reset the widgets whose keys contain this name's :func:`version`."""
    Slot(f"{name}_version", 0).set(version(name) + 1)
