"""Translate many sentences, for whatever is measured on them."""

from collections.abc import Sequence

from visformer.adapters.own import Translator


def translate_all(
    model: Translator, sources: Sequence[str], *, to: str, batch: int = 64
) -> dict[str, tuple[str, float]]:
    """Translate greedily, in batches of similar length.

    Returns:
        Each source's translation and the model's confidence in it.
    """
    ordered = sorted(dict.fromkeys(sources), key=len)
    result: dict[str, tuple[str, float]] = {}
    for start in range(0, len(ordered), batch):
        part = ordered[start : start + batch]
        result |= zip(part, model.translate_batch(part, to=to), strict=True)
    return result
