"""Settings of operators: environment variables, read and checked in one place."""

import re
from pathlib import Path

import pytest

import visformer
from visformer.adapters.checkpoints import TRANSLATOR
from visformer.errors import VisformerError
from visformer.i18n import translations
from visformer.system import settings

PACKAGE = Path(visformer.__file__).parent


def test_settings_are_read_when_called(monkeypatch):
    monkeypatch.delenv("VISFORMER_MODELS", raising=False)
    assert settings.MODELS() == ()
    monkeypatch.setenv("VISFORMER_MODELS", "gpt2, /models/x,,")
    assert settings.MODELS() == ("gpt2", "/models/x")
    assert settings.MODELS({"VISFORMER_MODELS": ""}) == ()


def test_every_setting_has_a_type():
    assert settings.MODEL({}) == TRANSLATOR
    assert [settings.ANY_MODEL({"VISFORMER_ANY_MODEL": text}) for text in ("1", "0", "")] == [True, False, False]
    assert settings.HOSTS({"VISFORMER_HOSTS": "Demo.example.org, *.school"}) == ("demo.example.org", "*.school")
    sites = settings.FRAME_ANCESTORS({"VISFORMER_FRAME_ANCESTORS": "https://a.example, http://*.b.example:8080"})
    assert sites == ("https://a.example", "http://*.b.example:8080")
    assert [settings.PROCESSES({"VISFORMER_PROCESSES": text}) for text in ("", "3", "auto")] == [0, 3, None]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (settings.ANY_MODEL, "yes"),
        (settings.PROCESSES, "-1"),
        (settings.PROCESSES, "two"),
        (settings.HOSTS, "http://a"),
        (settings.HOSTS, "a:80"),
        (settings.FRAME_ANCESTORS, "moodle.example.org"),
        (settings.FRAME_ANCESTORS, "https://a.example; script-src *"),
    ],
)
def test_an_invalid_value_is_reported_in_both_languages(monkeypatch, setting, text):
    monkeypatch.setenv(setting.name, text)
    expected = rf"{setting.name}={re.escape(text)}: (write 1|write names|expected a whole number|sites are needed)"
    for read in (setting, settings.check):
        with pytest.raises(VisformerError, match=expected) as caught:
            read()
    assert re.search("[\u4e00-\u9fff]", caught.value.localized(translations("zh").gettext))


def test_no_other_module_reads_a_variable():
    """Except for running.py, whose option --model sets it for the app."""
    files = {path.name for path in PACKAGE.rglob("*.py") if '"VISFORMER_' in path.read_text(encoding="utf-8")}
    assert files == {"settings.py", "running.py"}
