"""The files of a page's pictures. Each is made only when its button is clicked, where long work is done."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from visformer.adapters.checkpoints import figures_of, model_of, moment_name
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.models import MODEL, label
from visformer.app.serving.remote_models import LONG_WORK, history_file
from visformer.app.session import boxes, selection
from visformer.app.session.markdown import plain
from visformer.app.session.page import current_page, current_view
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import files, other_sessions
from visformer.app.widgets.component import CANVAS
from visformer.app.widgets.formula_box import theme
from visformer.errors import N_, BusyError, VisformerError
from visformer.export.drawables import Kind, Options, drawable_of
from visformer.export.formats import FORMATS, Content, file_of
from visformer.pictures.registry.picture import Picture, pages
from visformer.system import limits
from visformer.system.cache import CACHE
from visformer.web.selection import VIEWS

if TYPE_CHECKING:  # numpy
    from pandas import DataFrame

    from visformer.trace import Trace

_CONTENTS: dict[Kind, str] = {
    "trace": N_("{picture}: the selected head; {numbers}: the weights of all heads; {page}: the explorer."),
    "pair": N_("{picture}: one head of both; {page}: both explorers, linked, and their difference."),
    "panels": N_("{picture}: the pictures; {numbers}: their numbers."),
    "figure": N_("{picture}: the picture; {numbers}: its numbers."),
    "model": N_("{page}: this picture, which plays without a network."),
}
"""What a file of each kind contains; the braces stand for the names of the formats."""


def page(pictures: Sequence[tuple[Any, str]]) -> None:
    """Offer all pictures of a page, each with its key: the explorer, panels as one picture, and each other one."""
    kinds = [(drawable_of(shown).name, shown, key) for shown, key in pictures]
    panels = [(shown, key) for kind, shown, key in kinds if kind == "panels"]
    for kind, shown, key in kinds:
        if kind == "trace":
            _offer_explorer(shown)
        elif kind != "panels":
            _offer(shown, key=key, start=selection.chosen().start() if kind == "pair" else None)
    if panels:
        _offer([panel for shown, _key in panels for panel in shown], key=panels[0][1])


def _offer_explorer(trace: "Trace") -> None:
    """Offer the explorer, its head in focus, and the weights of all heads."""
    start = selection.selection(trace).start()
    part = "cross" if "cross" in start["stack"] else start["stack"].split(".")[0]
    view = VIEWS[start["view"]]
    picture = f"{part}-L{start['layer'] + 1}-H{start['head'] + 1}" + ("" if view == "heatmap" else f"-{view}")
    place = {name: start[name] for name in ("stack", "layer", "head")}
    drawn = {"place": place, "start": start, "view": view, "query": start["query"] or 0}
    _offer(trace, key=CANVAS, picture=picture, **drawn)
    _offer_history(start)


def _offer_history(start: Mapping[str, Any]) -> None:
    """Offer the explorer at every moment of the model's training; ``start``: its initial selection."""
    _, name = boxes.gettext(), model_of(boxes.model() or MODEL)[0]
    if not figures_of(name):
        return
    key: Kind = "history"
    given = (name, boxes.source(), boxes.target())
    make = made(
        partial(history_file, *given, start=start, language=boxes.language()),
        key=(key, *given, boxes.language()),
        place=key,
        models=(name, moment_name(name, 0)),  # the moments are loaded one by one
    )
    (item,) = (item for item in FORMATS if key in item.offers)
    button, tooltip = _("HTML, its training"), _(item.offers[key])
    st.download_button(button, make, file_name(key) + item.ending, item.mime, key=key, help=tooltip, on_click="ignore")
    tell(key, st)


def csv(table: "DataFrame", what: str) -> None:
    """Offer a table as CSV. It is made on a click: a browser fetches a finished file with the page, asked or not."""
    from visformer.export.tables import columns_csv

    label = boxes.gettext()("Download as CSV")

    def make() -> bytes:
        plain = table.astype(object).where(table.notna(), None)  # Python's own numbers, which repr writes as such
        return columns_csv({str(name): plain[name] for name in plain}).encode()

    st.download_button(label, make, f"{file_name(what)}.csv", "text/csv", key="csv", on_click="ignore")


def _offer(shown: Any, *, key: str, picture: str = "", **options: Any) -> None:
    """Draw a button for each format."""
    _, drawable = boxes.gettext(), drawable_of(shown)
    how = Options(theme=theme(), lang=boxes.language(), about=_about(), **options)
    formats = [item for item in FORMATS if item.offers.get(drawable.name)]
    names = {
        content: [plain(item.name) for item in formats if item.content == content] for content in get_args(Content)
    }
    st.caption(_(_CONTENTS[drawable.name]).format(**{content: _(", ").join(each) for content, each in names.items()}))
    count = drawable.size
    with st.container(horizontal=True):
        for item in formats:
            if count > limits.MAX_NUMBERS and item.limited:
                continue
            name = file_name(picture if picture and item.content == "picture" else key) + item.ending
            make = made(partial(file_of, item.name, shown, how), key=(key, id(shown), item.name), place=key)
            button, tooltip = f"{key}_{item.name.lower()}", _(item.offers[drawable.name])
            st.download_button(plain(item.name), make, name, item.mime, key=button, help=tooltip, on_click="ignore")
    if count > limits.MAX_NUMBERS:
        said = _(
            "{count:,} weights are too many for {formats}, which hold up to {limit:,}. safetensors holds all of "
            "them; in Python, visformer.export.to_csv(trace, name) writes one layer's as CSV."
        )
        limited = _(" and ").join(plain(item.name) for item in formats if item.limited)
        st.caption(said.format(count=count, formats=limited, limit=limits.MAX_NUMBERS))
    tell(key, st)


def made(make: Callable[[], bytes], *, key: Hashable, place: str, models: Iterable[str] = ()) -> Callable[[], bytes]:
    """Return what makes a file once its button is clicked, when this session's turn has come.

    Args:
        make: a function of a module and its arguments, which can be pickled.
        key: of the file.
        place: where :func:`tell` says why there is none.
        models: the names of those that it loads.
    """
    session, problems = other_sessions.own_session(), _problems(place)

    def on_wait(_before: int | None) -> None:
        if session and not other_sessions.is_connected(session):
            raise BusyError(N_("Nobody waits for this any more."))

    def make_in_turn() -> bytes:
        files.forget_downloads()
        work = partial(LONG_WORK.run, make, models=models)
        try:
            file = ADMISSION.run((session, key), work, on_wait=on_wait, session=session, kind="long")
            CACHE.make_room(len(file))
            return file
        except VisformerError as error:
            problems.append(error)
            other_sessions.wake([session])
            raise

    return make_in_turn


def tell(place: str, box: Any) -> None:
    """Say why a file was not made, once; ``box``: the container."""
    problems = _problems(place)
    while problems:
        box.text(problems.pop().localized(boxes.gettext()))


def _problems(place: str) -> list[VisformerError]:
    """Return what went wrong here; the list is the session's, so that a file that is being made can add to it."""
    slot: Slot[list[VisformerError]] = Slot(f"{place}_problems", [])
    if not slot.is_set:
        slot.set([])
    return slot.get()


def _is_of_model() -> bool:
    """Whether the page shows numbers of the visitor's model and sentence: no formula, and none of its own."""
    view = current_view()
    return pages()[current_page()].has_sentence and not (isinstance(view, Picture) and view.formula)


def _about() -> str:
    """Name the model and the sentence that the numbers come from; "": they are others."""
    said = ": ".join(filter(None, (label(boxes.model() or MODEL), boxes.legible())))
    return said if _is_of_model() else ""


def file_name(what: str) -> str:
    """Build a file name without ending in characters that every system accepts.

    It has the model, if the numbers are the model's, and ``what``.
    """
    model = label(boxes.model() or MODEL) if _is_of_model() else ""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{model}-{what}").strip("-.")
