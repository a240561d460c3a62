"""The app in this process, on one model for all tests."""

import pytest
from streamlit.testing.v1 import AppTest

from visformer.ui import resources


@pytest.fixture(scope="session")
def model_name():
    return "en-zh"


@pytest.fixture
def new_app(model_name, monkeypatch):
    """Starts sessions: ``new_app(lang="zh", locale="en-US")``. They share the model, as visitors do."""
    monkeypatch.setattr(resources, "MODEL", model_name)

    def start(*, lang=None, locale="en-US"):
        app = AppTest.from_file("../../app.py", default_timeout=60)
        app.context = {"locale": locale}
        if lang:
            app.query_params["lang"] = lang
        return app.run()

    return start
