"""Every message has a Chinese translation, languages can be added, and Chinese has one term for one thing."""

import builtins
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from scripts.check_locale import complaints
from tests import pseudo
from visformer import i18n
from visformer.app.session import url_state

ROOT = Path(__file__).parent.parent
LESSONS = sorted((ROOT / "visformer/app/lessons/shipped").glob("*.yaml"))
HAN = "[\u4e00-\u9fff]"


def write_catalogue(folder, locale, messages=""):
    path = folder / locale / "LC_MESSAGES" / "visformer.po"
    path.parent.mkdir(parents=True)
    path.write_text(f'msgid ""\nmsgstr ""\n"X-Language-Name: {locale}\\n"\n\n{messages}', encoding="utf-8")
    return path


def test_every_message_is_translated():
    assert not list(complaints(i18n.catalogue("zh"), pseudo.messages()))


def test_several_languages_can_be_used_at_once():
    assert i18n.translations("zh").gettext("Encoder") == "编码器"
    assert i18n.translations("en").gettext("Encoder") == "Encoder"
    assert i18n.translations("xx").gettext("Encoder") == "Encoder"
    assert not hasattr(builtins, "_")


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
def test_a_locale_gets_the_closest_language(locale, language):
    assert i18n.closest(locale) == language


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_TW.Big5"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "C.UTF-8", "LANGUAGE": "zh_CN:zh"}, "en"),
        ({"LANGUAGE": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en"}, "en"),
        ({"LANG": "de_DE@euro", "LANGUAGE": "de:zh_CN:en"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_environment_has_a_language(environ, language):
    assert i18n.preferred(environ) == language


def test_another_language_is_one_more_file(tmp_path, monkeypatch):
    monkeypatch.setattr(i18n, "LOCALES", tmp_path)
    assert i18n.languages() == {"en": "EN"}
    monkeypatch.setattr(i18n, "LOCALES", tmp_path / "one_more")
    path = pseudo.write(tmp_path / "one_more")
    assert i18n.languages() == {"en": "EN", pseudo.CODE: pseudo.NAME}
    assert not list(complaints(path, pseudo.messages()))
    assert i18n.translations(pseudo.CODE).gettext("Encoder") == "⟦Encoder⟧"
    assert i18n.closest("xx-YY") == pseudo.CODE
    assert url_state.read({"lang": "xx-YY"})[0].lang == pseudo.CODE
    (remark,) = url_state.read({"lang": "zh"})[1]
    assert remark.localized(str) == "lang=zh: choose one of en, xx."


def test_sentences_are_joined_by_a_space_except_in_chinese():
    assert i18n.paragraph("One.", "Two?", "Three.") == "One. Two? Three."
    assert i18n.paragraph("第一句。", "第二句？", "d = 4。") == "第一句。第二句？d = 4。"
    assert i18n.paragraph("“。 → </s>” reads “。”.", "It is a mark.") == "“。 → </s>” reads “。”. It is a mark."


def test_two_variants_of_a_language_have_different_codes(tmp_path, monkeypatch):
    monkeypatch.setattr(i18n, "LOCALES", tmp_path)
    for locale in ("zh_CN", "zh_TW"):
        write_catalogue(tmp_path, locale)
    assert i18n.languages() == {"en": "EN", "zh": "zh_CN", "zh-tw": "zh_TW"}
    assert [i18n.closest(locale) for locale in ("zh-TW", "zh-HK", "zh", "zh-Hant-TW")] == ["zh-tw", "zh", "zh", "zh"]


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ('msgid "Encoder"\nmsgstr "A"\n\nmsgid "Encoder"\nmsgstr "B"\n', "twice"),
        ('msgid "Encoder"\nmsgstr "A"\nmsgstr "B"\n', "two translations"),
        ('msgid "Encoder"\nmsgstr ""\n', "not translated"),
    ],
)
def test_leftovers_of_a_merge_are_found(tmp_path, messages, complaint):
    path = write_catalogue(tmp_path, "xx", messages)
    assert any(each.startswith(complaint) for each in complaints(path, {"Encoder"}))


def chinese():
    """Yield every Chinese text of interface, shipped lessons and docs, without code and links, and where it is from."""
    with i18n.catalogue("zh").open("rb") as file:
        yield from ((str(message.id), str(message.string)) for message in read_po(file) if message.id)
    for path in LESSONS:
        yield from ((path.name, text) for text in re.findall(r"zh: (.+?)\}?$", path.read_text(encoding="utf-8"), re.M))
    for path in (ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.zh-CN.md"))):
        prose = re.sub(r"(?ms)^```.*?^```", "", path.read_text(encoding="utf-8"))
        prose = re.sub(r"`[^`\n]*`", "§", prose)  # a placeholder, so that the spaces around it do not meet
        prose = re.sub(r"\]\([^)]*\)|\*\*|<[^>]*>", "", prose)
        yield from ((path.name, line) for line in prose.splitlines())


def test_chinese_has_one_term_for_one_thing():
    table = re.findall(r"(?m)^\| .+? \| (.+?) \| (.+?) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    rejected = [word for term, others in table if re.search(HAN, term) for word in re.split("[、；]", others)]
    assert len(rejected) > 20
    assert not [(where, word) for where, text in chinese() for word in rejected if word in text]


def test_chinese_has_consistent_spaces_and_punctuation():
    wrong = re.compile(rf"{HAN}[A-Za-z0-9√{{]|[A-Za-z0-9}}]{HAN}|{HAN} ?[,;:?!]|{HAN} {HAN}")
    brackets = re.compile(r"\([^()]*\)")  # around Latin text and shapes
    assert not [
        (where, text) for where, text in chinese() if wrong.search(brackets.sub("", text).replace("按 ? 查", ""))
    ]
