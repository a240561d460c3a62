"""Worked examples as data: matrices to be edited, what course notes print for them, and what the arithmetic gives."""
