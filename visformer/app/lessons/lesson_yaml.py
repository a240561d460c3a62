"""The YAML of a lesson as nodes that know their lines. Only the events of a parser are used: no file makes objects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from visformer.app.session import url_state
from visformer.errors import N_, LessonError
from visformer.i18n import Gettext
from visformer.system import limits


@dataclass(frozen=True)
class Fault(url_state.Remark):
    """A mistake in the file of a lesson; ``said``, the offending text, may be empty; ``line`` counts from 1."""

    line: int

    def localized(self, gettext: Gettext) -> str:
        """One line of plain text."""
        place = gettext(N_("line {line}")).format(line=self.line)
        return f"{place}: {super().localized(gettext) if self.said else self.why.localized(gettext)}"


class Unreadable(Exception):
    """Raised where the file cannot be parsed any further."""

    def __init__(self, line: int, message: str, *, said: str = "", **params: object) -> None:
        super().__init__(message)
        self.fault = Fault(said, LessonError(message, **params), line)


@dataclass
class Node:
    """A node of the file: a text, a list, or a mapping."""

    line: int  # where it begins
    value: "str | list[Node] | dict[str, Node]"
    named_at: int = 0  # the line of its name in a mapping


def parsed(content: bytes) -> tuple[Node, list[Fault]]:
    """Return the root of the file, and faults for duplicate keys."""
    import yaml  # not needed for the first picture

    if len(content) > limits.LESSON_BYTES:
        too_many = N_("this file has {given} bytes; a lesson may have at most {limit}.")
        raise Unreadable(1, too_many, given=len(content), limit=limits.LESSON_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(line, N_("byte {place} of this file is not UTF-8."), place=error.start + 1) from error
    faults: list[Fault] = []
    try:
        events = yaml.parse(text, Loader=yaml.SafeLoader)
        first = next((event for event in events if isinstance(event, yaml.NodeEvent)), None)
        if first is None:
            raise Unreadable(1, N_("this file is empty."))
        root = _node(first, events, faults, depth=1)
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                raise Unreadable(event.start_mark.line + 1, N_("a second lesson begins here; a file holds only one."))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(mark.line + 1 if mark else 1, _hint(str(error.problem)), problem=error.problem) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(line, N_("there is an unprintable character here.")) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise Unreadable(1, N_("this file is not valid YAML.")) from error
    return root, faults


def _hint(problem: str) -> str:
    if problem.startswith("mapping values are not allowed") or problem.endswith("but got ':'"):
        return N_('a text that contains a colon and a space needs quotation marks: "a: b".')
    if "cannot start any token" in problem:
        return N_("indent lines with spaces, and put a text that begins with a special character in quotation marks.")
    return N_("this is not valid YAML: {problem}.")


def _node(event: Any, events: Iterator[Any], faults: list[Fault], *, depth: int) -> Node:
    import yaml

    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise Unreadable(line, N_("anchors and aliases (& and *) are not supported here: write the text out."))
    if event.tag not in (None, "!"):
        raise Unreadable(line, N_("tags are not supported here: write the text alone."), said=str(event.tag))
    if isinstance(event, yaml.ScalarEvent):
        empty = event.implicit[0] and event.value in ("~", "null")
        return Node(line, "" if empty else event.value)
    if depth > limits.LESSON_DEPTH:
        raise Unreadable(line, N_("nested too deeply: at most {limit} levels."), limit=limits.LESSON_DEPTH)
    if isinstance(event, yaml.SequenceStartEvent):
        return Node(line, list(_items(events, faults, depth=depth + 1)))
    return _mapping(line, events, faults, depth=depth + 1)


def _items(events: Iterator[Any], faults: list[Fault], *, depth: int) -> Iterator[Node]:
    import yaml

    inside = takewhile(lambda event: not isinstance(event, yaml.CollectionEndEvent), events)
    return (_node(event, events, faults, depth=depth) for event in inside)


def _mapping(line: int, events: Iterator[Any], faults: list[Fault], *, depth: int) -> Node:
    pairs: dict[str, Node] = {}
    inside = _items(events, faults, depth=depth)
    for key in inside:
        value = next(inside)  # in a mapping, keys and values alternate
        if not isinstance(key.value, str):
            raise Unreadable(key.line, N_("a name is needed before the colon."))
        if key.value in pairs:
            faults.append(Fault(key.value, LessonError(N_("it appears more than once.")), key.line))
        pairs[key.value] = replace(value, named_at=key.line)
    return Node(line, pairs)
