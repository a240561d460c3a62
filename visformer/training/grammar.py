"""Generate English and Chinese sentences together, with word alignment and dependency trees.

    python -m visformer.training.grammar --n 300 --seed 0

A synchronous grammar: each rule writes one phrase in both languages, and what fills its slots is drawn once for both.
`supplement/grammar/README.md` explains the files. `load` reads them; `sample` draws sentences, the same ones for the
same seed. The trees use the relations of Universal Dependencies.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

from visformer.errors import N_, DataError
from visformer.training import lexicon, supplement
from visformer.training.lexicon import Entry
from visformer.training.refusals import Refusals
from visformer.training.rules import Need, Rule, parse_rule
from visformer.training.sentences import Drawn, Node, Sentence, compose
from visformer.training.supplement import read_rows

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

    def draw(self, category: str, need: Need, *, rng: random.Random) -> Node | Drawn:
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

    def fill(self, rule: Rule, asked: Need = (), *, rng: random.Random) -> Node:
        """Draw what fills the slots of a rule."""
        values: dict[str, Node | Drawn | None] = {}
        for slot in rule.slots:
            empty = slot.optional and rng.random() >= OPTIONAL
            need = () if empty else resolve(slot.need, values, asked=asked)
            values[slot.name] = None if empty else self.draw(slot.category, need, rng=rng)
        return Node(rule, values)


def meets(entry: Entry, group: tuple[str, ...]) -> bool:
    """Whether a word meets a group: has a tag of it; after "!", has none; after "?", may be said of a word with one."""
    if group and group[0] == "?":
        return not set(entry.subject).isdisjoint(group)
    if group and group[0][0] == "!":
        return entry.tags.isdisjoint(tag[1:] for tag in group)
    return not entry.tags.isdisjoint(group)


def resolve(need: Need, values: dict[str, Node | Drawn | None], *, asked: Need) -> Need:
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
        assert isinstance(node, Node)
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
