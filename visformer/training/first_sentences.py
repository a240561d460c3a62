"""What people type first into a translator: set phrases, journeys between two places, and what has to be copied.

The lists are in `supplement/first_sentences/`. What is copied is invented anew for each pair, so that a model learns to
copy and not what was copied.
"""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from visformer.training import supplement
from visformer.training.data import Pair
from visformer.training.supplement import Frame, Name, Supplement, kind_of, latin_word, read_frames, read_rows

FOLDER = "first_sentences"

SHARES = {"phrases": 0.44, "journeys": 0.18, "copies": 0.30, "mixed": 0.08}
"""Shares of the pairs of each kind."""

CAP = 3
"""Synonyms share a translation: of all sources with one target, as many as these are drawn in each turn."""

_BRANDS = ("GPT", "AI", "Pro", "Max", "Plus", "Mini", "X", "Air", "Net", "Bot", "OS", "Lab", "Book", "Pad", "Cam", "Go")
_ENDINGS = ("com", "org", "net", "cn", "io", "edu")
_EMOJI = [
    *range(0x1F300, 0x1F321), *range(0x1F32D, 0x1F37D), *range(0x1F380, 0x1F394), *range(0x1F3A0, 0x1F3CB),
    *range(0x1F400, 0x1F43F), *range(0x1F600, 0x1F64F), *range(0x1F680, 0x1F6C5), 0x2705, 0x2764, 0x2B50,
]  # fmt: skip
_SIGNS = ("+", "-", "x", "*", "/")


def _name(rng: random.Random) -> str:
    """Return an unknown name: a word, two, a brand with a number, letters in capitals, or letters at random."""
    word = latin_word(rng)
    return rng.choices(
        (
            lambda: word,
            lambda: f"{word} {latin_word(rng)}",
            lambda: f"{word}{rng.choice(_BRANDS)}",
            lambda: f"{word} {rng.randint(1, 20)}",
            lambda: f"{word} {rng.randint(1, 9)}.{rng.randint(0, 9)}",
            lambda: f"{word} {rng.choice(_BRANDS)}",
            lambda: "".join(rng.choices(string.ascii_uppercase, k=rng.randint(2, 5))),
            lambda: f"{''.join(rng.choices(string.ascii_uppercase, k=rng.randint(1, 4)))}-{rng.randint(1, 999)}",
            lambda: "".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))),
            lambda: word.lower(),
        ),
        (40, 12, 10, 8, 5, 5, 6, 5, 5, 4),
    )[0]()


def _number(rng: random.Random) -> str:
    return rng.choice(
        (
            lambda: str(rng.randint(0, 99)),
            lambda: str(rng.randint(100, 9999)),
            lambda: str(rng.randint(1900, 2099)),
            lambda: f"{rng.randint(1, 999)},{rng.randint(0, 999):03}",
            lambda: f"{rng.randint(0, 99)}.{rng.randint(0, 99)}",
            lambda: f"{rng.randint(1, 100)}%",
            lambda: str(rng.randint(10**5, 10**11)),
        )
    )()


def _sum(rng: random.Random) -> str:
    """Return a sum, with its result or without; a model copies it, right or wrong."""
    a, b, sign = rng.randint(0, 99), rng.randint(1, 99), rng.choice(_SIGNS)
    space = rng.choice(("", " ", " "))
    result = {"+": a + b, "-": a - b, "x": a * b, "*": a * b, "/": a // b}[sign]
    text = f"{a}{space}{sign}{space}{b}"
    return rng.choice((text, f"{text}{space}={space}{result}", f"{text}{space}={space}?"))


def _address(rng: random.Random) -> str:
    word, ending = latin_word(rng).lower(), rng.choice(_ENDINGS)
    return rng.choice(
        (
            f"{word}.{ending}",
            f"www.{word}.{ending}",
            f"https://{word}.{ending}",
            f"https://www.{word}.{ending}/{latin_word(rng).lower()}",
            f"{latin_word(rng).lower()}@{word}.{ending}",
            f"{latin_word(rng).lower()}{rng.randint(1, 99)}@{word}.{ending}",
            f"{latin_word(rng).lower()}.{latin_word(rng).lower()}@{word}.{ending}",
        )
    )


def _emoji(rng: random.Random) -> str:
    return "".join(chr(rng.choice(_EMOJI)) for _ in range(rng.choices((1, 2, 3), (8, 2, 1))[0]))


COPIED: dict[str, Callable[[random.Random], str]] = {
    "copy": _name, "number": _number, "sum": _sum, "address": _address, "emoji": _emoji,
}  # fmt: skip
"""What invents a text of each kind that has to be copied."""


@dataclass(frozen=True)
class FirstSentences:
    """The lists: pairs, and frames by what is put into them."""

    phrases: tuple[Pair, ...]
    mixed: tuple[Pair, ...]
    journeys: tuple[Frame, ...]
    copies: tuple[Frame, ...]

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
        return FirstSentences(phrases, mixed, self.journeys, self.copies)

    def sample(self, names: Supplement, n: int, *, seed: int, judged: Callable[[Pair], bool]) -> list[Pair]:
        """Draw ``n`` pairs by SHARES, the same ones for the same seed; none of them is judged."""
        rng = random.Random(f"first {seed}")
        drawn = capped(self.phrases, round(SHARES["phrases"] * n), rng)
        drawn += rng.choices(self.mixed, k=round(SHARES["mixed"] * n))
        for frames, share in ((self.journeys, SHARES["journeys"]), (self.copies, SHARES["copies"])):
            weights, wanted = [frame.weight for frame in frames], len(drawn) + round(share * n)
            while len(drawn) < wanted:
                pair = filled(names, rng.choices(frames, weights)[0], rng)
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


def filled(names: Supplement, frame: Frame, rng: random.Random) -> Pair | None:
    """Put names, places, or texts to copy into a frame; None: two are the same, or one is held out."""
    given: dict[str, Name] = {}
    invented = rng.choices((None, "latin", "pinyin"), (6, 3, 1))[0]
    for slot in frame.slots:
        kind = kind_of(slot)
        if kind in COPIED:
            text = COPIED[kind](rng)
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
