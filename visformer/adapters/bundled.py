"""The models that come with visformer; apart from the code that loads them, which imports torch."""

from pathlib import Path

BUNDLED = (TRANSLATOR := "en-zh", GPT := "mini-gpt", GPT_2 := "mini-gpt-2")
"""Names of folders in visformer/model/checkpoints: the translator, a decoder-only model, and a second seed of it."""


def folder_of(name: str) -> Path:
    """Return the folder of a model; for a hub id there is none at that path."""
    return Path(__file__).resolve().parents[1] / "model" / "checkpoints" / name if name in BUNDLED else Path(name)
