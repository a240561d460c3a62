"""What a visitor sees while waiting: the place in the queue, or how far a long computation is.

Without a queue nothing is sent to the browser. A long computation starts with a button and can be cancelled. The page
waits for it, other visitors' pages do not: it runs where long work is done, when its turn has come. Whatever the
visitor does meanwhile, such as to click Cancel, ends it, as Streamlit ends the run of the page.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from visformer.app.serving.admission import ADMISSION, OnWait
from visformer.app.serving.capacity import aside
from visformer.app.serving.models import MODEL
from visformer.app.serving.remote_models import RemoteModel
from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.app.widgets import controls
from visformer.errors import DeadlineError, VisformerError
from visformer.system.progress import Progress, reporting_to


@contextmanager
def queue_notice() -> Iterator[OnWait]:
    """Show the place in the queue on the page being drawn, for :meth:`visformer.app.serving.admission.Admission.run`.

    Ends the script run, as Streamlit does, once the visitor has left or triggered another run.
    """
    place: Any = None
    shown: int | None = None

    def show(before: int | None) -> None:
        nonlocal place, shown
        if not own_session():
            return  # outside a page
        _ = boxes.gettext()  # reads the session state, where Streamlit raises what ends the run
        if before == shown:
            return
        shown, place = before, place or st.empty()
        if before is None:
            place.empty()
        else:
            place.caption(_("In the queue: {n} ahead of you.").format(n=before))

    try:
        yield show
    except Exception:
        show(None)
        raise
    show(None)


LongStep = tuple[str, Callable[[Any], Any]]
"""What is computed, in the visitor's language, and a function of the model that can be pickled; it calls
:func:`visformer.system.progress.report`."""


def offer_long_run(
    label: str,
    steps: Callable[[], Sequence[LongStep]],
    *,
    key: str,
    keep: Callable[[list[Any]], None],
    too_long: str,
    place: Any = st,
) -> None:
    """Draw the button; once it is clicked, compute all steps, and draw the page anew.

    Args:
        label: of the button, in the visitor's language.
        steps: called on a click; a VisformerError says why nothing can be computed.
        key: of the button.
        keep: called with the result of each step.
        too_long: what may help if it takes too long, in the visitor's language.
        place: the container of the button; what is computed is told where this is called.
    """
    _ = boxes.gettext()
    problem: Slot[VisformerError | None] = Slot(f"{key}_problem", None)
    is_done = Slot(f"{key}_done", False)
    if place.button(label, key=key, type="primary"):
        try:
            keep(_run_steps(steps(), key))
            is_done.set(True)
        except VisformerError as error:
            problem.set(error)
        st.rerun()
    if is_done.pop():
        st.toast(_("Done: the page shows what was computed."))
    if (failure := problem.pop()) is not None:
        st.text(f"{failure.localized(_)} {too_long}" if isinstance(failure, DeadlineError) else failure.localized(_))


def _run_steps(steps: Sequence[LongStep], key: str) -> list[Any]:
    _, found = boxes.gettext(), []
    name = boxes.model() or MODEL
    controls.bench().loaded()  # says why a model cannot be used
    with st.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, plain(steps[0][0]))
        st.button(_("Cancel"), key=f"{key}_cancel")
    for i, (title, work) in enumerate(steps):
        progress = Progress()

        def show_progress(before: int | None, i: int = i, title: str = title, progress: Progress = progress) -> None:
            text = plain(title) if before is None else _("In the queue: {n} ahead of you.").format(n=before)
            bar.progress((i + progress.share) / len(steps), text)  # raises once the visitor has done something else

        def compute(work: Callable[[Any], Any] = work, progress: Progress = progress) -> Any:
            with reporting_to(progress):
                return RemoteModel(name).analyse(work)

        show_progress(None)
        session = own_session()
        with aside():
            how: dict[str, Any] = {"on_wait": show_progress, "session": session, "kind": "long"}
            found.append(ADMISSION.run((session, key, name, i), compute, **how))
    return found
