"""Export under the pictures: closed it costs nothing, open it offers what the page shows."""

import pytest

from visformer import i18n
from visformer.canvas import page as html
from visformer.export import tables

FORMATS = ["HTML", "SVG", "CSV", "JSON", "safetensors"]


def offered(app):
    return [button.proto.label for button in app.get("download_button")]


def open_export(app, key):
    app.session_state[f"{key}_export"] = True
    app.run()
    assert not app.exception
    return offered(app)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_attention_in_every_format(new_app, lang, monkeypatch):
    monkeypatch.setattr(html, "page", lambda *_, **__: pytest.fail("made before it was asked for"))
    app = new_app(lang=lang)
    labels = {popover.proto.popover.label for popover in app.get("popover")}
    assert i18n.translations(lang).gettext("Export") in labels
    assert offered(app) == []
    assert open_export(app, "attention") == FORMATS


def test_too_many_numbers_for_text_are_not_offered_as_text(new_app, monkeypatch):
    monkeypatch.setattr(tables, "MAX_NUMBERS", 10)
    assert open_export(new_app(), "attention") == ["HTML", "SVG", "safetensors"]


def test_two_pictures_of_one_page_are_kept_apart(new_app):
    app = new_app().switch_page("pages/understand/head.py").run()
    assert open_export(app, "head_steps") == ["SVG", "CSV"]
    assert open_export(app, "head_sum") == ["SVG", "CSV"] * 2
