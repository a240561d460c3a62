"""A question to the room as the presenter and the phones see it: open with what to tap, then revealed."""

import re
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.presentation import following, guess_form, guessing
from visformer.app.presentation.guesses import Guess, Question, Result
from visformer.app.session import boxes
from visformer.app.session.slots import Slot, hold
from visformer.app.widgets import controls, downloads
from visformer.errors import N_, BusyError
from visformer.i18n import paragraph
from visformer.system import limits
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:
    import pandas as pd

VIEW = "picture_guess"
"""The key of the container: presentations show it as a picture."""

_COUNTED = 1.0  # seconds between two looks at how many have answered
_TAPS = "guess_taps"
_NAME = Slot("guess_name", "")
_MOST_NAMES = 5
_READS = {
    "head": N_("Layer {layer}, head {head}: which words does it read at “{word}”?"),
    "model": N_("Which words does the model read at “{word}”?"),
    "next": N_("What comes next? “{word} …”"),
}
_TAP = {
    "head": N_("Tap the words that it reads most, as many as you like."),
    "model": N_("Tap the words that it reads most, as many as you like."),
    "next": N_("Tap one: these are the five tokens that the model finds likeliest, in an order that tells nothing."),
}


def presenter(guess: Guess) -> None:
    """Draw a question for its presenter, with the buttons that lead on."""
    guessing.offer_steps(guess)
    with st.container(key=VIEW):
        question, result = guess.question, guess.result
        if question is None:
            guess_form.draw(guess)
            return
        _asked(question)
        if result is not None:
            _revealed(question, result)
            _ways_on(guess, question, result)
            return
        _options(question)
        st.fragment(_counted, run_every=_COUNTED)(guess)
        _buttons(guess, ("guess_reveal", N_("Reveal"), guessing.reveal))


def phone(guess: Guess) -> None:
    """Draw a question for somebody who follows; nothing is computed for it."""
    hold(_NAME.key)
    with st.container(key=VIEW):
        question, result = guess.question, guess.result
        if question is None:
            st.text(boxes.gettext()(N_("The presenter is choosing a question: it appears here.")))
            return
        _asked(question)
        if result is None:
            st.caption(boxes.gettext()(_TAP[question.kind]))
            _taps(guess, question, guessing.guest())
            return
        _own(guess, question)
        _revealed(question, result)


def _asked(question: Question) -> None:
    """Draw the question, and what it is about."""
    _ = boxes.gettext()
    with st.container(key="guess_question", gap="xxsmall"):
        about = {"layer": question.layer + 1, "head": question.head + 1, "word": question.asked}
        st.text(_(_READS[question.kind]).format(**about))  # never markdown: it quotes what was typed
        if question.sentence:
            st.text(question.sentence)
    told = [_(stack.about) for stack in STACKS if stack.name == question.stack]
    if question.following:
        told.append(_("The next token is “{token}”.").format(token=question.following))
    if question.kind == "model":
        told.append(_("What the model reads is the mean over all heads and layers of this attention."))
    if told:
        st.text(paragraph(*told))


def _options(question: Question) -> None:
    """Draw the options as the phones have them, to be read only."""
    with st.container(horizontal=True, gap="small", key="guess_options"):
        for option in question.options:
            st.text(option, width="content")


@st.fragment
def _taps(guess: Guess, question: Question, guest: str) -> None:
    """Draw the words to tap and take each tap: a tap reruns only this."""
    _ = boxes.gettext()
    before = guess.answer_of(guest)
    options: dict[int, str] = {i: _plain(option) for i, option in enumerate(question.options)}
    key, first = f"{_TAPS}_{question.id}", sorted(before.chosen) if before else []
    look: dict[str, Any] = {"format_func": options.__getitem__, "key": key, "label_visibility": "collapsed"}
    with st.container(key=_TAPS):
        if question.kind == "next":
            one = st.pills(_("Tokens"), [*options], default=first[0] if first else None, **look)
            chosen = [] if one is None else [one]
        else:
            chosen = st.pills(_("Words"), [*options], selection_mode="multi", default=first, **look)
    if before is not None and before.name and not _NAME.is_set:
        _NAME.set(before.name)
    name = st.text_input(
        _("Your name, if you like: the presenter's screen shows it if your guess is nearest; it is never stored."),
        key=_NAME.key,
        max_chars=limits.GUESS_NAME,
        placeholder=_("optional"),
    )
    try:
        if not guess.answer(guest, question, chosen, name):
            st.rerun()
    except BusyError as full:
        st.text(full.localized(_))
        return
    said = _("Your guess is in. You can change it until the answer is shown.") if chosen else _("No guess yet.")
    st.badge(said, color="green" if chosen else "gray")


def _plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is, for labels that Streamlit reads as Markdown."""
    escaped = re.sub(r"([!-/:-@\\[-`{-~])", r"\\\1", text)
    return escaped.replace(":", ":\u2060")  # no :name: becomes an icon


def _counted(guess: Guess) -> None:
    _ = boxes.gettext()
    with st.container(key="guess_count"):
        st.text(_("{n} of {all} phones have answered.").format(n=guess.count(), all=max(following.count(), guess.count())))


def _own(guess: Guess, question: Question) -> None:
    """Say how near this phone's own guess was."""
    _, answer = boxes.gettext(), guess.answer_of(guessing.guest())
    if answer is None:
        return
    chosen, shares = sorted(answer.chosen), sorted(question.shares, reverse=True)
    words = _(", ").join(question.options[i] for i in chosen)
    covered, best = sum(question.shares[i] for i in chosen), sum(shares[: len(chosen)])
    if question.kind == "next":
        said = _("You chose {words}: the model gives it the probability {covered:.0%}.")
    else:
        said = _("You chose {words}: {covered:.0%} of what is read; the best possible with as many words is {best:.0%}.")
    st.text(said.format(words=words, covered=covered, best=best))


def _revealed(question: Question, result: Result) -> None:
    """Draw the room beside the model, agreement in numbers, and who was nearest."""
    _ = boxes.gettext()
    from visformer.pictures.guesses import room_beside
    from visformer.pictures.style.theme import visible

    st.text(paragraph(*_numbers(question, result)))
    if result.nearest:
        others = len(result.nearest) - _MOST_NAMES
        names = _(", ").join(map(visible, result.nearest[:_MOST_NAMES])) + (" …" if others > 0 else "")
        st.text(_("Nearest: {names}").format(names=names))  # never markdown: anybody may have typed it
    model = {"head": _("Head"), "model": _("Model"), "next": _("Model")}[question.kind]
    note = _("Room: share of the {n} people who chose it.").format(n=result.n)
    what = _("probability") if question.kind == "next" else _("weight")
    panel = room_beside(
        question.options,
        result.chosen,
        question.shares,
        title=_("Room and {model}").format(model=model),
        columns=(_("Room"), f"{model}: {what}"),
        note=note,
    )
    controls.draw([panel], key="guesses")


def _numbers(question: Question, result: Result) -> list[str]:
    _ = boxes.gettext()
    if not result.n:
        return [_("Nobody has answered.")]
    if result.right is not None:
        right, low, high = result.right
        best = max(range(len(question.shares)), key=question.shares.__getitem__)
        said = _(
            "{right} of {n} people chose what the model finds likeliest, “{token}”: {share:.0%} (95 % interval "
            "{low:.0%} to {high:.0%}); chance is {chance:.0%}. The model gives it the probability {sure:.0%}."
        )
        numbers = {"share": right / result.n, "low": low, "high": high, "sure": question.shares[best]}
        chance = 1 / len(question.options)
        return [said.format(right=right, n=result.n, token=question.options[best], chance=chance, **numbers)]
    found = result.agreement
    assert found is not None  # somebody answered
    said = _("The words that people chose have {covered:.0%} of the weight, on average over {n} people")
    if found.n > 1:
        said = _(
            "The words that people chose have {covered:.0%} of the weight, on average over {n} people (95 % interval "
            "{low:.0%} to {high:.0%})"
        )
    compared = _("with as many words, {best:.0%} is the best possible and {chance:.0%} is chance.")
    numbers = {"covered": found.covered, "low": found.low, "high": found.high, "best": found.best}
    return [f"{said}; {compared}".format(n=found.n, chance=found.chance, **numbers)]


def _buttons(guess: Guess, *first: tuple[str, str, Any]) -> None:
    _ = boxes.gettext()
    others = (("guess_another", N_("Another question"), None), ("guess_end", N_("Back to the page"), guessing.end))
    with st.container(horizontal=True, key="guess_ways"):
        for i, (key, label, act) in enumerate((*first, *others)):
            arguments: Any = {"on_click": act, "args": (guess,)}
            if act is None:
                arguments = {"on_click": guessing.ask, "args": (guess, None)}
            st.button(_(label), key=key, type="primary" if first and not i else "secondary", **arguments)


def _ways_on(guess: Guess, question: Question, result: Result) -> None:
    _buttons(guess, ("guess_reopen", N_("Let them change it"), guessing.reopen))
    if result.n:
        downloads.csv(_table(question, result), "guesses")


def _table(question: Question, result: Result) -> "pd.DataFrame":
    """Return the answers without anything that leads to a person: a row for each answer and option."""
    import pandas as pd

    rows = [
        {"answer": number, "option": option, "chosen": int(is_chosen), "model": share}
        for number, row in enumerate(result.chosen, 1)
        for option, is_chosen, share in zip(question.options, row, question.shares, strict=True)
    ]
    return pd.DataFrame(rows)
