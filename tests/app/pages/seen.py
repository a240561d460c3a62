"""What a visitor sees of a session, as plain values that can be compared with those of earlier versions.

Nothing here depends on names in the code: widgets are identified by their labels, pages by their addresses. Only the
second half, from :func:`_pictures` on, knows the format of messages to the browser.
"""

import base64
import json
import re
from functools import partial
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from benchmarks.messages import read_message
from tests.addresses import address_of
from tests.golden.compare import SAVED, listed, numbers, short
from tests.web.support import heads_of, shapes_of
from visformer.app.serving.server import SCRIPT
from visformer.app.session.page import LESSON_OPENED

PAGES = Path(__file__).parents[3] / "pages"
SAYS = {"caption", "text", "markdown", "latex", "code", "title", "header", "subheader"}
SAYS |= {"info", "success", "warning", "error"}
ASKS = {"text_input", "number_input", "slider", "select_slider", "selectbox", "multiselect", "button_group", "radio"}
ASKS |= {"toggle", "checkbox"}
BUTTONS = {"button", "download_button"}
SAVING = ("Save", "保存")
_COLOURS = re.compile(r"\\textcolor\{#\w+\}|\{foreground=\"#\w+\"\}")
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])|\u2060")


def open_link(link, *, locale="en-US"):
    """Start a session with a link, requested as by a browser: "/masks?masks_view=scores"."""
    parts = urlsplit(link)
    app = AppTest.from_file(SCRIPT, default_timeout=60)
    app.context = {"locale": locale}
    app.query_params = parse_qs(parts.query, keep_blank_values=True)
    with at_page(parts.path.strip("/")):
        return app.run()


def script_of(page):
    """Return the script of a page, named with its folder in ``pages/``, as AppTest takes it."""
    return str(PAGES / f"{page}.py")


def at_page(name):
    """Have a run begin with the page of this name in the address, as in a browser."""
    return patch.object(local_script_runner, "RerunData", partial(RerunData, page_name=name))


def open_popover(app, *names):
    """Open the popover with any of these names; one with only an icon is named by its tooltip."""
    (popover,) = [one for one in app.get("popover") if (one.proto.popover.label or one.proto.popover.help) in names]
    app.session_state[popover.key] = True
    return app.run()


def open_file(app, name, *popover):
    """Upload a file of ``tests/golden/saved`` in a popover with any of these names."""
    (uploader,) = open_popover(app, *popover).get("file_uploader")
    return uploader.upload(name, (SAVED / name).read_bytes(), "text/plain").run()


def saved(app):
    """Return the file that the app offers of a session, as passed to the button: AppTest has no downloads."""
    with patch.object(st, "download_button") as button:
        open_popover(app, *SAVING)
    ((_label, make, name, _kind), _look) = button.call_args
    assert name == "visformer-state.json"
    return make()


def seen(app):
    """Describe the page after the last run.

    "address" holds the fields of the address, or of the step that it names, "says" and "beside" the texts of the page
    and of its side bar, "along" the queries of links to other pages, "presents" what a presentation shows about the
    current step, "asks" the widgets, "offers" everything else that can be clicked. Of closed popovers, only widgets are
    included.
    """
    assert not app.exception, app.exception
    main, beside = [*_elements(app.main)], [*_elements(app.sidebar, ("sidebar",))]
    everything = [*main, *beside]
    page = app._registered_pages[app._finished_page_script_hash]
    along = {element.proto.query_string for element, _ in beside if element.type == "page_link"}
    values = {
        "page": f"/{page['url_pathname']}",
        "title": page["page_name"],
        "language": _language(app),
        "address": _address(app),
        "along": sorted(one.removeprefix("v=2").removeprefix("&") for one in along),
        "remarks": [line for element, inside in main if "notice" in inside for line in _remarks(element)],
        "says": _texts([pair for pair in main if "notice" not in pair[1]]),
        "beside": _texts(beside),
        "presents": _presented(app),
        "asks": [_widget(element) for element, _ in everything if element.type in ASKS],
        "offers": [one.replace("?v=2&", "?") for element, inside in everything for one in _clickable(element, inside)],
        "pictures": _pictures(app),
        "figures": [_figure(json.loads(one.proto.spec or one.proto.figure.spec)) for one in app.get("plotly_chart")],
        "tables": [_table(element.value) for element, _ in main if element.type in ("dataframe", "table")],
    }
    return {name: value for name, value in values.items() if value or name in ("page", "address")}


def _address(app):
    address = address_of(app)  # the links were recorded before there was a version
    names_a_step = {*address} - {"lang"} == {"lesson", "step"} and LESSON_OPENED.key in app.session_state
    return app.session_state[LESSON_OPENED.key].fields() if names_a_step else address


def _elements(block, inside=()):
    """Yield each element in reading order with what it is inside: keys of containers, "popover", "sidebar"."""
    for one in block.children.values():
        if not hasattr(one, "children"):
            yield one, inside
        elif one.type == "popover":
            yield one, inside
            yield from _elements(one, (*inside, "popover"))
        else:
            yield from _elements(one, (*inside, one.key) if one.key else inside)


def _remarks(element):
    """Return the remarks on what was ignored of a link."""
    return element.value.split("\n") if element.type == "text" else []


def _texts(elements):
    """Return texts as they are seen, without their colours, with their kinds."""
    texts = [element for element, inside in elements if element.type in SAYS and "popover" not in inside]
    return [f"{one.type}: {_seen(one)}" for one in texts if one.value]


def _seen(one):
    text = _COLOURS.sub("", str(one.value))
    return text if one.type == "latex" else _ESCAPED.sub("", text)


def _widget(widget):
    """Describe a widget by its label, the selected value, and the options."""
    found = {"label": widget.label, "value": _value(widget)}
    if widget.type in ("slider", "number_input"):
        ends = {"from": widget.min, "to": widget.max}
        found |= {name: f"{end:.10g}" for name, end in ends.items() if end is not None}
    elif widget.type == "text_input":
        found |= {"empty": widget.placeholder} if widget.placeholder else {}
    elif hasattr(widget, "options"):
        found["of"] = listed(_ESCAPED.sub("", str(option)) for option in widget.options)
    return found


def _value(widget):
    """Return a widget's value as the page displays it."""
    value = widget.value
    if widget.type == "button_group":
        return _ESCAPED.sub("", " ".join(widget.formatted_values))
    if widget.type == "multiselect":
        return " ".join(widget.values)
    if widget.type in ("selectbox", "radio"):
        return None if widget.index is None else widget.options[widget.index]
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else f"{value:.10g}"


def _clickable(element, inside):
    """Yield buttons, popovers and links to other pages by their labels, links with their targets."""
    if "popover" in inside:
        return
    if element.type in BUTTONS:
        name = element.label or element.proto.help
        yield f"{name} (off)" if element.proto.disabled else name
    elif element.type == "popover":
        yield element.proto.popover.label or element.proto.popover.help
    elif element.type == "page_link" and "sidebar" not in inside:
        query = element.proto.query_string
        yield f"{element.label} → /{element.proto.page}{'?' * bool(query)}{query}"


def _table(table):
    """Describe a table: columns and rows."""
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    index = {} if isinstance(table.index, pd.RangeIndex) else {"index": [str(name) for name in table.index]}
    return {"columns": [str(name) for name in table.columns], "rows": rows, **index}


def _cell(value):
    value = value.item() if isinstance(value, np.generic) else value
    return short(value) if isinstance(value, float) else value


def _figure(figure):
    """Describe a figure of Plotly: names, texts and numbers of its curves, bars and points."""
    layout = figure["layout"]
    axes = {name: axis for name, axis in layout.items() if name.startswith(("xaxis", "yaxis"))}
    found = {
        "title": layout.get("meta", {}).get("title") or layout.get("title", {}).get("text"),
        "axes": {name: axis["title"]["text"] for name, axis in axes.items() if axis.get("title", {}).get("text")},
        "ticks": {name: listed(axis["ticktext"]) for name, axis in axes.items() if axis.get("ticktext")},
        "notes": [note["text"] for note in layout.get("annotations", []) if note.get("text")],
        "traces": [_curve(trace) for trace in figure["data"]],
    }
    return {name: value for name, value in found.items() if value}


def _curve(trace):
    found = {name: trace[name] for name in ("type", "mode", "name") if trace.get(name)}
    found |= {name: _labels(trace[name]) for name in ("text", "hovertext") if trace.get(name)}
    return found | {name: numbers(_array(trace[name])) for name in ("x", "y", "z", "customdata") if name in trace}


def _labels(texts):
    return texts if isinstance(texts, str) else listed(text for text in texts if text)


def _array(values):
    """Decode an array as Plotly sends it; None is a gap."""
    if isinstance(values, dict):
        array = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
        return array.reshape([int(size) for size in str(values.get("shape", array.size)).split(",")])
    return np.array(values, dtype=np.float64)


# Messages to pictures in the browser ----------------------------------------------------------------------------------


def _pictures(app):
    """Describe the explorer and panels, in reading order."""
    drawn = ("visformer_attention", "visformer_panels")
    views = [one.proto.bytes.decode() for one in app.get("bidi_component") if one.proto.component_name in drawn]
    messages = _messages_by_view(app)
    return [_picture([one for one in messages.get(view, []) if one[0]["kind"] != "nothing"]) for view in views]


def _messages_by_view(app):
    """Group the messages of feeds by the view that they are for."""
    found = {}
    for one in app.get("bidi_component"):
        if one.proto.component_name == "visformer_feed":
            header, values = read_message(one.proto.bytes)
            found.setdefault(header["to"], []).append((header, values))
    return found


def _language(app):
    """Return the language that is sent to the browser."""
    (words,) = [one.proto.bytes for one in app.get("bidi_component") if one.proto.component_name == "visformer_words"]
    return json.loads(words)["lang"]


def _presented(app):
    """Return what a presentation shows about the current step."""
    ((presented, _),) = _messages_by_view(app)["present"]
    return {name: presented[name] for name in ("at", "note") if presented.get(name)}


def _picture(messages):
    if not messages:
        return {"empty": True}
    header, values = messages[0]
    if "panels" not in header:
        return _explorer(messages)
    about = {"share": short(header["share"]), "columns": header["columns"]}
    return {**about, "panels": [_panel(panel, values) for panel in header["panels"]]}


def _explorer(messages):
    """Describe the explorer: its initial state, and its attention."""
    header = messages[0][0]
    shapes, heads = shapes_of(header), {}
    for message in messages:
        heads |= heads_of(*message, shapes)
    return {
        "begins": {name: value for name, value in header["start"].items() if name != "opened"},
        "tokens": {side: _marked(tokens, header["special"][side]) for side, tokens in header["tokens"].items()},
        "words": {side: words for side, words in header["words"].items() if words != [*range(len(words))]},
        "scores": [score["label"] for score in header["scores"]],
        "stacks": {stack["label"]: _stack(stack, heads) for stack in header["stacks"]},
        "file": header["file"],
    }


def _stack(stack, heads):
    weights = [heads[place] for place in sorted(heads) if place[0] == stack["name"]]
    # Of a long text none are sent before they are looked at.
    return {"shape": stack["shape"], "about": stack["about"], "weights": numbers(np.stack(weights)) if weights else []}


def _panel(panel, values):
    shape = len(panel["rows"]["texts"]), len(panel["columns"]["texts"])
    matrix = np.frombuffer(values, "<f4", shape[0] * shape[1], panel["values"]).reshape(shape)
    found = {name: panel[name] for name in ("title", "note", "before", "click", "digits") if panel[name]}
    scale = [short(panel["middle"]), short(panel["limit"])] if panel["scale"] == "signed" else panel["scale"]
    found |= {"scale": scale, "rows": _side(panel["rows"]), "columns": _side(panel["columns"])}
    if panel["outlined"] is not None:
        found["outlined"] = listed(np.flatnonzero(np.frombuffer(values, "u1", matrix.size, panel["outlined"])))
    return {**found, "values": numbers(matrix)}


def _side(side):
    """Describe the labels along one side of a panel; a token is followed by the one that it predicts."""
    texts = _marked(side["texts"], side["special"]) if side["special"] else side["texts"]
    if side["after"]:
        texts = [f"{text} → {after}" for text, after in zip(texts, side["after"], strict=True)]
    found = {"title": side["title"], "texts": listed(texts), "places": side["places"], "unwritten": not side["written"]}
    return {name: value for name, value in found.items() if value}


def _marked(tokens, special):
    """Put special tokens in brackets."""
    return [f"[{token}]" if flag else token for token, flag in zip(tokens, special, strict=True)]
