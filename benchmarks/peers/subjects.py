"""The input of every tool: the model's own tokens and attention up to 256 tokens, synthetic patterns beyond.

Saved under ``.benchmarks/``, so that all tools get the same bytes. NumPy only.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.peers.environment import HOME, run_worker

REAL = (16, 64, 128, 256)
"""Lengths at which the model itself is run; its maximum is 512."""

SYNTHETIC = (512, 1024)

N_LAYERS, N_HEADS = 6, 12

WORDS = tuple(
    "the book that she gave him yesterday was not on the table because he took it home and read it to his sister "
    "before the old teacher came back from the station with a small letter for both of them".split()
)
"""Each is one token of the model."""


@dataclass(frozen=True)
class Subject:
    """One sentence, as every tool gets it.

    Args:
        tokens: the tokens as displayed.
        patterns: (layer, head, query, key) float32, probabilities.
        file: file that holds both.
    """

    tokens: tuple[str, ...]
    patterns: npt.NDArray[np.float32]
    file: Path


def subject(n: int, start: int = 0) -> Subject:
    """Return the subject of n tokens, with a different text for every ``start``."""
    file = HOME / "subjects" / f"{n}-{start}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        if n in SYNTHETIC:
            save(file, text(n, start), synthetic(n, seed=start))
        else:
            run_worker("attend", {"text": sentence(n, start), "out": str(file)}, timeout=600)
    with np.load(file) as saved:
        result = Subject(tuple(saved["tokens"].tolist()), saved["patterns"], file)
    if len(result.tokens) != n:
        raise RuntimeError(f"{file} holds {len(result.tokens)} tokens, expected {n}")
    return result


def sentence(n: int, start: int = 0) -> str:
    """Return a text of exactly n tokens, counting [CLS] and [SEP]; different for every ``start``."""
    return " ".join(text(n, start)[1:-1])


def text(n: int, start: int = 0) -> list[str]:
    """Return the same text as tokens."""
    return ["[CLS]", *(WORDS[(start + i) % len(WORDS)] for i in range(n - 2)), "[SEP]"]


def synthetic(n: int, *, seed: int = 0) -> npt.NDArray[np.float32]:
    """Make (layer, head, n, n) patterns whose rows sum to 1, the same for the same seed.

    As in trained heads, each head attends to one of four places (itself, the previous token, the first, everywhere),
    with varying strength and added noise.
    """
    patterns = np.empty((N_LAYERS, N_HEADS, n, n), dtype=np.float32)
    places = np.arange(n)
    for layer in range(N_LAYERS):
        for head in range(N_HEADS):
            random = np.random.default_rng((seed, n, layer, head))
            scores = random.standard_normal((n, n), dtype=np.float32)
            looks_at = (places, np.maximum(places - 1, 0), np.zeros_like(places))
            kind = (layer + head) % 4
            if kind < 3:
                scores[places, looks_at[kind]] += np.float32(random.uniform(4, 12))
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            patterns[layer, head] = weights / weights.sum(axis=1, keepdims=True)
    return patterns


def save(file: Path, tokens: list[str], patterns: npt.NDArray[np.float32]) -> None:
    """Save a subject in the format that :func:`subject` reads."""
    np.savez(file, tokens=np.array(tokens), patterns=patterns)
