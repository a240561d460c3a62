"""Visformer against BertViz, Inspectus, CircuitsVis and one Plotly figure per head: ``python -m benchmarks peers``.

The same tokens and the same attention go to every tool, in the same Chromium. ``subjects`` makes them, ``worker``
builds the peers' pages in an environment of their own, ``visformer_side`` makes ours, ``stage`` measures what a page
does, ``enter`` the way from a key to a picture in Streamlit, and ``report`` says what came out.
"""
