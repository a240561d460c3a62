"""What a link or a file asks for and does not get, until the visitor has read it."""

from collections.abc import Iterable, Mapping

from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark
from visformer.errors import LinkError

_REMARKS: Slot[list[Remark]] = Slot("remarks", [])


def remarks() -> list[Remark]:
    """Those that the visitor has not put away."""
    return _REMARKS.get()


def set_remarks(all_of_them: Iterable[Remark]) -> None:
    """Tell these and no others."""
    _REMARKS.set([*all_of_them])


def add_remarks(more: Iterable[Remark]) -> None:
    """Tell these, too."""
    set_remarks([*remarks(), *more])


def ignore(values: Mapping[str, str], why: Mapping[str, LinkError]) -> None:
    """Tell what was ignored, and why; both by name."""
    add_remarks([Remark(f"{name}={values[name]}", error) for name, error in why.items()])


def put_away() -> None:
    """The visitor has read them."""
    set_remarks([])
