"""Curves, bars, trees and heatmaps as plotly figures.

pandas before plotly: plotly looks into a pandas that another thread may have imported by half.
"""

import pandas  # noqa: F401
import plotly.graph_objects as go

__all__ = ["go"]
