"""Compose name-rich English-Chinese training pairs from the lists in the folder `supplement/`.

    python -m visformer.training.supplement --n 1000 --seed 0 > pairs.tsv

`load` reads the lists; `sample` draws pairs from them, the same ones for the same seed.
"""

from __future__ import annotations

import argparse
import random
import re
from dataclasses import dataclass
from pathlib import Path

from visformer.errors import N_, DataError

FOLDER = Path(__file__).resolve().parents[2] / "supplement"
SHARES = {"real": 0.41, "composed": 0.16, "latin": 0.23, "pinyin": 0.20}
REGION_KINDS = frozenset({"city", "country", "province"})
FORBIDDEN = ("iwenttonortheasternuniversity", "我去东北大学")
STARTS = "b br c cl d dr f g gr h j k kr l m n p pr r s sh st t th tr v w y z".split()
ONSETS = "b c d f g k l l l m m n n p r r r s t t v v z".split()
VOWELS = "a a a a e e e e i i i o o o u u ai ea ie io ou".split()
CODAS = [""] * 20 + "l m n n n r r s".split()
ENDINGS = [""] * 4 + "n r s l x ck nd rd rk rg sk th nsen wick vich".split()
COMPASS = frozenset("东南西北中前后左右上下内外")
SUFFIXES = (("市", "City"), ("县", "County"), ("镇", "Town"), ("村", "Village"))
PLURAL = re.compile(r"(Alps|Himalayas|Mountains|Caves)$")
PLACE_IS = re.compile(r"\{place\} is\b|\bis \{place\}")

Name = tuple[str, str]
Pair = tuple[str, str, str]


@dataclass(frozen=True)
class Frame:
    """One sentence with a placeholder for each of its slots."""

    en: str
    zh: str
    slots: tuple[str, ...]
    weight: int


@dataclass(frozen=True)
class Supplement:
    """Everything that the generator draws from, and what it must refuse."""

    places: tuple[Name, ...]
    regions: tuple[Name, ...]
    universities: tuple[Name, ...]
    university_weights: tuple[int, ...]
    given: tuple[Name, ...]
    surnames: tuple[Name, ...]
    chinese: tuple[Name, ...]
    composed: tuple[Name, ...]
    frames: tuple[Frame, ...]
    syllables: dict[str, str]
    family_chars: tuple[str, ...]
    given_chars: tuple[str, ...]
    known: frozenset[str]
    held_en: re.Pattern[str]
    held_zh: re.Pattern[str]


def plain(text: str) -> str:
    """Return the text without spaces and punctuation, in lower case."""
    return re.sub(r"[\W_]+", "", text).lower()


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a UTF-8 file, without blank ones at its end.

    Raises:
        DataError: the file cannot be read, or is not UTF-8.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig").rstrip("\n")
    except OSError as error:  # str() of it would name the file again
        raise DataError(N_("{path} cannot be read: {reason}"), path=path, reason=error.strerror) from error
    except UnicodeDecodeError as error:
        raise DataError(
            N_("{path} is not UTF-8, from byte {place}: save it in that encoding."), path=path, place=error.start + 1
        ) from error
    return text.split("\n") if text else []  # str.splitlines would cut at U+2028, which texts of the web have


def read_rows(path: Path, *, columns: int) -> list[list[str]]:
    """Read the rows of a tab-separated file with a header line.

    Raises:
        DataError: the file cannot be read, or a row has the wrong number of columns; the message names the line.
    """
    rows = [line.split("\t") for line in read_lines(path)[1:]]
    for number, row in enumerate(rows, start=2):
        if len(row) != columns:
            raise DataError(
                N_("{path}, line {number}: {given} columns instead of {wanted}."),
                path=path,
                number=number,
                given=len(row),
                wanted=columns,
            )
    return rows


def read_frames(path: Path) -> tuple[Frame, ...]:
    """Read the frames in a file; errors as for :func:`read_rows`."""
    rows = read_rows(path, columns=4)
    return tuple(Frame(en, zh, tuple(slots.split("+")), int(weight)) for en, zh, slots, weight in rows)


def spell(characters: str, syllables: dict[str, str]) -> str:
    """Join the pinyin of the characters into one capitalised word: 晓安 -> Xiao'an."""
    word = ""
    for character in characters:
        syllable = syllables[character]
        word += "'" + syllable if word and syllable[0] in "aeo" else syllable
    return word.capitalize()


def spell_person(name: str, syllables: dict[str, str]) -> str:
    """Spell a one-character surname and a given name: 王晓岚 -> Wang Xiaolan."""
    return f"{spell(name[0], syllables)} {spell(name[1:], syllables)}"


def held_patterns(
    rows: list[list[str]], places: dict[str, str], syllables: dict[str, str]
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile a pattern of the held-out names for the English side, and one for the Chinese side."""
    en: set[str] = set()
    zh: set[str] = set()
    for _, _, _, name, kind in rows:
        if kind == "copy":
            en.add(name)
            zh.add(name)
        elif kind == "pinyin":
            en |= {spell(name, syllables), spell_person(name, syllables)}
            zh.add(name)
        else:
            place = name.removesuffix(" University")
            en |= {name, f"University of {place}"}
            zh.add(places[place] + "大学")
    english = "|".join(re.escape(name) for name in sorted(en))
    chinese = "|".join(re.escape(name) for name in sorted(zh))
    return re.compile(rf"\b(?:{english})\b", re.IGNORECASE), re.compile(chinese, re.IGNORECASE)


def compose(places: list[list[str]], universities: tuple[Name, ...], held: re.Pattern[str]) -> tuple[Name, ...]:
    """Return every "<city or province> University" that is neither listed nor held out."""
    taken = {text for pair in universities for text in pair}
    bases = [(en, zh) for en, zh, kind in places if kind in {"city", "province"} and not zh.endswith("市")]
    pairs = [(f"{en} University", f"{zh}大学") for en, zh in bases]
    return tuple(p for p in pairs if not taken & set(p) and not held.search(p[0]))


def load(folder: Path) -> Supplement:
    """Read the lists in `folder`.

    Raises:
        DataError: see :func:`read_rows`.
    """
    places = read_rows(folder / "places.tsv", columns=3)
    rows = read_rows(folder / "universities.tsv", columns=3)
    universities = tuple((en, zh) for en, zh, _ in rows)
    people = read_rows(folder / "people.tsv", columns=3)
    table = read_rows(folder / "syllables.tsv", columns=3)
    syllables = {character: pinyin for character, pinyin, _ in table}
    held_rows = read_rows(folder / "held_out.tsv", columns=5)
    held_en, held_zh = held_patterns(held_rows, {en: zh for en, zh, _ in places}, syllables)
    known = {text for row in (*places, *people, *universities) for text in row[:2]}
    return Supplement(
        places=tuple((en, zh) for en, zh, _ in places),
        regions=tuple((en, zh) for en, zh, kind in places if kind in REGION_KINDS),
        universities=universities,
        university_weights=tuple(int(weight) for _, _, weight in rows),
        given=tuple((en, zh) for en, zh, kind in people if kind == "given"),
        surnames=tuple((en, zh) for en, zh, kind in people if kind == "surname"),
        chinese=tuple((en, zh) for en, zh, kind in people if kind == "chinese"),
        composed=compose(places, universities, held_en),
        frames=read_frames(folder / "frames.tsv"),
        syllables=syllables,
        family_chars=tuple(c for c, _, role in table if role in {"surname", "both"}),
        given_chars=tuple(c for c, _, role in table if role in {"given", "both"}),
        known=frozenset(known),
        held_en=held_en,
        held_zh=held_zh,
    )


def refused(supplement: Supplement, en: str, zh: str) -> bool:
    """Whether either side contains a forbidden sentence or a held-out name."""
    return any(
        any(sentence in plain(text) for sentence in FORBIDDEN)
        or supplement.held_en.search(text)
        or supplement.held_zh.search(text)
        for text in (en, zh)
    )


def real_name(supplement: Supplement, slot: str, rng: random.Random) -> Name:
    """Draw a listed name that fits the slot."""
    if slot == "university":
        return rng.choices(supplement.universities, supplement.university_weights)[0]
    lists = {"place": supplement.places, "region": supplement.regions, "surname": supplement.surnames}
    if slot in lists:
        return rng.choice(lists[slot])
    if rng.random() < 0.4:
        return rng.choice(supplement.chinese)
    en, zh = rng.choice(supplement.given)
    if rng.random() < 0.25:
        last_en, last_zh = rng.choice(supplement.surnames)
        return f"{en} {last_en}", f"{zh}·{last_zh}"
    return en, zh


def latin_word(rng: random.Random) -> str:
    """Invent a pronounceable word of two to four syllables."""
    word = rng.choice(STARTS) + rng.choice(VOWELS)
    for _ in range(rng.choices((1, 2, 3), (5, 4, 1))[0]):
        word += rng.choice(CODAS) + rng.choice(ONSETS) + rng.choice(VOWELS)
    return (word + rng.choice(ENDINGS)).capitalize()


def latin_name(supplement: Supplement, slot: str, rng: random.Random) -> Name:
    """Invent a Latin name, the same on both sides."""
    word = latin_word(rng)
    while word in supplement.known:
        word = latin_word(rng)
    if slot == "university":
        return f"{word} University", f"{word}大学"
    if slot == "person" and rng.random() < 0.25:
        word = f"{word} {latin_word(rng)}"
    return word, word


def pinyin_name(supplement: Supplement, slot: str, rng: random.Random) -> Name:
    """Invent a Chinese name, with its spelling."""
    if slot == "surname":
        family = rng.choice(supplement.family_chars)
        return spell(family, supplement.syllables), family
    length = rng.choices((1, 2), (3, 7))[0] if slot == "person" else 2
    while True:
        zh = "".join(rng.choice(supplement.given_chars) for _ in range(length))
        if slot == "person":
            zh = rng.choice(supplement.family_chars) + zh
        if not {zh, zh + "大学"} & supplement.known and not set(zh[-2:]) <= COMPASS:
            break
    if slot == "person":
        return spell_person(zh, supplement.syllables), zh
    en = spell(zh, supplement.syllables)
    if slot == "university":
        return f"{en} University", f"{zh}大学"
    if rng.random() < 0.2:
        suffix_zh, suffix_en = rng.choice(SUFFIXES)
        return f"{en} {suffix_en}", zh + suffix_zh
    return en, zh


def kind_of(slot: str) -> str:
    """Return the kind of name that fits a slot: "person" for "person2"."""
    return slot.rstrip("0123456789")


def fill(frame: Frame, names: dict[str, Name]) -> tuple[str, str]:
    """Put the names into the frame; the English starts with a capital."""
    en, zh = frame.en, frame.zh
    for slot, (name_en, name_zh) in names.items():
        en = en.replace(f"{{{slot}}}", name_en)
        zh = zh.replace(f"{{{slot}}}", name_zh)
    return en[0].upper() + en[1:], zh


NAMED = {"latin": latin_name, "pinyin": pinyin_name}


def draw(supplement: Supplement, category: str, frame: Frame, rng: random.Random) -> Pair | None:
    """Draw one pair of the category in the frame, or return None if it is refused.

    The category applies to one kind of slot; the other slots get listed names. Several slots of one kind, as in
    "{person1} and {person2}", teach more names per word.
    """
    focus = "university" if category == "composed" else kind_of(rng.choice(frame.slots))
    names: dict[str, Name] = {}
    for slot in frame.slots:
        kind = kind_of(slot)
        if kind != focus or category == "real":
            names[slot] = real_name(supplement, kind, rng)
        elif category == "composed":
            names[slot] = rng.choice(supplement.composed)
        else:
            names[slot] = NAMED[category](supplement, kind, rng)
    if len({en for en, _ in names.values()}) < len(names):
        return None
    if "place" in names and PLURAL.search(names["place"][0]) and PLACE_IS.search(frame.en):
        return None
    en, zh = fill(frame, names)
    if refused(supplement, en, zh):
        return None
    return en, zh, "zh-en" if category == "pinyin" else "both"


def sample(supplement: Supplement, n: int, *, seed: int) -> list[Pair]:
    """Draw `n` pairs (English, Chinese, direction), the same ones for the same seed."""
    rng = random.Random(seed)
    with_university = [frame for frame in supplement.frames if "university" in map(kind_of, frame.slots)]
    choices = {category: supplement.frames for category in SHARES} | {"composed": tuple(with_university)}
    weights = {category: [frame.weight for frame in frames] for category, frames in choices.items()}
    pairs: list[Pair] = []
    while len(pairs) < n:
        category = rng.choices(list(SHARES), list(SHARES.values()))[0]
        pair = None
        while pair is None:
            frame = rng.choices(choices[category], weights[category])[0]
            pair = draw(supplement, category, frame, rng)
        pairs.append(pair)
    return pairs


def vocabulary(supplement: Supplement) -> tuple[list[str], list[str]]:
    """Return what a tokenizer learns from the supplement: texts, and syllables that continue a word.

    The texts are the frames and the listed names; invented names would crowd out words. Places and universities weigh
    enough to be whole tokens: one token is learned from fewer sentences than its letters. Thanks to the syllables of
    pinyin, "Xiaolan" is split as it is pronounced.
    """
    listed = (supplement.places,) * 8 + (supplement.universities,) * 16 + (supplement.given, supplement.chinese)
    texts = [text for names in listed for name in names for text in name]
    texts += [re.sub(r"\{\w+\}", " ", text) for frame in supplement.frames for text in (frame.en, frame.zh)]
    syllables = list(supplement.syllables.values())
    return texts * 2 + [syllable.capitalize() for syllable in syllables] * 2, syllables * 2


def main() -> None:
    """Print sampled pairs as tab-separated lines."""
    parser = argparse.ArgumentParser(description="Sample name-rich English-Chinese training pairs.")
    parser.add_argument("--n", type=int, default=1000, help="how many pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    for pair in sample(load(arguments.folder), arguments.n, seed=arguments.seed):
        print("\t".join(pair))


if __name__ == "__main__":
    main()
