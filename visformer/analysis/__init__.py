"""Statistics of attention patterns: arrays in, NumPy out. Imports neither torch nor streamlit."""
