"""Which models come with visformer. Apart from what loads them, which imports torch."""

BUNDLED = ("en-zh",)
"""Each is a folder in visformer/model/checkpoints."""
