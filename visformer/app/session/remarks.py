"""What a link or a file asks for and does not get, until the visitor has read it."""

from collections.abc import Iterable, Mapping

from visformer.app.session import url_state
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark
from visformer.errors import LinkError

REMARKS: Slot[list[Remark]] = Slot("remarks", [])


def add(more: Iterable[Remark]) -> None:
    """Tell these, too."""
    REMARKS.set([*REMARKS.get(), *more])


def ignore(texts: Mapping[str, str], why: Mapping[str, LinkError]) -> None:
    """Tell what of these texts was ignored, and why; both by name."""
    add(url_state.ignored(texts, why))
