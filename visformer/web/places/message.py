"""Pack the small message of the whole model: the place that is open, the page that shows it, and the sum of a cell."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from visformer.web.message import write_message
from visformer.web.places.cell import Cell, Key


def pack_place(
    zoom: str,
    *,
    opened: int = 0,
    focus: Mapping[str, Any] | None = None,
    way: Mapping[str, str] | None = None,
    cell: Cell | None = None,
    lacks: str = "",
    gettext: Callable[[str], str] = str,
    to: str = "",
) -> bytes:
    """Pack the message that follows that of :func:`visformer.web.map.pack_map`.

    Args:
        zoom: the place as a text, see :class:`visformer.web.places.zoom.Zoom`; "": the whole model.
        opened: how often a state was restored: the browser goes to the place each time, and follows the head in focus.
        focus: that head, see :func:`visformer.web.map.pack_map`.
        way: "label" and "href" of the page that shows this place.
        cell: if the place is a cell.
        lacks: why the cell has no sum.
        gettext: translates.
        to: see :func:`visformer.web.message.write_message`.
    """
    header = {"zoom": zoom, "opened": opened, "focus": focus, "way": way, "cell": cell and _cell(cell, lacks, gettext)}
    return write_message("place", header, to=to)


def _cell(cell: Cell, lacks: str, gettext: Callable[[str], str]) -> dict[str, Any]:
    told = cell.sum and {
        "terms": [
            {"dimension": term.dimension, "q": _short(term.q), "k": _short(term.k), "product": _short(term.product)}
            for term in cell.sum.terms
        ],
        "n": cell.sum.d_k - len(cell.sum.terms),
        "others": _short(cell.sum.others),
        "d_k": cell.sum.d_k,
        "product": _short(cell.sum.product),
        "score": _short(cell.sum.score),
        "written": gettext(cell.sum.written),
        "hidden": cell.sum.hidden,
        "masked": gettext(cell.sum.masked),
        "softmax": cell.sum.softmax,
    }
    return {
        "weight": _short(cell.weight),
        "sum": told,
        "keys": [_key(key) for key in cell.keys],
        "n": cell.n_others,
        "others": _short(cell.others),
        "sink": None if cell.sink is None else _short(cell.sink),
        "lacks": lacks,
    }


def _key(key: Key) -> dict[str, Any]:
    """A key; the score of a masked one is "−∞", which is no JSON number."""
    score: float | str | None = key.score
    if key.score is not None:
        score = _short(key.score) if isfinite(key.score) else "−∞"
    return {"place": key.place, "score": score, "weight": _short(key.weight)}


def _short(number: float) -> float:
    return float(f"{number:.7g}")
