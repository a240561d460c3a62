"""The state in a link, or in a file where it is too long for one: the same format and validation for both.

A state is a few short texts by name, as in a query string. Invalid parts are left out and reported; no input raises.
Numbers count from 1, as on screen.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from visformer import i18n
from visformer.adapters.checkpoints import find, model_of, start_of
from visformer.adapters.names import made_here
from visformer.app.serving import checks, uploaded_pictures
from visformer.app.serving.models import label, named, offered, require_allowed
from visformer.errors import N_, DataError, LinkError, VisformerError
from visformer.i18n import Gettext
from visformer.pictures.registry.options import Text, one_of
from visformer.pictures.registry.picture import pages
from visformer.system import limits
from visformer.trace.stacks import short_name
from visformer.web.selection import BEGINNING, START_VIEW, Selection

LANGUAGE, MODEL, TEXT, TARGET, PAGE = "lang", "model", "text", "target", "page"
FOLLOW = "follow"  # a presenter's room; not part of a state
LESSON, STEP = "lesson", "step"
VERSION_NAME, VERSION = "v", 2
ZOOM = "zoom"  # the place in the whole model
EXPLORER = "attention"  # the page of the explorer
FIRST = "map"  # may be typed for the first page, whose address is "/"
# The lessons:
SHIPPED, SHORT, FAULTS = "from-text-to-translation", "attention-in-three-minutes", "find-what-is-broken"
OBJECTS = "a-word-finds-its-object"
OWN = "own"  # stands for a visitor's own lesson that is too long for a link
_PLACELESS = {"view"}  # of the selection: a link with no more means the head that comes first
_MARK = "visformer_state"
_NAME, _VALUE = re.compile(r"[a-z][a-z_-]{0,60}"), re.compile(rf"[A-Za-z0-9_.-]{{1,{limits.CHOICE_CHARACTERS}}}")
_LESSON, _STEP = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.LESSON_LINK}}}"), re.compile(r"[1-9][0-9]?")
_SHOWN = 48  # characters of an ignored text


@dataclass(frozen=True)
class Remark:
    """A part of a link or file that was ignored."""

    said: str  # as written, any text
    why: VisformerError

    def localized(self, gettext: Gettext) -> str:
        """Return one line of plain text; characters that are unprintable or change text direction become dots."""
        said = "".join(c if c.isprintable() else "·" for c in self.said)
        said = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
        return f"{said}: {self.why.localized(gettext)}"


@dataclass(frozen=True)
class State:
    """Everything that a link restores; an empty field is at its default."""

    page: str = ""  # last part of its address; "" for the first
    lang: str = ""  # a language of the interface
    model: str = ""  # one that is offered
    text: str = ""  # the sentence
    target: str = ""  # as typed
    lesson: str = ""  # the guided lesson that is open, by its name or as a text of its own
    step: str = ""  # of the lesson, from 1
    selection: Selection = field(default_factory=lambda: _unselected("", {}))  # in the explorer
    choices: Mapping[str, str] = field(default_factory=dict)  # by name; only the page can tell whether it has them

    def fields(self) -> dict[str, str]:
        """Return the state as query parameters; the path of the address names the page."""
        common = {LANGUAGE: self.lang, MODEL: label(self.model), TEXT: self.text, TARGET: self.target}
        common |= {LESSON: self.lesson, STEP: self.step}
        selected = self.selection.link()
        if self.selection == _unselected(self.model, self.choices):
            selected = {}
        elif self.selection.stack and selected.keys() <= _PLACELESS:
            selected["stack"] = short_name(self.selection.stack)
        return {**{name: value for name, value in common.items() if value}, **selected, **self.choices}

    @property
    def fits(self) -> bool:
        """Whether a link can hold it."""
        return len(urlencode(self.fields())) <= limits.LINK_CHARACTERS

    def file(self) -> str:
        """Return the state as the JSON text of a file."""
        state = {PAGE: self.page, **self.fields()} if self.page else self.fields()
        return json.dumps({_MARK: VERSION, **state}, ensure_ascii=False, indent=1) + "\n"


def _unselected(model: str, choices: Mapping[str, str]) -> Selection:
    """Return the selection of a link that holds none: the start of the model.

    Choices of "Inside a head", such as silenced heads, belong to a selection whose default never changes.
    """
    if any(name.startswith("head_") for name in choices):
        return Selection()
    return start(model_of(model or offered()[0])[0])


@cache
def start(model: str) -> Selection:
    """Return the selection that the explorer starts with, without a stack where only the sentence tells the head."""
    chosen = start_of(model)
    return Selection(*chosen, view=START_VIEW) if chosen else BEGINNING


def ignored(texts: Mapping[str, str], why: Mapping[str, VisformerError]) -> list[Remark]:
    """Return a remark on each ignored text; texts and reasons by name."""
    return [Remark(f"{name}={texts[name]}", error) for name, error in why.items()]


def read(texts: Mapping[str, str]) -> tuple[State, list[Remark]]:
    """Validate the texts of a link or file; return the state, and remarks on what was invalid."""
    selected, unfit = Selection.from_link(texts)
    wrong: dict[str, VisformerError] = {**unfit}
    common: dict[str, str] = {}
    for name, check in _CHECKS.items():
        if texts.get(name):
            try:
                common[name] = check(texts[name])
            except VisformerError as error:
                wrong[name] = error
                if name == TEXT and isinstance(error, DataError):  # an example takes the picture's place
                    common[name] = uploaded_pictures.named(texts[name])[1]
    if texts.get(VERSION_NAME, str(VERSION)) != str(VERSION):
        other = N_("this is version {version}: the link's default values may have been different.")
        wrong[VERSION_NAME] = LinkError(other, version=VERSION)
    known = {VERSION_NAME, *_CHECKS, *(one.name for one in fields(Selection))}
    choices = {name: value for name, value in texts.items() if name not in known}
    for name, value in [*choices.items()]:
        try:
            _check_choice(name, value)
        except VisformerError as error:
            del choices[name]
            wrong[name] = error
    named_here = texts.keys() & {one.name for one in fields(Selection)} - unfit.keys()
    if named_here <= _PLACELESS:
        first = _unselected(common.get(MODEL, ""), choices)
        selected = replace(first, view=selected.view) if named_here else first
    return State(**common, selection=selected, choices=choices), ignored(texts, wrong)


def from_address(link: Mapping[str, Iterable[str]]) -> tuple[dict[str, str], list[Remark]]:
    """Return the texts of an address, where a name may occur several times: the last one counts."""
    texts, remarks = _last((name, value) for name, values in link.items() for value in values)
    if PAGE in texts:
        why = LinkError(N_("the page is set by the path of the address."))
        remarks.append(Remark(f"{PAGE}={texts.pop(PAGE)}", why))
    return texts, remarks


def from_file(content: bytes, name: str = "") -> tuple[dict[str, str], list[Remark]]:
    """Return the texts of a file of this name; none if it holds no state."""
    try:
        pairs = _parsed(content)
    except LinkError as error:
        return {}, [Remark(name, error)]
    texts, remarks = _last((name, value) for name, value in pairs if isinstance(value, str))
    why = LinkError(N_("expected a text in quotation marks here."))
    remarks += [Remark(f"{name}={_spelled(value)}", why) for name, value in pairs if not isinstance(value, str)]
    return texts, remarks


def _spelled(value: Any) -> str:
    """Return a value as JSON, or three dots if it is nested too deep to be written again."""
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda inner: dict(inner.pairs))
    except RecursionError:
        return "…"


def _last(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[Remark]]:
    texts: dict[str, str] = {}
    remarks, why = [], LinkError(N_("it appears more than once; the last one counts."))
    for name, value in pairs:
        if name in texts:
            remarks.append(Remark(f"{name}={texts[name]}", why))
        texts[name] = value
    return texts, remarks


def _parsed(content: bytes) -> list[tuple[str, Any]]:
    """Return the names and values in a file, duplicate names included."""
    if len(content) > limits.STATE_BYTES:
        too_many = N_("this file has {given} bytes; a state may have at most {limit}.")
        raise LinkError(too_many, given=len(content), limit=limits.STATE_BYTES)
    try:
        parsed = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        raise LinkError(N_("byte {place} of this file is not UTF-8."), place=error.start + 1) from error
    except json.JSONDecodeError as error:
        raise LinkError(N_("line {line} of this file is not valid JSON."), line=error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise LinkError(N_("this file is not valid JSON.")) from error
    pairs = parsed.pairs if isinstance(parsed, _Object) else []
    versions = [value for name, value in pairs if name == _MARK]
    if not versions:
        raise LinkError(N_("this file is not a saved state: save one with “As a file”."))
    if versions[-1] != VERSION:
        raise LinkError(N_("this file is not of version {version}."), version=VERSION)
    return [(name, value) for name, value in pairs if name != _MARK]


@dataclass(frozen=True)
class _Object:
    """A JSON object that may have duplicate names."""

    pairs: list[tuple[str, Any]]


def _language(text: str) -> str:
    """Accept "zh-TW" for "zh", too."""
    language = i18n.spoken(text)
    if language is None:
        raise one_of(i18n.languages())
    return language


def _model(text: str) -> str:
    name = named(text)
    made = made_here(name)
    if made is None:
        require_allowed(model_of(name)[0])
        find(name)  # of a moment: there is such a one
    return made or name


def _text(text: str) -> str:
    checks.check_text(text, is_long=True)
    try:
        text.encode()
    except UnicodeEncodeError:  # imported only now: tokenizers take long to import
        from visformer.model.tokenizer import require_unicode

        require_unicode(text)
    if (picture := uploaded_pictures.named(text)[0]) and picture != uploaded_pictures.NONE:
        uploaded_pictures.file_of(picture)  # raises DataError if it is gone
    return text


@cache
def _texts() -> frozenset[str]:
    """The names of the options that hold any text."""
    options = ((page.name, option) for page in pages().values() for view in page.views for option in view.options)
    return frozenset(f"{page}_{option.name}" for page, option in options if isinstance(option, Text))


def _check_choice(name: str, value: str) -> None:
    if name in _texts():
        _text(value)
    elif not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
        raise LinkError(N_("no page has such an option."))


def _lesson(text: str) -> str:
    if text == OWN or not _LESSON.fullmatch(text):
        raise LinkError(N_("there is no lesson of this name here."))
    return text


def _page(text: str) -> str:
    return "" if text == FIRST else text


def _step(text: str) -> str:
    if not _STEP.fullmatch(text):
        raise LinkError(N_("expected a whole number of at least 1."))
    return text


_CHECKS: dict[str, Callable[[str], str]] = {
    LANGUAGE: _language,
    MODEL: _model,
    TEXT: _text,
    TARGET: _text,
    PAGE: _page,
    LESSON: _lesson,
    STEP: _step,
}
