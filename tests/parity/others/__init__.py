"""Comparisons with other packages; `make parity` runs them, in an environment that has these."""
