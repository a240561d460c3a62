"""The words of the grammar in `supplement/grammar/`, with their forms and what they may be said of.

`load` reads nouns, verbs, adjectives, adverbs, numbers, pronouns and names; `supplement/grammar/README.md` explains the
columns. A form is a small tree of words, so that "bus stop" or "in the kitchen" stays one entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from visformer.errors import N_, DataError
from visformer.training.supplement import read_rows

COLUMNS = {"kinds": 4, "nouns": 7, "verbs": 8, "adjectives": 5, "adverbs": 4, "numbers": 5, "pronouns": 9}
PARTICLES = frozenset("up down on off out in away back over around along together home to at for of with from about".split())
SEPARABLE = frozenset("up down on off out away back over".split())
# One-character adjectives stand before a noun without 的, except these.
WITH_DE = frozenset("贵忙饿累渴病近远慢快困静晚早甜酸辣咸苦轻重穷富死空满")

# A word of a form: its text, relation, the position of its head (-1: the root), its label. Words of both languages with
# the same label correspond.
Part = tuple[str, str, int, str]
Form = tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the lexicon.

    Attributes:
        part: "noun", "verb", ...
        key: part and English and Chinese lemma; unique.
        tags: kinds with those above them, themes and flags, by which rules ask for words.
        fits: for each column of kinds ("subject", "object", "kinds"), what it names.
        en: form name -> variants of the English form; "" is the base form.
        zh: the same in Chinese.
        agreement: "1s", "2", "3s" or "p" (plural).
    """

    part: str
    key: str
    tags: frozenset[str]
    fits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    en: dict[str, tuple[Form, ...]] = field(default_factory=dict)
    zh: dict[str, tuple[Form, ...]] = field(default_factory=dict)
    agreement: str = "3s"


def named(lemma: str) -> str:
    """Return the tag by which columns and rules name a single word: bus stop -> =bus_stop."""
    return "=" + lemma.replace(" ", "_")


def alternatives(column: str, lemmas: frozenset[str]) -> tuple[str, ...]:
    """Split a column of kinds and single words, which may have spaces: "person =bus stop" -> person, =bus_stop."""
    tags: list[str] = []
    for token in column.split():
        longer = f"{tags[-1]}_{token}" if tags and tags[-1][0] == "=" else ""
        if longer and any(lemma == longer or lemma.startswith(longer + "_") for lemma in lemmas):
            tags[-1] = longer
        else:
            tags.append(token)
    return tuple(tags)


def tree(text: str, relations: str | tuple[str, ...] = "compound", *, root: int = -1) -> Form:
    """Make a form of words separated by spaces; all others depend on the word at `root`."""
    words = text.split()
    root %= len(words)
    if isinstance(relations, str):
        relations = (relations,) * len(words)
    return tuple((w, relations[i], -1 if i == root else root, "content") for i, w in enumerate(words))


def noun_tree(text: str) -> Form:
    """Make the form of an English noun: its head is the last word, or the one before "of" (cup of tea)."""
    words = text.split()
    root = next((i - 1 for i, w in enumerate(words) if i and w in {"of", "for", "in"}), len(words) - 1)
    return tree(text, tuple("compound" if i < root else "nmod" if i > root + 1 else "case" for i in range(len(words))), root=root)


def verb_tree(text: str) -> Form:
    """Make the form of an English verb: its head is the first word (get up, take a photo)."""
    rest = text.split()[1:]
    names = ["compound:prt" if w in PARTICLES else "det" if w in {"a", "the"} else "obj" for w in rest]
    return tree(text, ("", *names), root=0)


def plural_of(lemma: str) -> str:
    """Spell the regular plural of the last word, or of the one before "of"."""
    head, joint, rest = lemma.partition(" of ")
    if head.endswith(("s", "x", "z", "ch", "sh")):
        head += "es"
    elif head[-1] == "y" and head[-2] not in "aeiou":
        head = head[:-1] + "ies"
    else:
        head += "s"
    return head + joint + rest


def conjugate(lemma: str, irregular: str) -> dict[str, str]:
    """Spell the forms of a verb; the first word changes. `irregular`: past, participle and, if need be, ing."""
    verb, space, rest = lemma.partition(" ")
    consonant_y = verb[-1] == "y" and verb[-2] not in "aeiou"
    past = verb + "d" if verb[-1] == "e" else verb[:-1] + "ied" if consonant_y else verb + "ed"
    if verb.endswith("ie"):
        ing = verb[:-2] + "ying"
    else:
        ing = (verb[:-1] if verb[-1] == "e" and verb[-2:] not in {"ee", "oe", "ye", "be"} else verb) + "ing"
    third = "has" if verb == "have" else plural_of(verb) if verb[-1] != "o" else verb + "es"
    given = irregular.split()
    spelled = {"base": verb, "s": third, "past": past, "part": past, "ing": ing}
    spelled |= dict(zip(("past", "part", "ing"), given, strict=False))
    return {name: word + space + rest for name, word in spelled.items()}


def compare(lemma: str, comparison: str) -> dict[str, str]:
    """Spell comparative and superlative of an adjective or adverb."""
    if comparison == "more":
        return {"er": f"more {lemma}", "est": f"most {lemma}"}
    if comparison != "er":
        return dict(zip(("er", "est"), comparison.split(), strict=True))
    stem = lemma[:-1] if lemma[-1] == "e" else lemma[:-1] + "i" if lemma[-1] == "y" else lemma
    return {"er": stem + "er", "est": stem + "est"}


def place_forms(place: str, noun: str, zh: str) -> tuple[dict[str, tuple[Form, ...]], dict[str, tuple[Form, ...]]]:
    """Make the forms of a noun as a place: "in the|里" gives in the kitchen, the kitchen; 在 厨房 里, 厨房 里."""
    before, _, localizer = place.partition("|")
    words = before.split()
    articles = [(w, "det", 1, "") for w in words[1:]]
    inner = noun_tree(noun)
    shift = len(articles)

    def moved(by: int) -> Form:
        return tuple((w, rel, -1 if head < 0 else head + by, label) for w, rel, head, label in inner)

    root = next(i for i, part in enumerate(inner) if part[2] < 0)
    the = tuple((w, rel, root + shift, label) for w, rel, _, label in articles) + moved(shift)
    at = ((words[0], "case", root + shift + 1, "place"),)
    the_place = at + tuple((w, r, -1 if h < 0 else h + 1, label) for w, r, h, label in the)
    bare = tree(zh)
    last = len(bare) - 1
    inside = bare + (((localizer, "case", last, "place"),) if localizer else ())
    label = "" if localizer else "place"
    whole = (("在", "case", last + 1, label), *((w, r, -1 if h < 0 else h + 1, m) for w, r, h, m in inside))
    return {"place": (the_place,), "the": (the,)}, {"place": (whole,), "at": (inside,), "the": (bare,)}


def noun_entry(row: list[str], above: dict[str, tuple[str, ...]], takes: dict[str, frozenset[str]]) -> Entry:
    """Make the entry of a row of `nouns.tsv`."""
    theme, lemma, plural, zh, measure, kinds, place = row
    tags = {"noun", theme, named(lemma), named(zh)}
    for kind in kinds.split():
        tags |= {*above[kind], *takes[kind]}
    tags.add({"-": "mass", "=": "pair"}.get(plural, "count"))
    many = lemma if plural in {"-", "="} else plural or plural_of(lemma)
    en: dict[str, tuple[Form, ...]] = {"": (noun_tree(lemma),), "pl": (noun_tree(many),)}
    chinese: dict[str, tuple[Form, ...]] = {"": (tree(zh),)}
    pairs = [pair.split("=") for pair in measure.split() if "=" in pair]
    if pairs:
        tags.add("contained")
        en["cup"] = tuple(((word, "", -1, "cup"),) for word, _ in pairs)
        en["cups"] = tuple(((plural_of(word), "", -1, "cup"),) for word, _ in pairs)
        chinese["cup"] = tuple(((word, "", -1, "cup"),) for _, word in pairs)
    counters = [word for word in measure.split() if "=" not in word]
    if counters:
        tags.add("counted")
        chinese["m"] = (((counters[0], "", -1, ""),),)
    if place:
        tags |= {"located", place.split()[0].split("|")[0], "|" + place.partition("|")[2]}
        english_place, chinese_place = place_forms(place, lemma, zh)
        en |= english_place
        chinese |= chinese_place
    agreement = "p" if plural == "=" else "3s"
    return Entry("noun", f"noun {lemma} {zh}", frozenset(tags), {}, en, chinese, agreement)


def verb_entry(row: list[str], lemmas: frozenset[str]) -> Entry:
    """Make the entry of a row of `verbs.tsv`."""
    theme, lemma, irregular, zh, pattern, aspect, subject, target = row
    fits = {"subject": alternatives(subject, lemmas) or ("person",), "object": alternatives(target, lemmas)}
    tags = {"verb", theme, named(lemma), named(zh), pattern, aspect}
    if "person" in fits["subject"]:
        tags.add("human")
    if lemma.split()[-1] in SEPARABLE:
        tags.add("particle")
    en = {name: (verb_tree(form),) for name, form in conjugate(lemma, irregular).items()}
    en[""] = en["base"]
    return Entry("verb", f"verb {lemma} {zh}", frozenset(tags), fits, en, {"": (tree(zh, "compound:vv", root=0),)})


def adjective_entry(row: list[str], lemmas: frozenset[str]) -> Entry:
    """Make the entry of a row of `adjectives.tsv`."""
    theme, lemma, comparison, zh, kinds = row
    en = {"": (tree(lemma, "fixed", root=0),)}
    tags = {"adjective", theme, named(lemma), named(zh), "fixed" if comparison == "-" else "graded"}
    if comparison != "-":
        spelled = compare(lemma, comparison)
        en |= {name: (tree(text, "advmod"),) for name, text in spelled.items()}
    plain = tree(zh)
    de = (*plain, ("的", "mark:rel", len(plain) - 1, ""))
    joined = len(zh) == 1 and zh not in WITH_DE
    chinese = {"": (plain,), "de": (plain if joined else de,)}
    return Entry("adjective", f"adjective {lemma} {zh}", frozenset(tags), {"subject": alternatives(kinds, lemmas)}, en, chinese)


def other_entries(folder: Path) -> list[Entry]:
    """Read adverbs, numbers and pronouns, and the names of the folder above."""
    entries = []
    for kinds, lemma, zh, comparison in read_rows(folder / "adverbs.tsv", columns=4):
        en = {"": (tree(lemma, "advmod"),)}
        if comparison:
            en["er"] = (tree(compare(lemma, comparison)["er"], "advmod"),)
        tags = frozenset({"adverb", *kinds.split(), named(lemma)})
        entries.append(Entry("adverb", f"adverb {lemma} {zh}", tags, {}, en, {"": (tree(zh, "advmod"),)}))
    for lemma, ordinal, zh, count, kinds in read_rows(folder / "numbers.tsv", columns=5):
        en = {name: (tree(text, "flat"),) for name, text in (("", lemma), ("th", ordinal)) if text}
        chinese = {"": (tree(zh),), "count": (tree(count or zh),)}
        tags = frozenset({*kinds.split(), named(lemma)})
        entries.append(Entry("number", f"number {lemma} {zh}", tags, {}, en, chinese))
    for i, me, my, mine, myself, zh, agreement, person, kinds in read_rows(folder / "pronouns.tsv", columns=9):
        cases = {"": i, "object": me, "my": my, "mine": mine, "self": myself}
        en = {name: (tree(text),) for name, text in cases.items() if text}
        tags = frozenset({"pronoun", f"person {person}", named(i), *kinds.split()})
        entries.append(Entry("pronoun", f"pronoun {i} {zh}", tags, {}, en, {"": (tree(zh),)}, agreement))
    for name in ("people", "places"):
        for lemma, zh, kind in read_rows(folder.parent / f"{name}.tsv", columns=3):
            words = {"": (tree(lemma, "flat", root=0),)}
            also = {"person"} if name == "people" else set()
            entries.append(Entry("name", f"name {lemma} {zh}", frozenset({"name", kind, named(lemma), *also}), {}, words, {"": (tree(zh),)}))
    return entries


def load_kinds(path: Path) -> tuple[dict[str, tuple[str, ...]], dict[str, frozenset[str]]]:
    """Read `kinds.tsv`: for each kind, itself and the kinds above it, and the determiners that its nouns take."""
    above: dict[str, tuple[str, ...]] = {}
    takes: dict[str, frozenset[str]] = {}
    for kind, parent, determiners, _ in read_rows(path, columns=4):
        if parent and parent not in above:
            raise DataError(N_("{path}: the parent {parent} of {kind} has to stand above it."), path=path, parent=parent, kind=kind)
        above[kind] = (kind, *above.get(parent, ()))
        takes[kind] = frozenset(determiners.split()) or takes.get(parent, frozenset())
    return above, takes


def load(folder: Path) -> tuple[Entry, ...]:
    """Read all words.

    Args:
        folder: `supplement/grammar`; people and places are in the folder above it.

    Raises:
        DataError: a file is missing, a row has another number of columns, or a word a kind that is not in `kinds.tsv`.
    """
    above, takes = load_kinds(folder / "kinds.tsv")
    entries = []
    for row in read_rows(folder / "nouns.tsv", columns=7):
        unknown = [kind for kind in row[5].split() if kind not in above]
        if unknown or not row[5]:
            raise DataError(N_("nouns.tsv, {word}: no kind {kind} in kinds.tsv."), word=row[1], kind=" ".join(unknown) or "(empty)")
        entries.append(noun_entry(row, above, takes))
    lemmas = frozenset(tag for entry in entries for tag in entry.tags if tag[0] == "=")
    entries += [verb_entry(row, lemmas) for row in read_rows(folder / "verbs.tsv", columns=8)]
    entries += [adjective_entry(row, lemmas) for row in read_rows(folder / "adjectives.tsv", columns=5)]
    return (*entries, *other_entries(folder))
