"""What every head does over a corpus: a map of all heads by any statistic, and one head."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.atlas import (
    MEASURES,
    ROLES,
    bundled_names,
    distances,
    histogram,
    roles,
    values,
    with_token,
)
from visformer.analysis.atlas.likeness import SHARES
from visformer.analysis.heads import SCORES
from visformer.analysis.known_heads import LABELS
from visformer.errors import N_, DataError
from visformer.panel import Panel, common_limit
from visformer.pictures.heads import by_stack, head_map
from visformer.pictures.registry.options import STACK, Choice, Number, PlaceOption, Text
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.system import limits
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:
    import pandas as pd

    from visformer.analysis.atlas import Atlas

STATISTICS: dict[str, str] = {
    **{score.name: score.label for score in SCORES},
    "special": N_("Special tokens"),
    "punctuation": N_("Punctuation"),
    "sink": N_("Sink"),
    "induction": N_("Induction"),
    "syntactic_head": N_("Syntactic head"),
    "dependents": N_("Dependents"),
    "alignment": N_("Alignment"),
    "effect": N_("Effect of silencing"),
}
"""All statistics, with what they are called on screen."""

ABOUT: dict[str, str] = {
    **{score.name: score.about for score in SCORES},
    "special": N_("Weight on special tokens."),
    "punctuation": N_("Weight on tokens that are only punctuation."),
    "sink": N_("Weight that all rows of a text together give to the key that they read most."),
    "induction": N_("Weight on tokens that followed the row's token earlier in the text."),
    "syntactic_head": N_("Weight on the word that the row's word depends on."),
    "dependents": N_("Weight on words that depend on the row's word."),
    "alignment": N_("Weight on the source words that are aligned with the word that the row predicts."),
    "effect": N_("How much worse the target is predicted without the head, in nats a token."),
}
assert {*ABOUT} == {*STATISTICS} == {*(measure.name for measure in MEASURES), "effect"}

_UNITS = {
    "entropy": N_("share of the largest possible"),
    "distance": N_("positions"),
}
"""What the values of texts are, if not shares of weight."""

ANY, NO_ROLE = "any", "none"
_STEP = 0.001
_STACKS = {stack.name: stack.label for stack in STACKS}


def shown(setting: Setting) -> "pd.Series[float]":
    """Return the statistic of the heads that pass the filters, indexed like the table of heads; NaN: filtered out."""
    atlas: Atlas = setting.source.atlas(setting["atlas"])
    numbers = values(atlas, setting["statistic"])
    low, high = (setting[name] for name in ("at_least", "at_most"))
    passes = (numbers >= low - _STEP) & (numbers <= high + _STEP)  # the sliders' ends are rounded
    if setting["role"] != ANY:
        found = roles(atlas)
        if setting["role"] != NO_ROLE:
            found = found[found["statistic"] == setting["role"]]
        having = {*found[["stack", "layer", "head"]].itertuples(index=False, name=None)}
        places = atlas.heads[["stack", "layer", "head"]].itertuples(index=False, name=None)
        passes &= np.array([(place in having) == (setting["role"] != NO_ROLE) for place in places])
    if setting["token"].strip():
        passes &= with_token(atlas, setting["token"])
    return numbers.where(passes)


def _all_heads(setting: Setting) -> list[Panel]:
    """Draw a map of each attention of which there are numbers; the selected head is outlined."""
    atlas, numbers, name = setting.source.atlas(setting["atlas"]), shown(setting), setting["statistic"]
    every = values(atlas, name)
    look: dict[str, Any] = {
        "limit": common_limit(every),  # of all heads, so that a filter changes no colour
        "scale": "signed" if (every < 0).any() else "unsigned",
    }
    place, panels = [setting.get(key) for key in ("stack", "layer", "head")], []
    for stack, label, rows in by_stack(atlas.heads):
        if _tells(name, stack.partition(".")[2]):
            chosen = (rows[["stack", "layer", "head"]] == place).all(axis=1)
            title = setting.gettext(label)
            panels.append(head_map(rows, numbers[rows.index], name=stack, title=title, outlined=chosen, **look))
    return panels


def _tells(statistic: str, kind: str) -> bool:
    measure = next((measure for measure in MEASURES if measure.name == statistic), None)
    return measure is None or (measure.cross if kind == "cross_attn" else measure.self)


def of_head(setting: Setting) -> "pd.DataFrame":
    """Return the shares of weight of the selected head and of the others beside it, for its chart.

    Returns:
        One row for each statistic that the atlas has of it: statistic, value, sd (of the texts' own means), others (a
        list of the other heads of the same attention, see ATLAS_BESIDE).
    """
    import pandas as pd

    heads = setting.source.atlas(setting["atlas"]).heads
    beside = heads[heads["stack"] == setting["stack"]]
    own = beside[(beside["layer"] == setting["layer"]) & (beside["head"] == setting["head"])]
    rows = [
        (
            name,
            float(own[name].iloc[0]),
            float(own[f"{name}_sd"].iloc[0]),
            _spread(beside.drop(own.index)[name].dropna()),
        )
        for name in SHARES
        if own[name].notna().all()
    ]
    return pd.DataFrame(rows, columns=["statistic", "value", "sd", "others"])


def _spread(numbers: "pd.Series[float]") -> list[float]:
    """Return the numbers or, of many, as many as are drawn, in even steps from the lowest to the highest."""
    if len(numbers) > limits.ATLAS_BESIDE:
        numbers = numbers.sort_values().iloc[np.linspace(0, len(numbers) - 1, limits.ATLAS_BESIDE).astype(int)]
    found: list[float] = numbers.tolist()
    return found


def _statistics(setting: Setting) -> Any:
    from visformer.pictures.charts.atlas import statistics

    _ = setting.gettext
    table = of_head(setting)
    return statistics(
        table.assign(statistic=[_(STATISTICS[name]) for name in table["statistic"]]),
        selected=_(STATISTICS[setting["statistic"]]),
        axis=_(N_("share of weight")),
        title=_(N_("what a head reads, over the corpus")),
        theme=setting.source.theme,
    )


def _over_texts(setting: Setting) -> Any:
    from visformer.pictures.charts.atlas import over_texts

    _, name = setting.gettext, setting["statistic"]
    atlas = setting.source.atlas(setting["atlas"])
    table = histogram(atlas, name, setting["stack"], setting["layer"], setting["head"])
    if not len(table):
        raise DataError(
            N_("Of this head there is no distribution of “{statistic}” over the texts."), statistic=STATISTICS[name]
        )
    unit = _UNITS.get(name, N_("share of weight"))
    return over_texts(
        table,
        names=(
            _(N_("this head")),
            _(N_("mean of all heads")),
            _(N_("mean of the texts: {value}")).format(value=f"{table.attrs['mean']:.3f}".replace("-", "−")),
        ),
        axes=(
            _(N_("{statistic}: {unit}")).format(statistic=_(STATISTICS[name]), unit=_(unit)),
            _(N_("share of texts")),
        ),
        title=_(N_("a head over the corpus")),
        theme=setting.source.theme,
    )


def _by_place(setting: Setting) -> Any:
    from visformer.pictures.charts.atlas import by_position

    _, place = setting.gettext, (setting["stack"], setting["layer"], setting["head"])
    atlas = setting.source.atlas(setting["atlas"])
    table, x, y = distances(atlas, *place), "offset", "share"
    axes = (_(N_("key, in positions from the row")), _(N_("share of weight")))
    if not len(table):  # cross-attention has no distance
        rows = atlas.positions[atlas.positions["stack"] == place[0]]
        own = rows[(rows["layer"] == place[1]) & (rows["head"] == place[2])]
        others = rows.groupby("position")["entropy"].mean().rename("others").reset_index()
        table, x, y = own.merge(others, on="position"), "position", "entropy"
        table = table.assign(position=table["position"] + 1)  # on screen from 1
        axes = (_(N_("position of the row")), _(N_("entropy, nats")))
    else:
        table = table[(table["share"] > 0) | (table["others"] > 0)]  # a decoder never reads ahead
    return by_position(
        table[x].tolist(),
        table[y].tolist(),
        table["others"].tolist(),
        names=(_(N_("this head")), _(N_("mean of all heads"))),
        axes=axes,
        title=_(N_("a head over the corpus")),
        theme=setting.source.theme,
    )


_CHARTS = {"statistics": _statistics, "texts": _over_texts, "distance": _by_place}


# Options --------------------------------------------------------------------------------------------------------------


def _names(setting: Setting) -> tuple[str, ...]:
    return setting.source.atlases or bundled_names()


def _first(setting: Setting) -> str:
    return _names(setting)[0]


def _chosen(setting: Setting) -> "Atlas":
    return setting.source.atlas(setting["atlas"])


def _known(setting: Setting) -> Mapping[str, str]:
    """The statistics that the atlas has."""
    if "atlas" not in setting:
        return STATISTICS
    atlas = _chosen(setting)
    return {name: label for name, label in STATISTICS.items() if values(atlas, name).notna().any()}


def _end(setting: Setting, *, top: bool) -> float:
    numbers = values(_chosen(setting), setting["statistic"])
    end = numbers.max() if top else numbers.min()
    return (math.ceil if top else math.floor)(round(float(end) / _STEP, 6)) * _STEP


def _ends(setting: Setting) -> tuple[float, float]:
    return round(_end(setting, top=False), 3), round(_end(setting, top=True), 3)


def _range_of(setting: Setting) -> str:
    return f"{setting['statistic']}_{_ends(setting)[0]:g}_{_ends(setting)[1]:g}"


def _stacks(setting: Setting) -> Mapping[str, str]:
    if "atlas" not in setting:
        return _STACKS
    return {stack: label for stack, label, _ in by_stack(_chosen(setting).heads)}


def _indices(setting: Setting, column: str) -> list[int]:
    heads = _chosen(setting).heads
    return sorted({*heads.loc[heads["stack"] == setting["stack"], column].tolist()})


# fmt: off
ATLAS = Text(
    name="atlas", label=N_("Atlas"), among=_names, default=_first, per=_first,
    help="A bundled atlas (en-zh, mini-gpt, mini-gpt@6, mini-gpt-2), or the path of one: a folder, or a zip of it.",
)
STATISTIC = Choice(
    name="statistic", label=N_("Statistic"), help="What the map shows of each head.", values=_known, widget="selectbox",
)
ROLE = Choice(
    name="role", label=N_("Role"), help="Only heads with this role; none: those without any.", widget="selectbox",
    values={ANY: N_("any or none"), NO_ROLE: N_("no role"), **{name: LABELS[label] for name, label in ROLES.items()}},
    default=ANY,
)
AT_LEAST, AT_MOST = (
    Number(
        name=name, label=label, help=help, whole=False, least=lambda setting: _ends(setting)[0], step=_STEP,
        most=lambda setting: _ends(setting)[1], default=default, per=_range_of,
    )
    for name, label, help, default in (
        ("at_least", N_("From"), "Only heads whose statistic is at least this.", lambda setting: _ends(setting)[0]),
        ("at_most", N_("To"), "Only heads whose statistic is at most this.", lambda setting: _ends(setting)[1]),
    )
)
TOKEN = Text(name="token", label=N_("Token"), help="Only heads whose examples read from or to this token.")
PLACE = (
    Choice(
        name="stack", label=STACK.label, help=STACK.help, values=_stacks, spell=STACK.spell, link=None,
    ),
    PlaceOption(
        name="layer", label=N_("Layer"), help="From 1, as on screen.", link=None,
        among=lambda setting: _indices(setting, "layer"), default=lambda setting: _indices(setting, "layer")[0],
    ),
    PlaceOption(
        name="head", label=N_("Head"), help="From 1.", among=lambda setting: _indices(setting, "head"), link=None
    ),
)
HEADS = Picture(
    name="atlas", formula=True, alone=True, in_handouts=False,
    options=(ATLAS, STATISTIC, ROLE, AT_LEAST, AT_MOST, TOKEN, *PLACE), draw=_all_heads,
    look_for=N_("Every head over a whole corpus. Click one: what is it, and in which sentences is it most itself?"),
)
CHART = Choice(
    name="chart", label=N_("Chart"),
    help="Of a head: its statistics, one of them over the texts, or its weight by distance (entropy by position).",
    values={
        "statistics": N_("Statistics"), "texts": N_("Over the texts"), "distance": N_("By distance or position"),
    },
)
HEAD = Picture(
    name="atlas-head", formula=True, alone=True, in_handouts=False,
    options=(ATLAS, STATISTIC, *PLACE, CHART), draw=lambda setting: _CHARTS[setting["chart"]](setting),
)
PAGE = Page(
    name="atlas", section="research", order=130, title=N_("Atlas"),
    about=N_("Every head over thousands of sentences."),
    views=(HEADS, HEAD),
    has_sentence=False,
)
# fmt: on
