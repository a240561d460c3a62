"""Worked examples as data: what may be changed, what course notes print, and what the arithmetic gives."""
