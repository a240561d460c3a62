"""Interactive views, in one file for each page."""
