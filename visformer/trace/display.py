"""How a notebook shows a Trace. A room above says how: a Trace knows nothing of pictures."""

from collections.abc import Callable
from typing import Any

as_html: Callable[[Any], str] | None = None
"""A Trace to HTML that loads nothing; set by :mod:`visformer`."""
