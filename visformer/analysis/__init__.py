"""What patterns look like, and what heads and weights do: arrays, Traces or a model in, NumPy or a table out.

Imports neither torch nor streamlit; a model is run through its own methods.
"""

from visformer.analysis.direct import DIRECT_NEEDS, direct_attribution
from visformer.analysis.head_effects import head_effects, pruning, rank_correlation, told_from_zero
from visformer.analysis.heads import SCORES, Score, head_scores, mean_head_scores, row_entropy
from visformer.analysis.known_heads import known_heads
from visformer.analysis.lens import LENS_NEEDS, Lens, logit_lens
from visformer.analysis.patching import Patched, PatchingPair, patching, patching_pairs
from visformer.analysis.shuffling import ShuffleEffect, shuffle_effect
from visformer.analysis.weight_effects import WeightEffects, weight_effects

__all__ = [
    "DIRECT_NEEDS",
    "LENS_NEEDS",
    "SCORES",
    "Lens",
    "Patched",
    "PatchingPair",
    "Score",
    "ShuffleEffect",
    "WeightEffects",
    "direct_attribution",
    "head_effects",
    "head_scores",
    "known_heads",
    "logit_lens",
    "mean_head_scores",
    "patching",
    "patching_pairs",
    "pruning",
    "rank_correlation",
    "row_entropy",
    "shuffle_effect",
    "told_from_zero",
    "weight_effects",
]
