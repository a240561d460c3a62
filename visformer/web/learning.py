"""Pack what is new of a training that is watched; learning.js draws it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from visformer.adapters.learning.recipe import Snapshot, TrainingInfo
from visformer.errors import N_
from visformer.pictures.style import CURVES, RAMPS, visible
from visformer.system import limits
from visformer.web.message import Numbers, write_message

_TEXT = {
    "start": N_("Start the training"),
    "pause": N_("Pause"),
    "on": N_("Go on"),
    "replay": N_("Play again"),
    "step": N_("One step"),
    "seed": N_("Another seed"),
    "speed": N_("Speed"),
    "speed_0": N_("as fast as it can"),
    "speed_n": N_("{n} steps a second"),
    "time": N_("The moment that is shown"),
    "at": N_("Step {step} of {steps}"),
    "waiting": N_("It begins in a moment: what trains is being started, or others come first."),
    "empty": N_("Nothing is trained yet. It takes seconds, and everything that happens is drawn here."),
    "recorded": N_("This training was recorded. Start it to see it happen here and now. {story}"),
    "follows": N_("The presenter starts it."),
    "recorded_follows": N_("This training was recorded. The presenter starts one. {story}"),
    "loss": N_("Loss, nats a token"),
    "scores": N_("Weight of the best head"),
    "right": N_("right on new sequences: {share}"),
    "heads": N_("All heads, a row for each layer. Choose with the arrow keys, Enter enlarges."),
    "head": N_("Layer {layer}, head {head}"),
    "enlarge": N_("Click a head to enlarge it."),
    "enlarge_touch": N_("Tap a head to enlarge it."),
    "back": N_("All heads"),
    "found": N_("Step {step}: {look} passes 0.5 in layer {layer}, head {head}."),
    "chart": N_("{title}, by step: {values}"),
}


@dataclass(frozen=True)
class ShownTraining:
    """One training of a run.

    Args:
        title: what tells it from the one beside it, in the visitor's language; "" if there is none.
        sight: what its moments have in common.
        moments: those that are sent.
        looks: what heads are scored by, in the visitor's language.
        curves: the labels of the two losses.
    """

    title: str
    sight: TrainingInfo
    moments: Sequence[Snapshot]
    looks: Sequence[str]
    curves: tuple[str, str]


def pack_learning(
    trainings: Sequence[ShownTraining],
    *,
    run: str,
    state: str,
    steps: int,
    first: int = 0,
    count: int = 0,
    speed: int = 0,
    speeds: Sequence[int] = (),
    acts: bool = True,
    problem: str = "",
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    to: str = "",
) -> bytes:
    """Pack moments into the message for ``mountLearning``.

    Args:
        trainings: one or two side by side, with as many moments each; none before the start.
        run: the name of the run; moments of another one are dropped.
        state: "idle", "waiting", "playing", "paused", "over" or "failed"; "idle" with moments: of a recorded training.
        steps: after which it ends.
        first: index of the first moment that is sent; those before it were sent earlier.
        count: how many moments there are by now: the browser asks for those behind the ones that are sent.
        speed: steps a second; 0: as fast as it can.
        speeds: those to choose from.
        acts: whether this visitor may start and pause it.
        problem: why it failed, in the visitor's language.
        gettext: translates the words around it.
        lang: the language of ``gettext``.
        to: see :func:`visformer.web.message.write_message`.
    """
    numbers = Numbers()
    header = {
        "run": run,
        "state": state,
        "steps": steps,
        "first": first,
        "count": count,
        "speed": speed,
        "speeds": [*speeds],
        "acts": acts,
        "problem": problem,
        "trainings": [_training(each, numbers) for each in trainings],
        "ramp": RAMPS["weight"],
        "curves": CURVES,
        "text": {"lang": lang, **{name: gettext(text) for name, text in _TEXT.items()}},
    }
    return write_message("learning", header, numbers, to=to)


def end_of(trainings: Sequence[Sequence[Snapshot]], first: int) -> int:
    """Return the index behind the last moment that fits into one message.

    Args:
        trainings: all moments of each training, as many in each as in the others, and at least one.
        first: index of the first moment that is sent.
    """
    nbytes = sum(moments[0].patterns.nbytes + 4 * moments[0].scores.size for moments in trainings)
    return min(first + max(1, limits.LEARNING_BYTES // nbytes), *map(len, trainings))


def _training(shown: ShownTraining, numbers: Numbers) -> Mapping[str, Any]:
    moments, sight = shown.moments, shown.sight
    packed: dict[str, Any] = {
        "title": shown.title,
        "queries": [visible(token) for token in sight.queries],
        "keys": [visible(token) for token in sight.keys],
        "looks": [*shown.looks],
        "labels": [*shown.curves],
        "moments": [[m.step, round(m.loss, 4), round(m.probed, 4), round(m.right, 3)] for m in moments],
    }
    if moments:
        packed |= {
            "shape": [*moments[0].patterns.shape[:2]],
            "scores": numbers.add(np.stack([m.scores for m in moments]).astype("<f4")),
            "patterns": numbers.add(np.stack([m.patterns for m in moments])),
        }
    return packed
