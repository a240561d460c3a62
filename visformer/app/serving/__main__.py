"""``python -m visformer.app.serving run asgi.py``, with Streamlit's options."""

from streamlit.web.cli import main

from visformer.app.serving import server  # noqa: F401  imported because it configures Streamlit's server

main(prog_name="streamlit")
