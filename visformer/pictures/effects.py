"""What weights, values and layers do to the prediction."""

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.checkpoints import TRANSLATOR, folder_of
from visformer.analysis import methods as attributions
from visformer.analysis.effects import lens, patching, weight_effects
from visformer.analysis.methods import Attribution, Where, attribution, attribution_of, globs
from visformer.errors import N_, VisformerError
from visformer.i18n import Gettext, paragraph
from visformer.panel import AXIS_TITLES, PREDICTING, Labels, Panel, numbered, predicting, tokens_of, traced
from visformer.pictures.registry.options import SELECTED, Choice, PlaceOption, Text
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import visible
from visformer.system.progress import report

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel


Cell = tuple[int | None, int | None]
"""Query and key, from 0; None: not selected."""


def measure_weights(setting: Setting, alone: Cell | None = None) -> weight_effects.WeightEffects:
    """Return the effects of the weights of the selected head; ``alone``: of this one only."""
    few = {} if alone is None else {"cells": (alone,)}
    effects: weight_effects.WeightEffects = setting.source.measure(
        weight_effects.weight_effects,
        path=setting.path,
        head=setting["head"],
        how=setting["how"],
        progress=report,
        **few,
    )
    return effects


_ROUNDING = 5e-6
"""Effects below this are rounding errors of log-probabilities in float32, nats."""

_EXACT = N_("effect of each weight (nats)")
_ESTIMATED = N_("effect of each weight (nats), estimated by the gradient: above {n} tokens")
_OF = {
    "row": N_("On the log-probability of what the row predicts. Below 0: the weight speaks for it."),
    "target": N_("On the log-probability of the whole target. Below 0: the weight speaks for it."),
}


def draw_weights(setting: Setting, cell: Cell = (None, None)) -> list[Panel]:
    """Draw the weights of a head, and beside each its effect; where there is no weight, the effect is empty.

    The cell that :func:`describe_weight` speaks of is outlined.
    """
    effects, trace = measure_weights(setting), setting.trace
    outlined = np.zeros(effects.values.shape, dtype=bool)
    outlined[_cell(effects, cell)] = True
    pattern = traced(trace, f"{setting.path}.pattern", setting["head"], title=N_("weights"), scale="weight")
    if setting["stack"].startswith("decoder"):
        pattern = replace(pattern, rows=predicting(trace, pattern.rows))
    title: str = _EXACT
    if effects.method == "gradient":
        title = setting.gettext(_ESTIMATED).format(n=weight_effects.EXACT_TOKENS)
    values = effects.values
    effect = replace(
        pattern,
        name="effect",
        symbol="out",
        title=title,
        values=np.where(effects.pattern > 0, values, np.nan).astype(np.float32),
        scale="signed",
        digits=_digits(values),
        note=_OF[effects.predicts],
    )
    return [replace(panel, click="says", outlined=outlined) for panel in (pattern, effect)]


def _digits(values: NDArray[Any]) -> int:
    """Return the decimals, two to four, that tell a hundredth of the largest number from 0."""
    largest = float(abs(values).max(initial=_ROUNDING))
    return min(4, max(2, 1 - math.floor(math.log10(largest))))


def _cell(effects: weight_effects.WeightEffects, cell: Cell) -> tuple[int, int]:
    """Return the cell to speak of: the selected one, or else that of the largest effect."""
    query, key = cell
    n_queries, n_keys = effects.values.shape
    if query is not None and key is not None and query < n_queries and key < n_keys:
        return query, key
    row, column = np.unravel_index(int(abs(effects.values).argmax()), effects.values.shape)
    return int(row), int(column)


_SAID = {
    ("zero", "row"): N_("Without this weight ({weight}), the log-probability of “{token}” changes by {effect} nats."),
    ("zero", "target"): N_(
        "Without this weight ({weight}), the log-probability of the whole target changes by {effect} nats."
    ),
    ("mask", "row"): N_(
        "With this key masked (its weight was {weight}), the log-probability of “{token}” changes by {effect} nats."
    ),
    ("mask", "target"): N_(
        "With this key masked (its weight was {weight}), the log-probability of the whole target changes by {effect} "
        "nats."
    ),
}
_LARGEST = N_("The largest effect here. {said}")
_ESTIMATE = N_("This is an estimate by the gradient: exact numbers are for texts of up to {n} tokens.")
_NO_WEIGHT = N_("This weight is 0: there is nothing to take away.")


def describe_weight(setting: Setting, cell: Cell = (None, None), *, alone: bool = False) -> str:
    """Say what one weight does, in the visitor's language.

    Args:
        setting: of the head.
        cell: the weight; without one, that of the largest effect.
        alone: whether this weight only is measured.
    """
    effects, _ = measure_weights(setting, cell if alone else None), setting.gettext
    row, _column = place = _cell(effects, cell)
    weight = float(effects.pattern[place])
    if not weight:
        return _(_NO_WEIGHT)
    said = _(_SAID[effects.how, effects.predicts]).format(
        weight=f"{weight:.2f}" if weight >= 0.005 else f"{weight:.2g}",
        token=visible(setting.trace.tokens["next"][row]) if effects.predicts == "row" else "",
        effect=signed(float(effects.values[place])),
    )
    if place != cell:
        said = _(_LARGEST).format(said=said)
    if effects.method == "gradient":
        said += " " + _(_ESTIMATE).format(n=weight_effects.EXACT_TOKENS)
    return said


def signed(value: float) -> str:
    """Format a change of a log-probability with its sign."""
    text = f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.4f}"
    return text.replace("-", "−") if float(text) else "0.0000"


def measure_shuffled(setting: Setting) -> weight_effects.ShuffleEffect:
    """Return how far the output moves when the weights of the selected head or layer are shuffled or made uniform."""
    whole = setting["scope"] == "layer"
    effect: weight_effects.ShuffleEffect = setting.source.measure(
        weight_effects.shuffle_effect,
        path=f"{setting.part}.{setting['layer']}.*" if whole else setting.path,
        head=None if whole else setting["head"],
        weights=setting["weights"],
        progress=report,
    )
    return effect


def rows_of(setting: Setting) -> list[str]:
    """Return a label for each row of the target: its token, and what it predicts."""
    tokens = setting.patterns.tokens
    return [f"{visible(a)} → {visible(b)}" for a, b in zip(tokens["tgt"], tokens["next"], strict=True)]


def draw_shuffled(setting: Setting) -> Any:
    """Draw the median and the range of each row."""
    from visformer.pictures.charts.effects import moved_rows

    effect, _ = measure_shuffled(setting), setting.gettext
    return moved_rows(
        rows_of(setting),
        effect.median.tolist(),
        effect.low.tolist(),
        effect.high.tolist(),
        title=_(N_("how far the output of each row moves")),
        axis=_(N_("total variation distance: 0 the same words, 1 entirely different ones")),
        down=_(PREDICTING),
        theme=setting.source.theme,
    )


_MEANS = {
    "shuffled": N_(
        "Median of {n} shuffles: the row “{row}” moves most, by {most} (from {low} to {high}); half of the rows by at "
        "most {half}."
    ),
    "uniform": N_("With uniform weights, the row “{row}” moves most, by {most}; half of the rows by at most {half}."),
}
_NEAR_0 = N_("Near 0, this text needs no choice of keys there; the values still come through, so it need not be idle.")


def describe_shuffled(setting: Setting) -> str:
    """Say what the distances mean, in the visitor's language."""
    effect, _ = measure_shuffled(setting), setting.gettext
    at = int(effect.median.argmax())
    numbers = {
        "most": effect.median[at],
        "low": effect.low[at],
        "high": effect.high[at],
        "half": np.median(effect.median),
    }
    said = _(_MEANS[setting["weights"]]).format(
        n=len(effect.draws), row=rows_of(setting)[at], **{name: f"{float(x):.3f}" for name, x in numbers.items()}
    )
    return f"{said} {_(_NEAR_0)}"


SCORES = folder_of(TRANSLATOR) / "methods.json"
"""How the methods do on the translator: alignment errors and curves, by ``scripts/method_scores.py``."""

RECORD = globs(end for method in attributions.METHODS.values() for end in method.needs)
"""Globs over the tensors and weights that these pictures need."""

_SHARES = (N_("source"), N_("prefix"))
_SIDES: tuple[Where, ...] = ("cross", "decoder")


def allowed_methods(setting: Setting) -> dict[str, str]:
    """Return the methods that say something of the rows of this attention, with what they are called."""
    if "stack" not in setting:  # on the command line, before there is a sentence
        return method_titles()
    trace, where = setting.patterns, _where(setting)
    return {
        name: title
        for name, title in method_titles().items()
        if attributions.METHODS[name].of != "model" or _explains(trace, where)
    }


def method_titles() -> dict[str, str]:
    """Return what each method is called."""
    return {name: method.title for name, method in attributions.METHODS.items()}


def draw_methods(setting: Setting) -> list[Panel]:
    """Draw what each row takes from each token, by one method; of one layer: the last. Some have shares beside it.

    Args:
        setting: its "stack" says whose rows take from whom; its Trace holds :data:`RECORD`, as far as the model has it.

    Raises:
        VisformerError: the model's family does not allow the method, such as by norms in other places.
    """
    method, where = attributions.METHODS[setting["method"]], _where(setting)
    if method.of == "model":
        found = setting.source.measure(attribution, method=method.name, stack="total")
    else:
        found = attribution_of(setting.trace, method=method.name, stack=where)
    panels = [_drawn(setting, found, where)]
    if method.split_title is not None and where == "cross":
        panels.append(_source_share(setting, method.name, method.split_title))
    return panels


def _where(setting: Setting) -> Any:
    return "cross" if setting.kind == "cross_attn" else setting.part


def _explains(trace: Any, where: str) -> bool:
    """Whether rows and tokens are those that the methods of the whole model explain: predictions and their source."""
    has_logits = trace.blocks is None or trace.blocks.logits
    return bool(has_logits) and (where == "cross" or (where == "decoder" and "src" not in trace.tokens))


def _drawn(setting: Setting, found: Attribution, where: str) -> Panel:
    trace, gettext, method = setting.trace, setting.gettext, attributions.METHODS[found.method]
    values = found.value / found.value.sum(axis=1, keepdims=True) if method.are_lengths else found.value
    columns = tokens_of(trace, "tgt" if where == "decoder" else "src", AXIS_TITLES["key"])
    if values.shape[1] > len(columns):  # what ALTI leaves to the residual stream
        texts = (*columns.texts, gettext(N_("residual stream")))
        columns = Labels(texts, columns.title, places=True, special=(*columns.special, True))
    is_share = method.of != "model"
    return Panel(
        name=method.name,
        symbol="pattern",
        title=gettext(method.title),
        values=values.astype(np.float32),
        rows=_rows(trace, where),
        columns=columns,
        scale="weight" if is_share else "signed" if method.signed else "unsigned",
        digits=2 if is_share else _digits(values),
        note=paragraph(f"{method.plain}.", gettext(method.about), gettext(method.limit)),
    )


def _rows(trace: Any, where: str) -> Labels:
    rows = tokens_of(trace, "src" if where == "encoder" else "tgt", AXIS_TITLES["query"])
    return rows if where == "encoder" else predicting(trace, rows)


def _source_share(setting: Setting, method: str, title: str) -> Panel:
    """How much of each predicted word comes from the source, and how much from what is already written."""
    gettext: Gettext = setting.gettext
    parts = [attribution_of(setting.trace, method=method, stack=stack).value for stack in _SIDES]
    return Panel(
        name="shares",
        symbol="pattern",
        title=gettext(title),
        values=np.stack([part.sum(axis=1) for part in parts], axis=1).astype(np.float32),
        rows=_rows(setting.trace, "cross"),
        columns=Labels(tuple(map(gettext, _SHARES)), "", places=False),
        scale="weight",
    )


@dataclass(frozen=True)
class MethodMeasures:
    """How a method does on the translator: its number and 95 % interval for each measure, by the measure's name."""

    method: str
    values: dict[str, tuple[float, float, float]]


MEASURES = {
    "by hand prediction": N_("alignment error by hand, row of the prediction"),
    "by hand input": N_("by hand, row of the input"),
    "grammar prediction": N_("alignment error in the grammar, row of the prediction"),
    "grammar input": N_("in the grammar, row of the input"),
    "deletion": N_("deletion (nats a word, lower is better)"),
    "insertion": N_("insertion (nats a word, higher is better)"),
}
"""The measures, in the order of the table; of an alignment error, lower is better."""


def method_measures(to: str) -> tuple[dict[str, int], list[MethodMeasures]]:
    """Return the number of sentence pairs of each set, and how each method does, with all heads of a layer together.

    Args:
        to: "zh" or "en".
    """
    rows = json.loads(SCORES.read_text(encoding="utf-8"))
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in rows["alignment"]:
        if row["to"] == to and row["choice"] != "head":
            found.setdefault(row["method"], {})[f"{row['set']} {row['row']}"] = row["error"], row["low"], row["high"]
    for row in rows["curves"]:
        if row["to"] == to:
            found.setdefault(row["method"], {})[row["curve"]] = row["height"], row["low"], row["high"]
    sizes = {row["set"]: row["n"] for row in rows["alignment"]}
    return sizes, [MethodMeasures(method, values) for method, values in found.items()]


@dataclass(frozen=True)
class PatchMaps:
    """What patching one value at a time brings back.

    Args:
        pair: the two texts.
        tokens: of the residual stream that enters a layer, at one token.
        heads: of the output of each head.
    """

    pair: patching.PatchingPair
    tokens: patching.Patched
    heads: patching.Patched


NO_PAIRS = N_("There are no bundled pairs for this model: give a second sentence, of as many tokens as the first.")


def measure_patches(
    model: "TracedModel",
    source: str,
    target: str | None = None,
    *,
    corrupt: str,
    bundled: int,
    stack: str,
    to: str | None = None,
) -> PatchMaps:
    """Patch a bundled pair, or a text and one of one's own, ``corrupt``, if it is not empty; errors as for patching."""
    pairs_of_model = patching.patching_pairs(model.info.name)
    if not corrupt.strip() and bundled >= len(pairs_of_model):
        raise VisformerError(NO_PAIRS)
    pair = patching.patching_pair(model, source, corrupt, to=to) if corrupt.strip() else pairs_of_model[bundled]
    how: dict[str, Any] = {"answers": pair.answers, "prefix": pair.prefix, "to": to, "progress": report}
    read = "encoder" if stack.endswith("cross_attn") else stack.split(".")[0]  # the stream that this attention reads
    tokens = patching.patching(model, pair.clean, pair.corrupt, by="layer-token", stack=read, **how)
    return PatchMaps(pair, tokens, patching.patching(model, pair.clean, pair.corrupt, by="head", stack=stack, **how))


def patch_maps(setting: Setting) -> PatchMaps:
    """Return the maps of a setting."""
    given = {name: setting[name] for name in ("corrupt", "bundled", "stack")}
    measured: PatchMaps = setting.source.measure(measure_patches, **given)
    return measured


_STREAMS = {
    "encoder": N_("encoder vector that enters a layer"),
    "decoder": N_("decoder vector that enters a layer"),
}


def draw_patched(setting: Setting) -> list[Panel]:
    """Draw the share that comes back, on one scale: layer by token, and layer by head."""
    of = patch_maps(setting)
    tokens, by_head = of.tokens.share, of.heads.share
    columns = tuple(a if a == b else f"{a} / {b}" for a, b in zip(*of.tokens.tokens, strict=True))
    layers = numbered(len(tokens), N_("layer"), first=1)
    stream = Panel(
        name="embed",
        title=_STREAMS[of.tokens.stack],
        values=tokens,
        rows=layers,
        columns=Labels(columns, N_("token, clean / corrupt"), places=True),
        click="says",
    )
    heads = Panel(
        name="heads",
        title=N_("output of a head"),
        values=by_head,
        rows=layers,
        columns=numbered(by_head.shape[1], N_("head"), first=1),
        click="says",
    )
    limit = max(1.0, float(abs(tokens).max()), float(abs(by_head).max()))
    return [replace(panel, limit=limit) for panel in (stream, heads)]


@dataclass(frozen=True)
class PatchedValue:
    """One value of the maps.

    Args:
        patch: what it is, as for :mod:`visformer.pictures.compare`.
        layer: its layer, from 0.
        index: its token or head, from 0.
        share: how much of the answer it brings back.
        label: the token in both texts; the number of a head.
    """

    patch: str
    layer: int
    index: int
    share: float
    label: str


def patched_value(setting: Setting, panel: str, row: int, column: int) -> PatchedValue:
    """Return the value of a clicked cell."""
    of, shown = patch_maps(setting), {panel.name: panel for panel in draw_patched(setting)}[panel]
    heads = "cross-head" if setting.kind == "cross_attn" else f"{setting.part}-head"
    patch = heads if panel == "heads" else of.tokens.stack
    return PatchedValue(patch, row, column, float(shown.values[row, column]), shown.columns.texts[column])


_DIFFERENCE = N_(
    "Clean run: “{clean_text}”, where {a} is ahead of {b} by {clean} nats. Corrupt run: “{corrupt_text}”, {corrupt} "
    "nats. 0: as in the corrupt run; 1: as in the clean one."
)


def describe_runs(setting: Setting) -> str:
    """Say what the two runs differ in, in the visitor's language."""
    of = patch_maps(setting)
    a, b = map(visible, of.tokens.answers)
    return setting.gettext(_DIFFERENCE).format(
        a=a,
        b=b,
        clean=signed(of.tokens.clean),
        corrupt=signed(of.tokens.corrupt),
        clean_text=of.pair.clean,
        corrupt_text=of.pair.corrupt,
    )


def bundled_pairs(setting: Setting) -> list[patching.PatchingPair]:
    """Return the bundled pairs of the model."""
    return patching.patching_pairs(str(setting.patterns.meta.get("model", "-")))


def pair_labels(setting: Setting) -> tuple[str, ...]:
    """Return what each of them is called."""
    return tuple(
        f"{setting.gettext(_ABOUT.get(p.about, p.about))}: {p.clean} / {p.corrupt}" for p in bundled_pairs(setting)
    )


_ABOUT = {
    "measure word": N_("measure word"),
    "number": N_("number"),
    "gender": N_("gender"),
    "place name": N_("place name"),
    "agreement": N_("agreement"),
    "repetition": N_("repetition"),
}


@dataclass(frozen=True)
class TopTokens:
    """The top token of the logit lens after each layer.

    Args:
        tokens: (layer, row), as displayed.
        scores: (layer, row).
    """

    tokens: list[list[str]]
    scores: list[list[float]]


def measure_tops(model: "TracedModel", source: str, target: str | None = None, *, to: str | None = None) -> TopTokens:
    """Apply the logit lens to a text; errors as for :func:`visformer.analysis.logit_lens`."""
    record = model.available((*lens.LENS_NEEDS, "decoder.norm.*"))
    logits = lens.logit_lens(model.trace(source, target, to=to, record=record)).logits
    best = logits.argmax(axis=-1)
    return TopTokens([[*model.text.shown([int(i) for i in row])] for row in best], logits.max(axis=-1).tolist())


def draw_lens(setting: Setting) -> Any:
    """Draw the top token of each row after each layer."""
    from visformer.pictures.charts.effects import top_tokens

    of, _ = setting.source.measure(measure_tops), setting.gettext
    return top_tokens(
        rows_of(setting),
        [[visible(token) for token in row] for row in of.tokens],
        of.scores,
        layer=_(N_("layer {layer}")),
        title=_(N_("logit lens: the top token after each layer")),
        down=_(PREDICTING),
        theme=setting.source.theme,
    )


def split_logit(
    model: "TracedModel", source: str, target: str | None = None, *, row: int, to: str | None = None
) -> Any:
    """Split the logit of what a row predicts; errors as for :func:`visformer.analysis.direct_attribution`."""
    record = model.available((*lens.DIRECT_NEEDS, "decoder.*.b_o"))
    return lens.direct_attribution(model.trace(source, target, to=to, record=record), row)


_OTHERS = {
    "embedding": N_("embedding"),
    "norm": N_("last norm's summand"),
    "output": N_("bias of the logits"),
    "residue": N_("residue (rounding)"),
}


def draw_parts(setting: Setting) -> list[Panel]:
    """Draw the logit of what a row predicts as a sum over heads and layers, and beside it all else and the sum."""
    table, _ = setting.source.measure(split_logit, row=setting["row"]), setting.gettext
    layers = sorted({int(layer) for layer in table["layer"] if layer >= 0})
    stacks = [name for name in dict.fromkeys(table["stack"]) if name != "decoder"]
    heads = int(table["head"].max()) + 1
    marks = {name: name.split(".")[1].removesuffix("_attn") + " " if len(stacks) > 1 else "" for name in stacks}
    names = [f"{mark}{i + 1}" for mark in marks.values() for i in range(heads)]
    values = np.zeros((len(layers), len(names) + 2))
    for part, stack, layer, head, logit in table.itertuples(index=False):
        if layer >= 0:
            at = stacks.index(stack) * heads + head if part == "head" else len(names) + (part == "bias")
            values[layers.index(layer), at] += logit
    columns = (*names, "FFN", _(N_("bias of W_O")))
    by_part = table[table["layer"] < 0].set_index("part")["logit"]
    rest = [float(by_part.get(name, 0.0)) for name in _OTHERS]
    total = float(table["logit"].sum())
    token = visible(setting.patterns.tokens["next"][setting["row"]])
    main = Panel(
        name="heads",
        title=_(N_("what each part adds to the logit of {token}")).format(token=token),
        values=values,
        rows=Labels(tuple(str(layer + 1) for layer in layers), N_("layer")),
        columns=Labels(columns, N_("head")),
        note=_(N_("Its direct path alone: what later layers make of it counts as theirs.")),
    )
    others = Panel(
        name="out",
        title=N_("everything else, and the sum"),
        values=np.array([[*rest, total]]).T,
        rows=Labels((*(_(name) for name in _OTHERS.values()), _(N_("sum: the logit")))),
        columns=Labels(("",)),
        before="+",
        digits=4,
    )
    return [main, others]


def _row_labels(setting: Setting) -> tuple[str, ...]:
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
BUNDLED = PlaceOption(
    name="bundled", label=N_("Pair"), help="A bundled pair of the model, from 1.",
    among=lambda setting: range(max(1, len(bundled_pairs(setting)))), tokens=pair_labels,
    per=lambda setting: setting.patterns.meta.get("model", ""),
)
CORRUPT = Text(
    name="corrupt", label=N_("Or compare your sentence with"),
    help="A second text to compare the sentence with, of as many tokens.",
)
ROW = PlaceOption(
    name="row", label=N_("Row"), help="The row whose prediction is split, from 1.",
    among=lambda setting: range(len(_row_labels(setting))), tokens=_row_labels,
    default=lambda setting: max(0, len(_row_labels(setting)) - 1), per=lambda setting: len(_row_labels(setting)),
)
METHOD = Choice(
    name="method", label=N_("Method"), help="What is computed: see vf.analysis.attribution.", values=allowed_methods,
    widget="selectbox", spell=lambda name: name.replace(" ", "-").replace("+", "-plus"),
    per=lambda setting: len(allowed_methods(setting)),
)
EFFECTS = Picture(
    name="weight-effects", view="weights", title=N_("Weights"), needs=("*.pattern",), options=(*SELECTED[:3], HOW),
    look_for=N_("Left: where the head reads. Right: what each weight does, removed alone. Others may stand in for it."),
    draw=draw_weights, in_handouts=False,
)
SHUFFLED = Picture(
    name="shuffle-effects", view="shuffled", title=N_("Shuffled"), needs=("*.pattern",),
    options=(*SELECTED[:3], WEIGHTS, SCOPE),
    look_for=N_("Each row's weights are shuffled among the keys it may read. How far do the predictions move?"),
    draw=draw_shuffled, in_handouts=False,
)
METHODS = Picture(
    name="methods", view="methods", title=N_("Methods"), needs=RECORD, options=(SELECTED[0], METHOD), draw=draw_methods,
    in_handouts=False,
    look_for=N_("What does a row take from each token? The methods agree only in part, and none is the truth."),
)
PATCHING = Picture(
    name="patching", view="patching", title=N_("Patching"), needs=("*.pattern",),
    options=(SELECTED[0], BUNDLED, CORRUPT),
    look_for=N_("One value of the clean run is put into the corrupt one: how much of the answer comes back?"),
    draw=draw_patched, in_handouts=False,
)
LENS = Picture(
    name="lens", view="lens", title=N_("Lens and parts"), needs=("*.pattern",), in_handouts=False,
    look_for=N_("The token that each layer would predict, were it the last. Coloured: as after the last one."),
    draw=draw_lens,
)
PARTS = Picture(
    name="parts", view="lens", needs=("*.pattern",), options=(ROW,), draw=draw_parts, in_handouts=False,
)
PAGE = Page(
    name="effects", section="research", order=100, title=N_("Effects"),
    about=N_("What weights, values and layers do to the prediction."),
    views=(EFFECTS, SHUFFLED, METHODS, PATCHING, LENS, PARTS), where="attention",
)
# fmt: on
