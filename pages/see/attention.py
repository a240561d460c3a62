"""Attention: all heads of all layers at once, and one of them enlarged."""

from visformer.app.pages.attention import explorer

explorer()
