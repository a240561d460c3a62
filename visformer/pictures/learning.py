"""Models while they learn: a small one, here and now, and others by the moments of their training that were kept."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from visformer.adapters.checkpoints import GPT, TRANSLATOR
from visformer.adapters.learning.recipe import MOST_SEED, Recipe, TrainingRecord
from visformer.adapters.learning.tasks import TASKS
from visformer.errors import N_
from visformer.i18n import Gettext, paragraph
from visformer.pictures.registry.options import Choice, Number, Text
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting

if TYPE_CHECKING:  # plotly
    from plotly.graph_objects import Figure

NOTHING = "none"
WITH_HISTORY = (TRANSLATOR, GPT)
"""The bundled models whose moments were kept."""

ABOUT_FIGURES = {
    "loss": N_(
        "The loss is the mean of −ln p of the right token, in nats, the unit of the natural logarithm: 0 if the model "
        "is certain of it, 0.7 if p is one half."
    ),
    "bleu_en_zh": N_(
        "BLEU, 0 to 100, says how much a translation shares with a person's: single words, and sequences of two to "
        "four."
    ),
    "aer_en_zh": N_(
        "The alignment error rate (AER) is the share of links between the words of both languages that a head's "
        "largest weights get wrong or miss: the lower, the better."
    ),
}
"""What the figures of a moment of a training are, by the column of :func:`visformer.moments`."""


def explained(figures: Collection[str], gettext: Gettext) -> str:
    """Return what these figures of a moment are, in words."""
    return paragraph(*(gettext(about) for name, about in ABOUT_FIGURES.items() if name in figures))


def recipes_of(setting: Setting) -> tuple[Recipe, ...]:
    """Return what is trained, one or two side by side."""
    variants = [setting["variant"], *([setting["beside"]] if setting["beside"] != NOTHING else [])]
    return tuple(Recipe(setting["task"], variant, setting["seed"]) for variant in dict.fromkeys(variants))


def watched(recipe: Recipe) -> TrainingRecord:
    """Train a model from its first step to its last, here and now, and return its moments."""
    from visformer.adapters.learning.training import watch

    return TrainingRecord(recipe, [*watch(recipe)])


def _drawn(setting: Setting) -> "Figure":
    from visformer.pictures.charts.learning import training_curves

    return training_curves([watched(recipe) for recipe in recipes_of(setting)], setting)


def _history(setting: Setting) -> "Figure":
    from visformer.pictures.charts.learning import history_curves

    return history_curves(setting["training"], setting)


def _with_history(setting: Setting) -> tuple[str, ...]:
    """Return the models whose history a page offers."""
    return setting.source.models or WITH_HISTORY


def _variants(setting: Setting) -> Mapping[str, str]:
    """Return the variants of the task; of all tasks where it is not known yet, as for the command line's help."""
    tasks = [TASKS[setting["task"]]] if "task" in setting else TASKS.values()
    return {name: variant.label for task in tasks for name, variant in task.variants.items()}


def _others(setting: Setting) -> Mapping[str, str]:
    others = {name: label for name, label in _variants(setting).items() if name != setting.get("variant")}
    return {NOTHING: N_("nothing"), **others}


# fmt: off
TASK = Choice(
    name="task", label=N_("Task"), widget="selectbox", help="By default repeat: random letters that repeat.",
    values={name: task.title for name, task in TASKS.items()},
)
VARIANT = Choice(
    name="variant", label=N_("How it is trained"), widget="selectbox", help="By default the task's first.",
    values=_variants, per=lambda setting: setting["task"],
)
BESIDE = Choice(
    name="beside", label=N_("Beside it"), widget="selectbox", help="Another way to train it, in step; none by default.",
    values=_others, per=lambda setting: f"{setting['task']}_{setting['variant']}",
)
SEED = Number(
    name="seed", label=N_("Seed"), help="Of the first weights and of the batches; by default 0.", default=0, least=0,
    most=MOST_SEED, valid=0, step=1, widget="number_input",
)
TRAINING = Text(
    name="training", label=N_("Model whose training is shown"), among=_with_history,
    tooltip=N_("Only for these curves: at first the model in the side bar, if moments of its training were kept."),
    default=lambda setting: _with_history(setting)[0],
    help="A model whose moments were kept, see vf.moments: a name or a folder; by default en-zh.",
)
LEARNING = Picture(
    name="learning", view="live", title=N_("Live"), formula=True, options=(TASK, VARIANT, BESIDE, SEED),
    draw=_drawn, in_handouts=False, look_for=Recipe().about.look_for,
)
HISTORY = Picture(
    name="training-curves", view="history", title=N_("History"), options=(TRAINING,), draw=_history,
    formula=True, alone=True, in_handouts=False,
    look_for=N_("What the model could do at each moment of its training. What falls or rises where a head appears?"),
)
PAGE = Page(
    name="learning", section="understand", order=85, title=N_("Learning"),
    about=N_("A small Transformer learns while you watch, and the history of the larger ones."),
    views=(LEARNING, HISTORY), has_sentence=False,
)
# fmt: on
