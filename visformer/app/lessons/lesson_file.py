"""Parsing of guided lessons: a YAML file becomes steps, or a list of faults with their line numbers.

A step's link is read like any other (:mod:`visformer.app.session.url_state`). A step may also have lines of the model's
own code, read from its files so that they are never out of date, and a question to the room.
"""

import base64
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import visformer
from visformer import i18n
from visformer.app.lessons import facts
from visformer.app.lessons.lesson_yaml import Fault, Node, Unreadable, parsed
from visformer.app.presentation.guesses import KINDS, Wanted
from visformer.app.session import url_state
from visformer.errors import N_, LessonError, VisformerError
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.registry.options import one_of
from visformer.pictures.registry.picture import pages
from visformer.system import limits, settings
from visformer.trace.stacks import stack_named
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

MARK, VERSION = "visformer_lesson", "1"
_INLINE = "z"  # prefix of a name that holds the whole lesson
_FOLDER = Path(__file__).parent / "shipped"
_NAME = re.compile(r"[a-y0-9][a-z0-9-]{0,60}")
_TEXTS = ("title", "say", "try", "note", "answer")
_NEEDED = ("title", "say")
_COMMON = {url_state.LANGUAGE, url_state.LESSON, url_state.STEP}  # in a copied address, but no part of a step
_REST = {"link", "check", "hints", "code", "beside", "guess"}  # of a step
_CLAIM = {"stack", "layer", "head", "query", "key", "at_least"}


@dataclass(frozen=True)
class CodeLines:
    """Lines of a file.

    Args:
        file: its name from the package's folder on, such as "visformer/model/attention.py".
        numbers: of the lines, from 1.
        text: the lines, without what all are indented by.
    """

    file: str
    numbers: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class WeightClaim:
    """A claim of a step's text about the weights: of all keys, the query reads this one most."""

    line: int  # in the file
    place: Selection  # the head and the cell
    at_least: float  # the least weight, from 0 to 1


@dataclass(frozen=True)
class LessonStep:
    """A state of a page, and the text about it."""

    line: int  # in the file
    texts: Mapping[str, Mapping[str, str]]  # the names of _TEXTS to language to text
    state: url_state.State
    lines: Mapping[str, int]  # of the fields of its link, by name
    fields: Mapping[str, int]  # the names of facts in its texts, with their lines
    claims: tuple[WeightClaim, ...]  # what must hold for the text to be true
    hints: tuple[Mapping[str, str], ...] = ()  # by language; each is shown when it is asked for
    code: CodeLines | None = None  # shown with the answer
    beside: str = ""  # another model, on which the answer shows the same page
    guess: Wanted | None = None  # a question to the room, which its presenter can ask

    @property
    def sentence(self) -> str:
        """The sentence that it shows by itself."""
        return self.state.text or EXAMPLES[0]

    @property
    def fits_any(self) -> bool:
        """Whether it shows the visitor's own sentence: nothing in it is about the tokens of one, or it names facts."""
        selected = self.state.selection
        has_place = bool(self.claims) or selected.query is not None or selected.key is not None
        return not (self.state.text or self.guess or (has_place and not self.fields))

    def facts(self, trace: "Trace | None", sentence: str) -> dict[str, str]:
        """Return the facts that its texts name; ``trace``: of the sentence that is shown, with what they need."""
        return facts.told(self.fields, trace, self.state.selection, keeps_row=sentence == self.sentence)

    def text(self, name: str, language: str) -> str:
        """Return a text in this language, with its fields, else in the first that it has; "" if there is none."""
        return _in(self.texts.get(name, {}), language)

    def answer_in(self, language: str) -> str:
        """Return the answer in this language, else in the first that it has; "" if there is none."""
        return _in(self.texts.get("answer", {}), language)

    def hints_in(self, language: str) -> list[str]:
        """Return the hints in this language, else in the first that each has."""
        return [_in(hint, language) for hint in self.hints]


@dataclass(frozen=True)
class Lesson:
    """Steps from the first to the last."""

    title: Mapping[str, str]
    steps: tuple[LessonStep, ...]
    learnt: Mapping[str, str]  # what the visitor knows at the end; may be empty

    def title_in(self, language: str) -> str:
        """Return the title in this language, else in the first that it has."""
        return _in(self.title, language)

    def learnt_in(self, language: str) -> str:
        """Return what was learnt in this language, else in the first that it has; "" if the file does not say."""
        return _in(self.learnt, language)


def _in(text: Mapping[str, str], language: str) -> str:
    return text.get(language) or next(iter(text.values()), "")


# Sources of lessons -------------------------------------------------------------------------------------------------


def offered(environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return the files of lessons by name: the shipped ones, then those in the operator's folder."""
    folders = filter(None, (_FOLDER, settings.LESSONS(environ)))
    paths = (path for folder in folders for path in sorted(folder.glob("*.yaml")))
    return {path.stem: path for path in paths if _NAME.fullmatch(path.stem)}


@cache
def _shipped() -> dict[str, bytes]:
    """Return the shipped files by name. Each page asks for some: read from disk they would take a third of its time."""
    return {path.stem: path.read_bytes() for path in _FOLDER.glob("*.yaml")}


def load(name: str) -> Lesson:
    """Return the lesson with this name, or packed into it.

    Raises:
        VisformerError: there is none, or it has faults.
    """
    lesson, faults = read(content(name))
    if lesson is None:
        raise faults[0].why  # its author sees all faults, with their lines, on opening the file
    return lesson


def content(name: str) -> bytes:
    """Return the file of the lesson with this name.

    Raises:
        LessonError: there is none.
    """
    if name.startswith(_INLINE):
        return unpack(name)
    path = offered().get(name) if settings.LESSONS() else None
    if path is None and name in _shipped():
        return _shipped()[name]
    with suppress(OSError):
        if path is not None and path.stat().st_size <= limits.LESSON_BYTES:
            return path.read_bytes()
    raise LessonError(N_("there is no lesson of this name here."))


def pack(content: bytes) -> str:
    """Pack a lesson into a name for a link; "" if that would be too long."""
    text = _INLINE + base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")
    return text if len(text) <= limits.LESSON_LINK else ""


def unpack(name: str) -> bytes:
    """Return the file of a lesson that was packed into its name.

    Raises:
        LessonError: it is truncated, or longer than a lesson can be.
    """
    packed = name.removeprefix(_INLINE)
    unpacking = zlib.decompressobj()
    with suppress(ValueError, zlib.error):
        compressed = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        content = unpacking.decompress(compressed, limits.LESSON_BYTES + 1)  # the limit stops a decompression bomb
        if unpacking.eof:
            return content
    raise LessonError(N_("this lesson was damaged on its way."))


# From bytes to steps -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def read(content: bytes) -> tuple[Lesson | None, tuple[Fault, ...]]:
    """Parse a lesson; return it, or None and the faults of its file. No content raises."""
    try:
        root, faults = parsed(content)
    except Unreadable as stopped:
        return None, (stopped.fault,)
    reader = _Reader(faults)
    lesson = reader.lesson(root)
    return (None if reader.faults else lesson), tuple(sorted(reader.faults, key=lambda fault: fault.line))


class _Reader:
    """Validates the nodes of a file, and collects every fault."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.fields: list[tuple[str, int]] = []  # the names of facts in the texts read so far, with their lines

    def fault(self, line: int, said: str, message: str, **params: object) -> None:
        """Add a fault."""
        self.faults.append(Fault(said, LessonError(message, **params), line))

    def lesson(self, root: Node) -> Lesson:
        """Read the root of the file."""
        pairs, missing = self._pairs(root, "", {MARK, "title", "steps", "learnt"}), Node(root.line, "", root.line)
        mark, steps = pairs.get(MARK, missing), pairs.get("steps", missing)
        if mark.value != VERSION:
            begins = N_("a lesson begins with the line “{mark}”.")
            self.fault(mark.named_at, "", begins, mark=f"{MARK}: {VERSION}")
        title, learnt = (self._text(pairs, name, root.line) for name in ("title", "learnt"))
        if not isinstance(steps.value, list) or not steps.value:
            self.fault(steps.named_at, "steps", N_("a list is needed here: each step begins with “- ”."))
            return Lesson(title, (), learnt)
        if len(steps.value) > limits.LESSON_STEPS:
            many = N_("there are {given} steps; a lesson may have at most {limit}.")
            self.fault(steps.named_at, "steps", many, given=len(steps.value), limit=limits.LESSON_STEPS)
        return Lesson(title, tuple(map(self._step, steps.value)), learnt)

    def _step(self, node: Node) -> LessonStep:
        pairs = self._pairs(node, "", {*_TEXTS, *_REST})
        self.fields = []
        texts = {name: self._text(pairs, name, node.line) for name in _TEXTS}
        state, lines = self._link(pairs.get("link", Node(0, "")))
        check = pairs.get("check", Node(0, []))
        claims = check.value if isinstance(check.value, list) else [check]
        checked = tuple(self._claim(claim, state.selection) for claim in claims)
        told = {name: text for name, text in texts.items() if text}
        rest = (self._hints(pairs), self._code(pairs), self._beside(pairs), self._guess(pairs, state.selection))
        return LessonStep(node.line, told, state, lines, dict(self.fields), checked, *rest)

    def _hints(self, pairs: Mapping[str, Node]) -> tuple[dict[str, str], ...]:
        node = pairs.get("hints", Node(0, []))
        hints = node.value if isinstance(node.value, list) else [node]
        if len(hints) > limits.LESSON_HINTS:
            many = N_("there are {given} hints; a step may have at most {limit}.")
            self.fault(node.named_at, "hints", many, given=len(hints), limit=limits.LESSON_HINTS)
        return tuple(self._by_language(hint, "hints") for hint in hints)

    def _code(self, pairs: Mapping[str, Node]) -> CodeLines | None:
        if "code" not in pairs:
            return None
        texts = _texts(self._pairs(pairs["code"], "code", {"file", "line"}))
        try:
            return code_lines(texts.get("file", ""), texts.get("line", ""))
        except VisformerError as error:
            self.faults.append(Fault(", ".join(texts.values()), error, pairs["code"].named_at))
            return None

    def _beside(self, pairs: Mapping[str, Node]) -> str:
        given = _texts(dict(pairs)).get("beside", "")
        state, remarks = url_state.read({url_state.MODEL: given})
        for remark in remarks:
            self.faults.append(Fault(f"beside: {given}", remark.why, pairs["beside"].named_at))
        return state.model

    def _guess(self, pairs: Mapping[str, Node], selection: Selection) -> Wanted | None:
        if "guess" not in pairs:
            return None
        inside = self._pairs(pairs["guess"], "guess", _GUESS_NAMES)
        texts = _texts(inside)
        for name in inside.keys() - texts.keys():
            self.fault(inside[name].named_at, name, N_("expected a text here."))
        wanted, wrong = read_guess(texts, selection)
        for name, error in wrong.items():
            self.faults.append(Fault(f"{name}: {texts[name]}", error, inside[name].named_at))
        return wanted

    def _text(self, pairs: Mapping[str, Node], name: str, line: int) -> dict[str, str]:
        """Read a text; it may have to be there."""
        if name not in pairs:
            if name in _NEEDED:
                self.fault(line, "", N_("“{name}” is missing."), name=name)
            return {}
        return self._by_language(pairs[name], name)

    def _by_language(self, node: Node, name: str) -> dict[str, str]:
        """Read a text by language; a single text is used in every language."""
        if isinstance(node.value, str):
            texts = {i18n.ENGLISH: node}
        else:
            texts = self._pairs(node, name, {*i18n.languages()})
            if node.value == {}:
                self.fault(node.named_at or node.line, name, N_("expected a text here."))
        return {language: self._line(text, name) for language, text in texts.items()}

    def _line(self, node: Node, name: str) -> str:
        text = node.value.strip() if isinstance(node.value, str) else ""
        if not text:
            self.fault(node.line, name, N_("expected a text here."))
        most = limits.LESSON_TITLE if name == "title" else limits.LESSON_TEXT
        if len(text) > most:
            long = N_("this text has {given} characters; at most {limit} fit on the page.")
            self.fault(node.line, name, long, given=len(text), limit=most)
        if name != "title":
            self.fields += [(field, node.line) for field in facts.FIELD.findall(text)]
        return text

    def _link(self, node: Node) -> tuple[url_state.State, dict[str, int]]:
        """Read a link, a copied address or a mapping of fields; return its state, and the line of each field."""
        if node.value and isinstance(node.value, str):
            texts = self._copied(node.value, node.named_at)
            lines = dict.fromkeys(texts, node.named_at)
        else:
            inside = self._pairs(node, "link", None) if node.value else {}
            texts = {url_state.PAGE: url_state.EXPLORER, **_texts(inside)}
            lines = {name: field.named_at for name, field in inside.items()}
            for name in inside:
                if name not in texts:
                    self.fault(lines[name], name, N_("expected a text here."))
        state, remarks = url_state.read(texts)
        for remark in remarks:
            name, _, value = remark.said.partition("=")
            self.faults.append(Fault(f"{name}: {value}", remark.why, lines.get(name, node.named_at)))
        self._page(state, lines, node.named_at)
        return replace(state, **dict.fromkeys(_COMMON, "")), lines  # type: ignore[arg-type]

    def _copied(self, address: str, line: int) -> dict[str, str]:
        try:
            parts = urlsplit(address)
            texts, remarks = url_state.from_address(parse_qs(parts.query, keep_blank_values=True, max_num_fields=100))
        except ValueError as error:
            self.fault(line, address, N_("this is not a link: {why}"), why=error)
            return {}
        self.faults += [Fault(remark.said, remark.why, line) for remark in remarks]
        texts = {name: value for name, value in texts.items() if name not in _COMMON}
        page = parts.path.rstrip("/").rpartition("/")[2]
        return {url_state.PAGE: page, **texts}

    def _page(self, state: url_state.State, lines: Mapping[str, int], line: int) -> None:
        if state.page not in pages():
            none = N_("there is no page with this name: choose one of {pages}, or leave it out for Attention.")
            said, known = f"{url_state.PAGE}: {state.page}", ", ".join(name or url_state.FIRST for name in pages())
            self.fault(lines.get(url_state.PAGE, line), said, none, pages=known)
            return
        for name, value in state.choices.items():
            if not state.page or not name.startswith(f"{state.page}_"):
                self.fault(lines[name], f"{name}: {value}", N_("this page has no option with this name."))

    def _claim(self, node: Node, selection: Selection) -> WeightClaim:
        pairs = self._pairs(node, "check", _CLAIM)
        texts = _texts(pairs)
        at_least = texts.pop("at_least", "0")
        claimed, wrong = Selection.from_link(texts)
        for name, error in wrong.items():
            self.faults.append(Fault(f"{name}: {texts[name]}", error, pairs[name].named_at))
        if not {"query", "key"} <= {*pairs}:
            self.fault(node.line, "check", N_("“{name}” is missing."), name="query, key")
        if not re.fullmatch(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?", at_least):
            self.fault(pairs["at_least"].named_at, f"at_least: {at_least}", N_("expected a share from 0 to 1."))
            at_least = "0"
        place = replace(
            _placed(selection, texts),
            **{one.name: getattr(claimed, one.name) for one in fields(Selection) if one.name in texts},
        )
        return WeightClaim(node.line, place, float(at_least))

    def _pairs(self, node: Node, said: str, known: set[str] | None) -> dict[str, Node]:
        """Return a mapping without its unknown names, which are faults; ``known`` None: all are known."""
        if not isinstance(node.value, dict):
            self.fault(node.line, said, N_("expected lines of the form name: value here."))
            return {}
        if known is None:
            return node.value
        for name, value in node.value.items():
            if name not in known:
                none = N_("there is no such name here: choose one of {names}.")
                self.fault(value.named_at, name, none, names=", ".join(sorted(known)))
        return {name: value for name, value in node.value.items() if name in known}


def _texts(pairs: Mapping[str, Node]) -> dict[str, str]:
    return {name: node.value for name, node in pairs.items() if isinstance(node.value, str)}


# Lines of the model's code, and questions to the room -----------------------------------------------------------------

_CODE_FOLDER = Path(visformer.__file__).parent / "model"
_CODE_FILE = re.compile(r"[a-z_]{1,40}\.py")


@lru_cache(maxsize=64)
def code_lines(file: str, part: str) -> CodeLines:
    """Find the lines of a file in visformer/model that contain ``part``.

    Raises:
        LessonError: there is no such file, or no such line.
    """
    path = _CODE_FOLDER / file
    if not _CODE_FILE.fullmatch(file) or not path.is_file():
        raise LessonError(N_("there is no such file in {folder}."), folder="visformer/model")
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {number: line for number, line in enumerate(lines, 1) if part in line}
    if not part or not found:
        raise LessonError(N_("no line of {file} contains this."), file=f"visformer/model/{file}")
    least = min(len(line) - len(line.lstrip()) for line in found.values())
    return CodeLines(f"visformer/model/{file}", tuple(found), "\n".join(line[least:] for line in found.values()))


_GUESS_PLACE = {"stack", "layer", "head"}
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")
_GUESS_NAMES = {"kind", "word", "between", *_GUESS_PLACE}


def _placed(selection: Selection, texts: Mapping[str, str]) -> Selection:
    """Return a selection with a stack, where these texts name a layer or head: the first, as in a link."""
    is_placed = selection.stack or not texts.keys() & {"layer", "head"}
    return selection if is_placed else replace(selection, stack=Selection.stack)


def read_guess(texts: Mapping[str, str], selection: Selection) -> tuple[Wanted, dict[str, VisformerError]]:
    """Read the names and values below ``guess``; return the question, and an error for each that is invalid.

    ``selection``: of the step's link, whose head is meant where none is given.
    """
    place, unfit = Selection.from_link({name: text for name, text in texts.items() if name in _GUESS_PLACE})
    wrong: dict[str, VisformerError] = {**unfit}
    given = {one.name: getattr(place, one.name) for one in fields(Selection) if one.name in texts}
    wanted = Wanted(place=replace(_placed(selection, texts), **given))
    if "kind" in texts:
        kinds = {kind for kind in KINDS if kind == texts["kind"]}
        wanted = replace(wanted, kind=next(iter(kinds), wanted.kind))
        if not kinds:
            wrong["kind"] = one_of(KINDS)
    if "word" in texts:
        if _NUMBER.fullmatch(texts["word"]):
            wanted = replace(wanted, word=int(texts["word"]) - 1)
        else:
            wrong["word"] = LessonError(N_("expected a whole number of at least 1."))
    if "between" in texts:
        from visformer.analysis.answers import spoken

        wanted = replace(wanted, between=texts["between"])
        if wanted.kind != "next" or not isinstance(spoken(wanted.between), tuple):
            wrong["between"] = LessonError(N_("expected two words, such as is − are, with the kind next."))
    return wanted, wrong


def check_guess(wanted: Wanted, trace: "Trace") -> tuple[str, VisformerError] | None:
    """Return the name and value that a model lacks, with the reason; None: the question can be asked."""
    from visformer.analysis.guesses import words_of

    fitted, wrong = wanted.place.fitting(trace)
    if wanted.kind != "next" and wrong.keys() & _GUESS_PLACE:
        name = min(wrong.keys() & _GUESS_PLACE)
        return f"{name}: {wanted.place.link()[name]}", wrong[name]
    side = "tgt" if wanted.kind == "next" else stack_named(fitted.stack).sides[0]
    if side not in trace.tokens:
        return f"kind: {wanted.kind}", LessonError(N_("this model predicts no next tokens."))
    count = len(words_of(trace, side))
    if wanted.word is not None and wanted.word >= count:
        return f"word: {wanted.word + 1}", LessonError(N_("the words that read here are 1 to {n}."), n=count)
    return None


# Checks against a model ----------------------------------------------------------------------------------------------


def check_against_model(lesson: Lesson, trace_of: "Callable[[url_state.State, tuple[str, ...]], Trace]") -> list[Fault]:
    """Find selections and facts that a model lacks, and claims that its weights refute.

    ``trace_of`` returns the Trace of a step, with the tensors that some globs name.
    """
    faults: list[Fault] = []
    for step in lesson.steps:
        try:
            trace = trace_of(step.state, facts.needs(step.fields))
        except VisformerError as error:
            faults.append(Fault(url_state.TEXT, error, step.lines.get(url_state.TEXT, step.line)))
            continue
        _, wrong = step.state.selection.fitting(trace)
        said = step.state.selection.link()
        faults += [Fault(f"{n}: {said[n]}", error, step.lines.get(n, step.line)) for n, error in wrong.items()]
        faults += _check_facts(step, trace)
        faults += [fault for claim in step.claims if (fault := _check_claim(claim, trace))]
        if step.guess is not None and (lacking := check_guess(step.guess, trace)):
            faults.append(Fault(*lacking, step.line))
    return faults


def _check_facts(step: LessonStep, trace: "Trace") -> Iterator[Fault]:
    """Yield why a field of a text cannot be filled in."""
    values = step.facts(trace, step.sentence)
    for name, line in step.fields.items():
        if name not in values:
            none = N_("there is no fact of this name: choose one of {names}.")
            yield Fault(f"{{{name}}}", LessonError(none, names=", ".join(facts.FACTS)), line)
        elif values[name] == facts.UNKNOWN:
            lacks = N_("this model does not have it for this sentence: leave it out, or choose another page or model.")
            yield Fault(f"{{{name}}}", LessonError(lacks), line)


def _check_claim(claim: WeightClaim, trace: "Trace") -> Fault | None:
    """Return why a claim does not hold, or None."""
    place = claim.place
    _, wrong = place.fitting(trace)
    if wrong:
        name = next(iter(wrong))
        return Fault(f"{name}: {place.link()[name]}", wrong[name], claim.line)
    assert place.query is not None and place.key is not None  # a claim without them is a fault
    row = trace.layers(place.stack)[place.layer].value[place.head, place.query]
    weight, most = float(row[place.key]), int(row.argmax())
    if most == place.key and weight >= claim.at_least:
        return None
    said = N_("this query gives key {key} the weight {weight:.4f}; key {most} has the largest, {largest:.4f}.")
    why = LessonError(said, key=place.key + 1, weight=weight, most=most + 1, largest=float(row[most]))
    return Fault("check", why, claim.line)
