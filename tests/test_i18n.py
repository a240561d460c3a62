"""Every marked string has a Chinese translation, and no translation object is global."""

import builtins
import threading

import pytest

from scripts.check_locale import complaints, messages_in_code
from visformer import i18n
from visformer.errors import TextError
from visformer.ui.limits import MAX_CHARACTERS, check_text


def test_every_message_is_translated():
    assert not list(complaints(i18n.catalogue("zh"), messages_in_code()))


def test_english_is_the_id_and_costs_no_catalogue():
    assert i18n.translations("en").gettext("Encoder") == "Encoder"
    assert i18n.translations("xx").gettext("Encoder") == "Encoder"


def test_languages_side_by_side():
    assert i18n.translations("zh").gettext("Encoder") == "编码器"
    assert i18n.translations("en").gettext("Encoder") == "Encoder"
    assert not hasattr(builtins, "_")
    seen = {}

    def speak(language):
        seen[language] = i18n.translations(language).gettext("Decoder")

    threads = [threading.Thread(target=speak, args=(language,)) for language in ("zh", "en")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"zh": "解码器", "en": "Decoder"}


def test_errors_speak_the_visitors_language():
    with pytest.raises(TextError) as caught:
        check_text("a" * 10_000)
    for language in ("en", "zh"):
        message = caught.value.localized(i18n.translations(language).gettext)
        assert "10000" in message
        assert str(MAX_CHARACTERS) in message
    assert "字符" in message


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("zh-CN", "zh"),
        ("zh_TW", "zh"),
        ("ZH", "zh"),
        ("en-GB", "en"),
        ("fr", "en"),
        ("", "en"),
        (None, "en"),
        ("<b>", "en"),
    ],
)
def test_closest_language(locale, language):
    assert i18n.closest(locale) == language
