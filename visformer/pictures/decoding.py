"""Decoding step by step: the probability of each token taken, and the cross-attention of the tokens so far."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from visformer.errors import N_, VisformerError
from visformer.i18n import Gettext
from visformer.panel import Labels, Panel, predicting, traced
from visformer.pictures.registry.options import STEP_HELP, Flag, Number, PlaceOption, layer_of
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace, TracedTensor
from visformer.trace.stacks import shape_of


def kind(trace: Trace) -> Literal["self_attn", "cross_attn"]:
    """Return the attention to show: cross-attention or, for a decoder-only model, self-attention."""
    return "cross_attn" if "src" in trace.tokens else "self_attn"


def growing(trace: Trace, layer: int, step: int) -> Panel:
    """Draw the cross-attention of the tokens generated up to ``step``, averaged over the heads of a layer.

    For a decoder-only model, its self-attention.
    """
    attention = kind(trace)
    path = f"decoder.{layer}.{attention}.pattern"
    title = N_("self-attention so far, mean of the heads")
    if attention == "cross_attn":
        title = N_("cross-attention so far, mean of the heads")
    panel = traced(trace, path, 0, title=title, scale="weight")
    values = np.asarray(trace[path].value, dtype=np.float64).mean(axis=0)
    values[step + 1 :] = np.nan
    return replace(panel, values=values, rows=predicting(trace, panel.rows))


def sureness(steps: Sequence[Any], at: int, gettext: Gettext = str) -> Panel:
    """Draw the model's probability of the token taken at each step; clicking a step selects it, with an outline.

    ``steps`` are of type :class:`visformer.model.decoding.Step`; the title names the step with the lowest probability.
    """
    title = gettext(N_("Confidence at each step (lowest: step {step})"))
    chances = np.array([[step.chosen.probability for step in steps]])
    least = int(chances.argmin())
    return Panel(
        name="sure",
        symbol="pattern",
        title=title.format(step=least + 1),
        values=chances,
        rows=Labels(("P",)),
        columns=Labels(tuple(step.chosen.token for step in steps), N_("chosen at step"), places=True),
        scale="weight",
        digits=3,
        outlined=np.arange(len(steps))[None] == at,
        click="opens",
    )


def _patterns(setting: Setting) -> Mapping[int, TracedTensor]:
    """Return the patterns by layer of the attention that :func:`kind` selects."""
    trace = setting.patterns
    if "tgt" not in trace.tokens:
        raise VisformerError(N_("This model is an encoder: it generates no text, so there are no decoding steps."))
    return trace.layers(f"decoder.{kind(trace)}")


def _rows(setting: Setting) -> range:
    return range(shape_of(_patterns(setting))[2])


def shape(setting: Setting) -> dict[str, Any]:
    """Return the sampling parameters."""
    return {"temperature": setting["temperature"], "top_k": setting["top_k"] or None, "top_p": setting["top_p"]}


def _candidates(setting: Setting) -> Any:
    from visformer.pictures.charts.decoding import candidate_bars

    step = setting.source.speak().steps[setting["step"]]
    names = tuple(map(setting.gettext, (N_("model"), N_("sampling distribution"), N_("all others"))))
    title = setting.gettext(N_("step {step}: candidates for the next token"))
    look: dict[str, Any] = {"names": names, "title": title, "theme": setting.source.theme}
    return candidate_bars(step.reshaped(**shape(setting)), step.chosen.id, step=setting["step"], **look)


def _beams(setting: Setting) -> Any:
    from visformer.pictures.charts.decoding import beam_tree

    title = setting.gettext(N_("beam search: beam width {size}"))
    beams = setting.source.speak(beam_size=setting["beams"]).beams
    return beam_tree(beams, unit=setting.gettext(N_("nats")), title=title, theme=setting.source.theme)


# fmt: off
STEP = PlaceOption(name="step", help=STEP_HELP, among=lambda setting: range(len(setting.source.speak().steps)))
TEMPERATURE = Number(
    name="temperature", label=N_("Temperature"), help="Divides the scores.", default=1.0, least=0.1, most=3.0,
    whole=False, step=0.1,
)
TOP_K = Number(
    name="top_k", label=N_("top-k (0: all)"), help="Only the k most likely tokens; 0: all.", default=0, least=0,
    most=50, valid=0,
)
TOP_P = Number(
    name="top_p", label="top-p", help="Only the most likely tokens, with this total probability.", default=1.0,
    least=0.05, most=1.0, whole=False, step=0.05,
)
DRAWS = Flag(name="draws", label=N_("Sampling"), tooltip=N_("Sample instead of taking the most likely token"))
SEED = Number(name="seed", label=N_("Seed"), default=0, least=0, most=10_000, widget="number_input")
BEAMS = Number(name="beams", label=N_("Beam width"), help="Beam width.", default=4, least=2, most=8, valid=1)
SURE = Picture(
    name="sureness", view="steps", title=N_("Step by step"), options=(STEP,),
    look_for=N_(
        "Each step is a choice: try another. Where temperature, top-k or top-p change the distribution, it is orange."
    ),
    draw=lambda setting: [sureness(setting.source.speak().steps, setting["step"], setting.gettext)],
)
CANDIDATES = Picture(name="candidates", view="steps", options=(STEP, TEMPERATURE, TOP_K, TOP_P), draw=_candidates)
GROWING = Picture(
    name="growing", view="steps", needs=("*.pattern",), in_handouts=False,
    options=(
        layer_of(lambda setting: tuple(_patterns(setting))),
        replace(STEP, among=_rows, default=lambda setting: _rows(setting)[-1]),
    ),
    draw=lambda setting: [growing(setting.trace, setting["layer"], setting["step"])],
)
TREE = Picture(
    name="beams", view="beams", title=N_("Beam search"),
    look_for=N_("Log-probabilities; at an end also per token, which ranks them. Does one that looked worse win (◂)?"),
    options=(BEAMS,), draw=_beams,
)
PAGE = Page(
    name="decoding", section="understand", order=80, title=N_("Decoding"),
    about=N_("How the output is written, one token at a time: probabilities, sampling, beam search."),
    views=(SURE, CANDIDATES, GROWING, TREE),
    where="output",
)
# fmt: on
