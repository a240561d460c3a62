"""Visformer against BertViz, Inspectus, CircuitsVis and one Plotly figure per head: ``python -m benchmarks peers``.

Every tool gets the same tokens and the same attention, in the same Chromium. ``subjects`` makes them, ``worker`` builds
the peers' pages in an environment of their own, ``visformer_side`` builds ours, ``stage`` measures the pages, ``enter``
the time from Enter to a picture in Streamlit, and ``report`` formats the results.
"""
