"""What can be computed from patterns. Arrays in, NumPy out; neither torch nor streamlit."""
