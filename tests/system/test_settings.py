"""Operator settings: read when called, by one typed reader, which no variable bypasses."""

import re
from pathlib import Path

import pytest

import visformer
from visformer.adapters.bundled import BUNDLED
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


def test_a_setting_has_its_type():
    assert settings.MODEL({}) == BUNDLED[0]
    assert [settings.ANY_MODEL({"VISFORMER_ANY_MODEL": text}) for text in ("1", "0", "")] == [True, False, False]
    assert [settings.PROCESSES(given) for given in ({}, {"VISFORMER_PROCESSES": "0"})] == [None, 0]


@pytest.mark.parametrize(
    ("setting", "text"), [(settings.ANY_MODEL, "yes"), (settings.PROCESSES, "-1"), (settings.PROCESSES, "two")]
)
def test_a_wrong_value_is_named_in_both_languages(monkeypatch, setting, text):
    monkeypatch.setenv(setting.name, text)
    for read in (setting, settings.check):
        with pytest.raises(VisformerError, match=rf"{setting.name}={text}: (write 1|a whole number)") as caught:
            read()
    assert re.search("[\u4e00-\u9fff]", caught.value.localized(translations("zh").gettext))


def test_no_variable_is_named_elsewhere():
    """Except for the option --model, which click reads and which sets it for the app."""
    named = {path.name for path in PACKAGE.rglob("*.py") if '"VISFORMER_' in path.read_text(encoding="utf-8")}
    assert named == {"settings.py", "running.py"}
