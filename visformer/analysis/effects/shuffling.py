"""What a head's choice of keys is worth: its weights shuffled within each row, or spread evenly.

If the output stays as it is, the head might as well have attended to anything (Jain and Wallace 2019, section 4.2.1:
permuted weights, whose effect on the output is measured by the total variation distance).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.effects.weight_effects import Progress, _require_choice, told
from visformer.system.arguments import require_whole

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text

DRAWS = 20
"""Shuffles of which the median is taken."""


@dataclass(frozen=True)
class ShuffleEffect:
    """How far the output distributions move.

    Args:
        draws: (draw, row) float64, from 0 to 1: total variation distance of a row's distribution over the vocabulary
            from what it is with the weights as they are.
    """

    draws: NDArray[np.float64]

    @property
    def median(self) -> NDArray[np.float64]:
        """(row,) the median over the draws."""
        return np.asarray(np.median(self.draws, axis=0))

    @property
    def low(self) -> NDArray[np.float64]:
        """(row,) the smallest of the draws."""
        return np.asarray(self.draws.min(axis=0))

    @property
    def high(self) -> NDArray[np.float64]:
        """(row,) the largest of the draws."""
        return np.asarray(self.draws.max(axis=0))


def shuffle_effect(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    path: str,
    head: int | Sequence[int] | None = None,
    weights: Literal["shuffled", "uniform"] = "shuffled",
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
    to: str | None = None,
) -> ShuffleEffect:
    """Shuffle the weights of heads within each row among its allowed keys, and measure what rows then predict.

    A distance near 0 says that this text needs no choice of keys there; it does not say that the head is idle, since
    its values still come through.

    Args:
        model: a model that predicts next tokens.
        source: a text or its token ids, as for ``model.trace``.
        target: as for ``model.trace``; None: an encoder-decoder's own greedy output.
        path: path of an attention, or a glob: "decoder.0.*" is a layer.
        head: one, several, or None: all.
        weights: "shuffled", or "uniform": the same weight on each allowed key, which is one draw.
        draws: number of shuffles.
        seed: of the first; the others follow.
        progress: as for :func:`weight_effects`.
        to: target language, as for ``model.trace``.

    Returns:
        The distances of each draw.

    Raises:
        VisformerError: the model predicts no next token, or a setting is unknown.
        EditError: there is no such head, or the model does not let its weights be changed.
    """
    from visformer.edits import Shuffle, Uniform

    _require_choice("weights", weights, ("shuffled", "uniform"))
    require_whole("draws", draws)
    text = model.read_again(model.trace(source, target, to=to, record=()))
    changed = [Uniform(path, head)] if weights == "uniform" else [Shuffle(path, head, seed + i) for i in range(draws)]
    texts = [(text, ()), *((text, edit) for edit in changed)]
    runs = told(model.log_probabilities(texts, every=True), len(texts), progress)
    clean = np.exp(next(runs).astype(np.float64))  # (row, vocab)
    return ShuffleEffect(np.stack([abs(np.exp(each.astype(np.float64)) - clean).sum(axis=1) / 2 for each in runs]))
