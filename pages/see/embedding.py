"""Embedding + position: each token's embedding, its positional encoding, and the sum that enters the first layer."""

import pandas as pd
import streamlit as st

from visformer import i18n
from visformer.app.session import boxes
from visformer.app.widgets import controls, downloads, formula_box, unavailable, url_widgets
from visformer.errors import N_
from visformer.pictures import embedding
from visformer.pictures.embedding import FIRST, SCALED, SECOND, SIDE, SUMS

FORMULA = r"\sym{input}{x} = %s"
FACTOR = r"\sqrt{d_{model}} \cdot "
TERMS = {"embed": r"\sym{embed}{E}_{token}", "segment": r"\sym{out}{S}_{type}", "position": r"\sym{position}{PE}_{pos}"}
CODE = (("model/embedding.py", "Embedding.forward"),)
SIDES = {"src": N_("Source"), "tgt": N_("Target")}

_ = boxes.gettext()
trace = controls.current_trace(embedding.RECORD)


def draw_sums(side):
    ours, unchanged = f"{side}.embedding" in trace.params, embedding.enters_as_it_is(trace, side)
    scaled = setting["scaled"] = not ours or url_widgets.draw(SCALED, setting, "embedding", place=bar)
    text = [_(SUMS.look_for), *([_("Without the factor, which of the two dominates?")] if ours else [])]
    if not unchanged:
        text.append(_("This model changes the sum once more, by LayerNorm or a factor, before the first layer."))
    text.append(_("Labels count tokens from 1, pos from 0: the second token, 2, has pos = 1."))
    [panels] = SUMS.draw(setting)
    if any(panel.overflows for panel in panels):
        text.append(_("The colour scale ends at {limit:.2f}; a few values lie beyond it.").format(limit=panels[0].end))
    controls.look_for(i18n.paragraph(*text), words)
    with maths:
        total = (FACTOR if ours and scaled else "") + " + ".join(TERMS[name] for name in embedding.terms(trace, side))
        formula_box.formula(FORMULA % (total if unchanged else rf"f({total})"), section="3.4, 3.5", code=CODE)
    unavailable.tell(trace, f"{side}.position", N_("Positions: {reason}."))
    controls.draw([panels], key="embedding_sums", share=max(1.0, len(panels) / 3))


def compare_two(side):
    st.header(_("Two tokens"), anchor=False)
    pair = embedding.repeated(trace, side) or (0, 1)
    left, right, numbers = st.columns([2, 2, 6], gap="large")
    first = url_widgets.draw(FIRST, setting, "embedding", place=left, default=pair[0])
    second = url_widgets.draw(SECOND, setting, "embedding", place=right, default=pair[1])
    compared = embedding.compare(trace, side, first, second)
    columns = [_("distance"), _("cosine")]
    rows = {_(name): values for name, values in compared.items()}
    numbers.dataframe(pd.DataFrame(rows, index=columns).T, column_config={c: {"format": "%.4f"} for c in columns})
    ids = trace.meta["ids"][side]
    if ids[first] == ids[second] and first != second:
        remark = _("One word in two positions: the inputs are equal too. Positions differ only inside attention.")
        if f"{side}.position" in trace:
            remark = _("One word in two positions: the embeddings are equal, the inputs are not.")
        st.text(remark)


def draw_table(side):
    st.header(_("Every token in numbers"), anchor=False)
    table = embedding.table(trace, side).rename(columns=_)
    st.dataframe(table, hide_index=True)
    downloads.csv(table, f"embedding-{side}")


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    bar = words.container(horizontal=True, vertical_alignment="center")
    with bar:
        side = controls.view(_("Side"), unavailable.shown(SIDES, trace), key="embedding_side")
    setting = controls.setting_of(SUMS, trace, embedding.RECORD, stack=SIDE.also[side])
    if unavailable.tell(trace, f"{side}.embed", N_("This model shows no embeddings: {reason}.")):
        unavailable.elsewhere()
    else:
        draw_sums(side)
        compare_two(side)
        draw_table(side)
