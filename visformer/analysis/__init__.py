"""Statistics of attention patterns: arrays or Traces in, NumPy out. Imports neither torch nor streamlit."""

from visformer.analysis.heads import SCORES, Score, head_scores, mean_head_scores, row_entropy

__all__ = ["SCORES", "Score", "head_scores", "mean_head_scores", "row_entropy"]
