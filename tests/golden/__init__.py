"""Recorded results, and numbers worked out by hand, compared with what the code computes."""
