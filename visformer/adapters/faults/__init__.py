"""Models that have one fault each, to be found in the pictures."""
