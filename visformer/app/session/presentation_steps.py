"""The steps that the arrow keys of a presentation walk through.

A page offers its steps from the outermost in: first its views, then what one view shows step by step. A key press goes
to the innermost; at its end to the next one out, and in the end to the next page. While a lesson is open, its bar
handles all keys, in the browser.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from visformer.app.session import run
from visformer.app.session.page import current_page, go_to
from visformer.app.session.run import Steps, Turn
from visformer.app.session.slots import Slot

_SHOWN = Slot("steps_shown", ("", Steps()))  # of the page drawn last: a key may be pressed before the next is drawn
_WALKED = Slot("steps_walked", ("", 0))  # the page opened by a key, and the direction


def walk_to(page: str, direction: int) -> None:
    """Open a page in the next run: forward (1) at its first step, back (-1) at its last."""
    _WALKED.set((page, direction))
    go_to(page)


def came() -> int:
    """Return the direction, 1 or -1, in which a key opened the page, until it is drawn; 0: opened otherwise."""
    page, direction = _WALKED.get()
    return direction if page == current_page() else 0


def arrive() -> None:
    """Make the keys walk through the current page's steps, now that it is drawn; later choices on it stay."""
    _SHOWN.set((current_page(), run.current().steps))
    if came():
        _WALKED.clear()


def begin_options(key: str, options: Sequence[Any]) -> None:
    """Select the last option if the page was opened backwards; call it before the widget is drawn."""
    if came() < 0 and not run.current().steps.turns:
        Slot(key, None).set(options[-1])


def offer(turn: Turn, *, place: str = "") -> None:
    """Add the innermost steps; ``place`` names the current one."""
    steps = run.current().steps
    steps.turns.append(turn)
    steps.places.append(place)


def offer_options(key: str, options: Sequence[Any], shown: Any, titles: Sequence[str]) -> None:
    """Offer the options of the widget with this key as steps; only the first such widget of a page counts."""
    steps = run.current().steps
    if not steps.turns:
        at = options.index(shown)
        steps.option, steps.following = titles[at], titles[at + 1] if at + 1 < len(titles) else ""
        offer(partial(_choose, key, options, shown), place=f"{at + 1}/{len(options)}")


def guide(
    *,
    place: str,
    title: str,
    task: str = "",
    note: str = "",
    has_more: bool = False,
    is_over: bool = False,
    following: str = "",
    next_note: str = "",
) -> None:
    """Leave the keys that turn steps to the lesson that is open.

    Args:
        place: which step it is, such as "2/4".
        title: the title of the step.
        task: what the step lets one try.
        note: for the presenter alone, unless the presenter typed one.
        has_more: whether it has a hint or an answer that is not shown yet.
        is_over: whether the closing card is shown, which has no picture.
        following: the title of the next step.
        next_note: the note for it.
    """
    steps = run.current().steps
    steps.is_guided, steps.places, steps.note = True, [place], note
    steps.title, steps.task, steps.has_more, steps.is_over = title, task, has_more, is_over
    steps.following, steps.next_note = following, next_note


def take(direction: int) -> bool:
    """Go one step forward (1) or back (-1); False: the page is at its end, or is not drawn yet."""
    page, shown = _SHOWN.get()
    return page == current_page() and any(turn(direction) for turn in reversed(shown.turns))


def _choose(key: str, options: Sequence[Any], shown: Any, direction: int) -> bool:
    chosen = Slot(key, None).get()  # Streamlit dropped it if a fragment of the previous page ran late
    at = options.index(chosen if chosen in options else shown) + direction
    if not 0 <= at < len(options):
        return False
    Slot(key, None).set(options[at])
    return True
