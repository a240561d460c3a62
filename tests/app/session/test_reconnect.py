"""The widget values that a browser sends after it lost its server."""

import pytest

from tests.app.support import address_of
from visformer.app.session import boxes
from visformer.app.streamlit_private import reconnect


@pytest.mark.parametrize(
    ("locale", "link", "switched", "lang", "address"),
    [
        ("en-US", {}, "EN", "en", {}),
        ("zh-CN", {}, "中文", "zh", {}),
        ("zh-CN", {"lang": "zh"}, "中文", "zh", {"lang": "zh"}),
        ("en-US", {}, "中文", "zh", {"lang": "zh"}),  # chosen last, not in the address yet
        ("zh-CN", {"lang": "zh"}, "EN", "en", {"lang": "en"}),
    ],
)
def test_the_language_stays_and_the_address_holds_the_choice(
    new_app, monkeypatch, locale, link, switched, lang, address
):
    monkeypatch.setattr(reconnect, "widget_values", lambda: {boxes.LANGUAGE: switched})
    app = new_app(locale=locale, **link)
    assert app.session_state[boxes.LANGUAGE] == lang
    assert address_of(app) == address
