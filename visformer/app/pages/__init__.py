"""Interactive views, each in the folder of its page."""
