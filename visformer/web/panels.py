"""Pack panels into the message that panels.js draws: text and layout in the header, then the numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from visformer.errors import N_, translated
from visformer.panel import Labels, Panel, Speaker, Stage
from visformer.pictures.style import CURVES, RAMPS, SYMBOLS, visible
from visformer.web.message import Numbers, write_message

_TEXT = {
    "cell": N_("{row} · {column}"),
    "locks": N_("Point at a cell to see its exact value; click to lock it, Escape to unlock."),
    "changes": N_("Point at a cell to see its exact value; click to change it."),
    "tells": N_("Point at a cell to see its exact value; click to see where it comes from."),
    "opens": N_("Point at a cell to see its exact value; click to see the candidates of its step."),
    "says": N_("Point at a cell to see its exact value; click to read what it says."),
    "explores": N_("Point at a cell to see its exact value; click to open its head."),
    "keeps": N_("Point at a word or a patch to see who reads what; click to keep it."),
    "places": N_("Click a place to put the shape there, a shape to take it away."),
    "locked": N_("locked, Escape unlocks"),
    "locks_touch": N_("Tap a cell to see its exact value; tap again to unlock it."),
    "changes_touch": N_("Tap a cell to change it."),
    "tells_touch": N_("Tap a cell to see its exact value and where it comes from."),
    "opens_touch": N_("Tap a cell to see its exact value and the candidates of its step."),
    "says_touch": N_("Tap a cell to see its exact value and what it says."),
    "explores_touch": N_("Tap a cell to open its head."),
    "keeps_touch": N_("Tap a word or a patch to see who reads what."),
    "places_touch": N_("Tap a place to put the shape there, a shape to take it away."),
    "locked_touch": N_("locked, another tap unlocks"),
    "part": N_("Part {n} of {all}"),
    "part_rows": N_("Part {n} of {all}: rows {first}–{last}"),
    "keep": N_("PNG"),
    "keep_about": N_("Save this picture as a PNG file, at twice the screen resolution"),
    "play": N_("Play"),
    "pause": N_("Pause"),
    "back": N_("One step back"),
    "on": N_("One step on"),
    "matrix": N_("{title}, {rows} rows and {columns} columns. Arrow keys move between cells, Enter clicks."),
}


@dataclass(frozen=True)
class Click:
    """A click on a cell; if row or column is None, a click on the label of a whole column or row."""

    panel: str
    row: int | None
    column: int | None


def pack_panels(
    shown: Sequence[Panel | Sequence[Panel]],
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    share: float = 1.0,
    opened: int = 0,
    stages: Sequence[Stage] = (),
    told: str = "",
    to: str = "",
) -> bytes:
    """Pack panels into the message for ``mountPanels``.

    Args:
        shown: panels in reading order, side by side as far as they fit; a nested list is a column of aligned panels.
        gettext: translates titles, notes and axes that are message ids, and the words around them.
        lang: the language of ``gettext``.
        share: the fraction of the window's height that the panels may take.
        opened: how often a link, a file or a lesson opened a state: with another one, no cell stays locked.
        stages: how the panels came about, to be played; each has panels of its own.
        told: lines on the cell that was clicked last, such as its arithmetic, in the visitor's language.
        to: see :func:`visformer.web.message.write_message`.
    """
    localize = partial(translated, gettext=gettext)
    numbers = Numbers()

    def scene(shown: Sequence[Panel | Sequence[Panel]]) -> dict[str, Any]:
        columns = _columns(shown)
        return {
            "panels": [_panel(panel, numbers, localize) for column in columns for panel in column],
            "columns": [len(column) for column in columns],
        }

    scenes = {id(each): each for each in (shown, *(stage.shown for stage in stages))}  # in order, the first at rest
    rest, *played = map(scene, scenes.values())
    header = {
        **rest,
        "played": played,
        "share": share,
        "opened": opened,
        "stages": [
            {"scene": [*scenes].index(id(stage.shown)), "panel": stage.panel, "said": stage.said} for stage in stages
        ],
        "told": told,
        "ramp": RAMPS,
        "colours": CURVES,
        "roles": [{"label": localize(said.label), "colour": said.colour} for said in _speakers(shown)],
        "text": {"lang": lang, **{name: gettext(text) for name, text in _TEXT.items()}},
    }
    return write_message("panels", header, numbers, to=to)


def _columns(shown: Sequence[Panel | Sequence[Panel]]) -> list[Sequence[Panel]]:
    return [[one] if isinstance(one, Panel) else one for one in shown]


def _speakers(shown: Sequence[Panel | Sequence[Panel]]) -> list[Speaker]:
    """Return who says the tokens of a chat that label rows or columns."""
    sides = [side for column in _columns(shown) for panel in column for side in (panel.rows, panel.columns)]
    said = {one for side in sides if side.written for one in side.speakers if one}
    return sorted(said, key=lambda one: one.colour)


def _panel(panel: Panel, numbers: Numbers, localize: Callable[[str], str]) -> dict[str, Any]:
    outlined = panel.outlined
    return {
        "name": panel.name,
        "title": localize(panel.title),
        "colour": SYMBOLS.get(panel.symbol or panel.name),
        "note": localize(panel.note),
        "before": panel.before,
        "rows": _side(panel.rows, localize),
        "columns": _side(panel.columns, localize),
        "scale": panel.scale,
        "limit": panel.end,
        "middle": panel.middle,
        "values": numbers.add(np.asarray(panel.values, dtype="<f4")),
        "outlined": None if outlined is None or not outlined.any() else numbers.add(outlined.astype(np.uint8)),
        "picture": None if panel.picture is None else [numbers.add(panel.picture), *panel.picture.shape[:2]],
        "follows": panel.follows,
        "whole": None if panel.whole is None else numbers.add(np.asarray(panel.whole, dtype="<f4")),
        "digits": panel.digits,
        "decimals": panel.decimals,
        "click": panel.click,
    }


def _side(labels: Labels, localize: Callable[[str], str]) -> dict[str, Any]:
    return {
        "title": localize(labels.title),
        "texts": [visible(text) if text else "" for text in labels.texts],
        "places": labels.numbers if labels.places else [],
        "special": [int(special) for special in labels.special],
        "after": [visible(text) for text in labels.after],
        "roles": [one and one.colour for one in labels.speakers],
        "numeric": labels.numeric,
        "written": labels.written,
    }


def click_from(value: Any, shown: Sequence[Panel | Sequence[Panel]]) -> Click | None:
    """Validate a click sent by the browser; None for anything that is not a place in one of these panels."""
    if not isinstance(value, Mapping):
        return None
    panel = next((panel for column in _columns(shown) for panel in column if panel.name == value.get("panel")), None)
    if panel is None:
        return None
    place = [value.get("row"), value.get("column")]
    for i, (index, labels) in enumerate(zip(place, (panel.rows, panel.columns), strict=True)):
        if index is not None and not (isinstance(index, int | float) and 0 <= index < len(labels)):
            return None
        place[i] = None if index is None else int(index)
    return Click(panel.name, *place)
