"""The pictures of the page that compares two of anything."""
