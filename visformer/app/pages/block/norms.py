"""The stream of a model beside that of untrained ones with either kind of norm."""

from dataclasses import replace

import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import pictures
from visformer.errors import VisformerError
from visformer.pictures.block import NORMS, RECORD, UNTRAINED
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
    pictures.draw(NORMS, setting, key="block_norms")
