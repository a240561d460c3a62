"""Who does what, and when: the same for every run with the same numbers."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from benchmarks.browser import new_sentences

SHARED = 20
"""Sentences that everybody tries: the examples on the slide."""

SHARE = 0.6
"""Of all submissions, those from the shared sentences."""

PAUSE = 10.0
"""Seconds between two submissions of a session, on average; each is drawn from half of it to one and a half times."""

PAGES = ("tokens", "positions", "embedding", "masks", "head", "block")
"""Where visitors look in after every third sentence; every fifth time they look at the decoding."""

OPENINGS = ("", "They say that", "I have heard that", "Nobody knew that", "We think that")


@dataclass(frozen=True)
class Task:
    """One thing that a session does.

    Args:
        at: seconds from the beginning.
        session: which one.
        sentence: is typed and entered on the attention page.
        then: the page that is opened afterwards, before going back; "" for none.
    """

    at: float
    session: int
    sentence: str
    then: str = ""


def tasks(sessions: int, seconds: float, *, seed: int = 0, pause: float = PAUSE) -> list[Task]:
    """What all sessions do, in order of time; no sentence that is not shared is typed twice."""
    dice, own = random.Random(seed), own_sentences()
    shared = list(islice(own, SHARED))
    planned = []
    for session in range(sessions):
        at = dice.uniform(0, pause)  # nobody begins together
        while at < seconds:
            planned.append((at, session))
            at += dice.uniform(0.5 * pause, 1.5 * pause)
    found = []
    for number, (at, session) in enumerate(sorted(planned)):
        sentence = dice.choice(shared) if dice.random() < SHARE else next(own)
        then = "" if number % 3 else "decoding" if number % 5 == 0 else dice.choice(PAGES)
        found.append(Task(at, session, sentence, then))
    return found


def own_sentences() -> Iterator[str]:
    """3,125 different ones, of five to fifteen words, always in the same order."""
    pairs = list(product(OPENINGS, new_sentences()))
    random.Random(1).shuffle(pairs)
    for opening, sentence in pairs:
        yield f"{opening} {sentence[0].lower()}{sentence[1:]}" if opening else sentence
