"""What a guided lesson hands out: one HTML file with each step's pictures, and a worksheet to be printed."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from visformer.adapters.checkpoints import TRANSLATOR
from visformer.app.lessons import lesson_file
from visformer.app.lessons.facts import filled, needs
from visformer.app.lessons.lesson_file import Lesson, LessonStep
from visformer.app.serving import checks
from visformer.app.serving.models import MODEL
from visformer.app.serving.remote_models import model
from visformer.app.session import url_state
from visformer.errors import N_, BudgetError, LinkError
from visformer.export.drawables import Options, drawable_of
from visformer.i18n import translations
from visformer.model.untrained import is_untrained_name
from visformer.pictures import embedding
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.registry.picture import Picture, pages
from visformer.pictures.registry.setting import PATTERNS, Setting, Source
from visformer.pictures.style import visible
from visformer.system import cancellation, limits
from visformer.trace.stacks import STACKS, short_name
from visformer.web.bundle import stylesheet
from visformer.web.slides import Slide, SlidePicture, slides

if TYPE_CHECKING:  # numpy
    from visformer.model.decoding import Decoding
    from visformer.trace import Trace

_NAME, _DATE, _ANSWERS = N_("Name"), N_("Date"), N_("Answers")  # on a worksheet

ModelOf = Callable[[str], Any]
"""Returns the model with this name; "" is the default model."""


def file(content: bytes, language: str) -> bytes:
    """Return the page of a lesson's file, within the limits of a server; errors as for :func:`page`."""
    return page(_lesson(content), language, model_of=_limited_models(), most=limits.HANDOUT_BYTES).encode()


def worksheet_file(content: bytes, language: str) -> bytes:
    """Return the worksheet of a lesson's file, within the limits of a server; errors as for :func:`worksheet`."""
    return worksheet(_lesson(content), language, model_of=_limited_models()).encode()


def _lesson(content: bytes) -> Lesson:
    lesson, faults = lesson_file.read(content)
    if lesson is None:
        raise faults[0].why
    return lesson


def _limited_models() -> ModelOf:
    return cache(lambda name: LimitedModel(name or MODEL))


class LimitedModel:
    """A model for a lesson's pictures, with the limits of the pages."""

    def __init__(self, name: str) -> None:
        self._name, self._model = name, model(name)
        self.info, self.text, self.available = self._model.info, self._model.text, self._model.available

    def trace(self, source: str, target: str | None, **named: Any) -> "Trace":
        """Return the Trace that a page shows."""
        self._check(source, target)
        if target is None and is_untrained_name(self._name):
            target = str(model(TRANSLATOR).trace(source).meta["target"])  # so that both read the same words
        second: dict[str, Any] = {"pair" if self.info.kind == "encoder" else "target": target}
        return self._model.trace(source, **second, **named)

    def translate(self, source: str, **named: Any) -> "Decoding":
        """Return the decoding that a page shows."""
        self._check(source)
        return self._model.translate(source, **named)

    def _check(self, *texts: str | None) -> None:
        for text in filter(None, texts):
            checks.check_text(text)
            checks.check_tokens(len(self._model.tokenize(text)), self.info.max_tokens)


def models_of(lesson: Lesson) -> set[str]:
    """Return the names of the models that :func:`file` loads."""
    names = {step.state.model or MODEL for step in lesson.steps}
    return names | {TRANSLATOR for name in names if is_untrained_name(name)}


def page(lesson: Lesson, language: str, *, model_of: ModelOf, most: float = math.inf) -> str:
    """Return the lesson as self-contained HTML; ``most``: bytes that its pictures may have.

    Raises:
        BudgetError: they have more.
        VisformerError: a model cannot be loaded, or a sentence cannot be run.
    """
    gettext = translations(language).gettext
    shown, nbytes = [], 0
    for number, step in enumerate(lesson.steps, start=1):
        cancellation.check()
        shown.append(_slide(step, language, model_of))
        nbytes += sum(len(part.message) + len(part.rest) + len("".join(part.images)) for part in shown[-1].parts)
        if nbytes > most:
            raise BudgetError(
                N_(
                    "The pictures of steps 1 to {step} take {size}, and a page holds at most {limit}: shorten "
                    "sentences or take steps away."
                ),
                step=number,
                size=limits.size(nbytes),
                limit=limits.size(int(most)),
            )
    return slides(lesson.title_in(language), shown, gettext=gettext, lang=language)


def worksheet(lesson: Lesson, language: str, *, model_of: ModelOf) -> str:
    """Return the questions with room for answers on one page, and the answers on a second one, as HTML to be printed.

    Args:
        lesson: each of its steps with something to try is a question.
        language: of its texts.
        model_of: returns the model that computes the words and numbers that the texts name.

    Raises:
        VisformerError: a model cannot be loaded, or a sentence cannot be run.
    """
    _ = translations(language).gettext
    questions, answers = [], []
    for step in lesson.steps:
        cancellation.check()
        values = step.facts(trace_of(step.state, model_of, needs(step.fields)), step.sentence) if step.fields else {}
        title, tried, answer = (filled(step.text(name, language), values) for name in ("title", "try", "answer"))
        if not tried:
            continue
        questions.append(f"<li><b>{escape(title)}</b> {escape(tried)}</li>")
        hints = [filled(hint, values) for hint in step.hints_in(language)]
        answers.append(f"<li><b>{escape(title)}</b> {escape(answer or ' '.join(hints))}</li>")
    title = escape(lesson.title_in(language))
    sentences = " · ".join(dict.fromkeys(step.sentence for step in lesson.steps if step.sentence))
    return (
        f"<!doctype html><html lang='{language}'><head><meta charset='utf-8'><title>{title}</title>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{stylesheet('saved/worksheet.css')}</style></head><body>"
        f"<section><header><h1>{title}</h1><span>{_(_NAME)}</span><span>{_(_DATE)}</span></header>"
        f"<p>{escape(sentences)}</p><ol>{''.join(questions)}</ol></section>"
        f"<section><header><h1>{title}: {_(_ANSWERS)}</h1></header><ol>{''.join(answers)}</ol></section></body></html>"
    )


def trace_of(state: url_state.State, model_of: ModelOf, record: tuple[str, ...] = PATTERNS) -> "Trace":
    """Return the Trace of a step's sentence, with what the model has of these tensors."""
    used = model_of(state.model)
    trace: Trace = used.trace(state.text or EXAMPLES[0], state.target or None, record=used.available(record))
    return trace


def _slide(step: LessonStep, language: str, model_of: ModelOf) -> Slide:
    draw = _explorer if step.state.page == url_state.EXPLORER else _letters if _shows_letters(step.state) else _pictures
    values = step.facts(trace_of(step.state, model_of, needs(step.fields)), step.sentence) if step.fields else {}
    title, say, tried, answer = (
        filled(step.text(name, language), values) for name in ("title", "say", "try", "answer")
    )
    hints = tuple(filled(hint, values) for hint in step.hints_in(language))
    parts = tuple(draw(step.state, language, model_of))
    return Slide(title, say, tried, parts, hints, answer, step.code.text if step.code else "")


def _explorer(state: url_state.State, language: str, model_of: ModelOf) -> list[SlidePicture]:
    """Pack the explorer for a step on the page Attention."""
    if state.choices:  # an edited model, which needs the app
        return []
    trace = trace_of(state, model_of)
    start = state.selection.fitting(trace)[0].start()
    options = Options(start=start, gettext=translations(language).gettext, lang=language)
    return [SlidePicture("attention", *drawable_of(trace).messages(options))]


def _shows_letters(state: url_state.State) -> bool:
    letters = embedding.LETTERS.view
    return state.page == embedding.PAGE.name and state.choices.get("embedding_view", letters) == letters


def _letters(state: url_state.State, language: str, model_of: ModelOf) -> list[SlidePicture]:
    """List every token, and the merges of the longest piece."""
    if not {*state.choices} <= {"embedding_view", "embedding_side", "embedding_piece"}:
        return []
    _, trace, text = translations(language).gettext, trace_of(state, model_of), model_of(state.model).text
    sides = [side for side in ("src", "tgt") if trace.tokens.get(side)]
    side = state.choices.get("embedding_side", "")
    side = side if side in sides else sides[0]  # as on the page: a link may say anything
    heads = [_("no."), _("token"), _("id"), _("what it is")]
    rows = [
        [str(r.number), visible(r.token), str(r.id), r.meaning and _(r.meaning)] for r in embedding.rows(trace, side)
    ]
    title = f"{_('The tokens and their ids')} · {_(embedding.ORDINARY)}"
    parts = [SlidePicture("table", table=[heads, *rows], title=title)]
    piece = embedding.piece_of(text, embedding.text_of(trace, side))
    if text.scheme == "BPE" and piece is not None:
        setting = Setting(Source())
        selected = piece.start(setting)
        with suppress(LinkError):
            selected = piece.read(state.choices.get("embedding_piece", ""), setting)
        steps = text.merging(selected)
        merged = zip(range(len(steps)), steps, embedding.merges(steps), strict=True)
        lines = [[str(i), " · ".join(map(visible, s)), " + ".join(map(visible, m))] for i, s, m in merged]
        heads = [_("merge"), _("parts"), _("merged")]
        parts.append(SlidePicture("table", table=[heads, *lines], title=_("How letters are merged")))
    return parts


def _pictures(state: url_state.State, language: str, model_of: ModelOf) -> list[SlidePicture]:
    """Draw the pictures of a page's view; [] if it has none, or if the step sets an option that is not theirs."""
    page = pages()[state.page]
    switch = f"{page.name}_view"
    view = state.choices.get(switch, page.views[0].view)
    source = _source(state, language, model_of)
    texts = dict(state.choices)
    if any(picture.shows_head for picture in page.pictures):
        selected = state.selection.within(source.record(PATTERNS))
        texts |= {"stack": short_name(selected.stack), **selected.link()}
    parts, known = [], {switch}
    for picture in page.pictures:
        if picture.view == view and picture.in_handouts:
            setting, names = picture.linked(page.name, source, texts)
            parts += _drawn(picture, source, setting, language)
            known |= names
    return parts if {*state.choices} <= known else []


def _drawn(picture: Picture, source: Source, values: dict[str, Any], language: str) -> list[SlidePicture]:
    drawable = drawable_of(picture.make(source, values))
    options = Options(gettext=source.gettext, lang=language)
    if drawable.name == "figure":
        dark = drawable_of(picture.make(replace(source, theme="dark"), values))
        return [SlidePicture("image", images=(drawable.svg(options), dark.svg(options)))]
    return [SlidePicture("map" if drawable.name == "model" else "panels", *drawable.messages(options))]


def _source(state: url_state.State, language: str, model_of: ModelOf) -> Source:
    used = model_of(state.model)

    @cache
    def speak(**settings: Any) -> Any:
        return used.translate(state.text or EXAMPLES[0], **settings)

    @cache
    def record(needs: tuple[str, ...]) -> "Trace":
        return trace_of(state, model_of, needs)

    gettext = translations(language).gettext
    stacks = tuple(stack.name for stack in STACKS if stack.of_kind(used.info.kind))
    common: dict[str, Any] = {"stacks": stacks, "d_model": used.info.d_model, "gettext": gettext}

    def read(text: str, target: Any = None, *, record: tuple[str, ...] = PATTERNS) -> "Trace":
        trace: Trace = used.trace(text, target, record=used.available(record))
        return trace

    return Source(record=record, speak=speak, read=read, **common)
