"""A pseudo-language with every message in brackets: text on screen without brackets is not translated.

Exempt are tokens, typed text, numbers, and the names below.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from scripts.check_locale import messages_in_code
from visformer.adapters.checkpoints import BUNDLED
from visformer.analysis import METHODS
from visformer.errors import Message
from visformer.export.formats import FORMATS
from visformer.pictures.course import TOPICS
from visformer.scenes import CHINESE, EXAMPLES, caption

CODE, NAME = "xx", "⟦Xx⟧"

_WORD = re.compile(r"[^\W\d_][\w.-]*\w")  # one letter alone is a symbol or a key


def _unmarked() -> Iterator[str]:
    """Yield the texts of the course that are no messages: code, shapes and names."""
    for topic in TOPICS:
        rows = [row for table in topic.tables for row in (table.columns, *table.rows)]
        rows += [(claim.printed, claim.right) for claim in topic.claims]
        rows += [(names.notes, names.ours, names.torch, names.shapes) for names in topic.classes]
        yield from (text for row in rows for text in row if not isinstance(text, Message))


NAMES = {
    "proper names": (
        "Visformer visformer EN YAML LayerNorm LN".split(),
        [f.name for f in FORMATS],
    ),
    "notation of the paper, and names of settings in the code": (
        "softmax ReLU sin cos exp mask pos base max_len self cross ffn top-p".split(),
        "PE Kᵀ PEᵀ Eᵀ ids ln xᵀ W_Q W_K W_V W_O W_Qᵀ b_Q b_K b_V b_O W_1 b_1 W_2 b_2 d_model d_k d_ff".split(),
    ),
    "names and shapes in the course notes": (_WORD.findall(" ".join(_unmarked())),),
    "formulas of methods": (_WORD.findall(" ".join(method.plain for method in METHODS.values())),),
    "bundled models": (BUNDLED,),
    "keys of a keyboard": (("Shift", "Esc"),),
    "languages, each in itself": (("English", "中文"),),
    "captions, which a model writes": (
        _WORD.findall(" ".join(caption(scene, "en") for scene in EXAMPLES)),
        [*CHINESE.values(), "一个"],
    ),
}
"""Words that are the same in every language, by the reason."""

_ALLOWED = frozenset(name for kinds in NAMES.values() for names in kinds for name in names)
_MARKS = (
    re.compile(r"\$[^$]*\$"),  # a formula in a sentence
    re.compile(r":(?:gray|color|red-badge)(?=\[)|\{foreground=[^}]*\}"),  # Streamlit's colours
    re.compile(r"%\{[^}]*\}|</?[a-z]+>"),  # Plotly's placeholders and tags
    re.compile(r"visformer/[\w/]+\.py"),  # a path in the source code
)


@cache
def messages() -> frozenset[str]:
    """Return the messages in the code; finding them takes a second."""
    return frozenset(messages_in_code())


def write(folder: Path) -> Path:
    """Write the catalogue of the pseudo-language into a folder of catalogues and return its path."""
    catalogue = Catalog(locale=None, domain="visformer", charset="utf-8")
    for message in sorted(messages()):
        catalogue.add(message, f"⟦{message}⟧")
    path = folder / CODE / "LC_MESSAGES" / "visformer.po"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_po(file, catalogue)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('msgstr ""\n"', f'msgstr ""\n"X-Language-Name: {NAME}\\n"\n"', 1), encoding="utf-8")
    return path


def lesson(content: bytes) -> bytes:
    """Return the file of a lesson with its English texts in brackets, for all languages."""

    def in_brackets(value: Any) -> Any:
        if isinstance(value, dict):
            return f"⟦{value['en']}⟧" if "en" in value else {name: in_brackets(each) for name, each in value.items()}
        return [in_brackets(each) for each in value] if isinstance(value, list) else value

    return json.dumps(in_brackets(yaml.safe_load(content)), ensure_ascii=False).encode()  # which is YAML, too


def unbracketed(text: str) -> list[str]:
    """Return the words outside brackets, without the exempt names."""
    outside, depth = [], 0
    for mark in _MARKS:
        text = mark.sub(" ", text)
    for character in text:
        depth += (character == "⟦") - (character == "⟧")
        outside.append(" " if depth or character == "⟧" else character)
    return [word for word in _WORD.findall("".join(outside)) if word not in _ALLOWED]
