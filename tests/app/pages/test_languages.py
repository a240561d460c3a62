"""The whole app in a made-up language, which is one more catalogue: every text must come from it.

The texts are discovered, not listed: every page in ``pages/``, every view, switch and popover of a page.
"""

import json
import struct
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.messages import read_message
from tests import pseudo
from visformer import i18n
from visformer.app.lessons import lesson_file
from visformer.app.session import boxes

ROOT = Path(__file__).parents[3]
PAGES = sorted(path.relative_to(ROOT / "pages").with_suffix("").as_posix() for path in (ROOT / "pages").rglob("*.py"))
SENTENCE, UNTRAINED = "I like cats.", "untrained-16x2-enc1-dec1-ff32"

SHOWN = frozenset(("label", "help", "body", "content", "placeholder", "options", "text"))
"""Fields of Streamlit's messages in which it shows text."""

LABELS = frozenset(("label", "help"))
"""Fields to check of a box with tokens or sentences."""

FORMULAS = frozenset(("latex", "code"))
"""Not translated: the paper's notation, and our source code."""

DRAWN = frozenset(("text", "keys", "label", "about", "title", "note"))
PLOTTED = frozenset(("name", "title", "text", "hovertemplate"))
"""Fields with words in messages to the canvas and to Plotly."""

TABLES = frozenset(("arrow_data_frame", "dataframe"))

TOKENS = (
    "tokens_piece",
    "embedding_first",
    "embedding_second",
    "_query",
    "decoding_other",
    boxes.EXAMPLE,
    boxes.TARGET,
)
"""Boxes that offer tokens or sentences."""

BAD_TEXTS = ("", "word " * 2000, "qxzjkv " * 120)
BAD_LINK = {
    **{"layer": "99", "head": "x", "stack": "none", "order": "none", "limit": "a", "combine": "2", "view": "none"},
    **{"model": "none", "lang": "yy", "text": "a" * 2000, "tokens_side": "9", "none": "1", "x y": "1"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("locale")
    pseudo.write(path)
    return path


@pytest.fixture
def start(folder, new_app, monkeypatch):
    """Open pages in that language."""
    monkeypatch.setattr(i18n, "LOCALES", folder)
    lesson_file.read.cache_clear()  # which languages a lesson can have depends on it

    def opened(page="", **link):
        return new_app(page=page, **{"lang": pseudo.CODE, "text": SENTENCE, **link})

    yield opened
    lesson_file.read.cache_clear()


def nodes(block):
    yield block
    for child in getattr(block, "children", {}).values():
        yield from nodes(child)


def strings(message, shown=SHOWN):
    """Yield every text that a message of Streamlit's shows."""
    for field, value in message.ListFields():
        several = value if field.is_repeated else [value]
        if field.type == field.TYPE_STRING and field.name in shown:
            yield from several
        elif field.type == field.TYPE_MESSAGE:
            for one in several:
                yield from strings(one, shown) if hasattr(one, "ListFields") else ()


def inside(value, names, words=("text", "keys")):
    """Yield every text of a JSON value under one of these names; below ``words``, under any name."""
    if isinstance(value, str):
        if names is None:
            yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            if names is not None and key not in names and isinstance(one, str):
                continue
            if key not in ("lang", "side"):
                yield from inside(one, None if key in words or isinstance(one, str) else names, words)
    elif isinstance(value, list):
        for one in value:
            yield from inside(one, names, words)


def drawn(data):
    """Return the words sent to a component: as JSON, or in the header of a picture."""
    with suppress(ValueError):  # not JSON: a picture, even if its length begins with the byte of a brace
        words = json.loads(data)
        texts = [ours for _, ours in words["words"]] if "words" in words else words  # Streamlit's own, and ours
        return inside({"text": texts}, DRAWN)
    try:
        return inside(read_message(data)[0], DRAWN)
    except (struct.error, ValueError):
        return [data.decode()] if b" " in data else []  # a sentence alone, or the name of a picture


def table(frame):
    """Yield the names of columns, and the cells of those with words; tokens are data."""
    for column in frame.columns:
        yield str(column)
        tokens = any(name in str(column) for name in ("token", "word", "parts", "merged"))
        if not tokens and not pd.api.types.is_numeric_dtype(frame[column]):
            yield from map(str, frame[column])


def shown_texts(app):
    """Yield every text that is shown: kind, key and text."""
    for node in nodes(app._tree):
        kind, key, proto = getattr(node, "type", ""), str(getattr(node, "key", "")), getattr(node, "proto", None)
        if proto is None or kind in FORMULAS:
            continue
        if kind == "bidi_component" and key == "streamlit_words":
            texts = [ours for _streamlits, ours in json.loads(proto.bytes)["words"]]
        elif kind == "bidi_component" and key == "present_words":
            header, _ = read_message(proto.bytes)
            texts = [*header["words"].values(), header["caption"]]  # the rest is typed text and places
        elif kind == "bidi_component":
            texts = drawn(proto.bytes)
        elif kind in TABLES:
            texts = table(node.value)
        elif kind == "plotly_chart":
            texts = inside(json.loads(proto.spec), PLOTTED, words=())
        else:
            texts = strings(proto, LABELS if any(one in key for one in TOKENS) else SHOWN)
        yield from ((kind, key, text) for text in texts)


def untranslated(app):
    """Return the texts shown outside brackets, and where."""
    assert not app.exception
    checked = [(kind, key, text, pseudo.bare(text)) for kind, key, text in shown_texts(app)]
    return [item for item in checked if item[-1]]


def choices(app):
    """Yield kind and key of each view, switch and list of words on a page, except the language."""
    for kind in ("button_group", "radio", "selectbox", "toggle"):
        for one in app.get(kind):
            if one.key != boxes.LANGUAGE and all("⟦" in option for option in getattr(one, "options", ())):
                yield kind, one.key


def popovers(app):
    """Return the keys of popovers that are drawn once they are open."""
    marked = (one.proto.popover.id for one in app.get("popover"))
    return [name.split("-", 2)[-1] for name in marked if name]


def choose(app, kind, key, place):
    """Select the option at this place; return False if the page does not have the widget."""
    one = next((one for one in app.get(kind) if one.key == key), None)
    if one is None:
        return False
    if kind == "toggle":
        one.set_value(bool(place) != one.value).run()
    else:  # as it is written
        one.__class__ = type("Written", (type(one),), {"format_func": property(lambda _: str)})
        one.set_value(one.options[place]).run()
    return True


@pytest.mark.parametrize("page", PAGES)
def test_every_text_of_a_page_is_translated(start, page):
    app = start(page)
    found = untranslated(app)
    for name in popovers(app):
        app.session_state[name] = True
    found += untranslated(app.run())
    for kind, key in choices(app):
        count = next(len(getattr(one, "options", (0, 1))) for one in app.get(kind) if one.key == key)
        for place in (*range(1, count), 0):
            if choose(app, kind, key, place):
                found += untranslated(app)
    assert not list(map(str, found))


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_errors_are_in_the_visitors_language(start, text):
    app = start("see/masks")
    app.text_input(key=boxes.SOURCE).set_value(text).run()
    assert not untranslated(app)
    assert app.text


def test_remarks_on_a_link_are_in_the_visitors_language(start):
    app = start("see/tokens", locale=pseudo.CODE, **BAD_LINK)
    found = [one for one in untranslated(app) if one[0] != "text"]
    assert not found
    (lines,) = [text for kind, _, text in shown_texts(app) if kind == "text" and "\n" in text]
    assert all("⟦" in line for line in lines.splitlines())


@pytest.mark.parametrize("page", ["see/attention", "see/positions", "understand/block"])
def test_texts_about_an_untrained_model_are_in_the_visitors_language(start, page):
    assert not untranslated(start(page, model=UNTRAINED))
