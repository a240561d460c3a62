"""``python -m visformer.app.serving run app.py``, or ``asgi.py``, with Streamlit's options."""

from visformer.app.serving.server import main

main(prog_name="streamlit")
