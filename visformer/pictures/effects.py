"""What weights, values and layers do to the prediction."""

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.checkpoints import TRANSLATOR, folder_of
from visformer.analysis import methods as attributions
from visformer.analysis.answers import Answer, asked, spoken
from visformer.analysis.effects import lens, patching, weight_effects
from visformer.analysis.methods import Attribution, attribution, attribution_of, globs
from visformer.errors import N_, VisformerError, translated
from visformer.i18n import Gettext, paragraph
from visformer.panel import (
    AXIS_TITLES,
    PREDICTING,
    Labels,
    Panel,
    Speaker,
    numbered,
    predicting,
    speakers_of,
    tokens_of,
    traced,
)
from visformer.pictures.registry.options import SELECTED, Choice, PlaceOption, Text, longest_word
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import visible
from visformer.system.progress import report
from visformer.trace.stacks import StackName

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel


def predicts_next(setting: Setting) -> bool:
    """Whether the model predicts next tokens, not labels or hidden tokens."""
    trace = setting.patterns
    return "next" in trace.tokens and not trace.meta.get("labels")


def answer_rows(setting: Setting) -> tuple[str, ...]:
    """Return a name for each row of the logits; of a classifier of whole texts there are none."""
    if predicts_next(setting):
        return tuple(rows_of(setting))
    trace = setting.source.record(("logits",))
    side = trace["logits"].axes[0].side if "logits" in trace else None
    return tuple(map(visible, trace.tokens[side])) if side else ()


_OF_RUNS = N_("what both runs predict")


def _of_what(setting: Setting) -> dict[int, str]:
    """What an effect can be on: 0: what each row predicts; from 1 on: a row."""
    rows = enumerate(answer_rows(setting), 1)
    each = N_("what each row predicts") if predicts_next(setting) else N_("the whole text")
    if "corrupt" in setting:
        each = _OF_RUNS
    return {0: setting.gettext(each)} | {i: f"{i} · {row}" for i, row in rows}


def _first_of(setting: Setting) -> int:
    """What an effect is on at first: of a classifier of tokens the longest word."""
    of_tokens = not predicts_next(setting) and answer_rows(setting)
    return 1 + longest_word(setting.patterns, "src" if "src" in setting.patterns.tokens else "tgt") if of_tokens else 0


def _answers(setting: Setting) -> dict[str, str]:
    """Return the answers that a page suggests: labels, or the likeliest tokens of the row, and the first pair."""
    trace = setting.source.record(("logits",))
    row = setting["of"] - 1 if "of" in setting else setting.get("row", -1)
    labels, likeliest = trace.meta.get("labels"), trace.meta.get("likeliest") or ()
    names = [*labels] if labels else [*likeliest[row]][:5] if likeliest else []
    (predicted,) = asked(trace, None, row if answer_rows(setting) else -1).names
    both = [f"{a} − {b}" for a in names for b in names if a != b] if labels and len(names) < 4 else []
    both = both or ([f"{names[0]} − {names[1]}"] if len(names) > 1 else [])
    said = setting.gettext(N_("{token} (predicted)")).format(token=visible(predicted))
    if "corrupt" in setting:
        said = setting.gettext(_OF_RUNS)
    return {"": said} | {name: visible(name) for name in (*names, *both)}


def asking(setting: Setting) -> dict[str, Any]:
    """Return what a setting asks of a prediction, as the analyses take it; nothing: what each row predicts."""
    given, row = spoken(setting.get("answer", "")), setting.get("of", 0) - 1
    if given is None and predicts_next(setting):
        return {} if row < 0 else {"answer": int(setting.patterns.meta["ids"]["next"][row]), "row": row}
    return {"answer": given, "row": row}


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
        **asking(setting),
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
    "answer": N_("On {answer}. Below 0: the weight speaks for it."),
}
_LOGITS = (N_("the logit of “{a}”"), N_("the logit of “{a}” minus that of “{b}”"))


def logit_of(answer: tuple[str, ...], gettext: Gettext) -> str:
    """Name a logit, or the difference of two, in a sentence."""
    a, b = map(visible, (*answer, "")[:2])
    return gettext(_LOGITS[len(answer) - 1]).format(a=a, b=b)


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
        note=_noted(effects, setting.gettext),
    )
    return [replace(panel, click="says", outlined=outlined) for panel in (pattern, effect)]


def _noted(effects: weight_effects.WeightEffects, gettext: Gettext) -> str:
    """Say what the effects are on."""
    said = _OF[effects.predicts]
    return gettext(said).format(answer=logit_of(effects.answer, gettext)) if effects.answer else said


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
    ("zero", "answer"): N_("Without this weight ({weight}), {answer} changes by {effect} nats."),
    ("mask", "answer"): N_("With this key masked (its weight was {weight}), {answer} changes by {effect} nats."),
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
        answer=logit_of(effects.answer, _) if effects.answer else "",
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
    """Return a label for each row of a prediction: its token, and what it predicts; of a classifier its token."""
    tokens = setting.patterns.tokens
    if not predicts_next(setting):
        return [*answer_rows(setting)] or [setting.gettext(N_("the whole text"))]
    return [f"{visible(a)} → {visible(b)}" for a, b in zip(tokens["tgt"], tokens["next"], strict=True)]


def _row_speakers(setting: Setting) -> list[Speaker | None]:
    """Return who says the token of each row of a prediction, in the visitor's language; []: it is no chat."""
    said = speakers_of(setting.patterns, "tgt") if predicts_next(setting) else ()
    return [one and replace(one, label=translated(one.label, setting.gettext)) for one in said]


def _moved(setting: Setting, effect: weight_effects.ShuffleEffect) -> list[str]:
    """Return the names of the rows whose distributions move; of a model that finds a span its labels."""
    rows, labels = rows_of(setting), setting.patterns.meta.get("labels") or []
    return rows if len(rows) == effect.draws.shape[1] else [*labels]


def draw_shuffled(setting: Setting) -> Any:
    """Draw the median and the range of each row."""
    from visformer.pictures.charts.effects import moved_rows

    effect, _ = measure_shuffled(setting), setting.gettext
    return moved_rows(
        _moved(setting, effect),
        effect.median.tolist(),
        effect.low.tolist(),
        effect.high.tolist(),
        title=_(N_("how far the output of each row moves")),
        axis=_(N_("total variation distance: 0 the same words, 1 entirely different ones")),
        down=_(PREDICTING) if predicts_next(setting) else "",
        speakers=_row_speakers(setting),
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
        n=len(effect.draws), row=_moved(setting, effect)[at], **{name: f"{float(x):.3f}" for name, x in numbers.items()}
    )
    return f"{said} {_(_NEAR_0)}"


SCORES = folder_of(TRANSLATOR) / "methods.json"
"""How the methods do on the translator: alignment errors and curves, by ``scripts/method_scores.py``."""

RECORD = globs(end for method in attributions.METHODS.values() for end in method.needs)
"""Globs over the tensors and weights that these pictures need."""

_SHARES = (N_("source"), N_("prefix"))
_SIDES: tuple[StackName, ...] = ("decoder.cross_attn", "decoder.self_attn")


def allowed_methods(setting: Setting) -> dict[str, str]:
    """Return the methods that say something of the rows of this attention, with what they are called."""
    if "stack" not in setting:  # on the command line, before there is a sentence
        return method_titles()
    return {
        name: title
        for name, title in method_titles().items()
        if attributions.METHODS[name].of != "model" or explains(setting)
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
    method = attributions.METHODS[setting["method"]]
    if method.of == "model":
        found = setting.source.measure(attribution, method=method.name, **asking(setting))
    else:
        found = attribution_of(setting.trace, method=method.name, stack=setting["stack"])
    panels = [_drawn(setting, found)]
    if method.split_title is not None and setting.kind == "cross_attn":
        panels.append(_source_share(setting, method.name, method.split_title))
    return panels


_EXPLAINED = N_("What is explained here: {answer} (logits).")


def explains(setting: Setting) -> bool:
    """Whether the methods of the whole model explain this attention's tokens: those between source and prediction."""
    trace, stacks = setting.patterns, setting.source.stacks
    has_logits = trace.blocks is None or trace.blocks.logits
    return bool(has_logits) and setting["stack"] == stacks[-1]


def _drawn(setting: Setting, found: Attribution) -> Panel:
    trace, gettext, method = setting.trace, setting.gettext, attributions.METHODS[found.method]
    values = found.value / found.value.sum(axis=1, keepdims=True) if method.are_lengths else found.value
    columns = tokens_of(trace, "tgt" if found.stack == "decoder.self_attn" else "src", AXIS_TITLES["key"])
    if values.shape[1] > len(columns):  # what ALTI leaves to the residual stream
        texts = (*columns.texts, gettext(N_("residual stream")))
        columns = Labels(texts, columns.title, places=True, special=(*columns.special, True))
    is_share = method.of != "model"
    of_answer = gettext(_EXPLAINED).format(answer=found.query_tokens[0]) if found.row == "answer" else ""
    return Panel(
        name=method.name,
        symbol="pattern",
        title=gettext(method.title),
        values=values.astype(np.float32),
        rows=Labels(tuple(map(visible, found.query_tokens)), "")
        if found.row == "answer"
        else _rows(trace, found.stack),
        columns=columns,
        scale="weight" if is_share else "signed" if method.signed else "unsigned",
        digits=2 if is_share else _digits(values),
        note=paragraph(f"{method.plain}.", gettext(method.about), gettext(method.limit), of_answer),
    )


def _rows(trace: Any, stack: StackName) -> Labels:
    if stack == "encoder.self_attn":
        return tokens_of(trace, "src", AXIS_TITLES["query"])
    return predicting(trace, tokens_of(trace, "tgt", AXIS_TITLES["query"]))


def _source_share(setting: Setting, method: str, title: str) -> Panel:
    """How much of each predicted word comes from the source, and how much from what is already written."""
    gettext: Gettext = setting.gettext
    parts = [attribution_of(setting.trace, method=method, stack=stack).value for stack in _SIDES]
    return Panel(
        name="shares",
        symbol="pattern",
        title=gettext(title),
        values=np.stack([part.sum(axis=1) for part in parts], axis=1).astype(np.float32),
        rows=_rows(setting.trace, "decoder.cross_attn"),
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
        estimates: both by the gradient; None: these are, or they were not asked for.
    """

    pair: patching.PatchingPair
    tokens: patching.Patched
    heads: patching.Patched
    estimates: "tuple[patching.Patched, patching.Patched] | None" = None


NO_PAIRS = N_("There are no bundled pairs for this model: give a second sentence, of as many tokens as the first.")


def measure_patches(
    model: "TracedModel",
    source: str,
    target: str | None = None,
    *,
    corrupt: str,
    bundled: int,
    stack: str,
    answer: Answer | None = None,
    row: int = -1,
    runs: str = "exact",
    to: str | None = None,
) -> PatchMaps:
    """Patch a bundled pair, or a text and one of one's own, ``corrupt``, if it is not empty; errors as for patching.

    ``answer``: None: the pair's own; ``runs``: "exact", "gradient" or "both".
    """
    pairs_of_model = patching.patching_pairs(model.info.name)
    if not corrupt.strip() and bundled >= len(pairs_of_model):
        raise VisformerError(NO_PAIRS)
    if not corrupt.strip():
        pair = pairs_of_model[bundled]
    elif answer is None:
        pair = patching.patching_pair(model, source, corrupt, row=row, to=to)
    else:
        pair = patching.PatchingPair(model.info.name, "", source, corrupt, target, row, answer)
    how: dict[str, Any] = {"answer": pair.answer if answer is None else answer, "target": pair.target, "row": pair.row}
    read = "encoder" if stack.endswith("cross_attn") else stack.split(".")[0]  # the stream that this attention reads

    def maps(method: Any) -> Any:
        run = partial(patching.patching, model, pair.clean, pair.corrupt, method=method, to=to, progress=report, **how)
        return run(by="layer-token", stack=read), run(by="head", stack=stack)

    tokens, heads = maps("gradient" if runs == "gradient" else "exact")
    return PatchMaps(pair, tokens, heads, maps("gradient") if runs == "both" else None)


def patch_maps(setting: Setting) -> PatchMaps:
    """Return the maps of a setting."""
    given = {name: setting[name] for name in ("corrupt", "bundled", "stack", "runs")}
    is_asked = spoken(setting["answer"]) is not None or not predicts_next(setting)
    asks = asking(setting) if is_asked else {}
    measured: PatchMaps = setting.source.measure(measure_patches, **given, **asks)
    return measured


_STREAMS = {
    "encoder": N_("encoder vector that enters a layer"),
    "decoder": N_("decoder vector that enters a layer"),
}


def draw_patched(setting: Setting) -> list[Panel]:
    """Draw the share that comes back, on one scale: layer by token, and layer by head."""
    of, _ = patch_maps(setting), setting.gettext
    panels = [_stream_panel(of.tokens), _heads_panel(of.heads)]
    if of.estimates is not None:
        stream, heads = of.estimates
        panels += [
            replace(_estimated(panel, _), name=f"{panel.name}_estimate", click="locks")
            for panel in (_stream_panel(stream), _heads_panel(heads))
        ]
    elif of.tokens.method == "gradient":
        panels = [_estimated(panel, _) for panel in panels]
    limit = max(1.0, *(float(abs(panel.values).max()) for panel in panels))
    return [replace(panel, limit=limit) for panel in panels]


def _estimated(panel: Panel, gettext: Gettext) -> Panel:
    """Say that the shares are estimates."""
    title = gettext(N_("{what}, estimated by the gradient")).format(what=gettext(panel.title))
    return replace(panel, title=title, symbol=panel.name)


def _stream_panel(of: patching.Patched) -> Panel:
    """Layer by token."""
    columns = tuple(a if a == b else f"{a} / {b}" for a, b in zip(*of.tokens, strict=True))
    return Panel(
        name="embed",
        title=_STREAMS[of.stack],
        values=of.share,
        rows=numbered(len(of.share), N_("layer"), first=1),
        columns=Labels(columns, N_("token, clean / corrupt"), places=True),
        click="says",
    )


def _heads_panel(of: patching.Patched) -> Panel:
    """Layer by head."""
    return Panel(
        name="heads",
        title=N_("output of a head"),
        values=of.share,
        rows=numbered(len(of.share), N_("layer"), first=1),
        columns=numbered(of.share.shape[1], N_("head"), first=1),
        click="says",
    )


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


_DIFFERENCE = (
    N_(
        "Clean run: “{clean_text}”, where the logit of {a} is {clean}. Corrupt run: “{corrupt_text}”, {corrupt}. "
        "0: as in the corrupt run; 1: as in the clean one."
    ),
    N_(
        "Clean run: “{clean_text}”, where {a} is ahead of {b} by {clean} nats. Corrupt run: “{corrupt_text}”, "
        "{corrupt} nats. 0: as in the corrupt run; 1: as in the clean one."
    ),
)
_SMALL = N_("The runs differ by only {difference} nats here: shares of so little say little.")
_AGREE = N_("Estimated and measured shares correlate by {tokens} (tokens) and {heads} (heads).")
SMALL = 0.5
"""Differences of the runs, in nats, below which a reader is warned."""


def describe_runs(setting: Setting) -> str:
    """Say what the two runs differ in, in the visitor's language."""
    of = patch_maps(setting)
    _, answer = setting.gettext, of.tokens.answer
    a, b = map(visible, (*answer, "")[:2])
    said = _(_DIFFERENCE[len(answer) - 1]).format(
        a=a,
        b=b,
        clean=signed(of.tokens.clean),
        corrupt=signed(of.tokens.corrupt),
        clean_text=of.pair.clean,
        corrupt_text=of.pair.corrupt,
    )
    difference = abs(of.tokens.clean - of.tokens.corrupt)
    small = _(_SMALL).format(difference=f"{difference:.2g}") if difference < SMALL else ""
    agree = ""
    if of.estimates is not None:
        both = zip((of.tokens, of.heads), of.estimates, strict=True)
        tokens, heads = (f"{np.corrcoef(a.share.ravel(), b.share.ravel())[0, 1]:.2f}" for a, b in both)
        agree = _(_AGREE).format(tokens=tokens, heads=heads).replace("-", "−")
    return paragraph(said, small, agree)


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
        answer: the scores of what was asked for, (layer, row), and its tokens; None: nothing was.
    """

    tokens: list[list[str]]
    scores: list[list[float]]
    answer: "tuple[NDArray[Any], tuple[str, ...]] | None" = None


def measure_tops(
    model: "TracedModel",
    source: str,
    target: str | None = None,
    *,
    answer: Answer | None = None,
    row: int = -1,
    to: str | None = None,
) -> TopTokens:
    """Apply the logit lens to a text; errors as for :func:`visformer.analysis.logit_lens`."""
    record = model.available((*lens.LENS_NEEDS, "decoder.norm.*"))
    trace = model.trace(source, target, to=to, record=record)
    of = None if answer is None else asked(trace, answer, row, model=model)
    found = lens.logit_lens(trace, answer=None if of is None else of.answer)
    best = found.logits.argmax(axis=-1)
    tops = [[*model.text.shown([int(i) for i in row])] for row in best]
    scored = None if of is None or found.answer is None else (found.answer, of.names)
    return TopTokens(tops, found.logits.max(axis=-1).tolist(), scored)


def draw_lens(setting: Setting) -> Any:
    """Draw the top token of each row after each layer or, of an answer, its score."""
    from visformer.pictures.charts.effects import top_tokens

    answer = spoken(setting["answer"])
    asks = {} if answer is None else {"answer": answer, "row": setting["row"]}
    of, _ = setting.source.measure(measure_tops, **asks), setting.gettext
    if of.answer is not None:
        scores, names = of.answer
        return [
            Panel(
                name="logits",
                title=_(N_("logit lens: {answer}, after each layer")).format(answer=logit_of(names, _)),
                values=scores.T,
                rows=predicting(setting.patterns, tokens_of(setting.patterns, "tgt", AXIS_TITLES["query"])),
                columns=numbered(len(scores), N_("layer"), first=1),
            )
        ]
    return top_tokens(
        rows_of(setting),
        [[visible(token) for token in row] for row in of.tokens],
        of.scores,
        layer=_(N_("layer {layer}")),
        title=_(N_("logit lens: the top token after each layer")),
        down=_(PREDICTING),
        speakers=_row_speakers(setting),
        theme=setting.source.theme,
    )


def split_logit(
    model: "TracedModel",
    source: str,
    target: str | None = None,
    *,
    row: int,
    answer: Answer | None = None,
    to: str | None = None,
) -> Any:
    """Split a logit; errors as for :func:`visformer.analysis.direct_attribution`.

    Returns:
        Its table, and the tokens whose logits these are, as displayed.
    """
    record = model.available((*lens.DIRECT_NEEDS, "decoder.*.b_o"))
    trace = model.trace(source, target, to=to, record=record)
    of = asked(trace, answer, row, model=model)
    return lens.direct_attribution(trace, row, answer=of.answer), of.names


_OTHERS = {
    "embedding": N_("embedding"),
    "norm": N_("last norm's summand"),
    "output": N_("bias of the logits"),
    "residue": N_("residue (rounding)"),
}


def draw_parts(setting: Setting) -> list[Panel]:
    """Draw the logit of what a row predicts as a sum over heads and layers, and beside it all else and the sum."""
    table, names_asked = setting.source.measure(split_logit, row=setting["row"], answer=spoken(setting["answer"]))
    _ = setting.gettext
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
    main = Panel(
        name="heads",
        title=_(N_("what each part adds to {answer}")).format(answer=logit_of(names_asked, _)),
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


@dataclass(frozen=True, kw_only=True)
class _AnswerOption(Text):
    """What is asked of a prediction: a text or, in Python, any :data:`visformer.analysis.Answer`."""

    def check(self, value: Any, setting: Setting) -> Any:
        return value if isinstance(value, int | tuple) else super().check(value, setting)


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
OF = PlaceOption(
    name="of", label=N_("Effect on"), help="The row whose answer is explained, from 1; 0: what each row predicts.",
    among=lambda setting: [*_of_what(setting)], first=0, tokens=lambda setting: [*_of_what(setting).values()],
    numbered=False, default=_first_of, per=lambda setting: len(answer_rows(setting)),
)
ANSWER = _AnswerOption(
    name="answer", label=N_("Answer"), suggested=_answers,
    per=lambda setting: setting.patterns.meta.get("model", ""),
    help='A token or a label, or a pair such as "is - are": by how much the first is ahead. By default the prediction.',
    tooltip=N_("A token or a label, or a pair such as “is − are”: by how much the logit of the first is ahead."),
)
RUNS = Choice(
    name="runs", label=N_("Shares are"), help="Measured, a run for each; estimated by the gradient, in one; or both.",
    values={"exact": N_("measured"), "gradient": N_("estimated"), "both": N_("both")},
)
METHOD = Choice(
    name="method", label=N_("Method"), help="What is computed: see vf.analysis.attribution.", values=allowed_methods,
    widget="selectbox", spell=lambda name: name.replace(" ", "-").replace("+", "-plus"),
    per=lambda setting: len(allowed_methods(setting)),
)
EFFECTS = Picture(
    name="weight-effects", view="weights", title=N_("Weights"), needs=("*.pattern",),
    options=(*SELECTED[:3], HOW, OF, ANSWER),
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
    name="methods", view="methods", title=N_("Methods"), needs=RECORD, options=(SELECTED[0], METHOD, OF, ANSWER),
    draw=draw_methods, in_handouts=False,
    look_for=N_("What does a row take from each token? The methods agree only in part, and none is the truth."),
)
PATCHING = Picture(
    name="patching", view="patching", title=N_("Patching"), needs=("*.pattern",),
    options=(SELECTED[0], BUNDLED, CORRUPT, OF, ANSWER, RUNS),
    look_for=N_("One value of the clean run is put into the corrupt one: how much of the answer comes back?"),
    draw=draw_patched, in_handouts=False,
)
LENS = Picture(
    name="lens", view="lens", title=N_("Lens and parts"), needs=("*.pattern",), options=(ROW, ANSWER),
    in_handouts=False,
    look_for=N_("The token that each layer would predict, were it the last. Coloured: as after the last one."),
    draw=draw_lens,
)
PARTS = Picture(
    name="parts", view="lens", needs=("*.pattern",), options=(ROW, ANSWER), draw=draw_parts, in_handouts=False,
)
PAGE = Page(
    name="effects", section="research", order=100, title=N_("Effects"),
    about=N_("What weights, values and layers do to the prediction."),
    views=(EFFECTS, SHUFFLED, METHODS, PATCHING, LENS, PARTS), where="attention",
)
# fmt: on
