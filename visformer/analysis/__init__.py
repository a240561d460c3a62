"""What a pass means: scores of heads, and what each word takes from each other word. NumPy out; no torch, no streamlit.

Arrays, Traces or models in. Methods that run a model call its own methods for that.
"""

from visformer.analysis.contributions import alti, alti_plus, empty_rows
from visformer.analysis.curves import deletion, insertion
from visformer.analysis.flow import rollout
from visformer.analysis.gradients import attention_gradient, gradient_x_input
from visformer.analysis.heads import SCORES, Score, head_scores, mean_head_scores, row_entropy
from visformer.analysis.hiding import masking
from visformer.analysis.methods import METHODS, Attribution, Method, attribution
from visformer.analysis.needs import needed
from visformer.analysis.sublayers import Parts, norm_weighted, parts
from visformer.analysis.word_alignment import Aligned, alignment, alignment_error

__all__ = [
    "METHODS",
    "SCORES",
    "Aligned",
    "Attribution",
    "Method",
    "Parts",
    "Score",
    "alignment",
    "alignment_error",
    "alti",
    "alti_plus",
    "attention_gradient",
    "attribution",
    "deletion",
    "empty_rows",
    "gradient_x_input",
    "head_scores",
    "insertion",
    "masking",
    "mean_head_scores",
    "needed",
    "norm_weighted",
    "parts",
    "rollout",
    "row_entropy",
]
