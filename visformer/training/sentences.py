"""Write a drawn sentence in English and Chinese, with its word alignment and its dependency trees."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from visformer.errors import N_, DataError
from visformer.training import lexicon
from visformer.training.lexicon import MEASURE_FORMS, Entry
from visformer.training.rules import MARKS, Item, Rule

CONTRACT = 0.4  # probability that a sentence is contracted
AGREE = {
    "be": {"1s": "am", "2": "are", "3s": "is", "p": "are"},
    "was": {"1s": "was", "2": "were", "3s": "was", "p": "were"},
}
FUNCTION_RELATIONS = frozenset({"case", "det"})
SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "would": "'d", "have": "'ve", "has": "'s"}
BEFORE_SHORT = frozenset("i you he she it we they".split())
BEFORE_SHORT_IS = BEFORE_SHORT | frozenset("that there what who where how".split())
BEFORE_NT = {word: word for word in "do does did is are was were have has had would could should must".split()}
BEFORE_NT |= {"can": "ca", "will": "wo"}
AN = re.compile(r"(?!uni|use|usu|eu|one|once)[aeiou]|hour|honest", re.IGNORECASE)


@dataclass(eq=False, slots=True)
class Drawn:
    """A word of the lexicon; `choice`, from 0 to 1, selects among its variants, the same in both languages."""

    entry: Entry
    choice: float

    @property
    def agreement(self) -> str:
        """Person and number, as in `Entry`."""
        return self.entry.agreement


@dataclass(eq=False, slots=True)
class Node:
    """A rule with what fills its slots."""

    rule: Rule
    values: dict[str, Node | Drawn | None]

    def _head(self) -> tuple[Item, Node | Drawn | None]:
        item = next(item for item in self.rule.sides[0] if item.head)
        return item, self.values.get(item.text)

    @property
    def entry(self) -> Entry | None:
        """The entry at the head of the English side; None if the head is a word written in the rule, or is empty."""
        value = self._head()[1]
        return value.entry if value else None

    @property
    def agreement(self) -> str:
        """Person and number of the English side, as in `Entry`."""
        item, value = self._head()
        return "p" if item.head == "**" or item.form in {"pl", "cups"} else agreement(value)


@dataclass(eq=False, slots=True)
class Word:
    """A word in a tree; without a head, it is the root."""

    text: str
    relation: str = "root"
    head: Word | None = None


class Given(NamedTuple):
    """What the rule above asks of a phrase: the form of its English verb, a pronoun as subject, a Chinese particle."""

    form: str = ""
    subject: bool = False
    particle: str = ""


@dataclass(frozen=True)
class Sentence:
    """A pair of sentences.

    Attributes:
        en, zh: the texts.
        en_words, zh_words: their words in order, with punctuation; clitics ("n't", "'s") are words.
        links: pairs (index of an English word, index of a Chinese word) that correspond.
        en_heads, zh_heads: index of the head of each word, -1 for the root.
        en_relations, zh_relations: relation of each word to its head.
        rules: the names of the rules used.
        rows: the words of the lexicon used: part, English and Chinese.
    """

    en: str
    zh: str
    en_words: tuple[str, ...]
    zh_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    en_heads: tuple[int, ...]
    zh_heads: tuple[int, ...]
    en_relations: tuple[str, ...]
    zh_relations: tuple[str, ...]
    rules: tuple[str, ...]
    rows: tuple[str, ...]


class Writer:
    """Writes a drawn sentence in one language after the other, and keeps what corresponds and what was used."""

    def __init__(self) -> None:
        self.groups: dict[tuple[int, str, str], tuple[list[Word], list[Word]]] = {}
        self.rules: list[str] = []
        self.used: dict[tuple[int, str], tuple[Entry, str]] = {}

    def write(self, node: Node, side: int, *, given: Given) -> list[Word]:
        """Return the words of one side of a phrase; exactly one of them has no head yet."""
        if not side:
            self.rules.append(node.rule.name)
        words: list[Word] = []
        placed: list[tuple[Item, Word]] = []
        for item in node.rule.sides[side]:
            part = self._item(node, item, side=side, given=given)
            if part:
                words += part
                placed.append((item, next(word for word in part if word.head is None)))
        top = next(root for item, root in placed if item.head)
        for i, (item, root) in enumerate(placed):
            if root is not top:
                root.head = top
                if item.target:
                    same = [j for j, (other, _) in enumerate(placed) if item.target == target_name(other)]
                    root.head = placed[min(same, key=lambda j: abs(i - j))][1]
                root.relation = "aux" if item.text == "+" else item.relation
        return words

    def _item(self, node: Node, item: Item, *, side: int, given: Given) -> list[Word]:
        """Return the words of an item; none if it is, or depends on, a slot that stays empty."""
        values = node.values
        if item.text in values:
            value = values[item.text]
            form = "s" if values.get(item.agree, node) and item.agree and agreement(values[item.agree]) == "3s" else ""
            form = form or ("base" if item.agree else given.form if item.form == "this" else item.form)
            subject = given.subject if item.head or item.relation == "conj" else item.relation.startswith("nsubj")
            below = Given(form, subject, given.particle if item.particle == "this" else item.particle)
            if isinstance(value, Node):
                return self.write(value, side, given=below)
            return self._entry(node, item, drawn=value, side=side, given=below) if value else []
        if item.text == "+":
            return [Word(given.particle)] if given.particle else []
        if values.get(item.target, node) is None or values.get(item.link, node) is None:
            return []
        word = Word(agreeing(item.text, agreement(values[item.agree])) if item.agree else item.text)
        if item.link:
            self._group(node, item.link, "content" if item.link in values else "")[side].append(word)
        return [word]

    def _entry(self, node: Node, item: Item, *, drawn: Drawn, side: int, given: Given) -> list[Word]:
        entry, name = drawn.entry, given.form
        if not side:
            if not name and not given.subject and "object" in entry.en:
                name = "object"
            self.used.setdefault((id(node), item.text), (entry, name or "subject"))
        variants = (entry.zh if side else entry.en).get(name)
        if variants is None:
            problem = N_("Rule {rule}: {word} has no form “{form}”.")
            raise DataError(problem, rule=node.rule.name, word=entry.key, form=name)
        parts = variants[int(drawn.choice * len(variants))]
        words = [Word(text, relation) for text, relation, _ in parts]
        root = next(word for word in words if not word.relation)
        following: Word | None = None
        for word, (_, relation, label) in zip(reversed(words), reversed(parts), strict=True):
            if word is not root:
                word.head = following if following and relation in FUNCTION_RELATIONS else root
            if relation not in FUNCTION_RELATIONS:
                following = word
            if label:
                self._group(node, item.text, label)[side].append(word)
        return words

    def _group(self, node: Node, slot: str, label: str) -> tuple[list[Word], list[Word]]:
        return self.groups.setdefault((id(node), slot, label), ([], []))


def target_name(item: Item) -> str:
    """Return the name by which others depend on the item; in "a cup of tea", N is the tea and N.cup the cup."""
    return f"{item.text}.{item.form}" if item.form in MEASURE_FORMS else item.text


def agreement(value: Node | Drawn | None) -> str:
    """Return person and number of what fills a slot, as in `Entry`; third person singular if it is empty."""
    return value.agreement if value else "3s"


@cache
def agreeing(verb: str, agreement: str) -> str:
    """Return the present form of a verb that agrees: be, 3s -> is; want, 3s -> wants; also past: was, p -> were."""
    if verb in AGREE:
        return AGREE[verb][agreement]
    return lexicon.conjugate(verb)["s"] if agreement == "3s" else verb


def contract(words: list[Word]) -> None:
    """Shorten English words in place: do not -> don't, I am -> I'm."""
    for word, following in pairwise(words):
        if following.text == "not" and word.text in BEFORE_NT:
            word.text, following.text = BEFORE_NT[word.text], "n't"
    for before, word, following in zip(words, words[1:], words[2:], strict=False):
        fits = before.relation != "conj" and before.text.lower() in (
            BEFORE_SHORT_IS if word.text == "is" else BEFORE_SHORT
        )
        auxiliary = word.text not in {"have", "has"} or word.relation == "aux"
        if fits and word.text in SHORT and auxiliary and following.text not in MARKS | {"n't"}:
            word.text = SHORT[word.text]


def spell(words: list[Word], short: bool) -> str:
    """Choose a or an, contract if `short`, capitalise, all in place, and return the English sentence."""
    for word, following in pairwise(words):
        if word.text == "a" and word.relation == "det" and AN.match(following.text):
            word.text = "an"
    if short:
        contract(words)
    words[0].text = words[0].text[0].upper() + words[0].text[1:]
    text = words[0].text
    for before, word in pairwise(words):
        joined = (
            word.text in MARKS
            or word.text[0] == "'"
            or word.text == "n't"
            or (before.text, word.text) == ("can", "not")
        )
        text += word.text if joined else f" {word.text}"
    return text


def sensible(used: list[tuple[Entry, str]]) -> bool:
    """Whether no word is used twice, nor a person as subject and object ("I see me") or owner ("my cat is mine")."""
    content = [entry for entry, _ in used if entry.part != "pronoun"]
    people = {
        case: {tag for entry, form in used if form == case for tag in entry.tags if tag.startswith("person ")}
        for case in ("subject", "object", "my", "mine")
    }
    twice = people["subject"] & people["object"] | people["my"] & people["mine"]
    return len(set(content)) == len(content) and not twice


def compose(node: Node, rng: random.Random) -> Sentence | None:
    """Write a drawn sentence; None if it is not sensible."""
    writer = Writer()
    en = writer.write(node, 0, given=Given())
    used = list(writer.used.values())
    if not sensible(used):
        return None
    zh = writer.write(node, 1, given=Given())
    text = spell(en, rng.random() < CONTRACT)
    index = {word: i for side in (en, zh) for i, word in enumerate(side)}
    en_words, zh_words = (tuple(word.text for word in side) for side in (en, zh))
    en_heads, zh_heads = (tuple(index[word.head] if word.head else -1 for word in side) for side in (en, zh))
    en_relations, zh_relations = (tuple(word.relation if word.head else "root" for word in side) for side in (en, zh))
    return Sentence(
        en=text,
        zh="".join(zh_words),
        en_words=en_words,
        zh_words=zh_words,
        links=tuple(sorted({(index[e], index[z]) for ens, zhs in writer.groups.values() for e in ens for z in zhs})),
        en_heads=en_heads,
        zh_heads=zh_heads,
        en_relations=en_relations,
        zh_relations=zh_relations,
        rules=tuple(writer.rules),
        rows=tuple(entry.key for entry, _ in used),
    )
