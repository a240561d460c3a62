"""Generate English and Chinese sentences together, with word alignment and dependency trees.

    python -m visformer.training.grammar --n 300 --seed 0

A synchronous grammar: each rule writes one phrase in both languages, and what fills its slots is drawn once for both.
`supplement/grammar/README.md` explains the files and their notation. `load` reads them; `sample` draws sentences, the
same ones for the same seed. The trees use the relations of Universal Dependencies.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from visformer.errors import N_, DataError
from visformer.training import lexicon, supplement
from visformer.training.lexicon import MEASURE_FORMS, Entry
from visformer.training.refusals import Refusals
from visformer.training.supplement import read_rows

SLOT = re.compile(r"([A-Z]\w*)(\??)=(\w+)\(([^()]*)\)")
ITEM = re.compile(
    r"(?P<text>[.+]|[^.@+*:>~]+)(?:\.(?P<form>\w+))?(?:@(?P<agree>\w+))?(?:\+(?P<particle>[^*:>~]+))?(?P<head>\*{0,2})"
    r"(?::(?P<relation>[a-z:]+))?(?:>(?P<target>[^~]+))?(?:~(?P<link>\w+))?"
)
STOPS = frozenset(".?!。？！")
MARKS = STOPS | frozenset(",，、")

# What a slot asks for: every group has to be met, each by one of its tags.
Need = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RuleSlot:
    """`name=category(need)`; with a question mark after the name, it may stay empty."""

    name: str
    optional: bool
    category: str
    need: Need


@dataclass(frozen=True)
class Item:
    """One word or slot of a side: `V.past*`, `be@S:aux`, `not:advmod~1`; the README explains the notation."""

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
    """A row of a rule file; its category is the name up to the dot."""

    name: str
    slots: tuple[RuleSlot, ...]
    sides: tuple[tuple[Item, ...], tuple[Item, ...]]
    weight: float


def parse_side(text: str, rule: str) -> tuple[Item, ...]:
    """Parse one side of a rule.

    Raises:
        DataError: an item cannot be read, or not exactly one is the head.
    """
    items = []
    for token in text.split():
        match = ITEM.fullmatch(token)
        if match is None:
            raise DataError(
                N_("Rule {rule}: {token} cannot be read; see supplement/grammar/README.md."), rule=rule, token=token
            )
        parts = {name: value or "" for name, value in match.groupdict().items()}
        if token in MARKS:
            parts |= {"relation": "punct", "link": "stop" if token in STOPS else ""}
        items.append(Item(**parts))
    if sum(bool(item.head) for item in items) != 1:
        raise DataError(N_("Rule {rule}: “{side}” needs one head, marked with *."), rule=rule, side=text)
    return tuple(items)


def parse_rule(row: list[str]) -> Rule:
    """Parse a row of a rule file.

    Raises:
        DataError: a side cannot be read, or a slot is not declared or not used.
    """
    name, declared, english, chinese, weight = row
    slots = tuple(
        RuleSlot(
            slot, bool(optional), category, tuple(tuple(group.split()) for group in need.split(",") if group.strip())
        )
        for slot, optional, category, need in SLOT.findall(declared)
    )
    sides = (parse_side(english, name), parse_side(chinese, name))
    names = {slot.name for slot in slots}
    items = [item for side in sides for item in side]
    wrong = {item.agree for item in items if item.agree} - names | names - {item.text for item in items}
    wrong |= {item.text for item in items if item.form or item.particle} - names
    wrong |= set(SLOT.sub("", declared).split())
    if wrong:
        problem = N_("Rule {rule}: {slots} is not declared, not used or cannot be read.")
        raise DataError(problem, rule=name, slots=" ".join(sorted(wrong)))
    return Rule(name, slots, sides, float(weight))


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
class Phrase:
    """A rule with what fills its slots."""

    rule: Rule
    values: dict[str, Phrase | Drawn | None]

    def _head(self) -> tuple[Item, Phrase | Drawn | None]:
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
class TreeWord:
    """A word in a tree; without a head, it is the root."""

    text: str
    relation: str = "root"
    head: TreeWord | None = None


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
        self.groups: dict[tuple[int, str, str], tuple[list[TreeWord], list[TreeWord]]] = {}
        self.rules: list[str] = []
        self.used: dict[tuple[int, str], tuple[Entry, str]] = {}

    def write(self, node: Phrase, side: int, *, given: Given) -> list[TreeWord]:
        """Return the words of one side of a phrase; exactly one of them has no head yet."""
        if not side:
            self.rules.append(node.rule.name)
        words: list[TreeWord] = []
        placed: list[tuple[Item, TreeWord]] = []
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

    def _item(self, node: Phrase, item: Item, *, side: int, given: Given) -> list[TreeWord]:
        """Return the words of an item; none if it is, or depends on, a slot that stays empty."""
        values = node.values
        if item.text in values:
            value = values[item.text]
            form = "s" if values.get(item.agree, node) and item.agree and agreement(values[item.agree]) == "3s" else ""
            form = form or ("base" if item.agree else given.form if item.form == "this" else item.form)
            subject = given.subject if item.head or item.relation == "conj" else item.relation.startswith("nsubj")
            below = Given(form, subject, given.particle if item.particle == "this" else item.particle)
            if isinstance(value, Phrase):
                return self.write(value, side, given=below)
            return self._entry(node, item, drawn=value, side=side, given=below) if value else []
        if item.text == "+":
            return [TreeWord(given.particle)] if given.particle else []
        if values.get(item.target, node) is None or values.get(item.link, node) is None:
            return []
        word = TreeWord(agreeing(item.text, agreement(values[item.agree])) if item.agree else item.text)
        if item.link:
            self._group(node, item.link, "content" if item.link in values else "")[side].append(word)
        return [word]

    def _entry(self, node: Phrase, item: Item, *, drawn: Drawn, side: int, given: Given) -> list[TreeWord]:
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
        words = [TreeWord(text, relation) for text, relation, _ in parts]
        root = next(word for word in words if not word.relation)
        following: TreeWord | None = None
        for word, (_, relation, label) in zip(reversed(words), reversed(parts), strict=True):
            if word is not root:
                word.head = following if following and relation in FUNCTION_RELATIONS else root
            if relation not in FUNCTION_RELATIONS:
                following = word
            if label:
                self._group(node, item.text, label)[side].append(word)
        return words

    def _group(self, node: Phrase, slot: str, label: str) -> tuple[list[TreeWord], list[TreeWord]]:
        return self.groups.setdefault((id(node), slot, label), ([], []))


def target_name(item: Item) -> str:
    """Return the name by which others depend on the item; in "a cup of tea", N is the tea and N.cup the cup."""
    return f"{item.text}.{item.form}" if item.form in MEASURE_FORMS else item.text


def agreement(value: Phrase | Drawn | None) -> str:
    """Return person and number of what fills a slot, as in `Entry`; third person singular if it is empty."""
    return value.agreement if value else "3s"


@cache
def agreeing(verb: str, agreement: str) -> str:
    """Return the present form of a verb that agrees: be, 3s -> is; want, 3s -> wants; also past: was, p -> were."""
    if verb in AGREE:
        return AGREE[verb][agreement]
    return lexicon.conjugate(verb)["s"] if agreement == "3s" else verb


def contract(words: list[TreeWord]) -> None:
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


def spell(words: list[TreeWord], short: bool) -> str:
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


def compose(node: Phrase, rng: random.Random) -> Sentence | None:
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


FOLDER = supplement.FOLDER / "grammar"
RULE_FILES = ("rules.tsv", "phrases.tsv", "times.tsv")
OPTIONAL = 0.45  # probability that an optional slot is filled
PARTS = frozenset({"noun", "verb", "adjective", "adverb", "number", "pronoun", "name"})


class DeadEnd(Exception):
    """No word fits the ones already drawn; the sentence is drawn again."""


class Grammar:
    """The rules and words, and which of them are held out from training."""

    def __init__(
        self, rules: tuple[Rule, ...], entries: tuple[Entry, ...], *, held_out: frozenset[str], refusals: Refusals
    ):
        self.rules = rules
        self.entries = entries
        self.held_out = held_out
        self.refusals = refusals
        self._tagged: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            for tag in entry.tags:
                self._tagged.setdefault((entry.part, tag), []).append(entry)
        self._categories: dict[str, list[Rule]] = {}
        for rule in rules:
            self._categories.setdefault(rule.name.partition(".")[0], []).append(rule)
        self._words: dict[tuple[str, Need], list[Entry]] = {}
        self._weighted: dict[tuple[str, Need], tuple[list[Entry], list[float]]] = {}
        self._rules: dict[tuple[str, Need], tuple[list[Rule], list[float]]] = {}

    def words(self, part: str, need: Need) -> list[Entry]:
        """Return the words that meet the need."""
        if (part, need) not in self._words:
            groups = [group for group in need if group and group[0][0] not in "!?"] or [(part,)]
            tags = min(groups, key=lambda group: sum(len(self._tagged.get((part, tag), ())) for tag in group))
            candidates = dict.fromkeys(entry for tag in tags for entry in self._tagged.get((part, tag), ()))
            self._words[part, need] = [entry for entry in candidates if all(meets(entry, group) for group in need)]
        return self._words[part, need]

    def weighted(self, part: str, need: Need) -> tuple[list[Entry], list[float]]:
        """Return the words that meet the need, and their summed weights."""
        if (part, need) not in self._weighted:
            words = self.words(part, need)
            self._weighted[part, need] = words, list(accumulate(word.weight for word in words))
        return self._weighted[part, need]

    def choices(self, category: str, need: Need) -> tuple[list[Rule], list[float]]:
        """Return the rules of the category for which there are words that meet the need, and their summed weights."""
        if category not in self._categories:
            raise DataError(
                N_("A slot asks for {category}, which is no part of speech and no rule."), category=category
            )
        if (category, need) not in self._rules:
            rules = [rule for rule in self._categories[category] if self._possible(rule, need)]
            self._rules[category, need] = rules, list(accumulate(rule.weight for rule in rules))
        return self._rules[category, need]

    def _possible(self, rule: Rule, asked: Need) -> bool:
        names = {slot.name for slot in rule.slots}
        for slot in rule.slots:
            need = resolve(tuple(g for g in slot.need if g[0].partition(".")[0] not in names), {}, asked=asked)
            found = self.words(slot.category, need) if slot.category in PARTS else self.choices(slot.category, need)[0]
            if not found and not slot.optional:
                return False
        return True

    def draw(self, category: str, need: Need, *, rng: random.Random) -> Phrase | Drawn:
        """Draw a word or a phrase that meets the need.

        Raises:
            DeadEnd: there is none.
        """
        if category in PARTS:
            words, weights = self.weighted(category, need)
            if not words:
                raise DeadEnd
            return Drawn(rng.choices(words, cum_weights=weights)[0], rng.random())
        rules, sums = self.choices(category, need)
        if not rules:
            raise DeadEnd
        return self.fill(rng.choices(rules, cum_weights=sums)[0], need, rng=rng)

    def fill(self, rule: Rule, asked: Need = (), *, rng: random.Random) -> Phrase:
        """Draw what fills the slots of a rule."""
        values: dict[str, Phrase | Drawn | None] = {}
        for slot in rule.slots:
            empty = slot.optional and rng.random() >= OPTIONAL
            need = () if empty else resolve(slot.need, values, asked=asked)
            values[slot.name] = None if empty else self.draw(slot.category, need, rng=rng)
        return Phrase(rule, values)


def meets(entry: Entry, group: tuple[str, ...]) -> bool:
    """Whether a word meets a group: has a tag of it; after "!", has none; after "?", may be said of a word with one."""
    if group and group[0] == "?":
        return not set(entry.subject).isdisjoint(group)
    if group and group[0][0] == "!":
        return entry.tags.isdisjoint(tag[1:] for tag in group)
    return not entry.tags.isdisjoint(group)


def resolve(need: Need, values: dict[str, Phrase | Drawn | None], *, asked: Need) -> Need:
    """Replace `this`, `V.object` and `N` in what a slot asks for by the tags they stand for.

    Raises:
        DeadEnd: one names a slot that is empty, or has no word at its head.
    """
    resolved: list[tuple[str, ...]] = []
    for group in need:
        name, _, column = group[0].partition(".")
        if name == "this":
            resolved += asked
        elif name in values:
            value = values[name]
            entry = value.entry if value else None
            if entry is None:
                raise DeadEnd
            resolved.append(getattr(entry, column) if column else ("?", *sorted(entry.tags)))
        else:
            resolved.append(group)
    return tuple(resolved)


def load(folder: Path = FOLDER) -> Grammar:
    """Read the grammar.

    Raises:
        DataError: a file is missing, or a row cannot be read; the message names it.
    """
    entries = lexicon.load(folder)
    rules = tuple(parse_rule(row) for name in RULE_FILES for row in read_rows(folder / name, columns=5))
    held_out = frozenset(f"{part} {name}" for part, name in read_rows(folder / "held_out.tsv", columns=2))
    unknown = held_out - {f"rule {rule.name}" for rule in rules} - {entry.key for entry in entries}
    if unknown:
        raise DataError(N_("held_out.tsv: {names} is not in the grammar."), names=", ".join(sorted(unknown)))
    literals = {item.text for rule in rules for side in rule.sides for item in side}
    return Grammar(rules, entries, held_out=held_out, refusals=Refusals.load(folder.parent, entries, literals=literals))


def sample(grammar: Grammar, n: int, *, seed: int, held_out: bool = False) -> list[Sentence]:
    """Draw `n` different sentences, the same ones for the same seed.

    Args:
        grammar: from `load`.
        n: how many.
        seed: another seed gives other sentences.
        held_out: whether each sentence uses a rule or a word that is held out from training, for evaluation;
            otherwise none does.
    """
    rng = random.Random(seed)
    sentences: dict[str, Sentence] = {}
    while len(sentences) < n:
        try:
            node = grammar.draw("sentence", (), rng=rng)
        except DeadEnd:
            continue
        assert isinstance(node, Phrase)
        sentence = compose(node, rng)
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
    parser.add_argument("--held-out", action="store_true", help="only sentences that are held out from training")
    parser.add_argument(
        "--analysis", action="store_true", help="also words, links and trees, as a line of JSON for each"
    )
    arguments = parser.parse_args()
    for s in sample(load(arguments.folder), arguments.n, seed=arguments.seed, held_out=arguments.held_out):
        print(json.dumps(asdict(s), ensure_ascii=False) if arguments.analysis else f"{s.en}\t{s.zh}")


if __name__ == "__main__":
    main()
