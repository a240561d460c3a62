"""Guided lessons: their files, the panel above the page, and the hand-out, a lesson as one HTML file."""
