"""The inputs around every page: language, sentence, target and model. Their keys are their names in links."""

from visformer import i18n
from visformer.adapters import checkpoints
from visformer.app.serving import uploaded_pictures
from visformer.app.serving.models import MODEL as MODEL_BY_DEFAULT
from visformer.app.session import url_state
from visformer.app.session.slots import Slot, hold
from visformer.errors import VisformerError
from visformer.model.untrained import Untrained, is_untrained_name
from visformer.pictures.examples import EXAMPLES, OFFERED
from visformer.pictures.examples import TESTED as TESTED_SENTENCES
from visformer.system import limits

LANGUAGE, MODEL, TARGET = url_state.LANGUAGE, url_state.MODEL, url_state.TARGET
SOURCE, EXAMPLE, TESTED = "source", "example", "tested"

LANGUAGE_BOX: Slot[str | None] = Slot(LANGUAGE, None)
LANGUAGE_IS_CHOSEN = Slot("language_is_chosen", False)
"""Whether the visitor or a link chose the language, rather than the browser: only then is it in the address."""

_LANGUAGE_DRAWN: Slot[str | None] = Slot("language_drawn", None)

MODEL_BOX: Slot[str | None] = Slot(MODEL, None)
OWN_MODEL = Slot("own_model", "")
"""The model of a page that shows one kind of model, where the visitor's is of another, see :func:`own_model`."""
SOURCE_BOX: Slot[str | None] = Slot(SOURCE, "")
TARGET_BOX: Slot[str | None] = Slot(TARGET, "")
EXAMPLE_BOX: Slot[str | None] = Slot(EXAMPLE, None)
_TESTED_BOX: Slot[str | None] = Slot(TESTED, None)
_PUT_ASIDE = Slot("picture_put_aside", "")  # the name of the last picture before a model of texts was chosen
_UNTRAINED = Slot("untrained", Untrained().name)  # chosen last


def language() -> str:
    """Return the visitor's language."""
    return i18n.closest(LANGUAGE_BOX.get())


def gettext() -> i18n.Gettext:
    """Return the translation into the visitor's language."""
    return i18n.translations(language()).gettext


def keep_choice(key: str) -> None:
    """Send the browser the choice in this widget anew in the first run of another language, before it is drawn.

    Browsers send a choice by its label: the old one would stay there, and later mean nothing.
    """
    if _LANGUAGE_DRAWN.get() not in (None, language()):
        hold(key)


def drawn() -> None:
    """End a run: all of the page is in the visitor's language now."""
    _LANGUAGE_DRAWN.set(language())


def typed() -> str:
    """Return the sentence as typed."""
    return SOURCE_BOX.get() or ""


def source() -> str:
    """Return what the model reads: the sentence as typed or, if it reads pictures, a text that stands for one."""
    if not reads_pictures():
        return typed()
    from visformer.adapters.picture_files import language_of
    from visformer.scenes import EXAMPLES, LANGUAGES, caption, described

    if language_of(typed()) in LANGUAGES or described(typed()):
        return typed()
    return caption(EXAMPLES[0], language() if language() in LANGUAGES else "en")


def legible() -> str:
    """Return what the model reads as people can read it: nothing of a picture that is no scene."""
    from visformer.adapters.picture_files import language_of

    if reads_pictures():
        return "" if language_of(source()) else source()
    if is_picture_alone():
        return ""
    return typed() if pictures() == "none" else uploaded_pictures.named(typed())[1]


def reads_pictures() -> bool:
    """Whether the page shows a model that reads a picture, not a sentence."""
    return checkpoints.reads_pictures(model() or MODEL_BY_DEFAULT)


def pictures(name: str | None = None) -> str:
    """Return which pictures a model, by default the page's, reads: see :class:`visformer.adapters.base.TracedModel`."""
    from visformer.app.serving.workbench import workbench_of  # after the page's words, which need no model

    try:
        return workbench_of(name or model()).pictures
    except VisformerError:
        return "none"


def may_show_pictures() -> bool:
    """Whether the visitor's model is one of transformers that reads pictures; until it is loaded, whether it may be."""
    from visformer.app.serving.models import may_read_pictures
    from visformer.app.serving.workbench import workbench_of

    chosen = MODEL_BOX.get() or MODEL_BY_DEFAULT
    try:
        bench = workbench_of(chosen)
        return bench.pictures != "none" if bench.is_loaded else may_read_pictures(chosen)
    except VisformerError:
        return False


def fit_sentence(*, before: bool) -> None:
    """Fit the sentence to a model that the visitor has just chosen: put its picture aside, or back.

    Args:
        before: whether the last model read pictures; if not, what looks like one's name is part of the sentence.
    """
    now, (name, text) = may_show_pictures(), uploaded_pictures.named(typed())
    if before and not now and name:
        _PUT_ASIDE.set(name)
        SOURCE_BOX.set(text or EXAMPLES[0])
    elif now and not before and (aside := _PUT_ASIDE.pop()):
        SOURCE_BOX.set(uploaded_pictures.text_of(aside, typed()))


def is_picture_alone() -> bool:
    """Whether a model of transformers reads a picture now, and no text with it."""
    which = pictures()
    return which == "alone" or (which == "instead" and bool(uploaded_pictures.named(typed())[0]))


def cut_texts() -> None:
    """Keep no megabytes of text: a page would hash them, send them back and copy them before it refuses them."""
    for box in (SOURCE_BOX, TARGET_BOX):
        text = box.get() or ""
        if len(text) > 100 * limits.MAX_CHARACTERS:
            box.set(text[: 100 * limits.MAX_CHARACTERS])


def typed_target() -> str:
    """Return the target as typed, or nothing."""
    typed = TARGET_BOX.get() or ""
    return typed if typed.strip() else ""


def target() -> str | None:
    """Return the target as typed; None: the model translates by itself, as on a page with a model of its own."""
    return None if own_model() else typed_target() or None


def own_model() -> str:
    """Return the model of a page that shows models that read pictures, if the visitor's is none; "": the visitor's."""
    own = OWN_MODEL.get()
    return "" if own and may_show_pictures() else own


def model() -> str | None:
    """Return the model that the page shows: its own, or the one that the visitor chose; None: no choice yet."""
    return own_model() or MODEL_BOX.get()


def untrained() -> str:
    """Return the name of the untrained Transformer to offer: the one chosen last."""
    chosen = MODEL_BOX.get()
    if chosen is not None and is_untrained_name(chosen):
        _UNTRAINED.set(chosen)
    return _UNTRAINED.get()


def forget_target() -> None:
    """Clear the target: it was typed for the sentence before."""
    TARGET_BOX.set("")


def take_example() -> None:
    """Copy the chosen example into the sentence box and reset the chooser to its placeholder."""
    for chooser, offered in ((EXAMPLE_BOX, OFFERED), (_TESTED_BOX, TESTED_SENTENCES)):
        if (example := chooser.get()) in offered:
            enter_example(str(example))
        chooser.set(None)


def enter_example(example: str) -> None:
    """Copy an example into the sentence box."""
    SOURCE_BOX.set(example)
    forget_target()
