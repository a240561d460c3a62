"""Keep evaluation sentences out of the training data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from visformer.training import supplement
from visformer.training.lexicon import MEASURE_FORMS, Entry
from visformer.training.supplement import plain, read_lines

LISTS = ("alignment.tsv", "held_out.tsv", "judged/*.tsv", "first_sentences/held_out/*.tsv")
COLUMNS = frozenset({"en", "zh", "source", "expected", "first", "second"})
CHINESE = re.compile("[一-鿿]")
ENGLISH_WORD = re.compile(r"n't\b|'\w+|\w+?(?=n't\b)|\w+")
FUNCTION_PARTS = frozenset({"pronoun", "number", "name"})
FUNCTION_WORDS = frozenset(
    "a an be am is are was were been being do does did have has had will would can ca wo could shall should may might "
    "must not n't 's 'm 're 've 'll 'd".split()
)


def evaluation_texts(folder: Path) -> set[str]:
    """Return all sentences, in either language, of the evaluation lists in `folder`, that is `supplement/`."""
    texts = set()
    for path in (path for pattern in LISTS for path in sorted(folder.glob(pattern))):
        header, *lines = read_lines(path) or [""]
        wanted = [i for i, name in enumerate(header.split("\t")) if name in COLUMNS]
        texts |= {cells[i] for cells in (line.split("\t") for line in lines) for i in wanted if i < len(cells)}
    return texts


@dataclass(frozen=True)
class Refusals:
    """Decides which generated sentences are too close to those of an evaluation.

    Attributes:
        lemmas: inflected English word -> lemma.
        segments: Chinese words of lexicon and rules.
        function: words of either language that do not count as content.
        texts: the evaluation sentences, plain.
        contents: their sets of content words.
        names: the supplement, which knows the held-out names.
    """

    lemmas: dict[str, str]
    segments: frozenset[str]
    function: frozenset[str]
    texts: frozenset[str]
    contents: frozenset[frozenset[str]]
    names: supplement.Supplement

    @classmethod
    def load(cls, folder: Path, entries: tuple[Entry, ...], *, literals: set[str]) -> Refusals:
        """Read the lists in `folder`.

        Args:
            folder: `supplement/`.
            entries: the lexicon.
            literals: words written in rules; function words if they are not in the lexicon.
        """
        lemmas: dict[str, str] = {}
        content: set[str] = set()
        function = {word.lower() for word in literals}
        segments = set(literals)
        for entry in entries:
            base = [text.lower() for text, _, _ in entry.en[""][0]]
            for variants in entry.en.values():
                if len(variants[0]) == len(base):
                    pairs = zip((part[0].lower() for part in variants[0]), base, strict=True)
                    lemmas |= {word: lemma for word, lemma in pairs if word != lemma}
            zh = [text for text, _, _ in entry.zh[""][0]]
            whole = {" ".join(base), "".join(zh)}
            if entry.part in FUNCTION_PARTS:
                function.update(base, whole)
            else:
                content |= whole
            for side in (entry.en, entry.zh):
                forms = [form for name in MEASURE_FORMS & side.keys() for form in side[name]]
                function |= {
                    text for form in (*forms, *side.get("place", ())) for text, _, label in form if label != "content"
                }
            segments |= {*zh, "".join(zh)}
        known = cls(
            lemmas,
            frozenset(segments),
            frozenset(function - content | FUNCTION_WORDS),
            frozenset(),
            frozenset(),
            supplement.load(folder),
        )
        texts = evaluation_texts(folder)
        contents = frozenset({known.content(text) for text in texts} - {frozenset()})
        return replace(known, texts=frozenset(map(plain, texts)), contents=contents)

    def content(self, text: str) -> frozenset[str]:
        """Return the content words of a sentence: lemmas in English, the longest known words in Chinese."""
        if not CHINESE.search(text):
            words = [self.lemmas.get(word, word) for word in ENGLISH_WORD.findall(text.lower())]
            return frozenset(words) - self.function
        words = []
        text = plain(text)
        start = 0
        while start < len(text):
            length = next((n for n in (5, 4, 3, 2) if text[start : start + n] in self.segments), 1)
            words.append(text[start : start + length])
            start += length
        return frozenset(words) - self.function

    def refuse(self, en: str, zh: str) -> bool:
        """Whether a side equals an evaluation sentence or has its content words, or the pair has a held-out name."""
        same = any(plain(text) in self.texts or self.content(text) in self.contents for text in (en, zh))
        return same or supplement.refused(self.names, en, zh)
