"""What a browser brings along whose server is gone."""

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
        ("en-US", {}, "中文", "zh", {"lang": "zh"}),  # the last that it did, before its address said so
        ("zh-CN", {"lang": "zh"}, "EN", "en", {"lang": "en"}),
    ],
)
def test_its_language_stays_and_its_address_says_what_was_chosen(
    new_app, monkeypatch, locale, link, switched, lang, address
):
    monkeypatch.setattr(reconnect, "brought", lambda: {boxes.LANGUAGE: switched})
    app = new_app(locale=locale, **link)
    assert app.session_state[boxes.LANGUAGE] == lang
    assert address_of(app) == address
