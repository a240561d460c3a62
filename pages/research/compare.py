"""Compare: two sentences, models or moments side by side, or one before and after an edit."""

import streamlit as st

from visformer.app.pages import compare
from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.widgets import controls, formula_box, unavailable
from visformer.errors import N_, TraceError, VisformerError
from visformer.pictures.compare import PAGE

FORMULA = r"""&\textstyle \mathrm{TV}(\sym{pattern}{p}, \sym{pattern}{q})
= \frac{1}{2} \sum_k |\sym{pattern}{p}_k - \sym{pattern}{q}_k|"""
CODE = (("analysis/comparing.py", "row_distances"), ("analysis/partners.py", "token_partners"))
TOLD = N_("Total variation distance of two rows")

_ = boxes.gettext()
trace = controls.current_trace()

if trace is not None:
    view = PAGE.view(controls.view(_("View"), PAGE.titles, key="compare_view"))
    words, beside = st.columns([58, 42], gap="medium")
    with words:
        controls.look_for(_(view.look_for))
    setting = controls.setting_of(view, trace)
    try:
        with words:
            compare.boxes_of(view, setting)
        compare.show(view, setting)
    except TraceError as error:
        st.info(plain(error.localized(_)))
        unavailable.elsewhere()
    except VisformerError as error:
        st.text(error.localized(_))
    with beside:
        formula_box.formula(FORMULA, code=CODE, source=TOLD)
