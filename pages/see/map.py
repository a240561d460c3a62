"""The whole model: every block with the sentence in it, and its play from the tokens to the translation."""

from visformer.app.pages.map import draw

draw()
