"""The form with which a presenter makes a question for the room: a sentence, a word, and who reads it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from visformer.app.presentation import guessing
from visformer.app.presentation.guesses import KINDS, Guess, Kind, Question, Wanted
from visformer.app.session import boxes, run
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls
from visformer.errors import N_, VisformerError
from visformer.pictures.registry.setting import PATTERNS
from visformer.system import limits
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:  # numpy
    from visformer.analysis.guesses import Word
    from visformer.trace import Trace

_T = TypeVar("_T")

_KIND = Slot("guess_kind", "head")
_STACK, _LAYER, _HEAD, _WORD = (Slot[Any](f"guess_{name}", None) for name in ("stack", "layer", "head", "word"))
_NEEDS = (*PATTERNS, "logits")
_LEAST = 2  # words to choose from


def draw(guess: Guess) -> None:
    """Draw the form; its button opens the question."""
    _ = boxes.gettext()
    wanted = guessing.WANTED.pop()
    if wanted is not None:
        _KIND.set(wanted.kind)
        _STACK.set(wanted.place.stack)
        _LAYER.set(wanted.place.layer)
        _HEAD.set(wanted.place.head)
        _WORD.set(None)
    with st.container(key="guess_title"):
        st.text(_(guessing.BEGIN))
    st.caption(_("The phones wait for your question, and this page tells nothing about the answer."))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(_("Sentence"), key=boxes.SOURCE, on_change=boxes.forget_target)
        st.segmented_control(
            _("Question"), [*KINDS], format_func=lambda kind: _(KINDS[kind]), key=_KIND.key, required=True
        )
    trace = controls.current_trace(_NEEDS)
    question: Question | None = None
    if trace is None:
        controls.show_error(run.current().problem or VisformerError(_NOTHING))
    else:
        try:
            question = _question(trace, wanted)
        except VisformerError as problem:
            st.text(problem.localized(_))
    with st.container(horizontal=True):
        st.button(
            _("Ask the room"), type="primary", key="guess_ask", disabled=question is None,
            on_click=guessing.ask, args=(guess, question),
        )  # fmt: skip
        st.button(_("Back to the page"), key="guess_end", on_click=guessing.end, args=(guess,))


_NOTHING = N_("There is nothing to ask about this sentence.")
_FEW = N_("This word can read nothing but “{word}”: choose another word, or another attention.")
_MANY = N_("This sentence has {given} words to choose from; a question takes at most {limit}.")
_NO_LOGITS = N_("This model predicts no next tokens: ask what it reads.")


def _question(trace: "Trace", wanted: Wanted | None) -> Question:
    """Draw what depends on the kind of question, and return the question."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        return _next(trace, wanted) if _KIND.get() == "next" else _reading(trace, wanted)


def _next(trace: "Trace", wanted: Wanted | None) -> Question:
    from visformer.analysis.guesses import next_choices, words_of
    from visformer.pictures.style import visible

    if "logits" not in trace or not trace.tokens.get("next"):
        raise VisformerError(_NO_LOGITS)
    words = words_of(trace, "tgt")
    at = _word(words, wanted)
    options, shares = next_choices(trace, words[at].places[-1])
    written = " ".join(visible(word.text) for word in words[: at + 1])
    source = boxes.source() if trace.tokens.get("src") else ""  # what a decoder reads holds the answer
    return Question("next", source, written, options=_labels(options), shares=tuple(shares.tolist()))


def _reading(trace: "Trace", wanted: Wanted | None) -> Question:
    from visformer.analysis.guesses import sides_of, word_row, words_of
    from visformer.pictures.style import visible

    stacks = {stack.name: stack for stack in STACKS if stack.in_trace(trace)}
    _, is_head = boxes.gettext(), _KIND.get() == "head"
    stack = stacks[_choose(_STACK, {name: _(each.label) for name, each in stacks.items()}, _("Attention"))]
    layers, layer, head = stack.layers(trace), 0, 0
    if is_head:
        layer = _choose(_LAYER, {number: str(number + 1) for number in layers}, _("Layer"))
        head = _choose(_HEAD, {number: str(number + 1) for number in range(len(layers[layer]))}, _("Head"))
    words = words_of(trace, sides_of(stack)[0])
    at = _word(words, wanted)
    row = word_row(trace, stack, at, layer=layer if is_head else None, head=head)
    if len(row.words) < _LEAST:
        raise VisformerError(_FEW, word=visible(row.words[0].text))
    if len(row.words) > limits.GUESS_WORDS:
        raise VisformerError(_MANY, given=len(row.words), limit=limits.GUESS_WORDS)
    place: dict[str, Any] = {"stack": stack.name, "layer": layer, "head": head}
    asked, following = (visible(text) if text else "" for text in (words[at].text, words[at].following))
    options = _labels([word.text for word in row.words])
    kind: Kind = "head" if is_head else "model"
    source = "" if sides_of(stack)[1] == "src" else boxes.source()  # otherwise it is what people choose from
    return Question(kind, source, asked, following, **place, options=options, shares=tuple(row.weights.tolist()))


def _word(words: "Sequence[Word]", wanted: Wanted | None) -> int:
    """Draw the choice of the word, at first the one that is wanted."""
    from visformer.pictures.style import visible

    _ = boxes.gettext()
    query = wanted.place.query if wanted is not None else None
    first = next((i for i, word in enumerate(words) if query in word.places), max(0, len(words) - 3))
    if wanted is not None and wanted.word is not None:
        first = min(wanted.word, len(words) - 1)
    shown = [
        f"{visible(each.text)} → {visible(each.following)}" if each.following else visible(each.text) for each in words
    ]
    return _choose(_WORD, {i: f"{i + 1} · {text}" for i, text in enumerate(shown)}, _("Word that reads"), first)


def _choose(slot: Slot[Any], options: Mapping[_T, str], label: str, first: _T | None = None) -> _T:
    """Draw a choice, at first the slot's value, if it is offered, or else ``first``, or the first of all."""
    if slot.get() not in options:
        slot.set(next(iter(options)) if first is None else first)
    return st.selectbox(label, [*options], format_func=options.__getitem__, key=slot.key)


def _labels(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts as they are shown, those that occur more than once with their place."""
    from visformer.pictures.style import visible

    shown = [visible(text) for text in texts]
    count = Counter(shown)
    return tuple(f"{text} ({i})" if count[text] > 1 else text for i, text in enumerate(shown, 1))
