"""A room full of people: many sessions at once against one server, each watching that what it gets is its own.

``python -m benchmarks.load`` (``make load``); docs/load.md says what is measured and what came out.
"""
