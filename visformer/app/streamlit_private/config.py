"""Where ``.streamlit/config.toml`` is, which plain uvicorn looks for beside the script inside the package.

A visitor loses: our colours, fonts and limits on messages, on a server that uvicorn runs from another folder.
"""

from streamlit import config


def read_beside(app: str) -> None:
    """Read the options that lie beside app.py, as ``streamlit run app.py`` does."""
    config._main_script_path = app
