"""Attention: every head of every layer at once, and one of them large."""

from visformer.app.pages.attention import explorer

explorer()
