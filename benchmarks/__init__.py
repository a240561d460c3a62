"""Benchmarks, as ratios of two things measured alternately on the same machine: ``python -m benchmarks``."""
