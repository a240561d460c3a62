"""What is trained: a task, a variant of it, a seed and a number of steps. Its name says all of it.

The same name gives the same weights on the same machine, so that a model needs no file: it is trained again. No arrays
and no torch here: pages and links use the same names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from visformer.errors import N_, ConfigError

MOST_SEED = 999

_ONE_LAYER, _NO_POSITIONS = N_("One layer"), N_("No positions")
_HIGH_RATE, _NO_MASK = N_("Learning rate 0.1"), N_("No causal mask")
_USUAL = {
    "plain": N_("As usual"),
    "one-layer": _ONE_LAYER,
    "no-positions": _NO_POSITIONS,
    "high-rate": _HIGH_RATE,
    "no-mask": _NO_MASK,
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task as a page shows it.

    Args:
        title: its name.
        look_for: what to watch while it is learned.
        steps: of the optimizer, after which a training ends by itself.
        variants: name to label; the first is the default.
        trained: the label of the loss on what it is trained on.
        probed: the label of the loss on the probe, which it is never trained on.
        looks: what heads are scored by: name to label.
        notes: what to watch with a variant: its name to the sentence.
    """

    title: str
    look_for: str
    steps: int
    variants: Mapping[str, str]
    trained: str
    probed: str
    looks: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)


TASKS: Mapping[str, Task] = {
    "repeat": Task(
        title=N_("Repeated letters"),
        look_for=N_(
            "Random letters, then the same again. First a head of layer 1 learns to look at the letter before "
            "(previous token), then one of layer 2 at what came after this letter the last time (induction): at that "
            "moment the loss falls."
        ),
        steps=300,
        variants={
            "drawn": N_("Periods 6 to 16"),
            "fixed": N_("Period always 16"),
            **{name: label for name, label in _USUAL.items() if name != "plain"},
        },
        trained=N_("Loss on the repetition, trained periods"),
        probed=N_("at period 11, never trained"),
        looks={"previous": N_("previous token"), "induction": N_("induction"), "answer": N_("the answer itself")},
        notes={
            "fixed": N_(
                "If the period is always 16, positions are enough: the loss falls as well, and no induction head "
                "forms. At a new period only a model that had to look for letters is right; this one is worse than "
                "chance."
            ),
            "one-layer": N_(
                "One layer is not enough: an induction head reads what a head of the layer before it has written about "
                "the letter before."
            ),
            "no-positions": N_(
                "Without positions only the causal mask tells the order: no head finds the letter before, and in the "
                "same number of steps the loss falls much less."
            ),
            "high-rate": N_(
                "A learning rate of 0.1 in place of 0.003: every step goes too far, and the loss does not fall."
            ),
            "no-mask": N_(
                "Without the causal mask a letter can read those after it: a head looks at the answer itself, the loss "
                "falls, and nothing is learned that could write what is not there yet."
            ),
        },
    ),
    "copy": Task(
        title=N_("Copying"),
        look_for=N_(
            "The letters after the sign > are those before it, in the same order: watch a head draw a line parallel to "
            "the diagonal."
        ),
        steps=400, variants=_USUAL, trained=N_("Loss on the copy"), probed=N_("on new letters"),
        looks={"source": N_("letter to copy")},
    ),
    "reverse": Task(
        title=N_("Reversing"),
        look_for=N_(
            "The letters after the sign > are those before it, the last one first: watch a head draw a line across the "
            "diagonal."
        ),
        steps=600, variants=_USUAL, trained=N_("Loss on the reversed letters"), probed=N_("on new letters"),
        looks={"source": N_("letter to write next")},
    ),
    "sort": Task(
        title=N_("Sorting"),
        look_for=N_(
            "After the sign > come the same letters in alphabetical order: watch a head find the next one, wherever it "
            "stands."
        ),
        steps=300, variants=_USUAL, trained=N_("Loss on the sorted letters"), probed=N_("on new letters"),
        looks={"source": N_("letter to write next")},
    ),
    "add": Task(
        title=N_("Adding numbers"),
        look_for=N_(
            "Sums of two numbers of two digits, written from the ones up. Watch the heads look at the two digits of "
            "the same place."
        ),
        steps=600, variants=_USUAL, trained=N_("Loss on the digits of the sum"), probed=N_("on new sums"),
        looks={"source": N_("digits of the same place")},
    ),
    "grammar": Task(
        title=N_("English to Chinese"),
        look_for=N_(
            "Some fifty words, an encoder and a decoder. Watch the cross-attention learn which English word "
            "each Chinese word comes from; the time word changes its place."
        ),
        steps=300,
        variants={name: label for name, label in _USUAL.items() if name not in ("no-mask", "one-layer")},
        trained=N_("Loss on the translation"), probed=N_("on new sentences"),
        looks={"aligned": N_("aligned word")},
    ),
}  # fmt: skip
"""Tasks by their name in links, the first is the default."""

_FIRST = next(iter(TASKS))
_NAME = re.compile(
    rf"trained-({'|'.join(TASKS)})(?:-([a-z]+(?:-[a-z]+)?))?(?:-seed(\d{{1,3}}))?(?:-step(\d{{1,5}}))?", re.ASCII
)


@dataclass(frozen=True)
class Recipe:
    """A training; see the module.

    Args:
        task: a key of TASKS.
        variant: of the task; "": its default.
        seed: of the weights and the batches.
        step: how far it is trained; None: to the end.

    Raises:
        ConfigError: there is no such task, variant, seed or step.
    """

    task: str = _FIRST
    variant: str = ""
    seed: int = 0
    step: int | None = None

    def __post_init__(self) -> None:
        _require("task", self.task, TASKS)
        variants = TASKS[self.task].variants
        object.__setattr__(self, "variant", self.variant or next(iter(variants)))
        _require("variant", self.variant, variants)
        object.__setattr__(self, "step", self.about.steps if self.step is None else self.step)
        for name, value, most in (("seed", self.seed, MOST_SEED), ("step", self.at, self.about.steps)):
            if not 0 <= value <= most:
                said = N_("{name}={value!r} must be a whole number from 0 to {most}.")
                raise ConfigError(said, name=name, value=value, most=most)

    @property
    def about(self) -> Task:
        """Its task."""
        return TASKS[self.task]

    @property
    def at(self) -> int:
        """The number of steps."""
        assert self.step is not None
        return self.step

    @classmethod
    def named(cls, name: str) -> Self:
        """Parse a name, such as "trained-repeat-fixed-seed3-step250".

        Raises:
            ConfigError: the name does not have this form, or there is no such training.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigError(
                N_("{name!r} is not the name of a model that is trained here: write {example}."),
                name=name,
                example="trained-repeat-seed0-step300",
            )
        task, variant, seed, step = match.groups()
        return cls(task, variant or "", int(seed or 0), None if step is None else int(step))

    @property
    def name(self) -> str:
        """The name; the default variant is left out."""
        variant = "" if self.variant == next(iter(self.about.variants)) else f"-{self.variant}"
        return f"trained-{self.task}{variant}-seed{self.seed}-step{self.step}"

    def until(self, step: int) -> Self:
        """Return the same training, stopped at another step."""
        return replace(self, step=step)


def _require(name: str, value: str, known: Mapping[str, object]) -> None:
    if value not in known:
        said = N_("{name}={value!r} is not known: choose one of {choices}.")
        raise ConfigError(said, name=name, value=value, choices=", ".join(known))


def names_trained(name: str | None) -> bool:
    """Whether this is meant as the name of a model that is trained here, well-formed or not."""
    return name is not None and name.startswith("trained-")
