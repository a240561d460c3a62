"""Curves, bars, trees and heatmaps as plotly figures.

pandas is imported first: plotly would otherwise access a pandas that another thread has only half imported.
"""

import pandas  # noqa: F401
import plotly.graph_objects as go

__all__ = ["go"]
