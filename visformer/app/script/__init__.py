"""The script that Streamlit runs, alone in its folder: beside it, Streamlit would take files for pages and modules."""
