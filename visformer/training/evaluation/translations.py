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
    decodings = model.translate_many(ordered, to=to, batch=batch)
    return {source: (each.text, each.confidence) for source, each in zip(ordered, decodings, strict=True)}
