"""What weights, values and layers do to the prediction."""

from visformer.errors import N_
from visformer.pictures.experiments.layers import logit_lens, parts
from visformer.pictures.experiments.methods import RECORD, allowed, methods
from visformer.pictures.experiments.patched import pair_labels, pairs, patched
from visformer.pictures.experiments.shuffled import rows_of, shuffled
from visformer.pictures.experiments.weights import weights
from visformer.pictures.registry.options import Choice, Place, Text
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.places import SELECTED, STACK
from visformer.pictures.registry.setting import Setting


def _rows(setting: Setting) -> tuple[str, ...]:
    return tuple(rows_of(setting)) if "next" in setting.patterns.tokens else ()


# fmt: off
HOW = Choice(
    name="how", label=N_("A weight is taken away by"), help="How a weight is taken away: zero or mask.",
    values={"zero": N_("setting it to 0"), "mask": N_("masking its key")},
)
SCOPE = Choice(
    name="scope", label=N_("Of"), help="The weights of one head, or of all heads of the layer.",
    values={"head": N_("head"), "layer": N_("layer")},
)
WEIGHTS = Choice(
    name="weights", label=N_("Weights"), help="What the weights of each row become.",
    values={"shuffled": N_("shuffled"), "uniform": N_("uniform")},
)
BUNDLED = Place(
    name="bundled", label=N_("Pair"), help="A bundled pair of the model, from 1.",
    among=lambda setting: range(max(1, len(pairs(setting)))), tokens=pair_labels,
    per=lambda setting: setting.patterns.meta.get("model", ""),
)
CORRUPT = Text(
    name="corrupt", label=N_("Or compare your sentence with"),
    help="A second text to compare the sentence with, of as many tokens.",
)
ROW = Place(
    name="row", label=N_("Row"), help="The row whose prediction is split, from 1.",
    among=lambda setting: range(len(_rows(setting))), tokens=_rows,
    default=lambda setting: max(0, len(_rows(setting)) - 1), per=lambda setting: len(_rows(setting)),
)
METHOD = Choice(
    name="method", label=N_("Method"), help="What is computed: see vf.analysis.attribution.", values=allowed,
    widget="selectbox", spell=lambda name: name.replace(" ", "-").replace("+", "-plus"),
    per=lambda setting: len(allowed(setting)),
)
EFFECTS = Picture(
    name="weight-effects", view="weights", title=N_("Weights"), needs=("*.pattern",), options=(*SELECTED[:3], HOW),
    look_for=N_("Left: where the head reads. Right: what each weight does, removed alone. Others may stand in for it."),
    draw=weights, in_handouts=False,
)
SHUFFLED = Picture(
    name="shuffle-effects", view="shuffled", title=N_("Shuffled"), needs=("*.pattern",),
    options=(*SELECTED[:3], WEIGHTS, SCOPE),
    look_for=N_("Each row's weights are shuffled among the keys it may read. How far do the predictions move?"),
    draw=shuffled, in_handouts=False,
)
METHODS = Picture(
    name="methods", view="methods", title=N_("Methods"), needs=RECORD, options=(STACK, METHOD), draw=methods,
    in_handouts=False,
    look_for=N_("What does a row take from each token? The methods agree only in part, and none is the truth."),
)
PATCHING = Picture(
    name="patching", view="patching", title=N_("Patching"), needs=("*.pattern",), options=(STACK, BUNDLED, CORRUPT),
    look_for=N_("One value of the clean run is put into the corrupt one: how much of the answer comes back?"),
    draw=patched, in_handouts=False,
)
LENS = Picture(
    name="lens", view="lens", title=N_("Lens and parts"), needs=("*.pattern",), in_handouts=False,
    look_for=N_("The top token after each layer. Intermediate scores, not probabilities. Coloured: as after the last."),
    draw=logit_lens,
)
PARTS = Picture(
    name="parts", view="lens", needs=("*.pattern",), options=(ROW,), draw=parts, in_handouts=False,
)
PAGE = Page(
    name="effects", section="research", order=100, title=N_("Effects"),
    about=N_("What weights, values and layers do to the prediction."),
    views=(EFFECTS, SHUFFLED, METHODS, PATCHING, LENS, PARTS), where="attention",
)
# fmt: on
