"""Guided lessons: their files, their panel above the page, and a lesson as one HTML file."""
