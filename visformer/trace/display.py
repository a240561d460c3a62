"""How a notebook displays a Trace; set from a higher layer, since a Trace knows nothing of pictures."""

from collections.abc import Callable
from typing import Any

as_html: Callable[[Any], str] | None = None
"""Renders a Trace as self-contained HTML; set by :mod:`visformer`."""
