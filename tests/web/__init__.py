"""Tests of visformer.web."""
