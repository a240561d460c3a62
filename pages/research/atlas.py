"""Atlas: every head over a whole corpus, and one head with its examples."""

import streamlit as st

from visformer.app.pages import atlas
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box
from visformer.errors import N_, DataError
from visformer.pictures.atlas import HEADS

FORMULA = r"""&\sym{pattern}{s_h} \pm 1.96\, \sigma_h / \sqrt{n} \qquad
1 - \max_i\, |\sym{pattern}{s_{h,i}} - \sym{pattern}{s_{g,i}}|"""
CODE = (
    ("analysis/atlas/roles.py", "roles"),
    ("analysis/atlas/roles.py", "interval"),
    ("analysis/atlas/likeness.py", "similar_heads"),
)
TOLD = N_("Interval of a mean over n texts; similarity of two heads")

_ = boxes.gettext()
words, beside = st.columns([50, 50], gap="medium", vertical_alignment="center")
with words:
    controls.look_for(_(HEADS.look_for))
with beside:
    formula_box.formula(FORMULA, code=CODE, source=TOLD)
try:
    atlas.heads(atlas.setting_of())
except DataError as error:
    st.text(error.localized(_))
