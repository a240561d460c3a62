"""Tests of what people keep."""
