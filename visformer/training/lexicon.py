"""The words of the grammar in `supplement/grammar/`; the README there explains the columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from visformer.errors import N_, DataError
from visformer.training.supplement import read_rows

SEPARABLE = frozenset("up down on off out away back over".split())
PARTICLES = SEPARABLE | frozenset("in around along together home at to for of with from about".split())
# One-character adjectives stand before a noun without 的, except these; so do a few longer ones.
WITH_DE = frozenset("贵忙饿累渴病近远慢快困静晚早甜酸辣咸苦轻重穷富死空满棒帅")
WITHOUT_DE = frozenset("玻璃 木制 塑料 金属 羊毛 纯棉 电动 备用 一次性 二手 圆形 方形 野生 流浪 免费 无糖".split())

MEASURE_FORMS = frozenset({"m", "cup", "cups"})

# A form is a small tree: text, relation ("" is the head) and label of each word. Words of both languages with the same
# label correspond.
Form = tuple[tuple[str, str, str], ...]
Forms = dict[str, tuple[Form, ...]]


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the lexicon.

    Attributes:
        part: "noun", "verb", ...
        key: part and English and Chinese lemma; unique.
        tags: its kinds and those above them, flags, "=lemma"; rules ask for words by their tags.
        en, zh: form name -> variants of the form; "" is the base form.
        subject, object: tags of the nouns that it may be said of, and that it may take as object.
        agreement: "1s", "2", "3s" or "p" (plural).
        weight: how often it is drawn, relative to others that fit as well.
    """

    part: str
    key: str
    tags: frozenset[str]
    en: Forms
    zh: Forms
    subject: tuple[str, ...] = ()
    object: tuple[str, ...] = ()
    agreement: str = "3s"
    weight: float = 1


def named(*words: str) -> str:
    """Return the tag by which columns and rules name a single word: bus stop -> =bus_stop."""
    return "=" + "_".join(words).replace(" ", "_")


def alternatives(column: str, known: frozenset[str]) -> tuple[str, ...]:
    """Split a column of kinds and single words, which may have spaces: "person =bus stop" -> person, =bus_stop.

    `known`: the tags of all nouns, and every beginning of them.
    """
    tags: list[str] = []
    for token in column.split():
        if tags and tags[-1][0] == "=" and f"{tags[-1]}_{token}" in known:
            tags[-1] += f"_{token}"
        else:
            tags.append(token)
    return tuple(tags)


def form(text: str, *, root: int = -1, relation: str = "compound") -> Form:
    """Make a form from words separated by spaces; all others depend on the one at `root`."""
    words = text.split()
    return tuple((word, "" if i == root % len(words) else relation, "content") for i, word in enumerate(words))


def noun_form(text: str) -> Form:
    """Make the form of an English noun: its head is the last word, or the one before a preposition (cup of tea)."""
    before = next((part for part in (" of ", " for ", " in ") if part in text), "")
    head, _, rest = text.partition(before) if before else (text, "", "")
    after = tuple((word, "nmod", "content") for word in rest.split())
    return form(head) + (((before.strip(), "case", "content"), *after) if before else ())


def verb_form(text: str) -> Form:
    """Make the form of an English verb: its head is the first word (get up, take a photo)."""
    first, *rest = text.split()
    names = ["compound:prt" if w in PARTICLES else "det" if w in {"a", "an", "the"} else "obj" for w in rest]
    return ((first, "", "content"), *((w, name, "content") for w, name in zip(rest, names, strict=True)))


def plural_of(lemma: str) -> str:
    """Spell the regular plural: of the last word, or of the one before "of"."""
    head, of, rest = lemma.partition(" of ")
    if head[-1] == "y" and head[-2] not in "aeiou":
        head = head[:-1] + "ie"
    elif head.endswith(("s", "x", "z", "ch", "sh")):
        head += "e"
    return head + "s" + of + rest


def conjugate(lemma: str, irregular: str = "") -> dict[str, str]:
    """Spell the forms of a verb; the first word changes. `irregular`: past, participle and, if need be, ing."""
    verb, space, rest = lemma.partition(" ")
    past = verb + "d" if verb[-1] == "e" else plural_of(verb)[:-1] + "d" if verb[-1] == "y" else verb + "ed"
    past = past if verb[-1] != "y" or verb[-2] not in "aeiou" else verb + "ed"
    stem = verb[:-1] if verb[-1] == "e" and verb[-2:] not in {"ee", "oe", "ye", "be"} else verb
    ing = verb[:-2] + "ying" if verb.endswith("ie") else stem + "ing"
    third = "has" if verb == "have" else verb + "es" if verb[-1] == "o" else plural_of(verb)
    spelled = {"base": verb, "s": third, "past": past, "part": past, "ing": ing}
    spelled |= dict(zip(("past", "part", "ing"), irregular.split(), strict=False))
    return {name: word + space + rest for name, word in spelled.items()}


def compare(lemma: str, comparison: str) -> dict[str, str]:
    """Spell the comparative and superlative of an adjective or adverb."""
    if comparison == "more":
        return {"er": f"more {lemma}", "est": f"most {lemma}"}
    stem = lemma[:-1] if lemma[-1] == "e" else lemma[:-1] + "i" if lemma[-1] == "y" else lemma
    spelled = (stem + "er", stem + "est") if comparison == "er" else comparison.split()
    return dict(zip(("er", "est"), spelled, strict=True))


def noun_entry(row: list[str], above: dict[str, tuple[str, ...]], *, takes: dict[str, frozenset[str]]) -> Entry:
    """Make an entry from a row of `nouns.tsv`."""
    _, lemma, plural, zh, measure, kinds, place, weight = row
    tags = {"noun", named(lemma), named(zh), {"-": "mass", "=": "pair"}.get(plural, "count")}
    for kind in kinds.split():
        tags |= {*above[kind], *takes[kind]}
    many = lemma if plural in {"-", "="} else plural or plural_of(lemma)
    en: Forms = {"": (noun_form(lemma),), "pl": (noun_form(many),)}
    chinese: Forms = {"": (form(zh),)}
    containers = [pair.split("=") for pair in measure.split() if "=" in pair]
    counters = [word for word in measure.split() if "=" not in word]
    if containers:
        tags.add("contained")
        en["cup"] = tuple(((word, "", "cup"),) for word, _ in containers)
        en["cups"] = tuple(((plural_of(word), "", "cup"),) for word, _ in containers)
        chinese["cup"] = tuple(((word, "", "cup"),) for _, word in containers)
    if counters:
        tags.add("counted")
        chinese["m"] = (((counters[0], "", ""),),)
    if place:
        before, _, localizer = place.partition("|")
        preposition, *articles = before.split()
        tags |= {"located", preposition}
        the = (*((word, "det", "") for word in articles), *noun_form(lemma))
        inside = form(zh) + (((localizer, "case", "place"),) if localizer else ())
        en |= {"the": (the,), "place": (((preposition, "case", "place"), *the),)}
        at = ("在", "case", "" if localizer else "place")
        chinese |= {"the": (form(zh),), "at": (inside,), "place": ((at, *inside),)}
    agreement = "p" if plural == "=" else "3s"
    return Entry(
        "noun", f"noun {lemma} {zh}", frozenset(tags), en, chinese, agreement=agreement, weight=float(weight or 1)
    )


def verb_entry(row: list[str], known: frozenset[str]) -> Entry:
    """Make an entry from a row of `verbs.tsv`."""
    _, lemma, irregular, zh, pattern, aspect, subject, target, weight = row
    subjects = alternatives(subject, known) or ("person",)
    tags = {"verb", named(lemma), named(zh), named(lemma, zh), pattern, *aspect.split()}
    tags |= {"human"} if "person" in subjects else set()
    tags |= {"particle"} if lemma.split()[-1] in SEPARABLE else set()
    en: Forms = {name: (verb_form(text),) for name, text in conjugate(lemma, irregular).items()}
    chinese: Forms = {"": (form(zh, root=0, relation="compound:vv"),)}
    targets = alternatives(target, known)
    key, forms = f"verb {lemma} {zh}", en | {"": en["base"]}
    return Entry("verb", key, frozenset(tags), forms, chinese, subjects, targets, weight=float(weight or 1))


def adjective_entry(row: list[str], known: frozenset[str]) -> Entry:
    """Make an entry from a row of `adjectives.tsv`."""
    _, lemma, comparison, zh, kinds, weight = row
    subjects = alternatives(kinds, known)
    tags = {"adjective", named(lemma), named(zh), "fixed" if comparison == "-" else "graded"}
    tags |= {"human"} if {"person", "=man", "=boy"} & set(subjects) else set()
    tags |= {"negative"} if zh[0] in "不没无有" else set()
    en: Forms = {"": (form(lemma, root=0, relation="fixed"),)}
    if comparison != "-":
        en |= {name: (form(text, relation="advmod"),) for name, text in compare(lemma, comparison).items()}
    de = () if zh in WITHOUT_DE or (len(zh) == 1 and zh not in WITH_DE) else (("的", "mark:rel", ""),)
    chinese: Forms = {"": (form(zh),), "de": (form(zh) + de,)}
    key = f"adjective {lemma} {zh}"
    return Entry("adjective", key, frozenset(tags), en, chinese, subjects, weight=float(weight or 1))


def other_entries(folder: Path) -> list[Entry]:
    """Read the adverbs, numbers and pronouns, and the names in the folder above."""
    entries = []

    def add(part: str, zh: str, kinds: set[str], *, en: dict[str, str], count: str = "", **more: Any) -> None:
        tags = frozenset({part, named(en[""]), *kinds})
        english: Forms = {name: (form(text, relation="flat"),) for name, text in en.items() if text}
        chinese: Forms = {"": (form(zh, relation="advmod"),), "count": (form(count or zh),)}
        key = f"{part} {en['']} {zh}"
        entries.append(Entry(part, key, tags, english, chinese, **more))

    for kinds, lemma, zh in read_rows(folder / "adverbs.tsv", columns=3):
        add("adverb", zh, set(kinds.split()), en={"": lemma})
    for lemma, ordinal, zh, count, kinds in read_rows(folder / "numbers.tsv", columns=5):
        add("number", zh, set(kinds.split()), en={"": lemma, "th": ordinal}, count=count)
    for i, me, my, mine, zh, agreement, person, kinds, weight in read_rows(folder / "pronouns.tsv", columns=9):
        cases = {"": i, "object": me, "my": my, "mine": mine}
        add(
            "pronoun",
            zh,
            {f"person {person}", *kinds.split()},
            en=cases,
            agreement=agreement,
            weight=float(weight or 1),
        )
    for name, kind_of_all in (("people", "person"), ("places", "place")):
        for lemma, zh, kind in read_rows(folder.parent / f"{name}.tsv", columns=3):
            add("name", zh, {kind, kind_of_all}, en={"": lemma})
    return entries


def load(folder: Path) -> tuple[Entry, ...]:
    """Read all words.

    Args:
        folder: `supplement/grammar`; people and places are in the folder above it.

    Raises:
        DataError: a file is missing, a row has the wrong number of columns, or a noun a kind not in `kinds.tsv`.
    """
    above: dict[str, tuple[str, ...]] = {"": ()}
    takes: dict[str, frozenset[str]] = {"": frozenset()}
    for kind, parent, determiners, _ in read_rows(folder / "kinds.tsv", columns=4):
        above[kind] = (kind, *above[parent])
        takes[kind] = frozenset(determiners.split()) or takes[parent]
    nouns = read_rows(folder / "nouns.tsv", columns=8)
    for row in nouns:
        if not row[5] or set(row[5].split()) - set(above):
            raise DataError(N_("nouns.tsv, {word}: {kinds} is not in kinds.tsv."), word=row[1], kinds=repr(row[5]))
    entries = [noun_entry(row, above, takes=takes) for row in nouns]
    words = [tag.split("_") for entry in entries for tag in entry.tags if tag[0] == "="]
    known = frozenset("_".join(word[:end]) for word in words for end in range(1, len(word) + 1))
    entries += [verb_entry(row, known) for row in read_rows(folder / "verbs.tsv", columns=9)]
    entries += [adjective_entry(row, known) for row in read_rows(folder / "adjectives.tsv", columns=6)]
    return (*entries, *other_entries(folder))
