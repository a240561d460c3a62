"""Every use of Streamlit's undocumented parts, one file for each purpose.

Each file says what a visitor would lose without it. ``tests/test_streamlit_private.py`` tells which purpose breaks when
Streamlit changes. The part that runs in the browser is in ``visformer/web/static/streamlit_private/``.
"""
