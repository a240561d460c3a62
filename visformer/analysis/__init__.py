"""What a pass means: scores of heads, what each word takes from each other word, and what heads and weights do.

Arrays, Traces or a model in, NumPy or a table out; no torch, no streamlit. A model is run through its own methods.
"""

from visformer.adapters.learning.recipe import weights_at
from visformer.analysis import atlas, guesses
from visformer.analysis.answers import Answer
from visformer.analysis.comparing import (
    Partners,
    head_differences,
    head_similarity,
    match_heads,
    row_distances,
    token_partners,
)
from visformer.analysis.effects.head_effects import (
    effect_sentences,
    head_effects,
    parse_sentences,
    pruning,
    rank_correlation,
    told_from_zero,
)
from visformer.analysis.effects.lens import DIRECT_NEEDS, LENS_NEEDS, Lens, direct_attribution, logit_lens
from visformer.analysis.effects.patching import Patched, PatchingPair, patching, patching_pair, patching_pairs
from visformer.analysis.effects.weight_effects import ShuffleEffect, WeightEffects, shuffle_effect, weight_effects
from visformer.analysis.flow import Parts, alti, alti_plus, empty_rows, norm_weighted, parts, rollout
from visformer.analysis.heads import SCORES, Score, head_scores, mean_head_scores
from visformer.analysis.known_heads import appears, head_history, known_heads
from visformer.analysis.methods import (
    METHODS,
    Attribution,
    Method,
    attribution,
    attribution_of,
    curve_scores,
    deletion,
    insertion,
    needed,
)
from visformer.analysis.sensitivity import attention_gradient, gradient_x_input, masking
from visformer.analysis.syntax import Tree, bundled_trees, syntactic_heads
from visformer.analysis.word_alignment import Aligned, alignment, alignment_error
from visformer.system.arguments import check_public
from visformer.trace.row_totals import row_entropy

__all__ = [
    "DIRECT_NEEDS",
    "LENS_NEEDS",
    "METHODS",
    "SCORES",
    "Aligned",
    "Answer",
    "Attribution",
    "Lens",
    "Method",
    "Partners",
    "Parts",
    "Patched",
    "PatchingPair",
    "Score",
    "ShuffleEffect",
    "Tree",
    "WeightEffects",
    "alignment",
    "alignment_error",
    "alti",
    "alti_plus",
    "appears",
    "atlas",
    "attention_gradient",
    "attribution",
    "attribution_of",
    "bundled_trees",
    "curve_scores",
    "deletion",
    "direct_attribution",
    "effect_sentences",
    "empty_rows",
    "gradient_x_input",
    "guesses",
    "head_differences",
    "head_effects",
    "head_history",
    "head_scores",
    "head_similarity",
    "insertion",
    "known_heads",
    "logit_lens",
    "masking",
    "match_heads",
    "mean_head_scores",
    "needed",
    "norm_weighted",
    "parse_sentences",
    "parts",
    "patching",
    "patching_pair",
    "patching_pairs",
    "pruning",
    "rank_correlation",
    "rollout",
    "row_distances",
    "row_entropy",
    "shuffle_effect",
    "syntactic_heads",
    "token_partners",
    "told_from_zero",
    "weight_effects",
    "weights_at",
]

check_public(__name__)
