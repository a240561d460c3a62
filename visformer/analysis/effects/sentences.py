"""Lists of sentences to measure heads on: one that comes with the package, and anybody's own."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from visformer.errors import N_, TextError

Sentences = Sequence[str | tuple[str, str]]
"""Texts, or pairs (source, target)."""

_PAIRS = "en-zh"


def effect_sentences(model: str = _PAIRS) -> Sentences:
    """Return the bundled list: 50 everyday sentences, which the bundled models were not trained on.

    Args:
        model: the name of a model. "en-zh" gets pairs with a Chinese translation by hand; any other the English alone,
            of which an encoder-decoder is judged on its own output.

    Returns:
        Texts, or pairs (source, target), for :func:`visformer.analysis.head_effects`.
    """
    pairs = _bundled()
    return pairs if model == _PAIRS else tuple(source for source, _ in pairs)


def parse_sentences(text: str) -> Sentences:
    """Parse a list: a sentence a line, or a source and its target separated by a tab; empty lines are left out.

    Args:
        text: the whole list, such as the content of a file.

    Returns:
        Texts, and pairs (source, target), for :func:`visformer.analysis.head_effects`.

    Raises:
        TextError: a line has an empty side or a third column; the message has its number, from 1. Or there is no line.
    """
    return tuple(sentence for _, sentence in numbered_sentences(text))


def numbered_sentences(text: str) -> list[tuple[int, str | tuple[str, str]]]:
    """Parse a list as :func:`parse_sentences` does, and return each sentence behind the number of its line, from 1.

    Raises:
        TextError: as for :func:`parse_sentences`.
    """
    found: list[tuple[int, str | tuple[str, str]]] = []
    for line, row in enumerate(text.splitlines(), 1):
        source, *target = (part.strip() for part in row.removeprefix("\ufeff").split("\t"))
        if not source and not any(target):
            continue
        if len(target) > 1:
            raise TextError(
                N_("Line {line} has {n} columns: write a sentence, or a source, a tab and its target."),
                line=line,
                n=len(target) + 1,
            )
        if not source or (target and not target[0]):
            raise TextError(N_("Line {line}: nothing is written on one side of the tab."), line=line)
        found.append((line, (source, target[0]) if target else source))
    if not found:
        raise TextError(N_("The list is empty: write a sentence a line."))
    return found


@cache
def _bundled() -> tuple[tuple[str, str], ...]:
    text = (files("visformer.analysis.effects") / "sentences.tsv").read_text(encoding="utf-8")
    return tuple(pair for pair in parse_sentences(text) if isinstance(pair, tuple))
