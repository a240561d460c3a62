"""Translations of the interface. English messages are the ids; catalogues are gettext .po files.

To add a language, add one file, ``visformer/i18n/locale/xx/LC_MESSAGES/visformer.po``; its name in the interface is in
the file's header, as X-Language-Name.

Translations belong to a context (a page run, a test) and are never installed globally, because one process serves
visitors in several languages at once.
"""

import gettext
import io
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Gettext = Callable[[str], str]
"""Translates a message id."""

ENGLISH = "en"
"""The language of message ids, and of texts that do not specify one."""

DOMAIN = "visformer"
LOCALES = Path(__file__).parent / "locale"

_NAME = re.compile(r'^"X-Language-Name: *(.*?) *\\n"$', re.MULTILINE)
_FULL_WIDTH = ("。", "？", "！")
_HEADER = 4096  # characters to read of a catalogue; they contain its header


@cache
def _catalogues(folder: Path) -> dict[str, Path]:
    """Return the .po file of each language code: "zh" for zh_CN; "zh-tw" for a second file of the same language."""
    catalogues: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*/LC_MESSAGES/{DOMAIN}.po")):
        tag = path.parts[-3].replace("_", "-").lower()
        short = tag.split("-")[0]
        if short != ENGLISH:
            catalogues[tag if short in catalogues else short] = path
    return catalogues


@cache
def _names(folder: Path) -> dict[str, str]:
    named = {ENGLISH: "EN"}
    for code, path in _catalogues(folder).items():
        with path.open(encoding="utf-8") as file:
            name = _NAME.search(file.read(_HEADER))
        named[code] = name[1] if name else path.parts[-3]
    return named


def languages() -> Mapping[str, str]:
    """Return language codes, as in ``?lang=``, with the names shown on the language switch; English first."""
    return _names(LOCALES)


def catalogue(language: str) -> Path:
    """Return the .po file of a language other than English."""
    return _catalogues(LOCALES)[language]


def translations(language: str) -> gettext.NullTranslations:
    """Return the translations of a language; for English and unsupported languages they return the ids.

    The .po file is compiled in memory on first use, so that no compiled file can be stale or missing, at no cost for
    the English interface.
    """
    path = _catalogues(LOCALES).get(language)
    return gettext.NullTranslations() if path is None else _read(path)


@cache
def _read(path: Path) -> gettext.GNUTranslations:
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with path.open("rb") as file:
        messages = read_po(file, domain=DOMAIN)
    compiled = io.BytesIO()
    write_mo(compiled, messages)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def spoken(locale: str) -> str | None:
    """Return the best available language for a locale, such as "zh" for "zh-TW"; None if it is not supported."""
    parts = locale.replace("_", "-").lower().split("-")
    tags = ("-".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((tag for tag in tags if tag in languages()), None)


def closest(locale: str | None) -> str:
    """Return the language for a browser's locale; English if it is not supported."""
    return spoken(locale or "") or ENGLISH


def preferred(environ: Mapping[str, str] = os.environ) -> str:
    """Return the language of the environment, as gettext reads it: LANGUAGE, then LC_ALL, LC_MESSAGES or LANG.

    Args:
        environ: environment variables.

    Returns:
        The first of these languages that is supported, English if none is or if the locale is C.
    """
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    tags = [re.split("[.@]", each)[0] for each in (*environ.get("LANGUAGE", "").split(":"), locale)]
    return ENGLISH if tags[-1] in ("C", "POSIX") else next(filter(None, map(spoken, tags)), ENGLISH)


def paragraph(*sentences: str) -> str:
    """Join non-empty sentences with spaces, but without a space after full-width punctuation."""
    spaced = (one if one.endswith(_FULL_WIDTH) else f"{one} " for one in sentences if one)
    return "".join(spaced).removesuffix(" ")
