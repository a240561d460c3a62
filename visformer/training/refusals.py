"""Keep sentences by which translators are evaluated out of what they are trained with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from visformer.training import supplement
from visformer.training.lexicon import Entry

LISTS = ("alignment.tsv", "held_out.tsv", "judged/*.tsv")
COLUMNS = frozenset({"en", "zh", "source", "expected", "first", "second"})
CHINESE = re.compile("[一-鿿]")
ENGLISH_WORD = re.compile(r"n't\b|'\w+|\w+?(?=n't\b)|\w+")
FUNCTION_PARTS = frozenset({"pronoun", "number", "name"})
AUXILIARIES = frozenset("be am is are was were been being do does did have has had will would can could shall should may might must not".split())


def plain(text: str) -> str:
    """Return the text without spaces and punctuation, in lower case."""
    return re.sub(r"[\W_]+", "", text).lower()


def evaluation_texts(folder: Path) -> set[str]:
    """Return all sentences, in either language, of the lists in `supplement/` that evaluate."""
    texts = set()
    for path in (path for pattern in LISTS for path in sorted(folder.glob(pattern))):
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        wanted = [i for i, name in enumerate(header.split("\t")) if name in COLUMNS]
        for line in lines:
            cells = line.split("\t")
            texts |= {cells[i].replace(" ", "") if CHINESE.search(cells[i]) else cells[i] for i in wanted if i < len(cells)}
    return texts


@dataclass(frozen=True)
class Refusals:
    """What no generated sentence may equal.

    Attributes:
        lemmas: inflected English word -> lemma.
        segments: Chinese words of lexicon and rules.
        function: words of either language that do not count as content.
        texts: the evaluated sentences, plain.
        contents: the sets of their content words.
        names: for the held-out names.
    """

    lemmas: dict[str, str]
    segments: frozenset[str]
    function: frozenset[str]
    texts: frozenset[str]
    contents: frozenset[frozenset[str]]
    names: supplement.Supplement

    @classmethod
    def load(cls, folder: Path, entries: tuple[Entry, ...], literals: tuple[set[str], set[str]]) -> Refusals:
        """Read the lists in `folder`.

        Args:
            folder: `supplement/`.
            entries: the lexicon.
            literals: English and Chinese words that stand in rules; function words if they are not in the lexicon.
        """
        lemmas: dict[str, str] = {}
        content: set[str] = set()
        function: set[str] = {word.lower() for side in literals for word in side}
        segments = set(literals[1])
        for entry in entries:
            base = [part[0] for part in entry.en[""][0]]
            kind = function if entry.part in FUNCTION_PARTS else content
            for name, variants in (*entry.en.items(), *entry.zh.items()):
                for form in variants:
                    if name in {"place", "the", "at", "m", "cup", "cups"}:
                        function |= {text for text, _, _, label in form if label != "content"}
                    elif form in entry.en.get(name, ()) and len(form) == len(base):
                        lemmas |= {part[0].lower(): lemma.lower() for part, lemma in zip(form, base, strict=True)}
            kind |= {word.lower() for word in base}
            chinese = "".join(part[0] for part in entry.zh[""][0])
            segments |= {part[0] for part in entry.zh[""][0]} | {chinese}
            kind |= {part[0] for part in entry.zh[""][0]} | {chinese}
        function = (function - content) | AUXILIARIES
        known = cls(lemmas, frozenset(segments), frozenset(function), frozenset(), frozenset(), supplement.load(folder))
        texts = evaluation_texts(folder)
        contents = {known.content(text) for text in texts} - {frozenset()}
        return cls(lemmas, known.segments, known.function, frozenset(map(plain, texts)), frozenset(contents), known.names)

    def content(self, text: str) -> frozenset[str]:
        """Return the content words of a sentence: lemmas in English, the longest known words in Chinese."""
        if not CHINESE.search(text):
            words = [self.lemmas.get(word, word) for word in ENGLISH_WORD.findall(text.lower())]
            return frozenset(word for word in words if word not in self.function)
        words = []
        start = 0
        text = plain(text)
        while start < len(text):
            length = next((n for n in (5, 4, 3, 2) if text[start : start + n] in self.segments), 1)
            words.append(text[start : start + length])
            start += length
        return frozenset(word for word in words if word not in self.function)

    def refuse(self, en: str, zh: str) -> bool:
        """Whether a pair equals an evaluated sentence, has the same content, or holds a held-out name."""
        for text in (en, zh):
            if plain(text) in self.texts or self.content(text) in self.contents:
                return True
        return supplement.refused(self.names, en, zh)
