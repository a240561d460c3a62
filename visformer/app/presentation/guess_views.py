"""A question to the room as the presenter and the phones see it: open with what to tap, then revealed."""

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.presentation import following, guess_form, guessing
from visformer.app.presentation.guesses import Guess, Question, Result
from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot, hold
from visformer.app.widgets import controls, downloads
from visformer.app.widgets.component import kept_key
from visformer.errors import N_
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
            _told(question, result)
            _buttons(guess)
            _picture(question, result)
            return
        _options(question)
        st.fragment(_counted, run_every=_COUNTED)(guess)
        _buttons(guess)


def phone(guess: Guess) -> None:
    """Draw a question for somebody who follows; nothing is computed for it."""
    hold(_NAME.key)
    with st.container(key=VIEW):
        question, result = guess.question, guess.result
        if question is None:
            st.text(boxes.gettext()(N_("The presenter is choosing a question: it appears here.")))
            return
        _asked(question)
        kept_key(guessing.guest(), on_kept=partial(_take_up, guess))
        if result is None:
            st.caption(boxes.gettext()(_TAP[question.kind]))
            _taps(guess, question, guessing.guest())
            return
        _own(guess, question)
        _told(question, result)
        _picture(question, result, upright=True)


def _take_up(guess: Guess, key: str) -> None:
    """Return to the answer of before a reload, as a callback."""
    answer = guessing.take_up(guess, key)
    if answer is not None:
        _NAME.set(answer.name)


def _asked(question: Question) -> None:
    """Draw the question, and what it is about."""
    _ = boxes.gettext()
    with st.container(key="guess_question", gap="xxsmall"):
        about = {"layer": question.layer + 1, "head": question.head + 1, "word": question.asked}
        with st.container(key="guess_title"):
            st.text(_(_READS[question.kind]).format(**about))  # never markdown: it quotes what was typed
        if question.sentence:
            st.text(question.sentence)
        st.text(_about(question))


def _about(question: Question) -> str:
    """Say who reads what, and what the word leads to."""
    _ = boxes.gettext()
    told = [_(stack.about) for stack in STACKS if stack.name == question.stack]
    if question.following:
        told.append(_("The next token is “{token}”.").format(token=question.following))
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
    look: dict[str, Any] = {"format_func": options.__getitem__, "key": key, "label_visibility": "collapsed"}
    look["disabled"] = is_locked
    with st.container(key=_TAPS):
        if question.kind == "next":
            one = st.pills(_("Tokens"), [*options], default=first[0] if first else None, **look)
            chosen = [] if one is None else [one]
        else:
            chosen = st.pills(_("Words"), [*options], selection_mode="multi", default=first, **look)
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
        said = _(
            "You chose {words}: {covered:.0%} of what is read; the best possible with as many words is {best:.0%}."
        )
    st.text(said.format(words=words, covered=covered, best=best))


def _told(question: Question, result: Result) -> None:
    """Say in numbers how far the room agrees with the model, and who was nearest."""
    from visformer.pictures.style import visible

    _ = boxes.gettext()
    with st.container(key="guess_told", gap="xsmall"):
        st.text(_numbers(question, result))
        if result.nearest:
            names = _(", ").join(map(visible, result.nearest[:_MOST_NAMES]))
            more = " …" if len(result.nearest) > _MOST_NAMES else ""
            st.text(_("Nearest: {names}").format(names=names + more))  # never markdown: anybody may have typed it


def _picture(question: Question, result: Result, *, upright: bool = False) -> None:
    """Draw the room beside the model."""
    from visformer.pictures.sides import compare_guesses

    _ = boxes.gettext()
    model = _("Head") if question.kind == "head" else _("Model")
    said = _("{model}: its probability.") if question.kind == "next" else _("{model}: its weight.")
    note = _("Room: the share of people who chose it (n = {n}).").format(n=result.n)
    panel = compare_guesses(
        question.options,
        result.chosen,
        question.shares,
        title="",
        names=(_("Room"), model),
        note=paragraph(note, said.format(model=model)),
        upright=upright,
    )
    controls.draw([panel], key="guesses")


def _numbers(question: Question, result: Result) -> str:
    _ = boxes.gettext()
    if not result.n:
        return _("Nobody has answered.")
    numbers: dict[str, Any] = {"n": result.n, "level": "95 %"}
    if result.right is not None:
        right, low, high = result.right
        best = max(range(len(question.shares)), key=question.shares.__getitem__)
        said = _(
            "{share:.0%} chose what the model finds likeliest, “{token}” (n = {n}, {level} interval {low:.0%} to "
            "{high:.0%}; chance is {chance:.0%}). The model gives it the probability {sure:.0%}."
        )
        numbers |= {"share": right / result.n, "low": low, "high": high, "chance": 1 / len(question.options)}
        numbers |= {"sure": question.shares[best], "token": question.options[best]}
        return said.format(**numbers)
    found = result.agreement
    assert found is not None  # somebody answered
    said = _(
        "The words that a person chose have {covered:.0%} of the weight on average (n = {n}, {level} interval "
        "{low:.0%} to {high:.0%}). With as many words, {best:.0%} is the best possible and {chance:.0%} is chance."
    )
    if found.n == 1:
        said = _(
            "The chosen words have {covered:.0%} of the weight (n = 1). With as many words, {best:.0%} is the best "
            "possible and {chance:.0%} is chance."
        )
    numbers |= {"covered": found.covered, "low": found.low, "high": found.high}
    return said.format(**numbers, best=found.best, chance=found.chance)


def _buttons(guess: Guess) -> None:
    """Draw the buttons that lead on; a presentation's keys do the same."""
    _, question, result = boxes.gettext(), guess.question, guess.result
    with st.container(horizontal=True, key="guess_ways"):
        if result is None:
            st.button(_("Reveal"), type="primary", key="guess_reveal", on_click=guessing.reveal, args=(guess,))
        if result is None and not guess.is_locked:
            st.button(_("Take no more guesses"), key="guess_lock", on_click=guessing.lock, args=(guess,))
        else:
            st.button(_("Take more guesses"), key="guess_reopen", on_click=guessing.reopen, args=(guess,))
        st.button(_("Reset the guesses"), key="guess_reset", on_click=guessing.reset, args=(guess,))
        st.button(_("Another question"), key="guess_another", on_click=guessing.ask, args=(guess, None))
        st.button(_("Back to the page"), key="guess_end", on_click=guessing.end, args=(guess,))
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
