"""Curves, bars, trees and heatmaps as plotly figures."""
