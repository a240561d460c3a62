"""A list of sentences that something is measured on: the bundled one, or one that is pasted or uploaded."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from visformer.analysis.effects.head_effects import Sentences, effect_sentences, numbered_sentences
from visformer.app.serving.models import MODEL
from visformer.app.session import boxes, slots
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, url_widgets
from visformer.errors import N_, TextError, VisformerError
from visformer.pictures.registry.options import Choice, Number
from visformer.system import limits

_ALL = len(effect_sentences())
_CHARACTERS = limits.LISTED * 200  # of the box
LIST = Choice(
    name="list",
    label=N_("Sentences"),
    values={"bundled": N_("Bundled list"), "own": N_("Your list")},
)
FIRST = Number(name="first", label=N_("First sentences"), default=_ALL, least=10, most=_ALL)
_TEXT: Slot[str] = Slot("sentence_list", "")
_UPLOAD = "sentence_file"
_WRONG: Slot[VisformerError | None] = Slot("sentence_file_problem", None)


@dataclass(frozen=True)
class ChosenSentences:
    """The list that a visitor chose; ``first``: how many of the bundled one."""

    is_own: bool
    first: int

    def sentences(self) -> Sentences:
        """Return the sentences.

        Raises:
            TextError: a line cannot be used; the message has its number, from 1.
        """
        if not self.is_own:
            return effect_sentences(boxes.model() or MODEL)[: self.first]
        found = numbered_sentences(_TEXT.get())
        if len(found) > limits.LISTED:
            raise TextError(
                N_("The list has {n} sentences; {most} can be measured at a time."), n=len(found), most=limits.LISTED
            )
        for line, each in found:
            _check(line, *([each] if isinstance(each, str) else each))
        return tuple(each for _, each in found)


def _check(line: int, source: str, target: str | None = None) -> None:
    model = controls.bench().loaded()
    for text in filter(None, (source, target)):
        n, most = len(model.tokenize(text)), min(limits.MAX_TOKENS, model.info.max_tokens or limits.MAX_TOKENS)
        if len(text) > limits.MAX_CHARACTERS or n > most:
            raise TextError(
                N_("Line {line} is too long: {n} tokens; at most {most} can be used."), line=line, n=n, most=most
            )
    if model.info.kind == "decoder" and target is None and len(model.tokenize(source)) < 2:
        raise TextError(N_("Line {line} is a single token: there is nothing to predict."), line=line)


def choose(page: str) -> ChosenSentences:
    """Draw the choice of a list, in the current container, and below it the box for one's own."""
    setting = url_widgets.nothing()
    is_own = url_widgets.draw(LIST, setting, page) == "own"
    return ChosenSentences(is_own, _ALL if is_own else url_widgets.draw(FIRST, setting, page, width=140))


def box() -> None:
    """Draw the box for a list of one's own, and the upload of a file into it."""
    _ = boxes.gettext()
    slots.hold(_TEXT.key)
    st.text_area(
        _("A sentence a line; for a translation of your own, a tab and the target behind it"),
        key=_TEXT.key,
        height=120,
        max_chars=_CHARACTERS,
    )
    key = f"{_UPLOAD}_{slots.version(_UPLOAD)}"
    st.file_uploader(
        _("Or a file of such lines (TSV, UTF-8)"),
        ["tsv", "txt"],
        max_upload_size=1,
        key=key,
        on_change=_read,
        args=(key,),
    )
    if (error := _WRONG.pop()) is not None:
        st.text(error.localized(_))


def _read(key: str) -> None:
    """Put an uploaded file into the box, before the page runs again."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    try:
        text = uploaded.getvalue().decode("utf-8-sig")
        if len(text) > _CHARACTERS:
            raise TextError(N_("The file has {n} characters; a list may have {most}."), n=len(text), most=_CHARACTERS)
        _TEXT.set(text)
    except UnicodeDecodeError:
        _WRONG.set(TextError(N_("The file is not UTF-8 text: save it as UTF-8.")))
    except TextError as error:
        _WRONG.set(error)
    slots.renew(_UPLOAD)
