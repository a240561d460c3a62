"""Which panels each page shows: arrays or a Trace in, panels out. Neither plotly, nor torch, nor streamlit."""
