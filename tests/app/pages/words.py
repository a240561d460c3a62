"""The texts on screen of a page, found in its messages, and those among them that the pseudo-language lacks."""

import json
import re
import struct
from contextlib import suppress

import pandas as pd

from benchmarks.messages import read_message
from tests import pseudo
from tests.app.support import unescaped
from visformer.app.session import boxes

TEXT_FIELDS = frozenset(("label", "help", "body", "content", "placeholder", "options", "text"))
"""Fields of Streamlit's messages with texts on screen."""

LABEL_FIELDS = frozenset(("label", "help"))
"""Those to check of a box with tokens or sentences."""

FORMULAS = frozenset(("latex", "code"))
"""Kinds of elements that are not translated: the paper's notation, and source code."""

PICTURE_FIELDS = frozenset(("text", "keys", "label", "about", "title", "note"))
PLOTLY_FIELDS = frozenset(("name", "title", "text", "hovertemplate"))
"""Fields with words in messages to pictures and to Plotly."""

TABLES = frozenset(("arrow_data_frame", "dataframe"))

BOXES_OF_TOKENS = (
    "embedding_piece",
    "embedding_first",
    "embedding_second",
    "_query",
    "block_token",
    "decoding_other",
    "silence_example",
    "compare_patch_at",
    "_answer",
    "picture_patch",
    "effects_bundled",
    "effects_of",
    "effects_row",
    boxes.EXAMPLE,
    boxes.TARGET,
)
"""Keys of boxes that offer tokens or sentences, or their ends."""


def nodes(block):
    yield block
    for child in getattr(block, "children", {}).values():
        yield from nodes(child)


def texts_of_message(message, fields=TEXT_FIELDS):
    """Yield every text on screen in a message of Streamlit's."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.type == field.TYPE_STRING and field.name in fields:
            yield from map(unescaped, values)
        elif field.type == field.TYPE_MESSAGE:
            for inner in values:
                yield from texts_of_message(inner, fields) if hasattr(inner, "ListFields") else ()


def texts_of_json(value, fields, all_below=("text", "keys")):
    """Yield every text in these fields of a JSON value; below some fields, every text."""
    if isinstance(value, str):
        if fields is None:
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if fields is not None and name not in fields and isinstance(inner, str):
                continue
            if name not in ("lang", "side"):
                take_all = name in all_below or isinstance(inner, str)
                yield from texts_of_json(inner, None if take_all else fields, all_below)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of_json(inner, fields, all_below)


def texts_of_component(data):
    """Return the words sent to a component: as JSON, or in the header of a picture."""
    with suppress(ValueError):  # not JSON: a picture, even if its length begins with the byte of a brace
        return texts_of_json({"text": json.loads(data)}, PICTURE_FIELDS)
    try:
        return texts_of_json(read_message(data)[0], PICTURE_FIELDS)
    except (struct.error, ValueError):
        return [data.decode()] if b" " in data else []  # a sentence, or the name of a picture


def texts_of_table(frame):
    """Yield the names of columns, and the cells of those with words; tokens are data."""
    for column in frame.columns:
        yield str(column)
        has_tokens = any(name in str(column) for name in ("token", "word", "parts", "merged"))
        if not has_tokens and not pd.api.types.is_numeric_dtype(frame[column]):
            yield from map(str, frame[column])


def shown_texts(app):
    """Yield kind and key of each element, and its texts."""
    for node in nodes(app._tree):
        kind, key, proto = getattr(node, "type", ""), str(getattr(node, "key", "")), getattr(node, "proto", None)
        if (
            proto is None or kind in FORMULAS or key in ("first_example", "links", "shrink_own_picture")
        ):  # a button with a sentence; addresses; the name of a box
            continue
        if kind == "bidi_component" and key == "streamlit_words":
            texts = [translation for _original, translation in json.loads(proto.bytes)["words"]]
        elif kind == "bidi_component" and key == "present_words":
            header, _ = read_message(proto.bytes)
            titles = [table["title"] for table in header["tables"]]
            texts = [*header["words"].values(), header["caption"], *titles]  # the rest is typed text and numbers
        elif kind == "bidi_component" and key.startswith("kept_"):
            texts = []  # secrets
        elif kind == "bidi_component":
            texts = texts_of_component(proto.bytes)
        elif kind == "html":
            texts = [re.sub("<.*?>", "", proto.body)]
        elif kind in TABLES:
            texts = texts_of_table(node.value)
        elif kind == "plotly_chart":
            texts = texts_of_json(json.loads(proto.spec), PLOTLY_FIELDS, all_below=())
        else:
            has_tokens = any(name in key for name in BOXES_OF_TOKENS)
            texts = texts_of_message(proto, LABEL_FIELDS if has_tokens else TEXT_FIELDS)
        yield from ((kind, key, text) for text in texts)


def untranslated(app):
    """Return the texts with words outside brackets: kind and key of their elements, text, and words."""
    assert not app.exception
    checked = [(kind, key, text, pseudo.unbracketed(text)) for kind, key, text in shown_texts(app)]
    return [item for item in checked if item[-1]]


def popovers(app):
    """Return the keys of popovers whose content is drawn when they are open."""
    ids = (one.proto.popover.id for one in app.get("popover"))
    return [id_.split("-", 2)[-1] for id_ in ids if id_]
