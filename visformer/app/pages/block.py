"""A view of the block page: the parts of a block as a table."""

import pandas as pd

from visformer.app.session import boxes
from visformer.app.widgets import controls, tables, unavailable
from visformer.errors import N_
from visformer.pictures.block import RECORD, WHO_TALKS, Stack, who_talks


def measured(stack: Stack) -> None:
    """Draw a table of the parts of the first layer of a model of ours, each recomputed from its weights.

    It shows the number behind each "yes" and "no", and what course notes print.
    """
    trace = controls.current_trace((*RECORD, f"{stack}.0.*", "encoder.out"))
    if trace is None:
        return
    if not {f"{stack}.0.self_attn.w_q", f"{stack}.0.ffn.w_1"} <= {*trace.params}:
        unavailable.say(
            N_("This measurement needs the weights of each part, which are not available for this model family.")
        )
        return
    _ = boxes.gettext()
    say = {True: _("yes"), False: _("no")}
    rows = [
        {
            _("part"): _(part.name),
            _("tokens talk to each other"): say[part.talks],
            _("largest change in the others"): part.moved,
            _("has parameters"): say[part.trained],
            _("printed"): say[part.printed] + " ≠" * part.misprinted,
            _("parameters in one layer"): part.parameters,
        }
        for part in who_talks(trace, stack)
    ]
    tables.draw(pd.DataFrame(rows), title=_(WHO_TALKS.title))
