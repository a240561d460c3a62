"""The plan of a load test: who does what, and when. The same for every run with the same numbers."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from benchmarks.browser import new_sentences

SHARED = 20
"""Number of sentences that everybody tries, like the examples on a slide."""

SHARE = 0.6
"""Share of all submissions that are one of the shared sentences."""

PAUSE = 10.0
"""Mean of the seconds between two submissions of a session, which are uniform from 0.5 to 1.5 times the mean."""

PAGES = ("positions", "embedding", "masks", "head", "block")
"""Pages that visitors open after every third sentence; every fifth time it is the decoding page instead."""

OPENINGS = ("", "They say that", "I have heard that", "Nobody knew that", "We think that")


@dataclass(frozen=True)
class Task:
    """One thing that a session does.

    Args:
        at: seconds from the beginning.
        session: number of the session.
        sentence: sentence to enter on the attention page.
        then: page to open afterwards, before going back; "" for none.
    """

    at: float
    session: int
    sentence: str
    then: str = ""


def tasks(sessions: int, seconds: float, *, seed: int = 0, pause: float = PAUSE) -> list[Task]:
    """Plan what all sessions do, in order of time; a sentence that is not shared is used only once."""
    dice, own = random.Random(seed), own_sentences()
    shared = list(islice(own, SHARED))
    planned = []
    for session in range(sessions):
        at = dice.uniform(0, pause)  # so that sessions do not start all at once
        while at < seconds:
            planned.append((at, session))
            at += dice.uniform(0.5 * pause, 1.5 * pause)
    result = []
    for number, (at, session) in enumerate(sorted(planned)):
        sentence = dice.choice(shared) if dice.random() < SHARE else next(own)
        then = "" if number % 3 else "decoding" if number % 5 == 0 else dice.choice(PAGES)
        result.append(Task(at, session, sentence, then))
    return result


def own_sentences() -> Iterator[str]:
    """Yield 3,125 different sentences of five to fifteen words, always in the same order."""
    pairs = list(product(OPENINGS, new_sentences()))
    random.Random(1).shuffle(pairs)
    for opening, sentence in pairs:
        yield f"{opening} {sentence[0].lower()}{sentence[1:]}" if opening else sentence
