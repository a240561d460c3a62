"""Worked examples as data: editable inputs, the results that course notes print, and the computation."""
