"""The history of a model: curves over the moments of its training, and the heads that appeared."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.adapters.history import figures_of, head_scores, model_of, steps
from visformer.analysis.known_heads import LABELS, LEAST, appears
from visformer.app.serving.models import MODEL, discreetly, label, named, offered
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, downloads, long_run, tables, url_widgets
from visformer.errors import N_
from visformer.i18n import paragraph
from visformer.pictures.learning import HISTORY, PAGE, WITH_HISTORY, explained
from visformer.system.progress import report
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:
    import pandas as pd

_MEASURED: "Slot[dict[str, pd.DataFrame]]" = Slot("history_heads", {})  # by model
_MOST = 4
"""Models whose head scores a session keeps, some 200 kB each."""

_RULE = N_(
    "A mark is where a head appears: from this moment on it has its label at every moment, a score of at least {least} "
    "that is above its null. Between two moments nothing is known: it appeared at some step since the moment before."
)
_SCORES = N_(
    "Scores are mean weights on random tokens that recur; of an alignment head, 1 − alignment error rate (AER) on {n} "
    "pairs aligned by hand. The curves of the AER are of the head that is best in their direction."
)
_NONE = N_("No head has a label at the last moment.")
_NOT_MEASURED = N_(
    "The heads of this history have not been scored yet: that takes a few seconds a moment, and starts with the button."
)
_STACKS = {stack.name: stack.label for stack in STACKS}


def draw() -> None:
    """Draw the view."""
    _ = boxes.gettext()
    own, moment = model_of(boxes.model() or MODEL)
    names = [name for name in dict.fromkeys([own, *WITH_HISTORY, *offered()]) if steps(name)]
    setting = controls.setting_of(HISTORY, None)
    setting.source = replace(setting.source, models=tuple(map(label, names)))
    controls.look_for(_(HISTORY.look_for))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    url_widgets.draw_all(HISTORY, setting, PAGE.name, place=row)
    name = named(setting["training"])
    with discreetly(name):
        heads = head_scores(name)
    if heads is None:
        heads = _MEASURED.get().get(name)
        _offer(name, row)
    _curves(name, setting, moment if name == own else None, heads)
    st.caption(explained(figures_of(name)[-1], _))
    if heads is None:
        st.caption(_(_NOT_MEASURED))
    else:
        _heads(name, heads)


def _curves(name: str, setting: Any, moment: int | None, heads: "pd.DataFrame | None") -> None:
    from visformer.pictures.charts.history import curves

    with discreetly(name):
        figure = curves(name, setting, moment, heads=heads)
    controls.draw(figure, key="history_curves")


def _heads(name: str, heads: "pd.DataFrame") -> None:
    """Tell which heads appeared, and when."""
    _, found, kept = boxes.gettext(), appears(heads), steps(name)
    aligned = heads["n"][heads["label"] == "alignment"]
    scores = _("Scores are mean weights on random tokens that recur.")
    if len(aligned):
        scores = _(_SCORES).format(n=int(aligned.iloc[0]))
    st.caption(paragraph(_(_RULE).format(least=LEAST), scores, "" if len(found) else _(_NONE)))
    if len(found):
        shown = {
            _("step"): [kept[moment] for moment in found["moment"]],
            _("label"): [_(LABELS[each]) for each in found["label"]],
            _("attention"): [_(_STACKS[each]) for each in found["stack"]],
            _("layer"): found["layer"] + 1,
            _("head"): found["head"] + 1,
            _("score"): found["score"],
            _("null"): found["null"],
        }
        tables.draw(_table(shown), title=_("Heads that appeared"))
    downloads.csv(heads, "history_heads")


def _table(columns: dict[str, Any]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(columns)


def _offer(name: str, place: Any) -> None:
    """Draw the button that scores the heads at every moment."""
    _ = boxes.gettext()

    def keep(found: "list[pd.DataFrame]") -> None:
        _MEASURED.set(dict([*_MEASURED.get().items(), (name, found[0])][-_MOST:]))

    work: list[long_run.Step] = [(_("The heads at each moment"), partial(_scored, name=name))]
    too_long = _("Score them in Python: vf.analysis.head_history.")
    long_run.offer(_("Score the heads"), lambda: work, key="history_score", keep=keep, too_long=too_long, place=place)


def _scored(_model: Any, name: str) -> "pd.DataFrame":
    """Score the heads at every moment of a training, one after another in memory."""
    from visformer.adapters.load import load_to_serve
    from visformer.analysis.known_heads import head_history

    total = len(steps(name))
    with discreetly(name):
        models = (load_to_serve(f"{name}@{moment}") for moment in range(total))
        return head_history(models, progress=lambda done: report(done, total))
