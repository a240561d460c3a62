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
VERSION_NAME, VERSION = "v", 1  # where an address names none, what it leaves out means what it meant in version 1
SHIPPED = "from-text-to-translation"  # the lesson that is there without an operator's own
OWN = "own"  # the name of a visitor's own lesson that is too long for a link
_MARK = "visformer_state"
_NAME, _VALUE = re.compile(r"[a-z][a-z_-]{0,60}"), re.compile(rf"[A-Za-z0-9_.-]{{1,{limits.CHOICE_CHARACTERS}}}")
_LESSON, _STEP = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.LESSON_LINK}}}"), re.compile(r"[1-9][0-9]?")
_SHOWN = 48  # characters of what was ignored


@dataclass(frozen=True)
class Remark:
    """Something that was ignored."""

    said: str  # as it was written, any text
    why: VisformerError

    def localized(self, gettext: Gettext) -> str:
        """One line of plain text; what cannot be printed, or would turn the line around, stands as a dot."""
        said = "".join(c if c.isprintable() else "·" for c in self.said)
        said = said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"
        return f"{said}: {self.why.localized(gettext)}"


@dataclass(frozen=True)
class State:
    """Everything that a link brings back; what is empty is as it is at first."""

    page: str = ""  # last part of its address; "" for the first
    lang: str = ""  # a language that the interface speaks
    model: str = ""  # one that is offered
    text: str = ""  # the sentence
    target: str = ""  # as typed
    lesson: str = ""  # the guided lesson that is open, by its name or as a text of its own
    step: str = ""  # of the lesson, from 1
    selection: Selection = field(default_factory=Selection)  # in the explorer
    choices: Mapping[str, str] = field(default_factory=dict)  # by name; only the page can tell whether it has them

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


def ignored(texts: Mapping[str, str], why: Mapping[str, VisformerError]) -> list[Remark]:
    """What of these texts is ignored, and why; both by name."""
    return [Remark(f"{name}={texts[name]}", error) for name, error in why.items()]


def read(texts: Mapping[str, str]) -> tuple[State, list[Remark]]:
    """A state, and what of the texts makes no sense in one."""
    selection, unfit = Selection.from_link(texts)
    wrong: dict[str, VisformerError] = {**unfit}
    common: dict[str, str] = {}
    for name, check in _CHECKS.items():
        if texts.get(name):
            try:
                common[name] = check(texts[name])
            except VisformerError as error:
                wrong[name] = error
    if texts.get(VERSION_NAME, str(VERSION)) != str(VERSION):
        wrong[VERSION_NAME] = LinkError(
            N_("this is version {version}: the link's default values may have been different."), version=VERSION
        )
    known = {VERSION_NAME, *_CHECKS, *(one.name for one in fields(Selection))}
    choices = {name: value for name, value in texts.items() if name not in known}
    for name in [name for name, value in choices.items() if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value))]:
        del choices[name]
        wrong[name] = LinkError(N_("no page has such an option."))
    return State(**common, selection=selection, choices=choices), ignored(texts, wrong)


def from_address(link: Mapping[str, Iterable[str]]) -> tuple[dict[str, str], list[Remark]]:
    """The texts of an address, where a name may stand several times: the last one counts."""
    texts, remarks = _last((name, value) for name, values in link.items() for value in values)
    if PAGE in texts:
        remarks.append(
            Remark(f"{PAGE}={texts.pop(PAGE)}", LinkError(N_("the page is set by the path of the address.")))
        )
    return texts, remarks


def from_file(content: bytes, name: str = "") -> tuple[dict[str, str], list[Remark]]:
    """The texts of a file of this name; none where it holds no state."""
    try:
        pairs = _written(content)
    except LinkError as error:
        return {}, [Remark(name, error)]
    texts, remarks = _last((name, value) for name, value in pairs if isinstance(value, str))
    for name, value in pairs:
        if not isinstance(value, str):
            written = json.dumps(value, ensure_ascii=False, default=lambda inner: dict(inner.pairs))
            remarks.append(Remark(f"{name}={written}", LinkError(N_("expected a text in quotation marks here."))))
    return texts, remarks


def _last(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], list[Remark]]:
    texts: dict[str, str] = {}
    remarks = []
    for name, value in pairs:
        if name in texts:
            why = LinkError(N_("it appears more than once; the last one counts."))
            remarks.append(Remark(f"{name}={texts[name]}", why))
        texts[name] = value
    return texts, remarks


def _written(content: bytes) -> list[tuple[str, Any]]:
    """What a file's state says, names that are there twice included."""
    if len(content) > limits.STATE_BYTES:
        raise LinkError(
            N_("this file has {given} bytes; a state may have at most {limit}."),
            given=len(content),
            limit=limits.STATE_BYTES,
        )
    try:
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        raise LinkError(N_("byte {place} of this file is not UTF-8."), place=error.start + 1) from error
    except json.JSONDecodeError as error:
        raise LinkError(N_("line {line} of this file is not valid JSON."), line=error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise LinkError(N_("this file is not valid JSON.")) from error
    pairs = found.pairs if isinstance(found, _Object) else []
    versions = [value for name, value in pairs if name == _MARK]
    if not versions:
        raise LinkError(N_("this file is not a saved state: save one with “As a file”."))
    if versions[-1] is True or versions[-1] != VERSION:
        raise LinkError(N_("this file is not of version {version}."), version=VERSION)
    return [(name, value) for name, value in pairs if name != _MARK]


@dataclass(frozen=True)
class _Object:
    """A JSON object as it was written: a name may stand there twice."""

    pairs: list[tuple[str, Any]]


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
        raise LinkError(N_("expected a whole number of at least 1."))
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
