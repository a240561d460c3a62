"""Remarks on the parts of a link or file that were ignored, until the visitor dismisses them."""

from collections.abc import Iterable, Mapping, Sequence

from visformer.app.session import url_state
from visformer.app.session.boxes import gettext
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark
from visformer.errors import LinkError

REMARKS: Slot[list[Remark]] = Slot("remarks", [])


def add(more: Iterable[Remark]) -> None:
    """Add remarks."""
    REMARKS.set([*REMARKS.get(), *more])


def listed(shown: Sequence[Remark], most: int) -> str:
    """Return a line for each remark, at most this many, and one that counts the others."""
    _ = gettext()
    others = [_("and {n} more").format(n=len(shown) - most)] if len(shown) > most else []
    return "\n".join([*(remark.localized(_) for remark in shown[:most]), *others])


def ignore(texts: Mapping[str, str], why: Mapping[str, LinkError]) -> None:
    """Add a remark on each ignored text; texts and reasons by name."""
    add(url_state.ignored(texts, why))
