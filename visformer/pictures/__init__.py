"""The panels that each page shows: arrays or a Trace in, panels out. Imports neither plotly, torch nor streamlit."""
