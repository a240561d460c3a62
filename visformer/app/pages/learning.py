"""A training that is watched: its options, what the visitor does, and what is new of it five times a second."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.adapters.learning.moment import Watched
from visformer.adapters.learning.recipe import MOST_SEED, Recipe
from visformer.app.presentation import following
from visformer.app.serving.trainings.runs import RUNS, SPEEDS, Run
from visformer.app.session import address, boxes, run, visit
from visformer.app.session.slots import Slot, widget_key
from visformer.app.streamlit_private.other_sessions import is_connected, own_address, own_session
from visformer.app.widgets import controls, url_widgets
from visformer.app.widgets.component import learning_moments, learning_view
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.pictures.learning import (
    BESIDE,
    LEARNING,
    NOTHING,
    PAGE,
    SEED,
    TASK,
    VARIANT,
    explained,
    recipes_of,
)
from visformer.pictures.registry.options import Option
from visformer.pictures.registry.picture import pages
from visformer.pictures.registry.setting import Setting
from visformer.web.learning import Shown, end_of
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.adapters.learning.moment import Moment

REDRAWN = 0.2
"""Seconds between two redraws."""

_OVERLAP = 2  # redraws whose moments are sent again, in case a browser skipped one
_SEED: Slot[int] = Slot(SEED.key(PAGE.name, url_widgets.nothing()), 0)
_SENT: Slot[tuple[str, tuple[int, ...]]] = Slot("learning_sent", ("", ()))  # run, and its moments at the last redraws
_BEGINS = Slot("learning_begins", False)  # whether the next drawing of the page starts a run
_SPEED = Slot("learning_speed", SPEEDS[-1])
_PROBLEM: Slot[VisformerError | None] = Slot("learning_problem", None)

_MODEL_PAGES = ("", "attention", "head", "decoding")
_LOOK = N_("Look into the model:")


def draw() -> None:
    """Draw the page."""
    RUNS.prepare()
    if following.presented():
        RUNS.share(own_session(), following.presented())
    setting = controls.setting_of(LEARNING, None)
    _resume()
    with st.container(horizontal=True, vertical_alignment="bottom", key="learning_options"):
        url_widgets.draw_all(LEARNING, setting, PAGE.name)
    recipes = recipes_of(setting)
    controls.look_for(_look_for(recipes))
    if _BEGINS.pop():
        _start(recipes)
    _SENT.clear()  # all of it is sent to a page that is drawn anew
    RUNS.adopt(following.owner(), recipes, session=own_session(), is_there=is_connected)
    found = RUNS.of(following.owner(), recipes)
    is_watched = found is not None and found.is_active
    st.fragment(_live, run_every=REDRAWN if is_watched else None)(recipes, is_watched)
    if found is not None and not found.is_active:
        _after(found, setting)


def _look_for(recipes: tuple[Recipe, ...]) -> str:
    """Return what to watch: with the task, or with the variants that differ from the usual way."""
    _, about = boxes.gettext(), recipes[0].about
    notes = [about.notes[recipe.variant] for recipe in recipes if recipe.variant in about.notes]
    return paragraph(*(_(note) for note in notes or [about.look_for]))


def _resume() -> None:
    """Offer what is being trained, or was last, on a page that is opened without options of its own."""
    last = RUNS.last(following.owner())
    is_linked = any(name.startswith(f"{PAGE.name}_") for name in visit.coming().choices)
    if last is None or is_linked or Slot(_key(TASK, url_widgets.nothing()), None).is_set:
        return
    recipes, setting = last.recipes, url_widgets.nothing()
    beside = recipes[1].variant if len(recipes) > 1 else NOTHING
    values = (recipes[0].task, recipes[0].variant, beside, recipes[0].seed)
    for option, value in zip((TASK, VARIANT, BESIDE, SEED), values, strict=True):
        setting[option.name] = value
        Slot[Any](_key(option, setting), None).set(value)


def _key(option: Option, setting: Setting) -> str:
    """Return the key of an option's widget."""
    return widget_key(option.key(PAGE.name, setting), "" if option.per is None else option.per(setting))


def _acts() -> bool:
    """Whether this visitor may start and pause it: in a room the presenter does."""
    return not following.shared() or bool(following.presented())


def _watchers() -> int:
    return 1 + (following.count() if following.presented() else 0)


def _start(recipes: tuple[Recipe, ...]) -> None:
    try:
        who = {"session": own_session(), "address": own_address()}
        RUNS.start(following.owner(), recipes, **who, watchers=_watchers(), speed=_SPEED.get())
        following.nudge()
    except VisformerError as problem:
        _PROBLEM.set(problem)


@controls.errors_shown()
def _live(recipes: tuple[Recipe, ...], is_watched: bool) -> None:
    """Draw what is new; reruns by itself while the training goes on."""
    found = RUNS.of(following.owner(), recipes)
    if found is not None and _acts():
        found.watchers = _watchers()
    if (found is not None and found.is_active) != is_watched or _BEGINS.get():
        st.rerun()
    with st.container(gap=None):  # feeds take up no room
        _send(found, recipes)
        learning_view(
            on_act=lambda act: _act(act, recipes), on_missing=lambda have: _SENT.set((_SENT.get()[0], (have,)))
        )
    if found is not None and found.moments:
        st.caption(explained(["loss"], boxes.gettext()))


def _act(act: Mapping[str, Any], recipes: tuple[Recipe, ...]) -> None:
    """Do what the visitor wants; the run goes on in its own thread."""
    if not _acts():
        return
    found, what, value = RUNS.of(following.owner(), recipes), act.get("what"), act.get("value")
    if what == "speed" and value in SPEEDS:
        _SPEED.set(value)
        if found is not None:
            found.speed = value
    elif what == "seed":
        _SEED.set((_SEED.get() + 1) % (MOST_SEED + 1))
        _BEGINS.set(True)
    elif what == "start":
        _BEGINS.set(True)
    elif found is not None and what == "play":
        try:
            RUNS.play(found)
        except VisformerError as problem:
            _PROBLEM.set(problem)
    elif found is not None and what == "pause":
        RUNS.pause(found)
    elif found is not None and what == "step":
        RUNS.step(found)
    following.nudge()


def _send(found: Run | None, recipes: tuple[Recipe, ...]) -> None:
    """Send the moments since the redraw before the last."""
    _, problem = boxes.gettext(), _PROBLEM.pop()
    look: dict[str, Any] = {"steps": recipes[0].about.steps, "speed": _SPEED.get(), "speeds": SPEEDS, "acts": _acts()}
    if problem is not None:
        look["problem"] = problem.localized(_)
    if found is None or not found.moments:
        state = found.state if found is not None else "idle"
        learning_moments([], run="", state=state, **look)
        return
    state, n = found.state, min(map(len, found.moments))  # the thread appends to them meanwhile
    name, before = _SENT.get()
    before = before if name == found.name else ()
    first = min(before[0], n) if before else 0
    end = end_of(found.moments, first)
    _SENT.set((found.name, (*before, end)[-_OVERLAP:]))
    if found.problem is not None:
        look["problem"] = found.problem.localized(_)
    about, titled = recipes[0].about, len(recipes) > 1
    shown = [
        Shown(
            title=_(about.variants[recipe.variant]) if titled else "",
            sight=sight,
            moments=moments[first:end],
            looks=[_(label) for label in about.looks.values()],
            curves=(_(about.trained), _(about.probed)),
        )
        for recipe, sight, moments in zip(recipes, found.sights, found.moments, strict=True)
    ]
    learning_moments(shown, run=found.name, state=state, first=first, count=n, **look)


def _after(found: Run, setting: Setting) -> None:
    """Draw the ways into the model as it is now, and keep the curves for files."""
    _ = boxes.gettext()
    if not found.moments:
        return
    for recipe, sight, moments in zip(found.recipes, found.sights, found.moments, strict=True):
        model = recipe.until(found.step)
        _ways(model, sight.keys, moments[-1], with_title=len(found.recipes) > 1)
    if found.state == "over":
        from visformer.pictures.charts.learning import curves

        runs = [Watched(recipe, moments) for recipe, moments in zip(found.recipes, found.moments, strict=True)]
        run.current().exports.append(("figure", curves(runs, setting), "learning"))


def _ways(model: Recipe, tokens: tuple[str, ...], moment: "Moment", *, with_title: bool) -> None:
    """Draw buttons that open a page with the model, at its best head and with a text that it can read."""
    _ = boxes.gettext()
    about = model.about
    joint = " " if about.translates else ""
    text = joint.join(token for token in tokens if not token.startswith("<"))
    scores = moment.scores[[*about.looks].index(about.best)]
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    selected = Selection(
        stack="decoder.cross_attn" if about.translates else "decoder.self_attn", layer=layer, head=head
    )
    state = replace(address.common(), model=model.name, text=text, target="", selection=selected)
    said = _(_LOOK) if not with_title else f"{_(about.variants[model.variant])} · {_(_LOOK)}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"learning_ways_{model.variant}"):
        st.caption(said, width="content")
        for name in _MODEL_PAGES:
            st.button(
                _(pages()[name].title),
                key=f"learning_way_{model.variant}_{name}",
                type="tertiary",
                on_click=visit.bring_back,
                args=(replace(state, page=name), ()),
            )
