"""Guess first: a presenter asks the room a question, phones answer it, and it is revealed beside what the model does.

While a question is on, it takes the place of the page, also the presenter's: the page would tell the answer. What
begins, turns and ends a question is followed by the form that makes one, and by what presenter and phones see of it.
"""

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import log
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from visformer.app.presentation import following
from visformer.app.presentation.guesses import KINDS, Answer, Guess, Question, QuestionKind, Result, Wanted
from visformer.app.session import address, boxes, presentation_steps, run, selection
from visformer.app.session.markdown import plain
from visformer.app.session.page import current_page
from visformer.app.session.slots import Slot, hold
from visformer.app.session.url_state import State
from visformer.app.widgets import controls, downloads, formula_box
from visformer.app.widgets.component import kept_key
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.pictures.registry.setting import PATTERNS
from visformer.system import limits
from visformer.trace.stacks import STACKS, Stack, stack_named

if TYPE_CHECKING:  # numpy
    import pandas as pd

    from visformer.analysis.guesses import Word
    from visformer.trace import Trace

BEGIN = N_("Guess first")
"""The label of the button that begins a question."""

_ASK, _REVEAL, _END = N_("Ask the room"), N_("Reveal"), N_("Back to the page")

_BEFORE: Slot[State | None] = Slot("guess_before", None)  # what the presenter's page showed
_WANTED: Slot[Wanted | None] = Slot("guess_wanted", None)
"""What the form begins with, once: a lesson's question, or the head in focus."""

_GUEST = Slot("guest", "")  # the key of this person's answer


def is_offered() -> bool:
    """Whether this session can ask a room."""
    return bool(following.presented()) and following.guess() is None


def asked() -> Guess | None:
    """Return the question in place of the page, if any; a presenter who goes to another page ends it."""
    guess = following.guess()
    if guess is not None and following.presented() and current_page() != guess.page:
        _BEFORE.clear()
        following.ask(None)
        return None
    return guess


def button() -> None:
    """Draw the button that begins a question, beside the room's."""
    if is_offered():
        st.button(boxes.gettext()(BEGIN), type="tertiary", on_click=begin, key="guess_begin")


def begin(wanted: Wanted | None = None) -> None:
    """Prepare a question, as a callback: by default about the head in focus."""
    if is_offered():
        _BEFORE.set(address.current())
        _WANTED.set(wanted or Wanted(place=selection.chosen()))
        following.ask(Guess(current_page()))


def ask(guess: Guess, question: Question | None) -> None:
    """Open a question; None: prepare another one."""
    guess.ask(question)
    following.redraw_followers()


def reveal(guess: Guess) -> None:
    """Show the answer to everybody."""
    guess.reveal()
    following.redraw_followers()


def lock(guess: Guess) -> None:
    """Take no more answers."""
    guess.lock()
    following.redraw_followers()


def reset(guess: Guess) -> None:
    """Forget all answers, and take new ones."""
    guess.reset()
    following.redraw_followers()


def reopen(guess: Guess) -> None:
    """Take answers again."""
    guess.reopen()
    following.redraw_followers()


def end(guess: Guess) -> None:
    """End a question, as a callback; of one about a head, the page that comes back shows that head."""
    before, question = _BEFORE.get(), guess.question
    if before is not None and question is not None and question.kind == "head":
        place = {"stack": question.stack, "layer": question.layer, "head": question.head, "query": None, "key": None}
        _BEFORE.set(replace(before, selection=replace(before.selection, **place)))  # type: ignore[arg-type]
    following.ask(None)


def return_to_room(key: object) -> None:
    """Lead a room again whose key the browser kept, as a callback; the page comes back once its question is over."""
    following.take_up(key)
    if following.presented() and following.guess() is not None:
        _BEFORE.set(address.current())


def restore_page() -> None:
    """Restore the presenter's page at the start of a run, once its question is over, with the sentence asked about."""
    if _BEFORE.get() is not None and following.guess() is None:
        before = _BEFORE.pop()
        assert before is not None
        address.restore(replace(before, text=boxes.source(), target=boxes.target() or ""), [])


def offer_steps(guess: Guess) -> None:
    """Let the keys of a presentation turn an open question: on to the reveal and the page, and back."""

    def turn(direction: int) -> bool:
        is_open = guess.question is not None and guess.result is None
        if direction > 0 and is_open:
            reveal(guess)
        elif direction < 0 and guess.result is not None:
            reopen(guess)
        else:
            end(guess)
        return True

    presentation_steps.offer(turn)


def guest() -> str:
    """Return the key of this session's answer, which its browser keeps for a reload, in no address."""
    if not _GUEST.get():
        _GUEST.set(secrets.token_hex(8))
    return _GUEST.get()


def take_up(guess: Guess, key: str) -> Answer | None:
    """Make the answer with a key that the browser kept this session's; return it, None if there is none."""
    answer = guess.answer_of(key)
    if answer is not None:
        _GUEST.set(key)
    return answer


_T = TypeVar("_T")

# The form -------------------------------------------------------------------------------------------------------------

_KIND = Slot("guess_kind", "head")
_STACK, _LAYER, _HEAD, _WORD = (Slot[Any](f"guess_{name}", None) for name in ("stack", "layer", "head", "word"))
_BETWEEN = Slot("guess_between", "")
_ABOUT: Slot[tuple[object, ...] | None] = Slot("guess_about", None)  # what the word was chosen for
_NEEDS = (*PATTERNS, "logits")
_LEAST = 2  # words to choose from


def _form(guess: Guess) -> None:
    """Draw the form; its button opens the question."""
    _ = boxes.gettext()
    wanted = _WANTED.pop()
    if wanted is not None:
        _KIND.set(wanted.kind)
        _STACK.set(wanted.place.stack)
        _LAYER.set(wanted.place.layer)
        _HEAD.set(wanted.place.head)
        _WORD.set(None)
        _BETWEEN.set(wanted.between)
        _ABOUT.set(None)
    with st.container(key="guess_title"):
        st.text(_(BEGIN))
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
            _(_ASK), type="primary", key="guess_ask", disabled=question is None,
            on_click=ask, args=(guess, question),
        )  # fmt: skip
        st.button(_(_END), key="guess_end", on_click=end, args=(guess,))


_NOTHING = N_("There is nothing to ask about this sentence.")
_OTHER = {"en": "zh", "zh": "en"}  # the two languages of a translator
_FEW = N_("This word can read nothing but “{word}”: choose another word, or another attention.")
_MANY = N_("This sentence has {given} words to choose from; a question takes at most {limit}.")
_NO_PAIR = N_("“{text}” is not two words: write a pair, such as is − are, or leave the box empty.")
_NO_LOGITS = N_("This model predicts no next tokens: ask what it reads.")


def _question(trace: "Trace", wanted: Wanted | None) -> Question:
    """Draw what depends on the kind of question, and return the question."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        return _next_question(trace, wanted) if _KIND.get() == "next" else _reading_question(trace, wanted)


def _next_question(trace: "Trace", wanted: Wanted | None) -> Question:
    from visformer.analysis.answers import spoken
    from visformer.analysis.guesses import next_choices, words_of
    from visformer.analysis.heads import is_word
    from visformer.pictures.style import visible

    if "logits" not in trace or not trace.tokens.get("next"):
        raise VisformerError(_NO_LOGITS)
    words = words_of(trace, "tgt")
    choices = [next_choices(trace, word.places[-1]) for word in words]
    good = [i for i, (texts, shares) in enumerate(choices) if is_word(texts[int(shares.argmax())])]
    at = _word(words, wanted, ("next",), good, max(good, default=None))
    _ = boxes.gettext()
    hold(_BETWEEN.key)
    typed = st.text_input(_("Between two words"), key=_BETWEEN.key, placeholder=_("optional, such as is − are"))
    between = spoken(typed)
    if isinstance(between, str):
        raise VisformerError(_NO_PAIR, text=typed)
    options, shares = choices[at]
    if between is not None:
        model = controls.bench().loaded()
        options, shares = next_choices(trace, words[at].places[-1], between=between, model=model)
    written = " ".join(visible(word.text) for word in words[: at + 1])
    source = boxes.source() if trace.tokens.get("src") else ""  # what a decoder reads holds the answer
    return Question("next", source, written, options=_labels(options), shares=tuple(shares.tolist()))


def _reading_question(trace: "Trace", wanted: Wanted | None) -> Question:
    from visformer.analysis.guesses import to_ask, word_row, words_of
    from visformer.pictures.style import visible

    stacks = {stack.name: stack for stack in STACKS if stack.in_trace(trace)}
    _, is_head = boxes.gettext(), _KIND.get() == "head"
    stack = stacks[_choice(_STACK, {name: _(each.label) for name, each in stacks.items()}, _("Attention"))]
    layers, layer, head = stack.layers(trace), 0, 0
    if is_head:
        layer = _choice(_LAYER, {number: str(number + 1) for number in layers}, _("Layer"))
        head = _choice(_HEAD, {number: str(number + 1) for number in range(len(layers[layer]))}, _("Head"))
    words = words_of(trace, stack.sides[0])
    where: dict[str, Any] = {"layer": layer if is_head else None, "head": head}
    rows = [word_row(trace, stack.name, i, **where) for i in range(len(words))]
    good = [i for i, row in enumerate(rows) if row.most.has_text]
    at = _word(words, wanted, (stack.name, *where.values()), good, to_ask(words, rows))
    row = rows[at]
    if len(row.words) < _LEAST:
        raise VisformerError(_FEW, word=visible(row.words[0].text))
    if len(row.words) > limits.GUESS_WORDS:
        raise VisformerError(_MANY, given=len(row.words), limit=limits.GUESS_WORDS)
    place: dict[str, Any] = {"stack": stack.name, "layer": layer, "head": head}
    options = _labels([word.text for word in row.words])
    kind: QuestionKind = "head" if is_head else "model"
    source = "" if stack.sides[1] == "src" else boxes.source()  # otherwise it is what people choose from
    asked, read = visible(words[at].text), language_read(trace, stack)
    return Question(kind, source, asked, **place, options=options, shares=tuple(row.weights.tolist()), read=read)


def language_read(trace: "Trace", stack: Stack) -> str:
    """Return the language of what a stack of a translator reads, or whose words another model reads, see _ASKS."""
    to = trace.meta.get("to")
    if to in _OTHER:
        return str(to) if stack.sides[1] == "tgt" else _OTHER[str(to)]
    return "source" if stack.kind == "cross_attn" else ""


def _word(
    words: "Sequence[Word]", wanted: Wanted | None, about: tuple[object, ...], good: Collection[int], best: int | None
) -> int:
    """Draw the choice of the word: at first the one that is wanted, or the one in focus if it is good, or the best one.

    Args:
        words: to choose from.
        wanted: what the form begins with.
        about: whose words they are; where that or a word changes, the word is chosen anew.
        good: the places of words whose answer is a word.
        best: the best of them; None: there is none.
    """
    from visformer.pictures.style import visible

    _ = boxes.gettext()
    about = (*about, *(word.text for word in words))
    if _ABOUT.get() not in (None, about):
        _WORD.set(None)
    _ABOUT.set(about)
    query = wanted.place.query if wanted is not None else None
    focus = next((i for i in good if query in words[i].places), best)
    first = max(0, len(words) - 3) if focus is None else focus
    if wanted is not None and wanted.word is not None:
        first = min(wanted.word, len(words) - 1)
    shown = {i: f"{i + 1} · {visible(word.text)}" for i, word in enumerate(words)}
    return _choice(_WORD, shown, _("Word that reads"), first)


def _choice(slot: Slot[Any], options: Mapping[_T, str], label: str, first: _T | None = None) -> _T:
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


# What the presenter and the phones see --------------------------------------------------------------------------------

VIEW = "picture_guess"
"""The key of the container: presentations show it as a picture."""

_COUNTED = 1.0  # seconds between two looks at how many have answered
_TAPS = "guess_taps"
_NAME = Slot("guess_name", "")
_MOST_NAMES = 5
_READS = {
    "head": N_("Layer {layer}, head {head}: {asks}"),
    "model": N_("In the whole model: {asks}"),
    "next": N_("What comes next? “{word} …”"),
}
_ASKS = {
    "": N_("which word does “{word}” read most?"),
    "source": N_("which word of the source does “{word}” read most?"),
    "en": N_("which English word does “{word}” read most?"),
    "zh": N_("which Chinese word does “{word}” read most?"),
}
"""By what is read: a translator's language, the source where another model's target reads it, or the same text."""

_TAP = {
    "head": N_("Tap it or, if you are not sure, several words."),
    "model": N_("Tap it or, if you are not sure, several words."),
    "next": N_("Tap one: these are the five tokens that the model finds likeliest, in an order that tells nothing."),
}
_TAP_PAIR = N_("Tap the one that you think the model finds likelier.")


def draw_for_presenter(guess: Guess) -> None:
    """Draw a question for its presenter, with the buttons that lead on."""
    offer_steps(guess)
    with st.container(key=VIEW):
        question, result = guess.question, guess.result
        if question is None:
            _form(guess)
            return
        _asked_line(guess, question)
        if result is not None:
            _outcome(question, result)
            _picture(question, result)
            _buttons(guess)
            return
        _options(question)
        st.fragment(_counted, run_every=_COUNTED)(guess)
        _buttons(guess)


def draw_for_phone(guess: Guess) -> None:
    """Draw a question for somebody who follows; nothing is computed for it."""
    hold(_NAME.key)
    with st.container(key=VIEW):
        question, result = guess.question, guess.result
        if question is None:
            st.text(boxes.gettext()(N_("The presenter is choosing a question: it appears here.")))
            return
        _asked_line(guess, question)
        kept_key("answer", guest(), on_kept=partial(_return_to_answer, guess))
        if result is None:
            st.caption(boxes.gettext()(_TAP_PAIR if question.is_pair else _TAP[question.kind]))
            _taps(guess, question, guest())
            return
        _own_guess(guess, question)
        _outcome(question, result)
        _picture(question, result)


def _return_to_answer(guess: Guess, key: str) -> None:
    """Return to the answer of before a reload, as a callback."""
    answer = take_up(guess, key)
    if answer is not None:
        _NAME.set(answer.name)


def spelled(guess: Guess) -> str:
    """Return the question in words; while it is chosen, what the room waits for."""
    _, question = boxes.gettext(), guess.question
    if question is None:
        return _(BEGIN)
    asks = _(_ASKS[question.read]).format(word=question.asked)
    about = {"layer": question.layer + 1, "head": question.head + 1, "word": question.asked, "asks": asks}
    return _(_READS[question.kind]).format(**about)


def follows(guess: Guess) -> str:
    """Return what a presenter does next, in words."""
    if guess.question is None:
        return boxes.gettext()(_ASK)
    return boxes.gettext()(_REVEAL if guess.result is None else _END)


def _asked_line(guess: Guess, question: Question) -> None:
    """Draw the question, and what it is about."""
    with st.container(key="guess_question", gap="xxsmall"):
        with st.container(key="guess_title"):
            st.text(spelled(guess))  # never markdown: it quotes what was typed
        if question.sentence:
            st.text(question.sentence)
        st.text(_about(question))


def _about(question: Question) -> str:
    """Say who reads what."""
    _ = boxes.gettext()
    told = [_(stack_named(question.stack).about)] if question.stack else []
    if question.kind == "model":
        told.append(_("What the model reads is the mean over all heads and layers of this attention."))
    return paragraph(*told)


def _options(question: Question) -> None:
    """Draw the options as the phones have them, to be read only."""
    with st.container(horizontal=True, gap="small", key="guess_options"):
        for option in question.options:
            st.text(option, width="content")


@st.fragment
@controls.errors_shown()
def _taps(guess: Guess, question: Question, guest: str) -> None:
    """Draw the words to tap and take each tap: a tap reruns only this."""
    _, is_locked = boxes.gettext(), guess.is_locked
    before = guess.answer_of(guest)
    options: dict[int, str] = {i: plain(option) for i, option in enumerate(question.options)}
    first = sorted(before.chosen) if before else []
    key = f"{_TAPS}_{question.id}_{guest}_{is_locked}"  # another one shows what counts
    style: dict[str, Any] = {"format_func": options.__getitem__, "key": key, "label_visibility": "collapsed"}
    style["disabled"] = is_locked
    with st.container(key=_TAPS):
        if question.kind == "next":
            one = st.pills(_("Tokens"), [*options], default=first[0] if first else None, **style)
            chosen = [] if one is None else [one]
        else:
            chosen = st.pills(_("Words"), [*options], selection_mode="multi", default=first, **style)
    name = st.text_input(
        _("Your name, if you like: everybody sees it if your guess is nearest; it is never stored."),
        key=_NAME.key,
        max_chars=limits.GUESS_NAME,
        placeholder=_("optional"),
        disabled=is_locked,
    )
    address, share = following.network()
    if not is_locked and not guess.answer(guest, question, chosen, name, address=address, share=share):
        st.rerun()  # it was locked or revealed, or another one is asked, since this was drawn
    if chosen:
        st.badge(_("Your guess is in."), color="green", icon=":material/check:")
    else:
        st.badge(_("No guess yet."), color="gray")
    if is_locked:
        st.caption(_("The presenter takes no more guesses."))
    elif chosen:
        st.caption(_("You can change it until the answer is shown."))


def _counted(guess: Guess) -> None:
    _ = boxes.gettext()
    with st.container(key="guess_count"):
        st.text(
            _("{n} of {all} phones have answered.").format(n=guess.count(), all=max(following.count(), guess.count()))
        )


def _own_guess(guess: Guess, question: Question) -> None:
    """Say how near this phone's own guess was."""
    _, answer = boxes.gettext(), guess.answer_of(guest())
    if answer is None:
        return
    chosen, shares = sorted(answer.chosen), sorted(question.shares, reverse=True)
    words = _(", ").join(question.options[i] for i in chosen)
    covered, best = sum(question.shares[i] for i in chosen), sum(shares[: len(chosen)])
    if question.is_pair:
        said = _("You chose {words}: of the two, the model gives it the probability {covered:.0%}.")
    elif question.kind == "next":
        said = _("You chose {words}: the model gives it the probability {covered:.0%}.")
    else:
        said = _(
            "You chose {words}: {covered:.0%} of what is read; the best possible with as many words is {best:.0%}."
        )
    st.text(said.format(words=words, covered=covered, best=best))


def _outcome(question: Question, result: Result) -> None:
    """Say in a headline how near the room came, and who was nearest."""
    from visformer.pictures.style import visible

    _ = boxes.gettext()
    with st.container(key="guess_told", gap="xsmall"):
        st.text(_headline(question, result))
        if result.nearest:
            names = _(", ").join(map(visible, result.nearest[:_MOST_NAMES]))
            more = " …" if len(result.nearest) > _MOST_NAMES else ""
            st.text(_("Nearest: {names}").format(names=names + more))  # never markdown: anybody may have typed it


def _picture(question: Question, result: Result) -> None:
    """Draw the room beside the model, and below it what the numbers mean."""
    from visformer.pictures.charts.guesses import guess_bars

    _ = boxes.gettext()
    model = _("Head") if question.kind == "head" else _("Model")
    names = (_("Room"), model)
    bars = guess_bars(question.options, result.chosen, question.shares, names=names, theme=formula_box.theme())
    controls.draw(bars, key="guesses")
    said = _("{model}: its probability.") if question.kind == "next" else _("{model}: its weight.")
    said = _("{model}: its probability, of these two.") if question.is_pair else said
    told = [_("Room: the share of people who chose it (n = {n}).").format(n=result.n), said.format(model=model)]
    if result.interval is not None:
        low, high = result.interval
        about = _("The {level} interval of the room's {share:.0%} is {low:.0%} to {high:.0%}.")
        told.append(about.format(level="95 %", share=result.share, low=low, high=high))
    st.caption(plain(paragraph(*told)))


def _headline(question: Question, result: Result) -> str:
    _ = boxes.gettext()
    if not result.n:
        return _("Nobody has answered.")
    if result.right is not None:
        best = max(range(len(question.shares)), key=question.shares.__getitem__)
        said = _(
            "{share:.0%} chose “{token}”, which the model finds likeliest ({sure:.0%}); by chance {chance:.0%} would."
        )
        numbers = {"chance": 1 / len(question.options), "sure": question.shares[best]}
        if question.is_pair:
            said = _(
                "{share:.0%} chose “{token}”, which the model finds likelier: its logit is {ahead:.1f} above that of "
                "“{other}”."
            )
            numbers["ahead"] = log(question.shares[best]) - log(question.shares[1 - best])
        names = {"token": question.options[best], "other": question.options[best - 1]}
        return said.format(share=result.share, **names, **numbers)
    found = result.agreement
    assert found is not None  # somebody answered
    said = _(
        "What was chosen has {covered:.0%} of the weight. With as many words {best:.0%} is possible, and {chance:.0%} "
        "is chance."
    )
    return said.format(covered=result.share, best=found.best, chance=found.chance)


def _buttons(guess: Guess) -> None:
    """Draw the buttons that lead on; a presentation's keys do the same."""
    _, question, result = boxes.gettext(), guess.question, guess.result
    with st.container(horizontal=True, key="guess_ways"):
        if result is None:
            st.button(_(_REVEAL), type="primary", key="guess_reveal", on_click=reveal, args=(guess,))
        if result is None and not guess.is_locked:
            st.button(_("Take no more guesses"), key="guess_lock", on_click=lock, args=(guess,))
        else:
            st.button(_("Take more guesses"), key="guess_reopen", on_click=reopen, args=(guess,))
        st.button(_("Reset the guesses"), key="guess_reset", on_click=reset, args=(guess,))
        st.button(_("Another question"), key="guess_another", on_click=ask, args=(guess, None))
        st.button(_(_END), key="guess_end", on_click=end, args=(guess,))
        if question is not None and result is not None and result.n:
            downloads.csv(_table(question, result), "answers")


def _table(question: Question, result: Result) -> "pd.DataFrame":
    """Return the answers without anything that leads to a person: a row for each answer and option."""
    import pandas as pd

    rows = [
        {"answer": number, "option": option, "chosen": int(is_chosen), "model": share}
        for number, row in enumerate(result.chosen, 1)
        for option, is_chosen, share in zip(question.options, row, question.shares, strict=True)
    ]
    return pd.DataFrame(rows)
