"""Statistics of attention patterns: arrays in, NumPy out. Imports neither torch nor streamlit."""

from visformer.analysis.heads import SCORES, Score, head_scores, row_entropy

__all__ = ["SCORES", "Score", "head_scores", "row_entropy"]
