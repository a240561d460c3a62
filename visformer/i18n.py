"""The interface in the visitor's language. English messages are the ids; catalogues are gettext .po files.

A translation object belongs to a context (a page run, a test); none is ever installed globally, because one process
serves visitors of several languages at once.
"""

import gettext
import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

Gettext = Callable[[str], str]
"""A message id to the message in one language."""

LANGUAGES = {"en": "EN", "zh": "中文"}
"""Language code, as in ``?lang=``, to its own name for the switch."""

DOMAIN = "visformer"
_LOCALES = {"zh": "zh_CN"}
_FOLDER = Path(__file__).parent / "locale"


def catalogue(language: str) -> Path:
    """The .po file of a language other than English."""
    return _FOLDER / _LOCALES[language] / "LC_MESSAGES" / f"{DOMAIN}.po"


@cache
def translations(language: str) -> gettext.NullTranslations:
    """The translations of a language; English, and any language we do not speak, gives the ids back.

    The .po file is read when first asked for: no compiled file can be stale or missing, and the English interface
    does not pay for it.
    """
    if language not in _LOCALES:
        return gettext.NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with catalogue(language).open("rb") as file:
        messages = read_po(file, domain=DOMAIN)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def closest(locale: str | None) -> str:
    """The language for a browser's locale, such as "zh-TW"; English where we do not speak it."""
    language = (locale or "").replace("_", "-").split("-")[0].lower()
    return language if language in LANGUAGES else "en"
