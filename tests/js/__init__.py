"""JavaScript that needs no page, run by node."""
