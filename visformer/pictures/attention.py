"""The page Attention: the explorer, which the browser draws; in a file also at every moment of a training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from visformer.adapters.checkpoints import GPT, TRANSLATOR
from visformer.errors import N_, TraceError
from visformer.i18n import Gettext
from visformer.pictures.registry.options import SELECTED
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.pictures.sides import forced
from visformer.system import cancellation
from visformer.system.progress import report
from visformer.trace import Trace

Figures = Mapping[str, float]
"""What is known of a moment: "step" and the other columns of :func:`visformer.moments`."""

_KNOWN = {
    "loss": N_("loss {value:.2f}"),
    "bleu_en_zh": N_("BLEU to Chinese {value:.1f}"),
    "bleu_zh_en": N_("to English {value:.1f}"),
    "aer_en_zh": N_("alignment error {value:.2f}"),
    "induction": N_("induction {value:.2f}"),
}


@dataclass(frozen=True)
class History:
    """A sentence at every moment of a model's training.

    Args:
        traces: one for each moment, the first one first, with patterns and, if the model has them, logits.
        figures: what is known of each moment.
        head: the stack, layer and head that is selected at first.
    """

    traces: tuple[Trace, ...]
    figures: tuple[Figures, ...]
    head: tuple[str, int, int]


def step_of(moments: Sequence[Figures], at: int, gettext: Gettext = str) -> str:
    """Return which moment it is, in words."""
    step, steps = (f"{int(moments[place]['step']):,}" for place in (at, -1))
    return gettext(N_("Step {step} of {steps}")).format(step=step, steps=steps)


def told(figures: Figures, gettext: Gettext = str) -> list[str]:
    """Return what is known of a moment besides its step, in words."""
    return [gettext(said).format(value=figures[name]) for name, said in _KNOWN.items() if name in figures]


def moments_of(setting: Setting) -> tuple[Figures, ...]:
    """Return the figures of the moments of the model's training.

    Raises:
        TraceError: none were kept.
    """
    moments = setting.source.moments()
    if not moments:
        none = N_("No moments of this model's training were kept; those of {names} were.")
        raise TraceError(none, names=", ".join((TRANSLATOR, GPT)))
    return moments


def _history(setting: Setting) -> History:
    """Run the model of every moment; a translator writes its own translation each time, unless a target is forced."""
    moments, now = moments_of(setting), setting.patterns
    writes = {"src", "tgt"} <= {*now.tokens} and not now.meta.get("forced")
    text, target, traces = now.source, None if writes else forced(now), []
    for at in range(len(moments)):
        cancellation.check()
        traces.append(setting.source.read(text, target, moment=at, record=setting.needs))
        report(at + 1, len(moments))
    return History(tuple(traces), moments, (setting["stack"], setting["layer"], setting["head"]))


HISTORY = Picture(
    name="history", view="history", live=True, needs=("*.pattern", "*.map", "logits"), options=SELECTED[:3],
    look_for=N_("The explorer at every moment of the training. When does a head become what it is?"),
    draw=_history, in_handouts=False,
)  # fmt: skip
PAGE = Page(
    name="attention",
    section="see",
    order=10,
    title=N_("Attention"),
    about=N_("Every head of every layer: which word reads which."),
    views=(HISTORY,),
    where="attention",
)
