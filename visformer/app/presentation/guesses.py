"""A question to a room and the guesses of its people, in memory alone, until the presenter ends it."""

import random
import secrets
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from visformer.errors import N_, BusyError
from visformer.system import limits
from visformer.web.selection import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from visformer.analysis.guesses import Agreement

QuestionKind = Literal["head", "model", "next"]
KINDS: dict[QuestionKind, str] = {
    "head": N_("What a head reads"),
    "model": N_("What the model reads"),
    "next": N_("What comes next"),
}


_new_id = partial(secrets.token_hex, 4)


@dataclass(frozen=True)
class Wanted:
    """What a presenter or a lesson wants to ask; numbers count from 0."""

    kind: QuestionKind = "head"
    place: Selection = field(default_factory=Selection)  # the attention, layer and head
    word: int | None = None  # among those that read; None: one whose answer is a word, see analysis.guesses.to_ask
    between: str = ""  # of "next", two words as in "is − are"; "": the likeliest ones


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, and the answer, which phones get only once it is revealed.

    Args:
        kind: one of KINDS.
        sentence: what is translated; "" where people choose from its words, or it would tell what comes next.
        asked: the word that reads or, of "next", the target so far.
        stack: name of the attention; of "next" "".
        layer: from 0, of "head".
        head: from 0, of "head".
        options: the words or tokens to choose from, all different.
        shares: the weight that is read or the probability, of each option; of a pair its probability of the two.
        read: whose words the options are: "en" or "zh" of a translator, "source", or "" those of the same text.
        id: names it among all others.
    """

    kind: QuestionKind
    sentence: str
    asked: str
    stack: str = ""
    layer: int = 0
    head: int = 0
    options: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    read: str = ""
    id: str = field(default_factory=_new_id)

    @property
    def is_pair(self) -> bool:
        """Whether it asks which of two words comes next."""
        return self.kind == "next" and len(self.options) == 2


@dataclass(frozen=True)
class Answer:
    """What one person chose."""

    chosen: frozenset[int]  # places among the options, at least one
    name: str = ""
    address: str = ""  # of the network that it came from


@dataclass(frozen=True)
class Result:
    """The answers to a question that was revealed, in an order that tells nothing about who gave them.

    Args:
        chosen: bool (person, option).
        agreement: of "head" and "model"; None if nobody answered.
        right: of "next": how many chose the likeliest token, and the 95 % interval of their share.
        nearest: names of those whose guess was nearest, as far as they gave one.
    """

    chosen: "NDArray[np.bool_]"
    agreement: "Agreement | None" = None
    right: tuple[int, float, float] | None = None
    nearest: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many people answered."""
        return len(self.chosen)

    @property
    def share(self) -> float:
        """What the room got: the share of people who chose the likeliest token, or the weight of the words chosen."""
        if self.right is not None:
            return self.right[0] / self.n
        return self.agreement.covered if self.agreement is not None else float("nan")

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the share; None: fewer than two people answered."""
        if self.n <= 1:
            return None
        if self.right is not None:
            return self.right[1], self.right[2]
        return (self.agreement.low, self.agreement.high) if self.agreement is not None else None


_FROM_THERE = N_(
    "{limit} answers came from your network, as many as it had phones here at a time: no more are taken from it. The "
    "presenter can reset the answers."
)


@dataclass
class Guess:
    """One question of a room: being prepared, open, or revealed. Sessions share it; each person has a secret key.

    Args:
        page: the page on which the presenter began; leaving it ends the question.
    """

    page: str
    question: Question | None = None  # None: the presenter is choosing one
    result: Result | None = None  # once it is revealed
    is_locked: bool = False  # whether no more answers are taken
    _answers: dict[str, Answer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, question: Question | None) -> None:
        """Open a question; None: prepare another one. The answers to the one before are forgotten."""
        with self._lock:
            self._answers.clear()
            self.question, self.result, self.is_locked = question, None, False

    def answer(
        self,
        guest: str,
        question: Question,
        chosen: Sequence[int],
        name: str = "",
        *,
        address: str = "",
        share: int = limits.GUESSES,
    ) -> bool:
        """Take a person's answer to a question in place of their last one; choosing nothing takes it back.

        Args:
            guest: the person's key.
            question: what is answered.
            chosen: places among its options.
            name: "" for none.
            address: of the person's network.
            share: how many people of this network may answer.

        Returns:
            False: this question takes no answers any more.

        Raises:
            BusyError: too many people have answered.
        """
        with self._lock:
            if self.question is not question or self.result is not None or self.is_locked:
                return False
            if not chosen:
                self._answers.pop(guest, None)
                return True
            if guest not in self._answers and len(self._answers) >= limits.GUESSES:
                many = N_("{limit} people have answered, the most that a question takes.")
                raise BusyError(many, limit=limits.GUESSES)
            if guest not in self._answers and sum(each.address == address for each in self._answers.values()) >= share:
                raise BusyError(_FROM_THERE, limit=share)
            self._answers[guest] = Answer(frozenset(chosen), " ".join(name.split())[: limits.GUESS_NAME], address)
            return True

    def answer_of(self, guest: str) -> Answer | None:
        """Return what this person has answered."""
        with self._lock:
            return self._answers.get(guest)

    def tally(self) -> list[tuple[str, int]]:
        """Return each option with how many people chose it; none while no question is open."""
        with self._lock:
            options = self.question.options if self.question is not None else ()
            chosen = Counter(i for each in self._answers.values() for i in each.chosen)
            return [(option, chosen[i]) for i, option in enumerate(options)]

    def count(self) -> int:
        """Return how many people have answered."""
        with self._lock:
            return len(self._answers)

    def reveal(self) -> None:
        """Compare the answers with the model; no more are taken."""
        with self._lock:
            if self.question is not None and self.result is None:
                self.result = _result(self.question, [*self._answers.values()])

    def lock(self) -> None:
        """Take no more answers; the ones so far count."""
        with self._lock:
            self.is_locked = True

    def reopen(self) -> None:
        """Take answers to the same question again; the ones so far count, until they are changed."""
        with self._lock:
            self.result, self.is_locked = None, False

    def reset(self) -> None:
        """Forget all answers, and ask the same as a new question: what is on its way answers the old one."""
        question = self.question
        self.ask(question and replace(question, id=_new_id()))


def _result(question: Question, answers: list[Answer]) -> Result:
    import numpy as np  # not needed for the first picture

    from visformer.analysis import guesses as analysis

    random.shuffle(answers)
    chosen = np.zeros((len(answers), len(question.options)), dtype=bool)
    for row, answer in zip(chosen, answers, strict=True):
        row[[*answer.chosen]] = True
    if not answers:
        return Result(chosen)
    if question.kind == "next":
        right = analysis.share_right(chosen, question.shares)
        names = [a.name for a, row in zip(answers, chosen, strict=True) if row[int(np.argmax(question.shares))]]
        return Result(chosen, right=right, nearest=_named(names))
    nearest = [answers[i].name for i in analysis.nearest(chosen, question.shares)]
    return Result(chosen, analysis.agreement(chosen, question.shares), nearest=_named(nearest))


def _named(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(filter(None, names)))
