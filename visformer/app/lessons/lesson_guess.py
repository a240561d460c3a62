"""The question to the room that a step of a lesson may carry: which head, or the model, and which word."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from visformer.app.presentation.guesses import KINDS, Wanted
from visformer.errors import N_, LessonError, VisformerError
from visformer.pictures.registry.options import one_of
from visformer.trace.stacks import STACKS
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

_PLACE = {"stack", "layer", "head"}
_NUMBER = re.compile(r"[1-9][0-9]{0,4}")
NAMES = {"kind", "word", *_PLACE}


def read(texts: Mapping[str, str], selection: Selection) -> tuple[Wanted, dict[str, VisformerError]]:
    """Read the names and values below ``guess``; return the question, and an error for each that is invalid.

    ``selection``: of the step's link, whose head is meant where none is given.
    """
    place, unfit = Selection.from_link({name: text for name, text in texts.items() if name in _PLACE})
    wrong: dict[str, VisformerError] = {**unfit}
    given = {one.name: getattr(place, one.name) for one in fields(Selection) if one.name in texts}
    wanted = Wanted(place=replace(selection, **given))
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
    return wanted, wrong


def check(wanted: Wanted, trace: "Trace") -> tuple[str, VisformerError] | None:
    """Return the name and value that a model lacks, with the reason; None: the question can be asked."""
    from visformer.analysis.guesses import sides_of, words_of

    fitted, wrong = wanted.place.fitting(trace)
    if wanted.kind != "next" and wrong.keys() & _PLACE:
        name = min(wrong.keys() & _PLACE)
        return f"{name}: {wanted.place.link()[name]}", wrong[name]
    side = "tgt" if wanted.kind == "next" else sides_of(next(s for s in STACKS if s.name == fitted.stack))[0]
    if side not in trace.tokens:
        return f"kind: {wanted.kind}", LessonError(N_("this model predicts no next tokens."))
    count = len(words_of(trace, side))
    if wanted.word is not None and wanted.word >= count:
        return f"word: {wanted.word + 1}", LessonError(N_("the words that read here are 1 to {n}."), n=count)
    return None
