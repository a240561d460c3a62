"""Every key of the session state, in one place, and the callbacks that change more than one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import named, offered
from visformer.app.session import reconnect, url_state
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.url_state import Remark, State
from visformer.errors import N_, LinkError, VisformerError
from visformer.model.untrained import Untrained, names_untrained
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

Kept = TypeVar("Kept")

LANGUAGE, MODEL, TARGET = url_state.LANGUAGE, url_state.MODEL, url_state.TARGET  # the keys of their widgets, too
SECOND_BOX = {"encoder": N_("Second sentence"), "decoder": N_("What follows"), "encoder-decoder": N_("Target")}
"""What the box beside the sentence is called, by the kind of model."""
SOURCE = "source"
EXAMPLE = "example"
_UNTRAINED = "untrained"  # the untrained Transformer that was chosen last
CANVAS = "attention"
VISITOR = "visitor"  # tells sessions apart that wait for one download
_START = "start"  # what the explorer begins with on the page that is open
_PAGE = "page"
_LANGUAGE_IS_CHOSEN = "language_is_chosen"  # by the visitor or the link, not by the browser
_SELECTION = "selection"
_OF_SELECTION = ("head_stack", "head_layer", "head_head", "head_query")  # by which "Inside a head" chooses
_FOUND = "found"  # what the page found for the sentence in this run: the Trace, and why there is none
_ASKED = "asked"  # choices that a link asks for, until a page has them
_RESET = "reset"  # choices that are to be as at first
_SHOWN = "shown"  # choices on the page as texts by name; None: as at first
_REMARKS = "remarks"  # what was ignored, until the visitor has read it
_KEPT = "kept"  # what was made for this session, by name and language
_GO = "go_to"  # the page that is to be opened
FOLLOW = "follow"  # the room of a presenter who is followed
_AHEAD = "picture_ahead"  # the Trace whose picture went ahead of the page
_CAPTION = "caption"  # what the page says to look for
_LESSON = "lesson"  # the guided lesson that is open, or was left, by its name
_STEP = "lesson_step"  # of it, from 1
_IN_LESSON = "in_lesson"  # whether it is open
_FOLLOWED = "lesson_followed"  # what a link to a step says, until it is opened
_OPENED = "opened"  # how often a state was brought back
_IS_NEW = "is_new"  # whether the session has just begun
_COMPARED = "compared"  # whether what a link chooses in the explorer was held against a Trace
EDITS = ("edited_cells", "edited_heads")  # what the visitor changed in the model
TURNED, STEP = "decoding_turned", "decoding_step"  # another token that was taken, and the step that is looked at


def set_defaults() -> None:
    """At the start of a session: what the address asks for, else a real sentence and the browser's language."""
    for name in (_FOUND, _CAPTION, _AHEAD):
        st.session_state.pop(name, None)
    st.session_state[_SHOWN] = {}
    st.session_state[_IS_NEW] = _START not in st.session_state
    if _START not in st.session_state:
        st.session_state[_REMARKS] = []
        st.session_state[_LANGUAGE_IS_CHOSEN] = False
        st.session_state[LANGUAGE] = i18n.closest(st.context.locale)
        given, twice = url_state.from_address({name: st.query_params.get_all(name) for name in st.query_params})
        st.session_state[FOLLOW] = given.pop(url_state.FOLLOW, "")
        asked, wrong = url_state.read(given)
        bring_back(asked, [*twice, *wrong])
        _take_over(reconnect.brought())


def _take_over(brought: Mapping[str, str]) -> None:
    """What the visitor did last on a page that another server had drawn."""
    if brought.get(SOURCE, source()) != source():
        st.session_state[SOURCE] = brought[SOURCE]
        forget_target()
    elif TARGET in brought:
        st.session_state[TARGET] = brought[TARGET]
    if brought.get(EXAMPLE) in EXAMPLES:
        st.session_state[EXAMPLE] = brought[EXAMPLE]
        take_example()
    for lang, name in i18n.languages().items():
        if brought.get(LANGUAGE) == name and lang != language():
            st.session_state[LANGUAGE] = lang
            keep_language()
    if (model := named(brought.get(MODEL, ""))) in offered():
        st.session_state[MODEL] = model


def bring_back(asked: State, remarks: list[Remark]) -> None:
    """Make the session what a link or a file says, before the widgets are there; what is left out is as at first.

    Args:
        asked: what it says.
        remarks: what of it was ignored, to be told.
    """
    queries = [key for key in st.session_state if str(key).startswith("head_query")]
    for name in (_SELECTION, _COMPARED, *EDITS, TURNED, STEP, *queries):
        st.session_state.pop(name, None)
    st.session_state[_START], st.session_state[_ASKED] = asked.selection, dict(asked.choices)
    st.session_state[_OPENED] = opened() + 1
    st.session_state[_RESET] = set(st.session_state.get(_SHOWN, {})) - set(_OF_SELECTION)  # which follow the selection
    st.session_state[SOURCE], st.session_state[TARGET] = asked.text or EXAMPLES[0], asked.target
    if asked.lang:
        st.session_state[LANGUAGE], st.session_state[_LANGUAGE_IS_CHOSEN] = asked.lang, True
    if asked.model or MODEL in st.session_state:
        st.session_state[MODEL] = asked.model or offered()[0]
    if asked.lesson:
        set_lesson(asked.lesson, int(asked.step or 1))
        st.session_state[_FOLLOWED] = asked
    st.session_state[_REMARKS] = remarks


def is_edited() -> bool:
    """Whether the visitor has changed something in the model."""
    return any(name in st.session_state for name in EDITS)


def opened() -> int:
    """How often a state was brought back: the explorer begins anew with each, although its page stays open."""
    return int(st.session_state.get(_OPENED, 0))


def set_lesson(name: str, step: int, *, is_open: bool = True) -> None:
    """The guided lesson that is shown, or was left at this step."""
    st.session_state[_LESSON], st.session_state[_STEP], st.session_state[_IN_LESSON] = name, step, is_open


def lesson() -> tuple[str, int, bool]:
    """The guided lesson by its name ("": none yet), its step from 1, and whether it is open."""
    found = st.session_state
    return str(found.get(_LESSON, "")), int(found.get(_STEP, 1)), bool(found.get(_IN_LESSON, False))


def followed() -> State | None:
    """What the link says that opened a lesson; it is given once."""
    asked: State | None = st.session_state.pop(_FOLLOWED, None)
    return asked


def enter(page: str) -> None:
    """A page that is opened begins with what was chosen last."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE] = page
        st.session_state[_START] = st.session_state.get(_SELECTION, st.session_state[_START])


def current() -> State:
    """Everything that a link needs to bring back."""
    shown: dict[str, str | None] = st.session_state.get(_SHOWN, {})
    choices = {name: value for name, value in shown.items() if value is not None}
    return replace(common(), page=current_page(), choices=choices)


def current_page() -> str:
    """The page that is shown, as its address names it."""
    return str(st.session_state.get(_PAGE, ""))


def common() -> State:
    """What goes along to every page."""
    chosen: Selection = st.session_state.get(_SELECTION, st.session_state[_START])
    text = source() if source().strip() and source() != EXAMPLES[0] else ""
    said = language() if st.session_state.get(_LANGUAGE_IS_CHOSEN) else ""
    chosen_model = str(model()) if model() not in (None, offered()[0]) else ""
    guide, step, is_open = lesson()
    plain = State(lang=said, model=chosen_model, text=text, target=target() or "", selection=chosen)
    return replace(plain, lesson=guide, step=str(step)) if is_open and guide != url_state.OWN else plain


def address(state: State | None = None) -> dict[str, str]:
    """A state for a link, by default what goes along to every page; texts that make it too long are left out."""
    wanted = state or common()
    return (wanted if wanted.fits else replace(wanted, text="", target="")).fields()


def keep_address() -> None:
    """In the address of every page. A link to another page should have it already: each change is a step back, too."""
    wanted = address(current())
    if st.session_state.get(FOLLOW):
        wanted[url_state.FOLLOW] = st.session_state[FOLLOW]
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)


def asked_for(name: str) -> str | None:
    """What a link asks for under this name; it is given once."""
    asked: dict[str, str] = st.session_state.get(_ASKED, {})
    return None if name in _OF_SELECTION else asked.pop(name, None)


def look_for(text: str) -> None:
    """What the page says to look for: a presentation shows it over the picture."""
    st.session_state[_CAPTION] = text


def caption() -> str:
    """What :func:`look_for` was told in this run."""
    return str(st.session_state.get(_CAPTION, ""))


def goes_back(name: str) -> bool:
    """Whether this choice is to be as at first, although the page has another; it is said once."""
    reset: set[str] = st.session_state.get(_RESET, set())
    if name not in reset:
        return False
    reset.remove(name)
    return True


def show(name: str, value: str | None) -> None:
    """A choice of the page for its address; None: it is as at first, or a part of the selection."""
    value = None if name in _OF_SELECTION else value
    st.session_state.setdefault(_SHOWN, {})[name] = value


def add_remarks(more: list[Remark]) -> None:
    """Tell these, too."""
    st.session_state[_REMARKS] = [*remarks(), *more]


def ignore(said: Mapping[str, str], why: Mapping[str, LinkError]) -> None:
    """Tell that something was ignored: what was said, and why, by name."""
    add_remarks([Remark(f"{name}={said[name]}", error) for name, error in why.items()])


def settle() -> None:
    """At the end of a page: what a link asked for and nothing has taken is told."""
    trace, _problem = found() or (None, None)
    if trace is not None and any(name.endswith(".pattern") for name in trace.tensors):
        start(trace)  # pages without the explorer show none of it, but a mistake in it is told where it is opened
    asked: dict[str, str] = st.session_state.get(_ASKED, {})
    ignore(asked, dict.fromkeys(asked, LinkError(N_("nothing on this page has this name."))))
    st.session_state[_ASKED], st.session_state[_RESET] = {}, set()
    st.session_state[_IS_NEW] = False


def go_to(page: str) -> None:
    """Have the next run open this page, by the last part of its address."""
    st.session_state[_GO] = page


def kept(name: str, make: Callable[[], Kept]) -> Kept:
    """What a session makes once in each language.

    Args:
        name: the same for the same.
        make: makes it.
    """
    found: dict[tuple[str, str], Kept] = st.session_state.setdefault(_KEPT, {})
    key = (name, language())
    if key not in found:
        found[key] = make()
    return found[key]


def hold(*keys: str) -> None:
    """Keep what these widgets hold although this run does not draw them: Streamlit would forget it."""
    for key in keys:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def wanted_page(page: str) -> str:
    """What :func:`go_to` was told, once; else the page that is given."""
    return str(st.session_state.pop(_GO, page))


def remarks() -> list[Remark]:
    """What was ignored, and not yet put away by the visitor."""
    found: list[Remark] = st.session_state.get(_REMARKS, [])
    return found


def put_away() -> None:
    """The visitor has read the remarks."""
    st.session_state[_REMARKS] = []


def keep_language() -> None:
    """A chosen language stays in the address."""
    st.session_state[_LANGUAGE_IS_CHOSEN] = True


def language() -> str:
    """The visitor's language."""
    return i18n.closest(st.session_state.get(LANGUAGE))


def gettext() -> i18n.Gettext:
    """Translates into the visitor's language."""
    return i18n.translations(language()).gettext


def source() -> str:
    """The sentence in the box."""
    return str(st.session_state.get(SOURCE) or "")


def model() -> str | None:
    """The model that the visitor chose among those that the operator offers; None: no choice was made."""
    chosen: str | None = st.session_state.get(MODEL)
    return chosen


def untrained() -> str:
    """The untrained Transformer that is offered: the one that was chosen last."""
    if names_untrained(model()):
        st.session_state[_UNTRAINED] = model()
    return str(st.session_state.get(_UNTRAINED, Untrained().name))


def target() -> str | None:
    """The target that was typed; None where the model is to find its own."""
    typed = str(st.session_state.get(TARGET) or "")
    return typed if typed.strip() else None


def forget_target() -> None:
    """A new sentence gets its own translation, not the target typed for the last one."""
    st.session_state[TARGET] = ""


def take_example() -> None:
    """Put the chosen example into the box; the chooser itself goes back to its placeholder."""
    example = st.session_state.get(EXAMPLE)
    if example in EXAMPLES:
        st.session_state[SOURCE] = example
        forget_target()
    st.session_state[EXAMPLE] = None


def start(trace: "Trace | None") -> Selection:
    """What the explorer begins with; it stays while its page is open, so that the picture need not be sent again.

    What a link asks for and the Trace does not have is told, and is as at first.
    """
    first: Selection = st.session_state[_START]
    if trace is not None and not st.session_state.get(_COMPARED):
        st.session_state[_COMPARED] = True
        fitting, wrong = first.fitting(trace)
        ignore(first.link(), wrong)
        st.session_state[_START] = first = fitting
    return first


def selection(trace: "Trace") -> Selection:
    """What is chosen in the explorer: at first what the address asked for, as far as the Trace has it."""
    if _SELECTION not in st.session_state:
        _choose(start(trace), trace)
    chosen: Selection = st.session_state[_SELECTION]
    return chosen.within(trace)


def keep_selection(value: Any, trace: "Trace") -> None:
    """The chosen head and cell, as a browser sent them: in the address, and where "Inside a head" begins."""
    chosen = Selection.from_browser(value)
    if chosen is not None:
        _choose(chosen, trace)
        keep_address()


def _choose(value: Selection, trace: "Trace") -> None:
    st.session_state[_SELECTION] = chosen = value.within(trace)
    part, kind = chosen.stack.split(".")
    layers = trace.layers(part, kind)  # type: ignore[arg-type]
    n_heads, n_queries, _keys = layers[0].value.shape
    st.session_state["head_stack"] = chosen.stack
    st.session_state[f"head_layer_{len(layers)}"] = chosen.layer + 1
    st.session_state[f"head_head_{n_heads}"] = chosen.head + 1
    if chosen.query is not None and chosen.query < n_queries:
        st.session_state[f"head_query_{n_queries}"] = chosen.query


def keep_place(**place: Any) -> None:
    """What "Inside a head" looks at is what the explorer begins with, and its address names it."""
    chosen: Selection = st.session_state[_SELECTION]
    if any(getattr(chosen, name) != value for name, value in place.items()):
        st.session_state[_SELECTION] = replace(chosen, key=None, **place)


def remember(trace: "Trace | None", problem: VisformerError | None) -> None:
    """What the page found for the sentence, for the head that is drawn after it."""
    st.session_state[_FOUND] = (trace, problem)


def found() -> "tuple[Trace | None, VisformerError | None] | None":
    """What the page found in this run; None where it did not look."""
    result: tuple[Trace | None, VisformerError | None] | None = st.session_state.get(_FOUND)
    return result


def is_new() -> bool:
    """Whether the session has just begun: its browser has drawn nothing yet."""
    return bool(st.session_state[_IS_NEW])


def send_ahead(trace: "Trace") -> None:
    """The picture of the sentence's Trace went ahead of the page."""
    st.session_state[_AHEAD] = trace


def ahead() -> "Trace | None":
    """The Trace whose picture went ahead of the page, if one did in this run."""
    trace: Trace | None = st.session_state.get(_AHEAD)
    return trace


def version(name: str) -> int:
    """Part of the key of widgets that :func:`renew` sets back."""
    return int(st.session_state.get(f"{name}_version", 0))


def renew(name: str) -> None:
    """Set the widgets of this name back to what they show first."""
    st.session_state[f"{name}_version"] = version(name) + 1
