"""Five positional encodings: added to the input, as a rotation of queries and keys, or as a bias on the scores.

No torch here: the pages, and the names of untrained models, use the same classes as the model does.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from visformer import formulas
from visformer.errors import N_, ConfigError, Message
from visformer.formulas import Floats


@dataclass(frozen=True)
class Position:
    """Base class of positional encodings. The defaults do nothing; a subclass overrides what applies to it.

    Cross-attention gets neither rotation nor bias.

    Args:
        base: base of the frequencies, if the encoding has any.
    """

    base: float = 10_000.0
    label: ClassVar[Message]
    """Its name on screen."""
    says: ClassVar[Message]
    """Completes "This model: ..." on screen, see :data:`DESCRIBED`."""
    enters: ClassVar[Message]
    """How it enters the computation, on screen."""
    beyond: ClassVar[Message]
    """What happens beyond the longest training sentence, on screen."""
    title: ClassVar[Message] = N_("positional encoding")
    """Title of the picture of what it adds."""
    adds: ClassVar[bool] = False
    """Whether the input is embedding plus position."""
    biases: ClassVar[bool] = False
    """Whether :meth:`bias` is added to the scores."""

    @classmethod
    def check(cls, *, d_k: int) -> None:
        """Refuse sizes that this encoding does not support.

        Args:
            d_k: width of one head's queries and keys.

        Raises:
            ConfigError: the message names them.
        """

    @classmethod
    def rows(cls, max_len: int) -> int | None:
        """Number of positions that a model with ``max_len`` supports; None: no limit."""
        return None

    def added(self, n: int, d_model: int) -> Floats | None:
        """What is added to the embeddings of the first n positions, (position, d_model); None: nothing, or learned."""
        return None

    def angles(self, n: int, d_k: int) -> Floats | None:
        """Rotation of the queries and keys of the first n positions, (position, pair), in radians; None: none."""
        return None

    def bias(self, n_heads: int, n: int) -> Floats | None:
        """What is added to the scores among the first n positions, (head, query, key); None: nothing."""
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
    beyond = N_("has no vector")
    title = N_("learned position")
    adds = True

    @classmethod
    def rows(cls, max_len: int) -> int:
        return max_len


@dataclass(frozen=True)
class Rotary(Position):
    """Queries and keys are rotated, pair by pair, by an angle that grows with the position (Su et al. 2021, eq. 15).

    A score then depends only on the distance between its two positions. Pair i is dimensions i and i + d_k / 2, as
    in Llama; the paper pairs neighbours, which differs only in the order of the dimensions.
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
    """Scores fall with the distance between query and key, at a slope per head (Press et al. 2022, section 3).

    The paper has decoders only; in an encoder the distance is |i - j|, the same in both directions.
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
    """No encoding: a decoder can infer the order from its mask alone (Haviv et al. 2022), an encoder cannot."""

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
"""Name in a configuration to class."""

PAPERS = "sinusoidal"
"""The encoding of the paper, and the default."""

DESCRIBED: dict[str, Message] = {
    **{name: kind.says for name, kind in POSITIONS.items()},
    "relative": N_("nothing is added: scores get a learned bias for each distance between query and key"),
    "disentangled": N_("nothing is added: scores have separate terms for content and relative position"),
    "unknown": N_("visformer's table does not say how this family encodes positions"),
}
"""Text that completes "This model: ...", by ``meta["position"]`` of a Trace; models that are not ours included."""


def described(kind: str) -> Message:
    """Return the message that completes "This model: ..."."""
    return DESCRIBED.get(kind, DESCRIBED["unknown"])
