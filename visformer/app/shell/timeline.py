"""The history of the chosen model: a slider over the moments of its training, on every page that has a sentence."""

from typing import Any

import streamlit as st

from visformer.adapters.checkpoints import figures_of, model_of, moment_name
from visformer.app.serving.models import MODEL
from visformer.app.session import boxes
from visformer.app.session.page import current_page
from visformer.app.session.slots import Slot, hold
from visformer.app.widgets import controls
from visformer.pictures.attention import step_of, told
from visformer.pictures.learning import HISTORY, explained
from visformer.pictures.registry.picture import pages

_IS_OPEN = Slot("timeline", False)
_SLIDER: Slot[int] = Slot("timeline_moment", 0)
_WIDTH = 640  # of the curves, in pixels, where the window has them
_BACK, _ON, _CURVES = "timeline_back", "timeline_on", "timeline_curves"


def switch() -> None:
    """Draw the switch that opens the slider, where the model's history was kept."""
    _, moments = boxes.gettext(), figures_of(_model())
    if not pages()[current_page()].has_sentence:
        hold(_IS_OPEN.key)  # for the next page that has a slider
        return
    if not moments:
        return
    if model_of(_model())[1] is not None:
        _IS_OPEN.set(True)
    about = _("Go back to earlier moments of its training, on every page: {n} were kept.")
    st.toggle(_("Its training"), key=_IS_OPEN.key, help=about.format(n=len(moments)), on_change=_close)


def draw() -> None:
    """Draw the slider, if it is open, with what is known of the moment that is shown."""
    _, moments = boxes.gettext(), figures_of(_model())
    at = model_of(_model())[1]
    if not moments or (at is None and not _IS_OPEN.get()):
        return
    last = len(moments) - 1
    at = last if at is None else at
    steps = [f"{int(moment['step']):,}" for moment in moments]
    _SLIDER.set(at)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="timeline_row"):
        st.button("‹", key=_BACK, help=_("The moment before (,)"), disabled=not at, on_click=_turn, args=(at - 1,))
        st.select_slider(
            _("Step of the training"),
            range(len(moments)),
            format_func=steps.__getitem__,
            key=_SLIDER.key,
            on_change=lambda: _turn(_SLIDER.get()),
            label_visibility="collapsed",
        )
        st.button("›", key=_ON, help=_("The next moment (.)"), disabled=at == last, on_click=_turn, args=(at + 1,))
        figures = " · ".join([said(), *told(moments[at], _)])
        st.caption(figures, width="content", help=explained(moments[at], _))
        box = st.popover(_("Curves"), type="tertiary", on_change="rerun", key=_CURVES)
        if box.open:
            with box, st.container(width=_WIDTH):
                _draw_curves(at)


def _draw_curves(moment: int) -> None:
    """Draw the curves of the training, with a line at a moment."""
    from visformer.pictures.charts.learning import history_curves  # imports plotly

    name = model_of(_model())[0]
    figure = history_curves(name, controls.setting_of(HISTORY, None), moment)
    controls.draw(figure, key=_CURVES, export=False)


def said() -> str:
    """Return which moment is shown, in words; "" where the slider is closed."""
    _, at, moments = boxes.gettext(), model_of(_model())[1], figures_of(_model())
    if not moments or (at is None and not _IS_OPEN.get()):
        return ""
    return step_of(moments, -1 if at is None else at, _)


def _model() -> str:
    return boxes.model() or MODEL


def _turn(moment: int) -> None:
    """Show a moment, as a callback; the last one is the model itself."""
    name, last = model_of(_model())[0], len(figures_of(_model())) - 1
    boxes.MODEL_BOX.set(name if moment == last else moment_name(name, moment))
    _IS_OPEN.set(True)


def _close() -> Any:
    """Leave the history for the trained model, as a callback of the switch."""
    if not _IS_OPEN.get():
        _turn(len(figures_of(_model())) - 1)
        _IS_OPEN.set(False)
