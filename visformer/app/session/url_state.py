"""What a link holds, or the file of a state that is too long for one: one format, one validation for both.

A state is a few short texts by name, as in an address. What makes no sense in one is left out and told; nothing that is
given raises. Numbers count from 1, as on screen.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlencode

from visformer import i18n
from visformer.app.serving import checks
from visformer.app.serving.models import label, named, require_allowed
from visformer.errors import N_, LinkError, VisformerError
from visformer.i18n import Gettext
from visformer.model.untrained import Untrained, names_untrained
from visformer.pictures.options import one_of
from visformer.system import limits
from visformer.web.selection import Selection

LANGUAGE, MODEL, TEXT, TARGET, PAGE = "lang", "model", "text", "target", "page"
FOLLOW = "follow"  # a presenter's room; no part of a state
LESSON, STEP = "lesson", "step"
VERSION_NAME = "v"
"""In an address. Without it, what is left out means what it meant in version 1."""

SHIPPED = "from-text-to-translation"
"""The lesson that is there without an operator's own."""

OWN = "own"
"""The name of a visitor's own lesson that is too long for a link."""

VERSION = 1
_MARK = "visformer_state"
_NAME, _VALUE = re.compile(r"[a-z][a-z_-]{0,60}"), re.compile(rf"[A-Za-z0-9_.-]{{1,{limits.CHOICE_CHARACTERS}}}")
_LESSON, _STEP = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.LESSON_LINK}}}"), re.compile(r"[1-9][0-9]?")
_SHOWN = 48  # characters of what was ignored


@dataclass(frozen=True)
class Remark:
    """Something that was ignored.

    Args:
        said: as it was given, any text.
        why: what is wrong with it.
    """

    said: str
    why: VisformerError

    def localized(self, gettext: Gettext) -> str:
        """One line of plain text; what cannot be printed, or would turn the line around, stands as a dot."""
        said = "".join(c if c.isprintable() else "·" for c in self.said)
        said = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
        return f"{said}: {self.why.localized(gettext)}"


@dataclass(frozen=True)
class State:
    """Everything that a link brings back; what is empty is as it is at first.

    Args:
        page: last part of its address; "" for the first.
        lang: a language that the interface speaks.
        model: one that is offered.
        text: the sentence.
        target: as typed.
        lesson: the guided lesson that is open, by its name or as a text of its own.
        step: of the lesson, from 1.
        selection: what is chosen in the explorer.
        choices: what is chosen on the page, by its name there; only the page can tell whether it has that.
    """

    page: str = ""
    lang: str = ""
    model: str = ""
    text: str = ""
    target: str = ""
    lesson: str = ""
    step: str = ""
    selection: Selection = field(default_factory=Selection)
    choices: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, str]:
        """As in an address, whose path names the page."""
        common = {LANGUAGE: self.lang, MODEL: label(self.model), TEXT: self.text, TARGET: self.target}
        common |= {LESSON: self.lesson, STEP: self.step}
        return {**{name: value for name, value in common.items() if value}, **self.selection.link(), **self.choices}

    @property
    def fits(self) -> bool:
        """Whether a link can hold it."""
        return len(urlencode(self.fields())) <= limits.LINK_CHARACTERS

    def file(self) -> str:
        """As a file."""
        state = {PAGE: self.page, **self.fields()} if self.page else self.fields()
        return json.dumps({_MARK: VERSION, **state}, ensure_ascii=False, indent=1) + "\n"


def read(given: Mapping[str, str]) -> tuple[State, list[Remark]]:
    """A state, and what of the texts makes no sense in one."""
    selection, wrong = Selection.from_link(given)
    remarks = [_remark(name, given[name], error) for name, error in wrong.items()]
    common: dict[str, str] = {}
    for name, check in _CHECKS.items():
        if given.get(name):
            try:
                common[name] = check(given[name])
            except VisformerError as error:
                remarks.append(_remark(name, given[name], error))
    if given.get(VERSION_NAME, str(VERSION)) != str(VERSION):
        why = LinkError(
            N_("this is version {version}: what the link leaves out may have meant something else."), version=VERSION
        )
        remarks.append(_remark(VERSION_NAME, given[VERSION_NAME], why))
    known = {VERSION_NAME, *_CHECKS, *(one.name for one in fields(Selection))}
    choices = {name: value for name, value in given.items() if name not in known}
    for name in [name for name, value in choices.items() if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value))]:
        remarks.append(_remark(name, choices.pop(name), LinkError(N_("no page has a choice of this kind."))))
    return State(**common, selection=selection, choices=choices), remarks


def from_address(link: Mapping[str, Iterable[str]]) -> tuple[dict[str, str], list[Remark]]:
    """The texts of an address, where a name may stand several times: the last one counts."""
    given, remarks = {}, []
    for name, values in link.items():
        *earlier, given[name] = values
        remarks += [_remark(name, value, _twice()) for value in earlier]
    if PAGE in given:
        remarks.append(_remark(PAGE, given.pop(PAGE), LinkError(N_("the path of the address names the page."))))
    return given, remarks


def from_file(content: bytes, name: str = "") -> tuple[dict[str, str], list[Remark]]:
    """The texts of a file of this name; none where it holds no state."""
    given: dict[str, str] = {}
    try:
        pairs = _written(content)
    except LinkError as error:
        return {}, [Remark(name, error)]
    remarks = []
    for name, value in pairs:
        if name == _MARK:
            continue
        if not isinstance(value, str):
            why = LinkError(N_("a text is needed here, in quotation marks."))
            written = json.dumps(value, ensure_ascii=False, default=lambda inner: dict(inner.pairs))
            remarks.append(_remark(name, written, why))
            continue
        if name in given:
            remarks.append(_remark(name, given[name], _twice()))
        given[name] = value
    return given, remarks


def _written(content: bytes) -> list[tuple[str, Any]]:
    """What stands in a file, names that are there twice included.

    Raises:
        LinkError: it holds no state.
    """
    if len(content) > limits.STATE_BYTES:
        raise LinkError(
            N_("this file has {given} bytes, and a state has at most {limit}."),
            given=len(content),
            limit=limits.STATE_BYTES,
        )
    try:
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        raise LinkError(N_("byte {place} of this file is no UTF-8."), place=error.start + 1) from error
    except json.JSONDecodeError as error:
        raise LinkError(N_("line {line} of this file is no JSON."), line=error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise LinkError(N_("this file is no JSON that can be read.")) from error
    pairs = found.pairs if isinstance(found, _Object) else []
    versions = [value for name, value in pairs if name == _MARK]
    if not versions:
        raise LinkError(N_("this file holds no state: save one with “As a file”."))
    if versions[-1] is True or versions[-1] != VERSION:
        raise LinkError(N_("this file is of another version than {version}."), version=VERSION)
    return pairs


@dataclass(frozen=True)
class _Object:
    """A JSON object as it was written: a name may stand there twice."""

    pairs: list[tuple[str, Any]]


def _twice() -> LinkError:
    return LinkError(N_("it stands there more than once, and the last one counts."))


def _remark(name: str, value: str, why: VisformerError) -> Remark:
    return Remark(f"{name}={value}", why)


def _language(text: str) -> str:
    """Also "zh-TW" for "zh"."""
    found = i18n.spoken(text)
    if found is None:
        raise one_of(i18n.languages())
    return found


def _model(text: str) -> str:
    name = named(text)
    if names_untrained(name):
        return Untrained.named(name).name
    require_allowed(name)
    return name


def _text(text: str) -> str:
    checks.check_text(text)
    try:
        text.encode()
    except UnicodeEncodeError:  # only then: tokenizers take time to import
        from visformer.model.tokenizer import require_unicode

        require_unicode(text)
    return text


def _lesson(text: str) -> str:
    if text == OWN or not _LESSON.fullmatch(text):
        raise LinkError(N_("there is no lesson of this name here."))
    return text


def _step(text: str) -> str:
    if not _STEP.fullmatch(text):
        raise LinkError(N_("a whole number from 1 on is needed."))
    return text


_CHECKS: dict[str, Callable[[str], str]] = {
    LANGUAGE: _language,
    MODEL: _model,
    TEXT: _text,
    TARGET: _text,
    PAGE: str,
    LESSON: _lesson,
    STEP: _step,
}
