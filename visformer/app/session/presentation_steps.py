"""What the arrow keys of a presentation walk through, while a page offers it.

A page offers its steps, the outermost first: its views, then what one of them shows step by step. A step is tried on
the innermost; where that one is at its end the next goes on, and behind them all the next page. A guided lesson takes
all steps itself.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from visformer.app.session import run
from visformer.app.session.page import current_page, go_to
from visformer.app.session.run import Steps, Turn
from visformer.app.session.slots import Slot

_SHOWN = Slot("steps_shown", ("", Steps()))  # the page that was drawn last: a key may come before the next one is
_WALKED = Slot("steps_walked", ("", 0))  # the page that was walked to, and in which direction


def walk_to(page: str, direction: int) -> None:
    """Have the next run open a page, by a step on (1) at its first step, by a step back (-1) at its last."""
    _WALKED.set((page, direction))
    go_to(page)


def came() -> int:
    """The step by which the page was opened, until it is drawn: 1 or -1; 0: it was opened otherwise."""
    page, direction = _WALKED.get()
    return direction if page == current_page() else 0


def arrive() -> None:
    """The page is drawn: keys walk through what it offers, and whatever is chosen on it from here on stays."""
    _SHOWN.set((current_page(), run.current().steps))
    if came():
        _WALKED.clear()


def begin_options(key: str, options: Sequence[Any]) -> None:
    """Before the widget of :func:`offer_options` is drawn: who comes from behind begins with the last option."""
    if came() < 0 and not run.current().steps.turns:
        Slot(key, None).set(options[-1])


def offer(turn: Turn, *, place: str = "") -> None:
    """Have the keys walk through this first; ``place`` names the step that is shown."""
    steps = run.current().steps
    steps.turns.append(turn)
    steps.places.append(place)


def offer_options(key: str, options: Sequence[Any], shown: Any) -> None:
    """The options of a widget, by the key that holds what is chosen; only the first such widget of a page."""
    if not run.current().steps.turns:
        offer(partial(_choose, key, options, shown), place=f"{options.index(shown) + 1}/{len(options)}")


def guide(turn: Turn, *, place: str, note: str = "") -> None:
    """Have the keys walk through this and nothing else, whatever the page offers; at its end nothing happens.

    ``note`` is for the presenter alone, unless one was typed.
    """
    steps = run.current().steps
    steps.guide, steps.places, steps.note = turn, [place], note


def take(direction: int) -> bool:
    """One step on (1) or back (-1); False: the page is at its end, or was walked to and is not drawn yet."""
    page, shown = _SHOWN.get()
    if shown.guide is not None:
        shown.guide(direction)
        return True
    return page == current_page() and any(turn(direction) for turn in reversed(shown.turns))


def _choose(key: str, options: Sequence[Any], shown: Any, direction: int) -> bool:
    chosen = Slot(key, None).get()  # forgotten where a fragment of the page before ran late
    at = options.index(chosen if chosen in options else shown) + direction
    if not 0 <= at < len(options):
        return False
    Slot(key, None).set(options[at])
    return True
