"""Statistics of attention patterns: arrays or Traces in, NumPy out. Imports neither torch nor streamlit."""

from visformer.analysis.heads import SCORES, head_scores, mean_head_scores

__all__ = ["SCORES", "head_scores", "mean_head_scores"]
