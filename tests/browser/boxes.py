"""Boxes on a page: what of its controls, its words and the labels drawn on its canvases is cut, broken or overlaps."""

from pathlib import Path

_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")

RECORD_LABELS = f"(() => {{ {_SCRIPT}\nrecordLabels() }})()"
"""Script to run before a page's own."""


def labels(page):
    """Return how many labels are drawn on our canvases, and what is wrong with them, in words."""
    return page.evaluate(f"() => {{ {_SCRIPT}\nreturn labels() }}")


def faults(page):
    """Return what is cut, broken or overlaps on the page, elements as well as drawn labels."""
    return [*page.evaluate(f"() => {{ {_SCRIPT}\nreturn cut() }}"), *labels(page)["found"]]
