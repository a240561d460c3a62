"""Values of widgets that a browser sends after it has lost its server."""

import pytest

from tests.addresses import address_of
from visformer.app.session import boxes
from visformer.app.streamlit_private import run_context


@pytest.mark.parametrize(
    ("locale", "link", "sent", "lang", "address"),
    [
        ("en-US", {}, "EN", "en", {}),
        ("zh-CN", {}, "中文", "zh", {}),
        ("zh-CN", {"lang": "zh"}, "中文", "zh", {"lang": "zh"}),
        ("en-US", {}, "中文", "zh", {"lang": "zh"}),  # chosen last, not in the address yet
        ("zh-CN", {"lang": "zh"}, "EN", "en", {"lang": "en"}),
    ],
)
def test_the_language_stays_and_the_address_has_it_if_it_was_chosen(
    new_app, monkeypatch, locale, link, sent, lang, address
):
    monkeypatch.setattr(run_context, "widget_values", lambda: {boxes.LANGUAGE: sent})
    app = new_app(locale=locale, **link)
    assert app.session_state[boxes.LANGUAGE] == lang
    assert address_of(app) == address
