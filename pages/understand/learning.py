"""Learning: a small Transformer is trained while everybody watches; and what was kept of other trainings."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from visformer.adapters.checkpoints import figures_of, head_scores, model_of, steps
from visformer.adapters.learning.recipe import MOST_SEED, Recipe, TrainingInfo, TrainingRecord
from visformer.adapters.learning.recorded import RECIPE, recorded
from visformer.analysis.known_heads import LABELS, LEAST, appears
from visformer.app.presentation import following
from visformer.app.serving.models import MODEL, discreetly, label, named, offered
from visformer.app.serving.trainings import RUNS, SPEEDS, TrainingRun
from visformer.app.session import address, boxes, run
from visformer.app.session.measured import score_history
from visformer.app.session.slots import Slot, hold, widget_key
from visformer.app.streamlit_private.other_sessions import is_connected, own_address, own_session
from visformer.app.widgets import controls, downloads, tables, url_widgets, waiting
from visformer.app.widgets.component import kept_key, learning_moments, learning_view
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.pictures.learning import (
    BESIDE,
    HISTORY,
    LEARNING,
    NOTHING,
    PAGE,
    SEED,
    TASK,
    VARIANT,
    WITH_HISTORY,
    explained,
    recipes_of,
)
from visformer.pictures.registry.options import Option
from visformer.pictures.registry.picture import pages
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS
from visformer.web.learning import ShownTraining, end_of
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from collections.abc import Sequence

    from visformer.adapters.learning.recipe import Snapshot

REDRAWN = 0.2  # seconds between two redraws
OVERLAP = 2  # redraws whose moments are sent again, in case a browser skipped one
SEED_BOX: Slot[int] = Slot(SEED.key(PAGE.name, url_widgets.nothing()), 0)
SENT: Slot[tuple[str, tuple[int, ...]]] = Slot("learning_sent", ("", ()))  # run, and its moments at the last redraws
BEGINS = Slot("learning_begins", False)  # whether the next drawing of the page starts a run
SPEED = Slot("learning_speed", SPEEDS[-1])
PROBLEM: Slot[VisformerError | None] = Slot("learning_problem", None)
MODEL_PAGES = ("", "attention", "head", "decoding")
LOOK = N_("Look into the model:")

MEASURED: Slot[dict[str, pd.DataFrame]] = Slot("history_heads", {})  # by model
MOST = 4  # models whose head scores a session keeps, some 200 kB each
RULE = N_(
    "A mark is where a head appears: from this moment on it has its label at every moment, a score of at least {least} "
    "that is above its null. Between two moments nothing is known: it appeared at some step since the moment before."
)
SCORES = N_(
    "Scores are mean weights on random tokens that recur; of an alignment head, 1 − alignment error rate (AER) on {n} "
    "pairs aligned by hand. The curves of the AER are of the head that is best in their direction."
)
NONE = N_("No head has a label at the last moment.")
NOT_MEASURED = N_(
    "The heads of this history have not been scored yet: that takes a few seconds a moment, and starts with the button."
)
STACK_LABELS = {stack.name: stack.label for stack in STACKS}

_ = boxes.gettext()


def draw_training() -> None:
    """Draw a training that is watched: its options, what the visitor does, and five times a second what is new."""
    RUNS.prepare()
    if following.presented():
        RUNS.share(own_session(), following.presented())
    setting = controls.setting_of(LEARNING, None)
    resume()
    with st.container(horizontal=True, vertical_alignment="bottom", key="learning_options"):
        url_widgets.draw_all(LEARNING, setting, PAGE.name)
    recipes = recipes_of(setting)
    about = recipes[0].about  # the task or, of variants that differ from the usual way, how
    notes = [recipe.options.note for recipe in recipes if recipe.options.note is not None]
    controls.look_for(paragraph(*(_(note) for note in notes or [about.look_for])))
    if BEGINS.pop():
        start(recipes)
    SENT.clear()  # all of it is sent to a page that is drawn anew
    found = RUNS.of(following.owner(), recipes)
    kept_key("training", found.name if found is not None else "", on_kept=come_back)
    is_watched = found is not None and found.is_active
    st.fragment(live, run_every=REDRAWN if is_watched else None)(recipes, is_watched)
    if found is not None and not found.is_active:
        draw_after(found, setting)


def resume() -> None:
    """Offer what is being trained, or was last, on a page that is opened without options of its own."""
    last = RUNS.last(following.owner())
    is_linked = any(name.startswith(f"{PAGE.name}_") for name in address.upcoming().choices)
    if last is None or is_linked or Slot(key_of(TASK, url_widgets.nothing()), None).is_set:
        return
    recipes, setting = last.recipes, url_widgets.nothing()
    beside = recipes[1].variant if len(recipes) > 1 else NOTHING
    values = (recipes[0].task, recipes[0].variant, beside, recipes[0].seed)
    for option, value in zip((TASK, VARIANT, BESIDE, SEED), values, strict=True):
        setting[option.name] = value
        Slot[Any](key_of(option, setting), None).set(value)


def come_back(name: str) -> None:
    """Return to the training of before a reload, as a callback."""
    RUNS.adopt(following.owner(), name, session=own_session(), is_there=is_connected)


def key_of(option: Option, setting: Setting) -> str:
    """Return the key of an option's widget."""
    return widget_key(option.key(PAGE.name, setting), "" if option.per is None else option.per(setting))


def acts() -> bool:
    """Whether this visitor may start and pause it: in a room the presenter does."""
    return not following.shared() or bool(following.presented())


def watchers() -> int:
    return 1 + (following.count() if following.presented() else 0)


def start(recipes: tuple[Recipe, ...]) -> None:
    try:
        who = {"session": own_session(), "address": own_address()}
        RUNS.start(following.owner(), recipes, **who, watchers=watchers(), speed=SPEED.get())
        following.redraw_followers()
    except VisformerError as problem:
        PROBLEM.set(problem)


@controls.errors_shown()
def live(recipes: tuple[Recipe, ...], is_watched: bool) -> None:
    """Draw what is new; reruns by itself while the training goes on."""
    hold(boxes.SOURCE, boxes.TARGET)  # as every run of a page without them
    found = RUNS.of(following.owner(), recipes)
    if found is not None and acts():
        found.watchers = watchers()
    if (found is not None and found.is_active) != is_watched or BEGINS.get():
        st.rerun()
    with st.container(gap=None):  # feeds take up no room
        send(found, recipes)
        learning_view(
            on_act=lambda what: act(what, recipes), on_missing=lambda have: SENT.set((SENT.get()[0], (have,)))
        )
    if known(found, recipes)[1]:
        st.caption(explained(["loss"], _))


def known(
    found: TrainingRun | None, recipes: tuple[Recipe, ...]
) -> tuple[tuple[TrainingInfo, ...], "tuple[Sequence[Snapshot], ...]"]:
    """Return what is the same at all moments of each training, and the moments, of a recorded one before its start."""
    if found is not None and found.moments:
        return found.sights, found.moments
    if recipes != (RECIPE,):
        return (), ()
    sight, moments = recorded()
    return (sight,), (moments if found is None else moments[:1],)  # the first weights are the same again


def act(said: Mapping[str, Any], recipes: tuple[Recipe, ...]) -> None:
    """Do what the visitor wants; the run goes on in its own thread."""
    if not acts():
        return
    found, what, value = RUNS.of(following.owner(), recipes), said.get("what"), said.get("value")
    if what == "speed" and value in SPEEDS:
        SPEED.set(value)
        if found is not None:
            found.speed = value
    elif what == "seed":
        SEED_BOX.set((SEED_BOX.get() + 1) % (MOST_SEED + 1))
        BEGINS.set(True)
    elif what == "start":
        BEGINS.set(True)
    elif found is not None and what == "play":
        try:
            RUNS.play(found)
        except VisformerError as problem:
            PROBLEM.set(problem)
    elif found is not None and what == "pause":
        RUNS.pause(found)
    elif found is not None and what == "step":
        RUNS.step(found)
    following.redraw_followers()


def send(found: TrainingRun | None, recipes: tuple[Recipe, ...]) -> None:
    """Send the moments since the redraw before the last."""
    problem = PROBLEM.pop()
    look: dict[str, Any] = {"steps": recipes[0].about.steps, "speed": SPEED.get(), "speeds": SPEEDS, "acts": acts()}
    if problem is not None:
        look["problem"] = problem.localized(_)
    state, name = ("idle", "") if found is None else (found.state, found.name)
    sights, moments = known(found, recipes)
    if not moments:
        learning_moments([], run="", state=state, **look)
        return
    n = min(map(len, moments))  # the thread appends to them meanwhile
    before = SENT.get()[1] if SENT.get()[0] == name else ()
    first = min(before[0], n) if before else 0
    end = end_of(moments, first)
    SENT.set((name, (*before, end)[-OVERLAP:]))
    if found is not None and found.problem is not None:
        look["problem"] = found.problem.localized(_)
    about, titled = recipes[0].about, len(recipes) > 1
    shown = [
        ShownTraining(
            title=_(recipe.options.label) if titled else "",
            sight=sight,
            moments=seen[first:end],
            looks=[_(label) for label in about.looks.values()],
            curves=(_(about.trained), _(about.probed)),
        )
        for recipe, sight, seen in zip(recipes, sights, moments, strict=True)
    ]
    learning_moments(shown, run=name, state=state, first=first, count=n, **look)


def draw_after(found: TrainingRun, setting: Setting) -> None:
    """Draw the ways into the model as it is now, and keep the curves for files."""
    if not found.moments:
        return
    for recipe, sight, moments in zip(found.recipes, found.sights, found.moments, strict=True):
        model = recipe.until(found.step)
        draw_ways(model, sight.keys, moments[-1], with_title=len(found.recipes) > 1)
    if found.state == "over":
        from visformer.pictures.charts.learning import training_curves

        runs = [TrainingRecord(recipe, moments) for recipe, moments in zip(found.recipes, found.moments, strict=True)]
        run.current().exports.append((training_curves(runs, setting), "learning"))


def draw_ways(model: Recipe, tokens: tuple[str, ...], moment: "Snapshot", *, with_title: bool) -> None:
    """Draw buttons that open a page with the model, at its best head and with a text that it can read."""
    about = model.about
    joint = " " if about.translates else ""
    text = joint.join(token for token in tokens if not token.startswith("<"))
    scores = moment.scores[[*about.looks].index(about.best)]
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    stack = "decoder.cross_attn" if about.translates else "decoder.self_attn"
    selected = Selection(stack=stack, layer=layer, head=head)
    state = replace(address.common(), model=model.name, text=text, target="", selection=selected)
    said = _(LOOK) if not with_title else f"{_(model.options.label)} · {_(LOOK)}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"learning_ways_{model.variant}"):
        st.caption(said, width="content")
        for name in MODEL_PAGES:
            st.button(
                _(pages()[name].title),
                key=f"learning_way_{model.variant}_{name}",
                type="tertiary",
                on_click=address.restore,
                args=(replace(state, page=name), ()),
            )


def draw_history() -> None:
    """Draw what was kept of a training: curves over its moments, and the heads that appeared."""
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
        heads = MEASURED.get().get(name)
        offer(name, row)
    draw_curves(name, setting, moment if name == own else None, heads)
    st.caption(explained(figures_of(name)[-1], _))
    if heads is None:
        st.caption(_(NOT_MEASURED))
    else:
        tell_heads(name, heads)


def draw_curves(name: str, setting: Any, moment: int | None, heads: pd.DataFrame | None) -> None:
    from visformer.pictures.charts.learning import history_curves

    with discreetly(name):
        figure = history_curves(name, setting, moment, heads=heads)
    controls.draw(figure, key="history_curves")


def tell_heads(name: str, heads: pd.DataFrame) -> None:
    """Tell which heads appeared, and when."""
    found, kept = appears(heads), steps(name)
    aligned = heads["n"][heads["label"] == "alignment"]
    scores = _("Scores are mean weights on random tokens that recur.")
    if len(aligned):
        scores = _(SCORES).format(n=int(aligned.iloc[0]))
    st.caption(paragraph(_(RULE).format(least=LEAST), scores, "" if len(found) else _(NONE)))
    if len(found):
        shown = {
            _("step"): [kept[moment] for moment in found["moment"]],
            _("label"): [_(LABELS[each]) for each in found["label"]],
            _("attention"): [_(STACK_LABELS[each]) for each in found["stack"]],
            _("layer"): found["layer"] + 1,
            _("head"): found["head"] + 1,
            _("score"): found["score"],
            _("null"): found["null"],
        }
        tables.draw(pd.DataFrame(shown), title=_("Heads that appeared"))
    downloads.csv(heads, "history_heads")


def offer(name: str, place: Any) -> None:
    """Draw the button that scores the heads at every moment."""

    def keep(found: list[pd.DataFrame]) -> None:
        MEASURED.set(dict([*MEASURED.get().items(), (name, found[0])][-MOST:]))

    work: list[waiting.LongStep] = [(_("The heads at each moment"), partial(score_history, name=name))]
    too_long = _("Score them in Python: vf.analysis.head_history.")
    waiting.offer_long_run(
        _("Score the heads"), lambda: work, key="history_score", keep=keep, too_long=too_long, place=place
    )


view = PAGE.view(controls.view(_("View"), PAGE.titles, key="learning_view"))
if view is HISTORY:
    draw_history()
else:
    draw_training()
