"""Tests of the panels that each page shows."""
