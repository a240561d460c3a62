"""Numbers worked out elsewhere, held against what the lab computes."""
