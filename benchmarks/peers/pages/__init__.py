"""Streamlit pages with a text box for a sentence. They run in the peers' environment."""
