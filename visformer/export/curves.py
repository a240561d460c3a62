"""Curves, bars and trees as SVG: a figure of :mod:`visformer.figures` drawn without a browser, as Plotly would draw it.

Only what these figures use is supported: lines, markers, text and horizontal bars.
"""

import math
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.errors import N_, VisformerError
from visformer.export.marks import MarkBlock, document, literal, text, width_of

if TYPE_CHECKING:  # plotly
    from plotly.graph_objects import Figure

WIDTH, HEIGHT = 720.0, 400.0
"""The default size of a figure, in CSS pixels."""

WIDEST = 4000.0
"""The maximum width, in CSS pixels, however many texts are side by side."""

_SIZE, _LINE = 13, 16.0
"""Font size, and line height."""

_HEAD = 30.0
"""Height of a title."""

_Scale = tuple[Mapping[str, Any], list[dict[str, Any]]]
"""A vertical axis, and the traces on it."""

_DASHES = {"dot": "2 3", "dash": "8 5"}
_TAG = re.compile(r'(</?[bi]>|</span>|<span style="color:#[0-9a-f]{6}">)')


@dataclass(frozen=True)
class _Axis:
    """Maps numbers to CSS pixels along one side."""

    start: float
    end: float
    length: float
    upward: bool

    def at(self, value: float) -> float:
        share = (value - self.start) / (self.end - self.start)
        return self.length * (1 - share if self.upward else share)


def figure_svg(figure: "Figure", *, title: str = "", about: str = "") -> str:
    """Draw a Plotly figure of ``visformer.figures``, in its own colours.

    Args:
        figure: of lines, markers, text and horizontal bars.
        title: above it, and for screen readers; by default the figure's own.
        about: the model and the input that the numbers come from; not drawn.

    Returns:
        A standalone SVG document.

    Raises:
        VisformerError: a Plotly trace of another kind; the message says what to save instead.
    """
    plain = figure.to_plotly_json()
    traces, layout = plain["data"], plain["layout"]
    for trace in traces:
        if trace["type"] != "scatter" and not (trace["type"] == "bar" and trace.get("orientation") == "h"):
            raise VisformerError(
                N_("A figure of kind {kind} cannot be saved directly: save the Trace or the panel it was made from."),
                kind=trace["type"],
            )
    meta = layout.get("meta")
    words = title or str(
        layout.get("title", {}).get("text", "") or (meta["title"] if isinstance(meta, Mapping) else "")
    )
    chart, colour = _chart(traces, layout), layout.get("title", {}).get("font", {}).get("color", "#000000")
    if words:
        head = text(words, 0, 8, size=14, fill=colour, strong=True)
        width = max(chart.width, width_of(words, 14) * 1.1)
        chart = MarkBlock(width, chart.height + _HEAD, head + chart.at(0, _HEAD))
    return document(chart, words, background=layout.get("paper_bgcolor", "#ffffff"), about=about)


def numbers_of(figure: "Figure") -> tuple[str, dict[str, list[Any]]]:
    """Return the title of a figure, and its numbers by column name.

    Raises:
        VisformerError: the figure holds none.
    """
    meta = figure.to_plotly_json()["layout"].get("meta")
    if not isinstance(meta, Mapping) or "table" not in meta:
        raise VisformerError(N_("This figure was not made by visformer.figures: its numbers are in its own data."))
    return meta["title"], meta["table"]


def least_width(figure: "Figure") -> float:
    """Return the width, in CSS pixels, that keeps texts over neighbouring places apart; 0: there are none."""
    plain = figure.to_plotly_json()
    traces, layout = plain["data"], plain["layout"]
    between, margin = _apart(traces, layout), _margin(layout)
    return between and between + _left(_scales(traces, layout), margin["l"]) + margin["r"]


def _chart(traces: list[dict[str, Any]], layout: Mapping[str, Any]) -> MarkBlock:
    colour, x_axis = layout.get("font", {}).get("color", "#000000"), layout.get("xaxis", {})
    margin, scales = _margin(layout), _scales(traces, layout)
    left = _left(scales, margin["l"])
    width, height = _width(traces, layout, left + margin["r"]), float(layout.get("height", HEIGHT))
    legend = _legend(traces, width - left - margin["r"], colour)
    size = (width - left - margin["r"], height - margin["t"] - margin["b"])
    top = max(margin["t"], 8.0) + legend.height
    parts = [legend.at(left, 4)]
    for y_axis, own in scales:
        low, high = y_axis.get("domain", (0.0, 1.0))
        across, up = _axes(traces, own, x_axis, y_axis, (size[0], size[1] * (high - low)))
        begin, below = top + size[1] * (1 - high), x_axis if not low else {"visible": False}
        inside = _grid(across, up, x_axis, y_axis) + "".join(_marks(own, layout, across, up, colour))
        words = "".join(_axis_labels(across, up, below, y_axis, colour))
        parts += [MarkBlock(0, 0, inside).at(left, begin), MarkBlock(0, 0, words).at(left, begin)]
        if _title(y_axis):
            middle = begin + up.length / 2
            turned = _text(_title(y_axis), 8, middle, colour, "middle")
            parts.append(f'<g transform="rotate(-90 8 {middle:g})">{turned}</g>')
    below = 40.0 if _title(x_axis) else 22.0 if x_axis.get("visible") is not False else 4.0
    return MarkBlock(width, top + size[1] + below, "".join(parts))


def _width(traces: list[dict[str, Any]], layout: Mapping[str, Any], beside: float) -> float:
    """Return the figure's own width, or else one that keeps texts over neighbouring places apart."""
    if "width" in layout:
        return float(layout["width"])
    return min(max(WIDTH, _apart(traces, layout) + beside), WIDEST)


def _apart(traces: list[dict[str, Any]], layout: Mapping[str, Any]) -> float:
    """Return the least width between the margins that keeps texts over neighbouring places apart."""
    low, high = sorted(_range(traces, "x", layout.get("xaxis", {})))
    centred = (trace["text"] for trace in traces if "center" in trace.get("textposition", ""))
    lines = (line for texts in centred for words in texts for line in str(words).split("<br>"))
    return (high - low) * max((width_of(_plain(line), _SIZE) + 6 for line in lines), default=0.0)


def _margin(layout: Mapping[str, Any]) -> dict[str, float]:
    return {side: float(layout.get("margin", {}).get(side, 40)) for side in "lrtb"}


def _left(scales: list[_Scale], least: float) -> float:
    """Return the room left of the vertical axes, for their labels and titles; ``least``: the figure's margin."""
    labels = [tick for y_axis, own in scales if y_axis.get("visible") is not False for tick in _labels(y_axis, own)]
    widest = max((width_of(_plain(words), _SIZE) for _, words in labels), default=0.0)
    return max(least, widest + 14) + (20 if any(_title(y_axis) for y_axis, _ in scales) else 0)


# Axes


def _scales(traces: list[dict[str, Any]], layout: Mapping[str, Any]) -> list[_Scale]:
    """Return the vertical axes, each with its traces; several are one above another."""
    names = [*dict.fromkeys(trace.get("yaxis", "y") for trace in traces)] or ["y"]
    return [(layout.get(f"yaxis{name[1:]}", {}), _of_axis(traces, name)) for name in names]


def _of_axis(traces: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the traces on a vertical axis, "y" or "y2" and so on."""
    return [trace for trace in traces if trace.get("yaxis", "y") == name]


def _labels(axis: Mapping[str, Any], own: list[dict[str, Any]]) -> list[tuple[float, str]]:
    return _ticks(axis, _range(own, "y", axis))


def _axes(
    traces: list[dict[str, Any]],
    own: list[dict[str, Any]],
    x_axis: Mapping[str, Any],
    y_axis: Mapping[str, Any],
    size: tuple[float, float],
) -> tuple[_Axis, _Axis]:
    """Return the axis that all traces share, and the one of ``own``, some of them."""
    (left, right), (low, high) = _range(traces, "x", x_axis), _range(own, "y", y_axis)
    width, height = size
    if y_axis.get("scaleanchor") == "x":  # one unit for both: a circle is round
        unit = min(width / (right - left), height / abs(high - low))
        spare_x, spare_y = (width / unit - (right - left)) / 2, (height / unit - abs(high - low)) / 2
        left, right, low, high = left - spare_x, right + spare_x, low - spare_y, high + spare_y
    return _Axis(left, right, width, upward=False), _Axis(low, high, height, upward=True)


def _range(traces: list[dict[str, Any]], name: str, axis: Mapping[str, Any]) -> tuple[float, float]:
    """Return the ends of an axis; on a reversed axis, the first is the greater."""
    if "range" in axis:
        return float(axis["range"][0]), float(axis["range"][1])
    values = np.concatenate([_numbers(trace[name]) for trace in traces] or [np.zeros(1)])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    if name == "y" and any(trace["type"] == "bar" for trace in traces):
        low, high = low - 0.5, high + 0.5
    else:
        pad = 0.03 * (high - low) or 0.5
        low, high = low - pad, high + pad
    return (high, low) if axis.get("autorange") == "reversed" else (low, high)


def _numbers(values: Any) -> np.ndarray:
    """Convert a list, where None breaks a line and becomes NaN, or an array as packed by Plotly."""
    if isinstance(values, Mapping):
        return np.frombuffer(b64decode(values["bdata"]), dtype=values["dtype"]).astype(np.float64)
    return np.array([np.nan if value is None else float(value) for value in values])


def _ticks(axis: Mapping[str, Any], ends: tuple[float, float]) -> list[tuple[float, str]]:
    if "tickvals" in axis:
        return list(zip(map(float, axis["tickvals"]), axis["ticktext"], strict=True))
    low, high = sorted(ends)
    raw = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    values = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return [(value, f"{value:g}".replace("-", "−")) for value in values]


def _grid(across: _Axis, up: _Axis, x_axis: Mapping[str, Any], y_axis: Mapping[str, Any]) -> str:
    lines = []
    for axis, place, is_x in ((x_axis, across, True), (y_axis, up, False)):
        if axis.get("visible") is False:
            continue
        for value, _ in _ticks(axis, (place.start, place.end)):
            zero = value == 0 and axis.get("zeroline") is not False and axis.get("zerolinecolor")
            colour = zero or (axis.get("gridcolor") if axis.get("showgrid") is not False else None)
            if colour:
                at = place.at(value)
                way = f"M{at:g} 0v{up.length:g}" if is_x else f"M0 {at:g}h{across.length:g}"
                lines.append(f'<path d="{way}" stroke="{colour}" fill="none"/>')
    return "".join(lines)


def _axis_labels(
    across: _Axis, up: _Axis, x_axis: Mapping[str, Any], y_axis: Mapping[str, Any], colour: str
) -> Iterator[str]:
    """Draw the tick labels and titles of both axes."""
    if x_axis.get("visible") is not False:
        free = -math.inf  # labels that would overlap their neighbour are left out
        for value, words in _ticks(x_axis, (across.start, across.end)):
            half = width_of(_plain(words), _SIZE) / 2
            if across.at(value) - half > free:
                yield _text(words, across.at(value), up.length + 12, colour, "middle")
                free = across.at(value) + half + 4
        if _title(x_axis):
            yield _text(_title(x_axis), across.length / 2, up.length + 32, colour, "middle")
    if y_axis.get("visible") is not False:
        for value, words in _ticks(y_axis, (up.start, up.end)):
            yield _text(words, -8, up.at(value), colour, "end")


def _title(axis: Mapping[str, Any]) -> str:
    return str(axis.get("title", {}).get("text", ""))


# Marks


def _marks(
    traces: list[dict[str, Any]], layout: Mapping[str, Any], across: _Axis, up: _Axis, colour: str
) -> Iterator[str]:
    bars = [trace for trace in traces if trace["type"] == "bar"]
    for trace in traces:
        if trace["type"] == "bar":
            yield from _bars(trace, bars.index(trace), len(bars), float(layout.get("bargap", 0.2)), across, up)
            continue
        xs, ys = ([place.at(value) for value in _numbers(trace[name])] for name, place in (("x", across), ("y", up)))
        mode = trace.get("mode", "lines")
        if "lines" in mode:
            yield _line(trace, xs, ys)
        if "markers" in mode:
            yield from _dots(trace, xs, ys)
        if "text" in mode:
            # a halo keeps lines away from the letters that they pass
            halo = f'stroke="{layout.get("paper_bgcolor", "#ffffff")}" stroke-width="4" stroke-linejoin="round"'
            yield f'<g {halo} paint-order="stroke">{"".join(_texts(trace, xs, ys, colour))}</g>'


def _bars(trace: Mapping[str, Any], nth: int, count: int, gap: float, across: _Axis, up: _Axis) -> Iterator[str]:
    thick = (1 - gap) / count
    for share, place in zip(_numbers(trace["x"]), _numbers(trace["y"]), strict=True):
        edges = [up.at(place - (1 - gap) / 2 + (nth + more) * thick) for more in (0, 1)]
        width = across.at(share) - across.at(0)
        yield (
            f'<rect x="{across.at(0):.2f}" y="{min(edges):.2f}" width="{max(width, 0):.2f}" '
            f'height="{abs(edges[1] - edges[0]):.2f}" fill="{trace["marker"]["color"]}"/>'
        )


def _line(trace: Mapping[str, Any], xs: list[float], ys: list[float]) -> str:
    points, begins = [], True
    for x, y in zip(xs, ys, strict=True):
        if math.isnan(x) or math.isnan(y):
            begins = True
            continue
        points.append(f"{'M' if begins else 'L'}{x:.2f} {y:.2f}")
        begins = False
    line = trace.get("line", {})
    dash = f' stroke-dasharray="{_DASHES[line["dash"]]}"' if line.get("dash") in _DASHES else ""
    return (
        f'<path d="{"".join(points)}" stroke="{line["color"]}" stroke-width="{line.get("width", 2):g}" fill="none" '
        f'stroke-linejoin="round"{dash}/>'
    )


def _dots(trace: Mapping[str, Any], xs: list[float], ys: list[float]) -> Iterator[str]:
    marker = trace["marker"]
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        size, colour = (_of(marker[name], i) for name in ("size", "color"))
        if size and not math.isnan(x):
            yield f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{size / 2:g}" fill="{colour}"/>'


def _texts(trace: Mapping[str, Any], xs: list[float], ys: list[float], colour: str) -> Iterator[str]:
    where = trace.get("textposition", "")
    level, shift, anchor = "middle" in where, 0, "middle"
    for side in ("right", "left"):
        if side in where:
            shift, anchor = (4, "start") if side == "right" else (-8, "end")
    font = trace.get("textfont", {})
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        lines = str(_of(trace["text"], i)).split("<br>")
        for n, words in enumerate(lines):
            above = 0 if level else 8 + _LINE * (len(lines) - n) - _LINE / 2
            size, ink = font.get("size", _SIZE), font.get("color", colour)
            yield _text(words, x + shift, y - above, ink, anchor, size=size)


def _of(values: Any, i: int) -> Any:
    return values[i] if isinstance(values, (list, tuple, np.ndarray)) else values


def _legend(traces: list[dict[str, Any]], width: float, colour: str) -> MarkBlock:
    """Draw the names of traces, each behind a sample, in one or more lines."""
    named = [trace for trace in traces if trace.get("name") and trace.get("showlegend") is not False]
    if not named:
        return MarkBlock(0, 0, "")
    x, y, parts = 0.0, 8.0, []
    for trace in named:
        room = 40 + width_of(_plain(trace["name"]), _SIZE) + 18
        if x and x + room > width:
            x, y = 0.0, y + 20
        if trace["type"] == "bar" or trace["mode"] == "markers":
            parts.append(
                f'<rect x="{x + 18:g}" y="{y - 6:g}" width="12" height="12" fill="{trace["marker"]["color"]}"/>'
            )
        else:
            parts.append(_line(trace, [x, x + 30], [y, y]))
        parts.append(_text(trace["name"], x + 36, y, colour, "start"))
        x += room
    return MarkBlock(width, y + 14, "".join(parts))


# Text, with the little HTML that Plotly allows


def _text(words: str, x: float, y: float, colour: str, anchor: str, *, size: float = _SIZE) -> str:
    """Draw a line of text, where <b>, <i> and colours are rendered."""
    line = text("\0", x, y, size=size, fill=colour, anchor=anchor)
    parts, style = [], ""
    for part in _TAG.split(words):
        if _TAG.fullmatch(part):
            style = {"<b>": ' font-weight="600"', "<i>": ' font-style="italic"'}.get(part, "")
            if part.startswith("<span"):
                style = f' fill="{part[19:26]}"'
        elif part:
            parts.append(f"<tspan{style}>{literal(unescape(part))}</tspan>" if style else literal(unescape(part)))
    return line.replace("\ufffd", "".join(parts))


def _plain(words: str) -> str:
    return unescape(_TAG.sub("", words))
