"""The stream beside that of untrained models with either norm, and the parts of a block as a table."""

from dataclasses import replace

import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import controls, unavailable
from visformer.errors import N_, VisformerError
from visformer.pictures.block import NORMS, RECORD, UNTRAINED, Stack, who_talks
from visformer.pictures.setting import Setting


def norms(setting: Setting) -> None:
    """How long the vectors grow, untrained with post-norm and with pre-norm, and in this model.

    Untrained ones have the sizes of this one, which only our own can have; of another the stream stands alone.
    """
    _ = boxes.gettext()
    make = setting.source.untrained
    assert make is not None  # where a Trace is shown
    try:
        for norm in UNTRAINED:
            make(norm, RECORD)
    except VisformerError as error:
        st.info(error.localized(_))
        setting.source = replace(setting.source, untrained=None)
    controls.draw(NORMS.draw(setting), key="block_norms")


def measured(stack: Stack) -> None:
    """Each part of the first layer of a model of ours, as it is computed again from its weights, in a row.

    The number behind "yes" and "no" is told, and what course notes print.
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
    say, moved = {True: _("yes"), False: _("no")}, _("largest change in the others")
    rows = [
        {
            _("part"): _(part.name),
            _("tokens talk to each other"): say[part.talks],
            moved: part.moved,
            _("has parameters"): say[part.trained],
            _("printed"): say[part.printed] + " ≠" * part.misprinted,
            _("parameters in one layer"): part.parameters,
        }
        for part in who_talks(trace, stack)
    ]
    st.dataframe(rows, column_config={moved: st.column_config.NumberColumn(format="%.4f")})
