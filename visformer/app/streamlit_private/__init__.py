"""Parts of Streamlit that it does not document, one file for each purpose; nothing else in the app uses any.

Each file says what a visitor would lose without it. ``tests/test_streamlit_private.py`` says which purpose is hit when
Streamlit changes. What runs in the browser stands in ``visformer/web/static/streamlit_private/``.
"""
