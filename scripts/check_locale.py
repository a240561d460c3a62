"""Check the translations: none missing, obsolete or duplicated, placeholders unchanged.

python scripts/check_locale.py
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from babel.messages.catalog import Message
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "visformer" / "i18n" / "locale"
SOURCE_LANGUAGE = "en"
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def messages_in_code() -> set[str]:
    """Return every message id that the code marks for translation (the singular of a plural)."""
    files = [*(ROOT / "pages").rglob("*.py"), *(ROOT / "visformer").rglob("*.py")]
    found = (m for f in files if f.exists() for m in extract_from_file("python", f, keywords=KEYWORDS))
    return {_singular(message) for _, message, _, _ in found}


def complaints(po: Path, wanted: set[str]) -> Iterator[str]:
    """Yield what is wrong with one catalogue."""
    with po.open("rb") as file:
        catalog = read_po(file, locale=po.parts[-3])
    present = {_singular(message.id): message for message in catalog if message.id}
    yield from _written_twice(po)
    if '"X-Language-Name:' not in po.read_text(encoding="utf-8"):
        yield "the header lacks X-Language-Name, by which the interface's switch calls this language"
    yield from (f"not in the catalogue: {i!r}" for i in sorted(wanted - present.keys()))
    yield from (f"no longer in the code: {i!r}" for i in sorted(present.keys() - wanted))
    for message_id, message in present.items():
        if message.fuzzy or not all(_translations(message)):
            yield f"not translated: {message_id!r}"
        elif any(_fields(text) - _fields(message_id) for text in _translations(message)):
            yield f"a placeholder that the original lacks: {message_id!r}"


def _written_twice(po: Path) -> Iterator[str]:
    """Yield duplicates, which a union merge of two branches can leave behind and Babel silently accepts."""
    blocks = [
        "".join(line for line in block.splitlines(keepends=True) if not line.startswith("#"))
        for block in re.split(r"(?m)^(?=msgid )", po.read_text(encoding="utf-8"))
    ]
    ids = [block.split("msgstr", 1)[0].strip() for block in blocks if block.startswith("msgid ")]
    yield from (f"twice: {message}" for message, count in Counter(ids).items() if count > 1)
    yield from (f"two translations: {block}" for block in blocks if len(re.findall("(?m)^msgstr ", block)) > 1)


def _singular(message: str | tuple[str, ...] | list[str]) -> str:
    return message if isinstance(message, str) else message[0]


def _translations(message: Message) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string)


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def main() -> int:
    """Print every complaint; return 1 if there are any."""
    wanted = messages_in_code()
    catalogues = [po for po in sorted(LOCALE.glob("*/LC_MESSAGES/*.po")) if po.parts[-3] != SOURCE_LANGUAGE]
    found = [f"{po.relative_to(ROOT)}: {what}" for po in catalogues for what in complaints(po, wanted)]
    print("\n".join(found) or f"{len(catalogues)} translated catalogue(s) of {len(wanted)} messages: complete")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
