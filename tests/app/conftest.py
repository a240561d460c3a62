"""The app in this process, on one model for all tests."""

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from visformer.app.serving import workbench


@pytest.fixture(scope="session")
def model_name():
    return "en-zh"


@pytest.fixture(scope="session", autouse=True)
def _scan_for_components_once():
    """AppTest searches all packages for components in each run, which takes 0.2 s."""
    with pytest.MonkeyPatch.context() as patch:
        manifests = manifest_scanner.scan_component_manifests()
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: manifests)
        yield


@pytest.fixture
def new_app(model_name, monkeypatch):
    """Start sessions: ``new_app(lang="zh", page="see/masks", layer="2")``. They share the model, as visitors do."""
    monkeypatch.setattr(workbench, "MODEL", model_name)

    def start(*, locale="en-US", page="", **link):
        app = AppTest.from_file("../../app.py", default_timeout=60)
        app.context = {"locale": locale}
        for name, value in link.items():
            if value:
                app.query_params[name] = value
        if page:
            app.switch_page(f"pages/{page}.py")
        return app.run()

    return start
