"""Generate English and Chinese sentences together, with word alignment and dependency trees, from `supplement/grammar/`.

    python -m visformer.training.grammar --n 300 --seed 0

A synchronous grammar: each rule writes one phrase in both languages, and what fills its slots is drawn once for both.
`supplement/grammar/README.md` explains the files. `load` reads them; `sample` draws sentences, the same ones for the same
seed. The trees use the relations of Universal Dependencies.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from visformer.errors import N_, DataError
from visformer.training import lexicon, supplement
from visformer.training.lexicon import Entry
from visformer.training.refusals import Refusals
from visformer.training.supplement import read_rows

FOLDER = supplement.FOLDER / "grammar"
RULE_FILES = ("rules.tsv", "phrases.tsv", "times.tsv")
OPTIONAL = 0.25
CONTRACT = 0.4
PARTS = frozenset({"noun", "verb", "adjective", "adverb", "number", "pronoun", "name"})
SLOT = re.compile(r"(\w+)(\??)=(\w+)\(([^()]*)\)")
ITEM = re.compile(
    r"(?P<text>[.+]|[^.@+*:>~]+)(?:\.(?P<form>\w+))?(?:@(?P<agree>\w+))?(?:\+(?P<particle>[^*:>~]+))?(?P<head>\*{0,2})"
    r"(?::(?P<relation>[a-z:]+))?(?:>(?P<target>[^~]+))?(?:~(?P<link>\w+))?"
)
AGREE = {
    "be": {"1s": "am", "2": "are", "3s": "is", "p": "are"},
    "was": {"1s": "was", "2": "were", "3s": "was", "p": "were"},
    "do": {"1s": "do", "2": "do", "3s": "does", "p": "do"},
    "have": {"1s": "have", "2": "have", "3s": "has", "p": "have"},
}
NEGATED = {w: w for w in "do does did is are was were have has had would could should must".split()} | {
    "can": "ca",
    "will": "wo",
}
SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll", "would": "'d", "have": "'ve", "has": "'s"}
SHORT_AFTER = frozenset("i you he she it we they".split())
SHORT_IS_AFTER = SHORT_AFTER | frozenset("that there what who where how".split())
STOPS = frozenset(".?!,。？！，、")
AN = re.compile(r"(?!uni|use|usu|eu|one|once)[aeiou]|hour|honest", re.IGNORECASE)

# What a slot asks for: every group has to be met, each by one of its tags.
Need = tuple[tuple[str, ...], ...]


class DeadEnd(Exception):
    """No word fits the ones already drawn; the sentence is drawn again."""


@dataclass(frozen=True)
class Slot:
    """`name=category(need)`; with a question mark after the name, it may stay empty."""

    name: str
    optional: bool
    category: str
    need: Need


@dataclass(frozen=True)
class Item:
    """One word or slot of a side, see the README: `V.past*`, `be@S:aux`, `not:advmod~1`."""

    text: str
    form: str
    agree: str
    particle: str
    head: str
    relation: str
    target: str
    link: str


@dataclass(frozen=True)
class Rule:
    """A row of a file of rules; the category is the name up to the first dot."""

    name: str
    slots: tuple[Slot, ...]
    sides: tuple[tuple[Item, ...], tuple[Item, ...]]
    weight: float

    @property
    def category(self) -> str:
        """The category that the rule is one of."""
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Drawn:
    """A word of the lexicon; `choice`, from 0 to 1, selects among its variants, the same in both languages."""

    entry: Entry
    choice: float


@dataclass(frozen=True)
class Node:
    """A rule with what fills its slots."""

    rule: Rule
    values: dict[str, Node | Drawn | None]

    def head(self) -> tuple[Item, Node | Drawn | None]:
        """Return the head of the English side, and its value if it is a slot."""
        item = next(item for item in self.rule.sides[0] if item.head)
        return item, self.values.get(item.text)

    def entry(self) -> Entry | None:
        """Return the word of the lexicon at the head of the English side."""
        value = self.head()[1]
        return value.entry() if isinstance(value, Node) else value and value.entry

    def agreement(self) -> str:
        """Return person and number, as in `Entry.agreement`."""
        item, value = self.head()
        if item.head == "**" or item.form in {"pl", "cups"}:
            return "p"
        return "3s" if value is None else value.agreement() if isinstance(value, Node) else value.entry.agreement


@dataclass(eq=False)
class Word:
    """A word in a tree."""

    text: str
    relation: str = "root"
    head: Word | None = None


@dataclass(frozen=True)
class Given:
    """What the rule above asks of a phrase: form of an English verb, case of a pronoun, Chinese particle."""

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


def parse_need(text: str) -> Need:
    """Parse what a slot asks for: "food drink, count" is (food or drink) and count."""
    return tuple(tuple(group.split()) for group in text.split(",") if group.strip())


def parse_side(text: str, rule: str) -> tuple[Item, ...]:
    """Parse one side of a rule."""
    items = []
    for token in text.split():
        match = ITEM.fullmatch(token)
        if match is None:
            raise DataError(N_("Rule {rule}: {token} cannot be read; see supplement/grammar/README.md."), rule=rule, token=token)
        parts = {name: value or "" for name, value in match.groupdict().items()}
        if parts["text"] in STOPS:
            parts["relation"] = "punct"
            parts["link"] = parts["link"] or ("" if parts["text"] in ",，、" else "stop")
        items.append(Item(**parts))
    if sum(bool(item.head) for item in items) != 1:
        raise DataError(N_("Rule {rule}: “{side}” needs one head, marked with *."), rule=rule, side=text)
    return tuple(items)


def parse_rule(row: list[str]) -> Rule:
    """Parse a row of a file of rules, and check that its slots are declared and used."""
    name, declared, english, chinese, weight = row
    slots = tuple(Slot(n, bool(q), category, parse_need(need)) for n, q, category, need in SLOT.findall(declared))
    names = {slot.name for slot in slots}
    sides = (parse_side(english, name), parse_side(chinese, name))
    items = [item for side in sides for item in side]
    missing = {item.agree for item in items if item.agree} - names
    missing |= {item.text for item in items if item.form or item.particle} - names
    left = SLOT.sub("", declared).strip()
    if missing or left or names - {item.text for item in items}:
        wrong = " ".join(sorted(missing | names - {item.text for item in items})) or left
        raise DataError(N_("Rule {rule}: {slots} is not declared, not used or cannot be read."), rule=name, slots=wrong)
    return Rule(name, slots, sides, float(weight))


class Grammar:
    """Rules and words, and what of them is held out from training."""

    def __init__(self, rules: tuple[Rule, ...], entries: tuple[Entry, ...], held_out: frozenset[str], refusals: Refusals):
        self.rules = rules
        self.entries = entries
        self.held_out = held_out
        self.refusals = refusals
        self._by_key = {entry.key: entry for entry in entries}
        self._by_part: dict[str, list[Entry]] = {part: [] for part in PARTS}
        for entry in entries:
            self._by_part[entry.part].append(entry)
        self._by_category: dict[str, list[Rule]] = {}
        for rule in rules:
            self._by_category.setdefault(rule.category, []).append(rule)
        self._words: dict[tuple[str, Need], list[Entry]] = {}
        self._rules: dict[tuple[str, Need], tuple[list[Rule], list[float]]] = {}

    def words(self, part: str, need: Need) -> list[Entry]:
        """Return the words that meet the need."""
        found = self._words.get((part, need))
        if found is None:
            found = [entry for entry in self._by_part[part] if all(self._meets(entry, group) for group in need)]
            self._words[part, need] = found
        return found

    def _meets(self, entry: Entry, group: tuple[str, ...]) -> bool:
        if group[0] == "for":
            return not self._by_key[group[1]].tags.isdisjoint(entry.fits["subject"])
        if group[0][0] == "!":
            return entry.tags.isdisjoint(tag[1:] for tag in group)
        return not entry.tags.isdisjoint(group)

    def choices(self, category: str, need: Need) -> tuple[list[Rule], list[float]]:
        """Return the rules of the category for which there are words that meet the need, and their summed weights."""
        found = self._rules.get((category, need))
        if found is None:
            if category not in self._by_category:
                raise DataError(N_("No rule is called {category}.something."), category=category)
            rules = [rule for rule in self._by_category[category] if self._possible(rule, need)]
            found = self._rules[category, need] = rules, list(accumulate(rule.weight for rule in rules))
        return found

    def _possible(self, rule: Rule, asked: Need) -> bool:
        names = {slot.name for slot in rule.slots}
        for slot in rule.slots:
            known = tuple(group for group in slot.need if group[0].partition(".")[0] not in names)
            need = _resolve(known, {}, asked)
            if slot.category in PARTS:
                possible = bool(self.words(slot.category, need))
            else:
                possible = bool(self.choices(slot.category, need)[0])
            if not possible and not slot.optional:
                return False
        return True

    def draw(self, category: str, need: Need, rng: random.Random) -> Node | Drawn:
        """Draw a word or a phrase that meets the need.

        Raises:
            DeadEnd: there is none.
        """
        if category in PARTS:
            words = self.words(category, need)
            if not words:
                raise DeadEnd
            return Drawn(rng.choice(words), rng.random())
        rules, weights = self.choices(category, need)
        if not rules:
            raise DeadEnd
        return self.fill(rng.choices(rules, cum_weights=weights)[0], need, rng)

    def fill(self, rule: Rule, asked: Need, rng: random.Random) -> Node:
        """Draw what fills the slots of a rule."""
        values: dict[str, Node | Drawn | None] = {}
        for slot in rule.slots:
            if slot.optional and rng.random() >= OPTIONAL:
                values[slot.name] = None
            else:
                values[slot.name] = self.draw(slot.category, _resolve(slot.need, values, asked), rng)
        return Node(rule, values)


def _resolve(need: Need, values: dict[str, Node | Drawn | None], asked: Need) -> Need:
    """Replace `this`, `V.object` and `N` in what a slot asks for by what they stand for."""
    resolved: list[tuple[str, ...]] = []
    for group in need:
        name, _, column = group[0].partition(".")
        if name == "this":
            resolved.extend(asked)
        elif name in values:
            value = values[name]
            entry = value.entry() if isinstance(value, Node) else value and value.entry
            if entry is None:
                raise DeadEnd
            resolved.append(entry.fits[column] if column else ("for", entry.key))
        else:
            resolved.append(group)
    return tuple(resolved)


class Writer:
    """Writes a drawn sentence in both languages and keeps what corresponds."""

    def __init__(self) -> None:
        self.groups: dict[tuple[int, str, str], tuple[list[Word], list[Word]]] = {}
        self.rules: list[str] = []
        self.used: list[tuple[Entry, str]] = []

    def write(self, node: Node, side: int, given: Given) -> tuple[list[Word], Word]:
        """Return the words of one side of a phrase, and its head."""
        if not side:
            self.rules.append(node.rule.name)
        placed: list[tuple[Item, list[Word], Word]] = []
        roots: dict[str, Word] = {}
        for item in node.rule.sides[side]:
            words = self._item(node, item, side, given)
            if words:
                root = next(w for w in words if w.head is None)
                placed.append((item, words, root))
                roots.setdefault(item.text, root)
        top = next(root for item, _, root in placed if item.head)
        for item, _, root in placed:
            if root is not top:
                root.head = roots[item.target] if item.target else top
                root.relation = item.relation or ("aux" if item.text == "+" else "dep")
        return [word for _, words, _ in placed for word in words], top

    def _item(self, node: Node, item: Item, side: int, given: Given) -> list[Word]:
        """Return the words of an item; none if it is, or depends on, a slot that stays empty."""
        values = node.values
        if item.text in values:
            value = values[item.text]
            below = Given(
                _form(item, values, given),
                given.subject if item.head or item.relation == "conj" else item.relation.startswith("nsubj"),
                given.particle if item.particle == "this" else item.particle,
            )
            if isinstance(value, Node):
                return self.write(value, side, below)[0]
            return self._entry(node, item, value, side, below) if value else []
        if item.text == "+":
            return [Word(given.particle)] if given.particle else []
        if values.get(item.target, 1) is None or values.get(item.link, 1) is None:
            return []
        text = agreeing(item.text, _agreement(values[item.agree])) if item.agree else item.text
        word = Word(text)
        if item.link:
            self._group(node, item.link, "content" if item.link in values else "")[side].append(word)
        return [word]

    def _entry(self, node: Node, item: Item, drawn: Drawn, side: int, given: Given) -> list[Word]:
        entry = drawn.entry
        name = given.form
        if not side:
            if not name and not given.subject and "object" in entry.en:
                name = "object"
            self.used.append((entry, name if name or entry.part != "pronoun" else "subject"))
        variants = (entry.zh if side else entry.en).get(name)
        if variants is None:
            raise DataError(N_("Rule {rule}: {word} has no form “{form}”."), rule=node.rule.name, word=entry.key, form=name)
        words = []
        heads = []
        for text, relation, head, label in variants[int(drawn.choice * len(variants))]:
            words.append(Word(text, relation))
            heads.append(head)
            if label:
                self._group(node, item.text, label)[side].append(words[-1])
        for word, head in zip(words, heads, strict=True):
            word.head = words[head] if head >= 0 else None
        return words

    def _group(self, node: Node, slot: str, label: str) -> tuple[list[Word], list[Word]]:
        return self.groups.setdefault((id(node), slot, label), ([], []))


def _agreement(value: Node | Drawn | None) -> str:
    if value is None:
        return "3s"
    return value.agreement() if isinstance(value, Node) else value.entry.agreement


def _form(item: Item, values: dict[str, Node | Drawn | None], given: Given) -> str:
    if item.agree:
        return "s" if _agreement(values[item.agree]) == "3s" else "base"
    return given.form if item.form == "this" else item.form


@cache
def agreeing(verb: str, agreement: str) -> str:
    """Return the form of a verb that agrees: be, 3s -> is; want, 3s -> wants."""
    if verb in AGREE:
        return AGREE[verb][agreement]
    return lexicon.conjugate(verb, "")["s"] if agreement == "3s" else verb


def spell(words: list[Word], short: bool) -> str:
    """Finish English words in place, a or an, contractions if `short`, the capital, and join them."""
    for word, following in zip(words, words[1:], strict=False):
        text = following.text
        if word.text == "a" and word.relation == "det" and AN.match(text):
            word.text = "an"
        elif short and text == "not" and word.text in NEGATED:
            word.text, following.text = NEGATED[word.text], "n't"
    if short:
        for before, word, following in zip(words, words[1:], words[2:], strict=False):
            after = SHORT_IS_AFTER if word.text == "is" else SHORT_AFTER
            auxiliary = word.text not in {"have", "has"} or word.relation == "aux"
            if word.text in SHORT and before.text.lower() in after and auxiliary and following.text not in STOPS | {"n't"}:
                word.text = SHORT[word.text]
    words[0].text = words[0].text[0].upper() + words[0].text[1:]
    text = ""
    for word in words:
        text += word.text if not text or word.text[0] in ".?!,'" or word.text == "n't" else " " + word.text
    return text


def sensible(used: list[tuple[Entry, str]]) -> bool:
    """Whether no word is used twice, and nobody is both subject and object ("I see me")."""
    content = [entry for entry, _ in used if entry.part != "pronoun"]
    if len(set(content)) < len(content):
        return False
    people: dict[str, set[str]] = {"subject": set(), "object": set()}
    for entry, form in used:
        if entry.part == "pronoun" and form in people:
            people[form] |= {tag for tag in entry.tags if tag.startswith("person ")}
    return not people["subject"] & people["object"]


def compose(grammar: Grammar, node: Node, rng: random.Random) -> Sentence | None:
    """Write a drawn sentence; None if it is not sensible."""
    writer = Writer()
    en, _ = writer.write(node, 0, Given())
    if not sensible(writer.used):
        return None
    zh, _ = writer.write(node, 1, Given())
    text = spell(en, rng.random() < CONTRACT)
    index = {id(word): i for side in (en, zh) for i, word in enumerate(side)}
    links = {(index[id(e)], index[id(z)]) for group in writer.groups.values() for e in group[0] for z in group[1]}
    en_heads, zh_heads = (tuple(index[id(w.head)] if w.head else -1 for w in side) for side in (en, zh))
    en_words, zh_words = (tuple(w.text for w in side) for side in (en, zh))
    en_relations, zh_relations = (tuple(w.relation if w.head else "root" for w in side) for side in (en, zh))
    rows = tuple(entry.key for entry, _ in writer.used)
    return Sentence(
        text, "".join(zh_words), en_words, zh_words, tuple(sorted(links)), en_heads, zh_heads,
        en_relations, zh_relations, tuple(writer.rules), rows,
    )  # fmt: skip


def load(folder: Path = FOLDER) -> Grammar:
    """Read the grammar.

    Raises:
        DataError: a file is missing, or a row cannot be read; the message names it.
    """
    entries = lexicon.load(folder)
    rules = tuple(parse_rule(row) for name in RULE_FILES for row in read_rows(folder / name, columns=5))
    held_out = frozenset(f"{part} {name}" for part, name in read_rows(folder / "held_out.tsv", columns=2))
    known = {f"rule {rule.name}" for rule in rules} | {entry.key for entry in entries}
    if held_out - known:
        raise DataError(N_("held_out.tsv: {names} is not in the grammar."), names=", ".join(sorted(held_out - known)))
    literals = ({i.text for r in rules for i in r.sides[0]}, {i.text for r in rules for i in r.sides[1]})
    return Grammar(rules, entries, held_out, Refusals.load(folder.parent, entries, literals))


def sample(grammar: Grammar, n: int, *, seed: int, held_out: bool = False) -> list[Sentence]:
    """Draw `n` different sentences, the same ones for the same seed.

    Args:
        grammar: from `load`.
        n: how many.
        seed: another seed gives other sentences.
        held_out: draw the sentences for evaluation: each uses a rule or a word that is held out from training. Otherwise
            none does.
    """
    rng = random.Random(seed)
    sentences: dict[str, Sentence] = {}
    while len(sentences) < n:
        try:
            node = grammar.draw("sentence", (), rng)
        except DeadEnd:
            continue
        assert isinstance(node, Node)
        sentence = compose(grammar, node, rng)
        if sentence is None or sentence.en in sentences:
            continue
        apart = not grammar.held_out.isdisjoint({*sentence.rows, *(f"rule {rule}" for rule in sentence.rules)})
        if apart == held_out and not grammar.refusals.refuse(sentence.en, sentence.zh):
            sentences[sentence.en] = sentence
    return list(sentences.values())


def main() -> None:
    """Print sampled sentences as tab-separated lines, or with their analysis as lines of JSON."""
    parser = argparse.ArgumentParser(description="Sample English and Chinese sentences from the grammar.")
    parser.add_argument("--n", type=int, default=1000, help="how many sentences")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--held-out", action="store_true", help="only sentences with rules or words held out from training")
    parser.add_argument("--analysis", action="store_true", help="also words, links and trees, as a line of JSON for each")
    arguments = parser.parse_args()
    for s in sample(load(arguments.folder), arguments.n, seed=arguments.seed, held_out=arguments.held_out):
        print(json.dumps(asdict(s), ensure_ascii=False) if arguments.analysis else f"{s.en}\t{s.zh}")


if __name__ == "__main__":
    main()
