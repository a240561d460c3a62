"""Streamlit pages on which a sentence is typed. They run in the peers' environment."""
