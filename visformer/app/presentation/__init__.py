"""Presentations, and the rooms that follow a presenter."""
