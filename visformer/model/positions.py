"""Five ways to know the order of tokens: added to the input, a rotation of queries and keys, or a bias of the scores.

No torch here: the pages and the names of untrained models ask the same classes as the model does.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from visformer import formulas
from visformer.errors import N_, ConfigError, Message
from visformer.formulas import Floats


@dataclass(frozen=True)
class Position:
    """One way. A kind overrides what it does; whatever it leaves alone does nothing.

    Cross-attention knows no positions of its own: neither rotation nor bias reaches it.

    Args:
        base: of the frequencies, where it has some.
    """

    base: float = 10_000.0
    label: ClassVar[Message]
    """On screen."""
    says: ClassVar[Message]
    """To be continued behind "This model: ...", as for :data:`DESCRIBED`."""
    enters: ClassVar[Message]
    """What it does to the numbers, on screen."""
    beyond: ClassVar[Message]
    """What happens behind the longest sentence of the training, on screen."""
    title: ClassVar[Message] = N_("positional encoding")
    """Of the picture of what it adds."""
    adds: ClassVar[bool] = False
    """Whether the input is embedding plus position."""
    biases: ClassVar[bool] = False
    """Whether :meth:`bias` goes to the scores."""

    @classmethod
    def check(cls, *, d_k: int) -> None:
        """Refuse sizes that this kind cannot have.

        Args:
            d_k: width of one head's queries and keys.

        Raises:
            ConfigError: names them.
        """

    @classmethod
    def rows(cls, max_len: int) -> int | None:
        """How many positions it knows, of a model with ``max_len``; None: any number."""
        return None

    def added(self, n: int, d_model: int) -> Floats | None:
        """What goes to the embeddings of the first n positions, (position, d_model); None: nothing, or learned."""
        return None

    def angles(self, n: int, d_k: int) -> Floats | None:
        """By how much the queries and keys of the first n positions are turned, (position, pair), in radians."""
        return None

    def bias(self, n_heads: int, n: int) -> Floats | None:
        """What goes to the scores among the first n positions, (head, query, key)."""
        return None


@dataclass(frozen=True)
class Sinusoidal(Position):
    """Sines and cosines, added to the embeddings (Vaswani et al. 2017, section 3.5)."""

    label = N_("sinusoidal")
    says = N_("the sinusoidal encoding of the position is added to the embedding")
    enters = N_("is added to the embedding")
    beyond = N_("continues, but with sums never seen in training")
    adds = True

    def added(self, n: int, d_model: int) -> Floats:
        return formulas.sinusoidal_encoding(n, d_model, self.base)


@dataclass(frozen=True)
class Learned(Position):
    """A table of vectors that are trained as embeddings are (Gehring et al. 2017; section 3.5 compares them)."""

    label = N_("learned")
    says = N_("a learned vector for each position is added to the embedding")
    enters = N_("is added to the embedding")
    beyond = N_("has no row")
    title = N_("learned position")
    adds = True

    @classmethod
    def rows(cls, max_len: int) -> int:
        return max_len


@dataclass(frozen=True)
class Rotary(Position):
    """Queries and keys are turned, pair by pair, by an angle that grows with the position (Su et al. 2021, eq. 15).

    A score then depends on the distance of its two positions alone. Pair i is dimensions i and i + d_k / 2, as in
    Llama; the paper takes neighbours, which is the same but for the order of the dimensions.
    """

    label = N_("rotary")
    says = N_("nothing is added: queries and keys are rotated by an angle that grows with the position (rotary)")
    enters = N_("rotates queries and keys")
    beyond = N_("continues; slow pairs reach angles never seen in training")

    @classmethod
    def check(cls, *, d_k: int) -> None:
        if d_k % 2:
            raise ConfigError(
                N_("A rotary encoding rotates pairs of dimensions: d_model / n_heads is {d_k} and must be even."),
                d_k=d_k,
            )

    def angles(self, n: int, d_k: int) -> Floats:
        return np.outer(np.arange(n), formulas.frequencies(d_k, self.base))


@dataclass(frozen=True)
class Alibi(Position):
    """Scores fall by a slope of each head with the distance of query and key (Press et al. 2022, section 3).

    The paper has decoders only; in an encoder the distance is |i - j|, the same to either side.
    """

    label = N_("ALiBi")
    says = N_("nothing is added: scores fall off with the distance between query and key (ALiBi)")
    enters = N_("is added to the scores")
    beyond = N_("continues: the farther away, the less it counts")
    biases = True

    def bias(self, n_heads: int, n: int) -> Floats:
        return formulas.alibi_bias(n_heads, n)


@dataclass(frozen=True)
class NoPosition(Position):
    """Nothing tells the order: a decoder knows it by its mask alone (Haviv et al. 2022), an encoder not at all."""

    label = N_("none")
    says = N_("nothing tells it the order of tokens, except a decoder's mask")
    enters = N_("does nothing")
    beyond = N_("nothing changes: only the mask reveals the order")


PositionName = Literal["sinusoidal", "learned", "rotary", "alibi", "none"]
POSITIONS: dict[str, type[Position]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "rotary": Rotary,
    "alibi": Alibi,
    "none": NoPosition,
}
"""By the name that a configuration has."""

PAPERS = "sinusoidal"
"""What a model has of which nothing else is said."""

DESCRIBED: dict[str, Message] = {
    **{name: kind.says for name, kind in POSITIONS.items()},
    "relative": N_("nothing is added: scores get a learned bias for each distance between query and key"),
    "disentangled": N_("nothing is added: scores have separate terms for content and relative position"),
    "unknown": N_("visformer's table does not say how this family encodes positions"),
}
"""What there is to say of every kind that a model may have, ours or not, by ``meta["position"]`` of its Trace."""


def described(kind: str) -> Message:
    """A message id, to be continued as "This model: ..."."""
    return DESCRIBED.get(kind, DESCRIBED["unknown"])
