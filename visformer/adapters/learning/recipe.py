"""What is trained: a task, a variant of it, a seed and a number of steps, and what is drawn of it.

The name says all of it, and the same name gives the same weights on the same machine, so that a model needs no file: it
is trained again. No torch here: pages and links use the same names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.learning.tasks import TASKS, Task, Variant
from visformer.errors import N_, ConfigError

MOST_SEED = 999

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
    def options(self) -> Variant:
        """How it is trained."""
        return self.about.variants[self.variant]

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


def is_trained_name(name: str | None) -> bool:
    """Whether this is meant as the name of a model that is trained here, well-formed or not."""
    return name is not None and name.startswith("trained-")


EVERY = 4
"""Steps between two moments."""


@dataclass(frozen=True)
class Snapshot:
    """What is drawn of a step.

    Args:
        step: of the optimizer, from 0.
        loss: on what it was trained on since the last moment, nats a token; at step 0 that of the first batch.
        probed: on the probe, which it is never trained on.
        right: share of the probe's scored tokens that are the likeliest.
        scores: mean weight of each head on the cells of each look, (look, layer, head), float32.
        patterns: weights of each head on the first sequence of the probe, in 255ths, (layer, head, query, key), uint8.
    """

    step: int
    loss: float
    probed: float
    right: float
    scores: NDArray[np.float32]
    patterns: NDArray[np.uint8]


@dataclass(frozen=True)
class TrainingInfo:
    """What is the same at all moments of a training.

    Args:
        queries: the tokens of the rows of :attr:`Snapshot.patterns`.
        keys: the tokens of its columns.
        n_weights: how many parameters the model has.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    n_weights: int


@dataclass(frozen=True)
class TrainingRecord:
    """A training and its moments, oldest first."""

    recipe: Recipe
    moments: Sequence[Snapshot]


def weights_at(
    patterns: NDArray[np.floating[Any]], rows: NDArray[np.int64], queries: NDArray[np.int64], keys: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the weight that each head puts on given cells, such as those of the token before: a mean over the queries.

    Args:
        patterns: (row, layer, head, query, key), each query's weights sum to 1.
        rows: the sequence of each cell, (cell,).
        queries: its query, (cell,); the weights of one query's cells are added.
        keys: its key, (cell,).

    Returns:
        (layer, head), from 0 to 1.
    """
    cells = patterns[rows, :, :, queries, keys]  # (cell, layer, head)
    n_queries = len(np.unique(np.stack([rows, queries]), axis=1).T)
    weights: NDArray[np.float32] = cells.sum(axis=0, dtype=np.float32) / np.float32(n_queries)
    return weights
