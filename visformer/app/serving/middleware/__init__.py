"""ASGI middleware that every request and message passes before it reaches Streamlit."""
