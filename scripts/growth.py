"""Draw how an overview grows with the text, from what the benchmarks measured: ``python -m scripts.growth FILE``.

FILE: of ``python -m benchmarks long --json FILE``. Writes docs/images/long-texts.svg, on logarithmic axes: a line of
slope 2 grows as n², one of slope 1 as n.
"""

import json
import math
import sys
from pathlib import Path

from visformer.export.marks import MarkBlock, document, text

OUT = Path(__file__).parents[1] / "docs" / "images" / "long-texts.svg"
WIDTH, HEIGHT, LEFT, BOTTOM, BETWEEN = 300, 200, 56, 40, 40
INK, FAINT, OURS, LINE = "#1f2933", "#9aa5b1", "#1859c4", "#9aa5b1"
CHARTS = (
    ("overview / sdpa", "time of a pass", "s", 1e-3, 2),
    ("overview's peak memory", "peak memory", "MB", 1.0, 1),
)
"""Beginning of a row's name, title, unit, factor to it, and the slope that is drawn beside."""


def points(rows: list[dict], name: str, factor: float) -> list[tuple[int, float]]:
    """Return the number of tokens, and what was measured, of the rows whose names begin so."""
    return sorted((int(row["size"]), factor * row["ours"]) for row in rows if row["name"].startswith(name))


def chart(measured: list[tuple[int, float]], title: str, unit: str, slope: int) -> MarkBlock:
    """Draw one curve on logarithmic axes, and a line of this slope through its last point."""
    (first, _), (last, end) = measured[0], measured[-1]
    low = min(value for _, value in measured) / 1.5
    high = max(value for _, value in measured) * 1.5

    def at(n: float, value: float) -> tuple[float, float]:
        x = LEFT + WIDTH * math.log(n / first) / math.log(last / first)
        return x, 30 + HEIGHT * (1 - math.log(value / low) / math.log(high / low))

    parts = [text(f"{title}, {unit}", LEFT, 16, size=14, fill=INK, strong=True)]
    parts.append(f'<rect x="{LEFT}" y="30" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{FAINT}"/>')
    start = max(first, last * (low / end) ** (1 / slope))
    (x1, y1), (x2, y2) = at(start, end * (start / last) ** slope), at(last, end)
    parts.append(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{LINE}" stroke-dasharray="4 4"/>'
    )
    parts.append(text("n²" if slope == 2 else "n", x1 - 4, y1 - 8, size=13, fill=FAINT))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in measured))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{OURS}" stroke-width="2"/>')
    for n, value in measured:
        x, y = at(n, value)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{OURS}"/>')
        parts.append(
            text(
                f"{value:,.0f}" if value >= 100 else f"{value:.3g}",
                x,
                y - 9,
                size=12,
                fill=INK,
                anchor="end" if n == last else "middle",
            )
        )
        parts.append(text(f"{n:,}", x, 30 + HEIGHT + 18, size=12, fill=INK, anchor="middle"))
    parts.append(text("tokens", LEFT + WIDTH / 2, 30 + HEIGHT + 36, size=12, fill=INK, anchor="middle"))
    return MarkBlock(LEFT + WIDTH + 20, 30 + HEIGHT + BOTTOM, "".join(parts))


def main(file: str) -> None:
    """Draw both charts side by side."""
    rows = json.loads(Path(file).read_text(encoding="utf-8"))["rows"]
    x, markup, height = 0.0, "", 0.0
    for name, title, unit, factor, slope in CHARTS:
        block = chart(points(rows, name, factor), title, unit, slope)
        markup, x, height = markup + block.at(x, 0), x + block.width + BETWEEN, max(height, block.height)
    about = f"{len(rows)} rows of python -m benchmarks long"
    title = "What an overview of 1,024 heads takes as the text grows"
    OUT.write_text(document(MarkBlock(x, height, markup), title, background="#ffffff", about=about), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
