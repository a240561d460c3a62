"""What people type first into a translator: set phrases, journeys between two places, and what has to be copied.

The lists are in `supplement/first_sentences/`. What is copied is invented anew for each pair, so that a model learns to
copy and not what was copied.
"""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from visformer.training import supplement
from visformer.training.data import Pair
from visformer.training.supplement import Frame, Name, Supplement, kind_of, latin_word, read_frames, read_rows

FOLDER = "first_sentences"

SHARES = {"phrases": 0.55, "journeys": 0.08, "copies": 0.21, "renamed": 0.11, "mixed": 0.05}
"""Shares of the pairs of each kind."""

CAP = 3
"""Synonyms share a translation: of all sources with one target, as many as these are drawn in each turn."""

_BRANDS = ("GPT", "AI", "Pro", "Max", "Plus", "Mini", "X", "Air", "Net", "Bot", "OS", "Lab", "Book", "Pad", "Cam", "Go")
_ENDINGS = ("com", "com", "org", "net", "cn", "io", "edu", "com.cn", "co.uk", "ai", "de", "eu", "tv", "dev")
_HOSTS = (
    "www", "mail", "shop", "news", "blog", "store", "map", "maps", "photo", "photos", "music", "video", "files", "help",
    "support", "docs", "home", "school", "book", "books", "team", "cloud", "app", "game", "example", "data", "my",
)  # fmt: skip
_BOXES = (
    "info", "hello", "help", "support", "service", "office", "contact", "sales", "team", "admin", "job", "order",
    "return", "news", "mail", "me", "teacher", "student", "doctor", "editor", "booking", "question", "feedback", "boss",
)  # fmt: skip
_EMOJI = [
    *map(chr, (
        *range(0x1F300, 0x1F321), *range(0x1F32D, 0x1F37D), *range(0x1F380, 0x1F394), *range(0x1F3A0, 0x1F3CB),
        *range(0x1F3E0, 0x1F3F0), *range(0x1F400, 0x1F43F), *range(0x1F440, 0x1F4FD), *range(0x1F600, 0x1F64F),
        *range(0x1F680, 0x1F6C5), *range(0x1F910, 0x1F93A), *range(0x1F940, 0x1F971), *range(0x1F980, 0x1F9AF),
        0x2705, 0x2728, 0x2B50, 0x2615, 0x26BD, 0x26C4, 0x23F0, 0x2753, 0x2757,
    )),
    *(character + "\ufe0f" for character in "❤☀☁☎☺☃✈✌✏✉⚠🏖🏔🏝🌶🌤🎗🏠🐿🕊🖥🍽"),
]  # fmt: skip
_SIGNS = ("+", "-", "x", "*", "/", "×", "÷")


def _spliced(rng: random.Random, words: Sequence[str]) -> str:
    """Join the beginning of a word and the end of another: names have pieces that syllables alone do not."""
    first, second = rng.sample(words, 2)
    return first[: rng.randint(2, 4)].capitalize() + second[-rng.randint(2, 5) :].lower()


def _name(rng: random.Random, words: Sequence[str]) -> str:
    """Return an unknown name: a word, two, a brand with a number, letters in capitals, or letters at random."""
    word = _spliced(rng, words) if rng.random() < 0.6 else latin_word(rng)
    if rng.random() < 0.2:  # few English words begin with some of these
        word = rng.choice("AEIOUY") + word.lower()
    return rng.choices(
        (
            lambda: word,
            lambda: f"{word} {latin_word(rng)}",
            lambda: f"{word}{rng.choice(_BRANDS)}",
            lambda: f"{word} {rng.randint(1, 20)}",
            lambda: f"{word} {rng.randint(1, 9)}.{rng.randint(0, 9)}",
            lambda: f"{word} {rng.choice(_BRANDS)}",
            lambda: f"{word} {rng.randint(2, 15)} {rng.choice(_BRANDS)}",
            lambda: word + latin_word(rng),
            lambda: word + latin_word(rng).lower(),
            lambda: "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 5))),
            lambda: f"{''.join(rng.choices(string.ascii_uppercase, k=rng.randint(1, 4)))}-{rng.randint(1, 999)}",
            lambda: "".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))),
            lambda: word.lower(),
            lambda: word.upper(),
        ),
        (44, 10, 8, 6, 4, 4, 3, 5, 3, 6, 5, 5, 4, 5),
    )[0]()


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_uppercase, k=rng.randint(1, 3)))


def _number(rng: random.Random, _words: Sequence[str]) -> str:
    return rng.choice(
        (
            lambda: str(rng.randint(0, 99)),
            lambda: str(rng.randint(100, 9999)),
            lambda: str(rng.randint(1900, 2099)),
            lambda: f"{rng.randint(1, 999)},{rng.randint(0, 999):03}",
            lambda: f"{rng.randint(0, 99)}.{rng.randint(0, 99)}",
            lambda: f"{rng.randint(1, 100)}%",
            lambda: str(rng.randint(10**5, 10**11)),
            lambda: f"{rng.choice(('', 'v'))}{rng.randint(0, 20)}.{rng.randint(0, 20)}.{rng.randint(0, 9)}",
            lambda: f"{rng.randint(0, 23)}:{rng.randint(0, 59):02}",
            lambda: f"{_letters(rng)}{rng.choice(('', ' ', '-'))}{rng.randint(1, 9999)}",
            lambda: f"{_letters(rng)}{rng.randint(1, 9)}-{rng.randint(10, 99)}-{_letters(rng)}",
        )
    )()


def _sum(rng: random.Random, _words: Sequence[str]) -> str:
    """Return a sum, with its result or without; a model copies it, right or wrong."""
    most = rng.choice((10, 99))
    a, b, sign = rng.randint(0, most), rng.randint(1, most), rng.choice(_SIGNS)
    space = rng.choice(("", " ", " "))
    result = {"+": a + b, "-": a - b, "/": a // b, "÷": a // b}.get(sign, a * b)
    text = f"{a}{space}{sign}{space}{b}"
    if rng.random() < 0.1:
        more = rng.randint(1, most)
        text, result = f"{text}{space}+{space}{more}", result + more
    return rng.choice((text, f"{text}{space}={space}{result}", f"{text}{space}={space}?"))


def _address(rng: random.Random, words: Sequence[str]) -> str:
    """Return a web or mail address, of invented words and of words that it must not translate."""

    def word() -> str:
        return rng.choice((latin_word(rng), _spliced(rng, words), rng.choice(words))).lower()

    host = rng.choice((word(), word(), f"{word()}-{word()}", f"{word()}{word()}", rng.choice(_HOSTS)))
    host = f"{host}{rng.choice(('', '', '', rng.randint(1, 99)))}.{rng.choice(_ENDINGS)}"
    if rng.random() < 0.35:
        host = f"{rng.choice(_HOSTS)}.{host}"
    if rng.random() < 0.5:
        path = "".join(
            f"/{part}"
            for part in rng.sample(
                (word(), rng.choice(_HOSTS), str(rng.randint(1, 2999)), f"{rng.choice(_HOSTS)}_{rng.randint(1, 99)}"), 2
            )
        )
        path = path[: rng.choice((0, path.index("/", 1), len(path)))]
        query = rng.choice(("", "", "", ".html", f"?id={rng.randint(1, 999)}")) if path else ""
        return rng.choice(("", "", "https://", "http://")) + host + path + query
    box = rng.choice((rng.choice(_BOXES), word(), f"{word()}{rng.randint(1, 99)}"))
    if rng.random() < 0.35:
        box += rng.choice("._-") + rng.choice((word(), rng.choice(_BOXES), str(rng.randint(1, 2029))))
    return f"{box}@{host}"


def _emoji(rng: random.Random, _words: Sequence[str]) -> str:
    one = rng.choice(_EMOJI)
    return rng.choice((one, one, one * 2, one * 3, one + rng.choice(_EMOJI)))


COPIED: dict[str, Callable[[random.Random, Sequence[str]], str]] = {
    "copy": _name, "number": _number, "sum": _sum, "address": _address, "emoji": _emoji,
}  # fmt: skip
"""What invents a text of each kind that has to be copied; it is given words to invent names from."""


@dataclass(frozen=True)
class FirstSentences:
    """The lists: pairs, and frames by what is put into them; ``renamed`` are frames of other pairs."""

    phrases: tuple[Pair, ...]
    mixed: tuple[Pair, ...]
    journeys: tuple[Frame, ...]
    copies: tuple[Frame, ...]
    renamed: tuple[Frame, ...] = ()

    @cached_property
    def words(self) -> list[str]:
        """English words of the phrases, to invent names from."""
        return sorted({word for pair in self.phrases for word in re.findall("[A-Za-z]{5,}", pair.en)})

    @classmethod
    def load(cls, folder: Path) -> FirstSentences:
        """Read the lists in `folder`, that is `supplement/`.

        Raises:
            DataError: see :func:`visformer.training.supplement.read_rows`.
        """
        folder /= FOLDER
        mixed = read_rows(folder / "mixed.tsv", columns=3)
        return cls(
            phrases=tuple(Pair(*row) for row in read_rows(folder / "phrases.tsv", columns=3)),
            mixed=tuple(Pair(a, b, way) if way == "en-zh" else Pair(b, a, way) for a, b, way in mixed),
            journeys=read_frames(folder / "from_to_frames.tsv"),
            copies=read_frames(folder / "copy_frames.tsv"),
        )

    def without(self, judged: Callable[[Pair], bool]) -> FirstSentences:
        """Return the lists without the pairs that translators are judged on."""
        phrases, mixed = (tuple(pair for pair in some if not judged(pair)) for some in (self.phrases, self.mixed))
        return replace(self, phrases=phrases, mixed=mixed)

    def with_frames_of(self, pairs: Iterable[Pair], given: Sequence[Name]) -> FirstSentences:
        """Return the lists with frames for names to copy: the pairs in which one given name stands, once."""
        known = dict(given)
        named = re.compile(rf"\b({'|'.join(map(re.escape, known))})\b")
        frames = []
        for pair in pairs:
            found = named.findall(pair.en)
            if len(found) == 1 and pair.zh.count(known[found[0]]) == 1:
                en, zh = named.sub("{copy}", pair.en), pair.zh.replace(known[found[0]], "{copy}")
                frames.append(Frame(en, zh, ("copy",), 1))
        return replace(self, renamed=tuple(frames))

    def sample(self, names: Supplement, n: int, *, seed: int, judged: Callable[[Pair], bool]) -> list[Pair]:
        """Draw ``n`` pairs by SHARES, the same ones for the same seed; none of them is judged."""
        rng = random.Random(f"first {seed}")
        drawn = capped(self.phrases, round(SHARES["phrases"] * n), rng)
        drawn += rng.choices(self.mixed, k=round(SHARES["mixed"] * n))
        for kind, frames in {"journeys": self.journeys, "copies": self.copies, "renamed": self.renamed}.items():
            weights, wanted = [frame.weight for frame in frames], len(drawn) + round(SHARES[kind] * n)
            while frames and len(drawn) < wanted:
                pair = filled(names, rng.choices(frames, weights)[0], rng, self.words)
                if pair is not None and not judged(pair):
                    drawn.append(pair)
        return drawn


def capped(pairs: Sequence[Pair], n: int, rng: random.Random) -> list[Pair]:
    """Draw ``n`` pairs in turns through all of them, in each turn at most CAP with the same target."""
    drawn: list[Pair] = []
    while len(drawn) < n:
        seen: Counter[tuple[str, str]] = Counter()
        for pair in rng.sample(pairs, len(pairs)):
            target = pair.direction, pair.en if pair.direction == "zh-en" else pair.zh
            seen[target] += 1
            if seen[target] <= CAP:
                drawn.append(pair)
    return drawn[:n]


def filled(names: Supplement, frame: Frame, rng: random.Random, words: Sequence[str]) -> Pair | None:
    """Put names, places, or texts to copy into a frame; None: two are the same, or one is held out."""
    given: dict[str, Name] = {}
    invented = rng.choices((None, "latin", "pinyin"), (6, 3, 1))[0]
    for slot in frame.slots:
        kind = kind_of(slot)
        if kind in COPIED:
            text = COPIED[kind](rng, words)
            given[slot] = text, text
        elif invented is not None and kind != "region":
            given[slot] = supplement.NAMED[invented](names, kind, rng)
        else:
            given[slot] = supplement.real_name(names, kind, rng)
    if len({en for en, _ in given.values()}) < len(given):
        return None
    en, zh = frame.en, frame.zh
    for slot, (name_en, name_zh) in given.items():
        en, zh = en.replace(f"{{{slot}}}", name_en), zh.replace(f"{{{slot}}}", name_zh)
    if supplement.refused(names, en, zh):
        return None
    return Pair(en, zh, "zh-en" if invented == "pinyin" and not COPIED.keys() & map(kind_of, frame.slots) else "both")
