"""The models that come with visformer; apart from the code that loads them, which imports torch."""

from pathlib import Path

BUNDLED = ("en-zh",)
"""Names of folders in visformer/model/checkpoints."""


def folder_of(name: str) -> Path:
    """Return the folder of a model; for a hub id there is none at that path."""
    return Path(__file__).resolve().parents[1] / "model" / "checkpoints" / name if name in BUNDLED else Path(name)
