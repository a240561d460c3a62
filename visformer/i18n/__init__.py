"""The interface in the visitor's language. English messages are the ids; catalogues are gettext .po files.

A language is one file, ``visformer/i18n/locale/xx/LC_MESSAGES/visformer.po``: what the interface calls it stands in the
file's own header, as X-Language-Name, and nothing else has to know of it.

A translation object belongs to a context (a page run, a test); none is ever installed globally, because one process
serves visitors of several languages at once.
"""

import gettext
import io
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Gettext = Callable[[str], str]
"""A message id to the message in one language."""

ENGLISH = "en"
"""The language of message ids, and of a text that does not say which it is in."""

DOMAIN = "visformer"
LOCALES = Path(__file__).parent / "locale"

_NAME = re.compile(r'^"X-Language-Name: *(.*?) *\\n"$', re.MULTILINE)
_AFTER_FULL_WIDTH = re.compile(r"(?<=[。？！]) ")
_HEADER = 4096  # bytes of a catalogue in which its header stands


@cache
def _catalogues(folder: Path) -> dict[str, Path]:
    """Language code to its .po file: "zh" of zh_CN; of a second file for the same language all of its name, "zh-tw"."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob(f"*/LC_MESSAGES/{DOMAIN}.po")):
        whole = path.parts[-3].replace("_", "-").lower()
        short = whole.split("-")[0]
        if short != ENGLISH:
            found[whole if short in found else short] = path
    return found


@cache
def _names(folder: Path) -> dict[str, str]:
    named = {ENGLISH: "EN"}
    for code, path in _catalogues(folder).items():
        with path.open(encoding="utf-8") as file:
            name = _NAME.search(file.read(_HEADER))
        named[code] = name[1] if name else path.parts[-3]
    return named


def languages() -> Mapping[str, str]:
    """Language code, as in ``?lang=``, to its own name for the switch; English first."""
    return _names(LOCALES)


def catalogue(language: str) -> Path:
    """The .po file of a language other than English."""
    return _catalogues(LOCALES)[language]


def translations(language: str) -> gettext.NullTranslations:
    """The translations of a language; English, and any language we do not speak, gives the ids back.

    The .po file is read when first asked for: no compiled file can be stale or missing, and the English interface
    does not pay for it.
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
    """The language for a locale, such as "zh" for "zh-TW", as exact as we have it; None where we do not speak it."""
    parts = locale.replace("_", "-").lower().split("-")
    tags = ("-".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((tag for tag in tags if tag in languages()), None)


def closest(locale: str | None) -> str:
    """The language for a browser's locale; English where we do not speak it."""
    return spoken(locale or "") or ENGLISH


def paragraph(*sentences: str) -> str:
    """Sentences one behind the other, without empty ones: a space between, but not behind full-width marks."""
    return _AFTER_FULL_WIDTH.sub("", " ".join(filter(None, sentences)))
