"""The rules of the grammar in `supplement/grammar/`; the README there explains the notation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from visformer.errors import N_, DataError

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
class Slot:
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
    slots: tuple[Slot, ...]
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
        Slot(slot, bool(optional), category, tuple(tuple(group.split()) for group in need.split(",") if group.strip()))
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
