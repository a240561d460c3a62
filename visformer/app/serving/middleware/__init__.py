"""What every request and message passes before Streamlit sees it."""
