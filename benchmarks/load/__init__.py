"""Load test of a full classroom: many sessions on one server, each checking that its results are its own.

``python -m benchmarks.load`` (``make load``); docs/load.md describes the measurements and their results.
"""
