"""The app in this process, on one model for all tests."""

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests import pseudo
from tests.app.pages.seen import at_page, script_of
from visformer import i18n
from visformer.app.lessons import lesson_file
from visformer.app.serving import workbench
from visformer.app.serving.server import SCRIPT
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import EXPLORER
from visformer.app.shell import head


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
    """Start sessions: ``new_app(lang="zh", page="see/masks", layer="2")``, by default with the explorer or a step.

    They share the model, as visitors do.
    """
    monkeypatch.setattr(workbench, "MODEL", model_name)

    def start(*, locale="en-US", page="", **link):
        app = AppTest.from_file(SCRIPT, default_timeout=60)
        app.context = {"locale": locale}
        for name, value in link.items():
            if value:
                app.query_params[name] = value
        if page:
            app.switch_page(script_of(page))
            return app.run()
        with at_page("" if link.get("lesson") else EXPLORER):
            return app.run()

    return start


@pytest.fixture
def exported(monkeypatch):
    """Return what the last run of an app offered to export; a session itself keeps nothing so large."""
    draw = head.draw

    def noted(run):
        Slot("exported", []).set(list(run.exports))
        draw(run)

    monkeypatch.setattr(head, "draw", noted)
    return lambda app: app.session_state["exported"]


@pytest.fixture(scope="session")
def _pseudo_language(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locale")
    pseudo.write(folder)
    return folder


@pytest.fixture
def in_brackets(_pseudo_language, new_app, monkeypatch):
    """Start sessions in the pseudo-language."""
    monkeypatch.setattr(i18n, "LOCALES", _pseudo_language)
    lessons = {name: pseudo.lesson(content) for name, content in lesson_file._shipped().items()}
    monkeypatch.setattr(lesson_file, "_shipped", lambda: lessons)
    lesson_file.read.cache_clear()  # which languages a lesson can have depends on it
    yield lambda page="", **link: new_app(page=page, **{"lang": pseudo.CODE, "text": "I like cats.", **link})
    lesson_file.read.cache_clear()
