"""The models that come with visformer; apart from the code that loads them, which imports torch."""

BUNDLED = ("en-zh",)
"""Names of folders in visformer/model/checkpoints."""
