"""The side bar: the guided lesson, the pages, and the model that the numbers come from, with where in it one is."""

from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import streamlit as st

from visformer.adapters.checkpoints import BUNDLED, GPT, GPT_2, TRANSLATOR, model_of, steps
from visformer.adapters.learning.recipe import Recipe, is_trained_name
from visformer.adapters.names import is_broken_name
from visformer.app.lessons import lesson_menu
from visformer.app.presentation import following
from visformer.app.serving.models import label, offered, require_allowed
from visformer.app.serving.trainings.runs import RUNS
from visformer.app.session import address, boxes
from visformer.app.session.markdown import plain
from visformer.app.session.page import all_pages, current_page
from visformer.app.shell import model_download, timeline, untrained_sliders
from visformer.app.widgets import component, here
from visformer.errors import N_, VisformerError
from visformer.i18n import Gettext
from visformer.model.untrained import is_untrained_name
from visformer.pictures.registry.picture import SECTIONS
from visformer.pictures.registry.picture import pages as registered
from visformer.system import settings

_NAMED = {TRANSLATOR: N_("Translator {name}"), GPT: N_("Decoder {name}"), GPT_2: N_("Decoder {name}")}
_ABOUT = {
    TRANSLATOR: N_(
        "Our own Transformer translates between English and Chinese. It is small and makes mistakes; its attention is "
        "real all the same: every number here was computed by it."
    ),
    GPT: N_(
        "Our own decoder-only model, of GPT's type: it reads English and Chinese and predicts what follows. It is "
        "small; some of its heads look for what came after the same token before (induction heads)."
    ),
    GPT_2: N_(
        "The same model as mini-gpt, trained on the same data from another random start: what both do is no accident "
        "of one training."
    ),
}
"""What the chooser says about the bundled models."""


def draw() -> None:
    """Draw the side bar; its links carry the state that all pages share."""
    _, link = boxes.gettext(), address.address()
    with st.sidebar:
        with st.container(key="brand"):
            st.header("Visformer", anchor=False)
        lesson_menu.entry()
        for section, title in SECTIONS.items():
            # less, and the links overlap
            with _section(section, _(title)), st.container(gap="xsmall", key=f"pages_{section}"):
                for each in (page for page in registered().values() if page.section == section):
                    st.page_link(all_pages()[each.name], query_params=link, help=plain(_(each.about)))
        _model_chooser()


def _section(name: str, title: str) -> Any:
    """Return where the pages of a section are: those for research are folded unless one of them is open."""
    if name == "research":
        return st.expander(
            plain(title), expanded=registered()[current_page()].section == name, key=name, type="compact"
        )
    st.caption(plain(title))
    return nullcontext()


def _model_chooser() -> None:
    """Draw the choice between the bundled translator, an untrained Transformer and the operator's models."""
    _ = boxes.gettext()
    first, *others = offered()
    if boxes.model() is None:
        boxes.MODEL_BOX.set(first)
    chosen = str(boxes.model())
    boxes.keep_choice(boxes.MODEL)
    has_own = not registered()[current_page()].has_sentence  # numbers of its own
    st.selectbox(
        _("Other pages' model") if has_own else _("Model"),
        list(dict.fromkeys([first, boxes.untrained(), *others, *RUNS.models(following.owner()), chosen])),
        format_func=partial(_shown_name, _),
        key=boxes.MODEL,
        accept_new_options=settings.ANY_MODEL(),
        help=_("Every page looks inside this model, except the lab, Atlas and Learning, which have their own numbers."),
    )
    with st.container(gap=None):  # feeds take up no room
        component.here_view()
        here.tell("picture")
    timeline.switch()
    if is_untrained_name(chosen):
        untrained_sliders.settings()
    elif is_trained_name(chosen):
        with suppress(VisformerError):
            recipe = Recipe.named(chosen)
            said = _("Trained here for {step} steps, seed {seed}: {task}. It knows nothing else.")
            st.caption(said.format(step=plain(recipe.step), seed=plain(recipe.seed), task=_(recipe.about.title)))
    elif is_broken_name(chosen):
        st.caption(_("One thing in this model is wrong. The pictures show what: find it."))
    elif model_of(chosen)[0] in BUNDLED:
        st.caption(_(_ABOUT[model_of(chosen)[0]]))
    elif chosen != first:
        with suppress(VisformerError):  # the page shows the error
            require_allowed(chosen)
            model_download.offer(chosen)


def _shown_name(_: Gettext, name: str) -> str:
    """Return the name under which a visitor sees a model."""
    if is_untrained_name(name):
        return _("Untrained model")
    if is_trained_name(name):
        with suppress(VisformerError):
            recipe = Recipe.named(name)
            is_usual = recipe.variant == next(iter(recipe.about.variants))
            how = recipe.about.title if is_usual else recipe.options.label
            return _("Trained here: {how}").format(how=_(how))
    model, moment = model_of(name)
    if moment is not None:  # of the translator, say: its name is too long beside the step
        step = dict(enumerate(steps(model))).get(moment, moment)
        return _("{model} · step {step}").format(model=label(model), step=f"{step:,}")
    return _(_NAMED[name]).format(name=name) if name in BUNDLED else label(name)
