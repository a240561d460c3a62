"""Embedding + position: letters to tokens and their ids; a row of the table for each, its position, and the sum."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import streamlit as st

from visformer import i18n
from visformer.app.session import boxes
from visformer.app.widgets import controls, downloads, formula_box, tables, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures import embedding
from visformer.pictures.embedding import FIRST, LETTERS, PAGE, SCALED, SECOND, SUMS
from visformer.pictures.style import visible
from visformer.trace import Trace

FORMULA = r"\sym{input}{x} = %s"
FACTOR = r"\sqrt{d_{model}} \cdot "
TERMS = {"embed": r"\sym{embed}{E}_{token}", "segment": r"\sym{out}{S}_{type}", "position": r"\sym{position}{PE}_{pos}"}
CODE = (("model/embedding.py", "Embedding.forward"),)
TOKENS = r"s \to (\sym{input}{t_0}, \sym{input}{t_1}, \dots), \quad 0 \le \sym{input}{t_i} < \sym{k}{|V|}"
TOKENIZER = (("model/tokenizer.py", "Tokenizer.encode"), ("model/tokenizer.py", "Tokenizer.merging"))
SIDES: dict[embedding.Side, str] = {"src": N_("Source"), "tgt": N_("Target")}
MERGES = "BPE"
RULES = {
    "WordPiece": N_(
        "This vocabulary has no merges (WordPiece): each word is cut, from the left, into the longest pieces "
        "in the vocabulary."
    ),
    "Unigram": N_(
        "This vocabulary has no merges (Unigram): each piece has a probability, and the most likely way to cut "
        "the text is used."
    ),
    "WordLevel": N_(
        "This vocabulary has no merges: it holds whole words, and replaces every other word with the same "
        "special token."
    ),
}
NO_RULE = N_("This tokenizer does not show its merges, if it has any. This is how your words were cut.")

_ = boxes.gettext()
trace = controls.current_trace(embedding.RECORD)


def draw_cutting(trace: Trace, text: Any, side: embedding.Side) -> None:
    """Draw the merges of a text, or the tokenizer's rule and how it split each word, below their title."""
    merges = text.scheme == MERGES
    title = _("How letters are merged") if merges else _("How words are cut")
    st.header(title, anchor=False)
    if not merges:
        st.caption(_(RULES.get(text.scheme, NO_RULE)))
        if cut := embedding.cuts(trace, side):
            table = pd.DataFrame({_("word"): ["".join(parts) for parts in cut], _("parts"): joined(cut, " · ")})
            tables.draw(table, title=title, height="content")
        return
    said = _("The vocabulary has {n} tokens; merges learned earlier are applied first.")
    st.caption(said.format(n=len(text)))
    option = embedding.piece_of(text, embedding.text_of(trace, side))
    if option is None:
        st.text(_("Every piece of this text is a single character: there is nothing to merge."))
        return
    steps = text.merging(url_widgets.draw(option, url_widgets.nothing(), "embedding"))
    merged = {_("parts"): joined(steps, " · "), _("merged"): joined(embedding.merges(steps), " + ")}
    tables.draw(pd.DataFrame({_("merge"): range(len(steps)), **merged}), title=title, height="content")


def joined(rows: Iterable[Iterable[str]], between: str) -> list[str]:
    return [between.join(map(visible, row)) for row in rows]


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    bar = words.container(horizontal=True, vertical_alignment="center")
    with bar:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="embedding_view"))
        side = controls.view(_("Side"), unavailable.shown(SIDES, trace), key="embedding_side")
    setting = controls.setting_of(
        SUMS, trace, embedding.RECORD, stack=f"{'encoder' if side == 'src' else 'decoder'}.self_attn"
    )
    if view is LETTERS:
        controls.look_for(_(LETTERS.look_for), words)
        with maths:
            formula_box.formula(TOKENS, section="5.1", code=TOKENIZER)
        left, right = st.columns(2, gap="large")
        with left:
            title = _("The tokens and their ids")
            st.header(title, anchor=False)
            rows = [(r.number, visible(r.token), r.id, r.meaning and _(r.meaning)) for r in embedding.rows(trace, side)]
            table = pd.DataFrame(rows, columns=[_("no."), _("token"), _("id"), _("what it is")])
            st.caption(_(embedding.ORDINARY))
            tables.draw(table, title=title, height="content")
        with right:
            try:
                draw_cutting(trace, controls.bench().loaded(boxes.source()).text, side)
            except VisformerError as error:
                st.text(error.localized(_))
    elif unavailable.tell(trace, f"{side}.embed", N_("This model shows no embeddings: {reason}.")):
        unavailable.elsewhere()
    else:
        ours, unchanged = f"{side}.embedding" in trace.params, embedding.enters_as_it_is(trace, side)
        scaled = setting["scaled"] = not ours or url_widgets.draw(SCALED, setting, "embedding", place=bar)
        text = [_(SUMS.look_for), *([_("Without the factor, which of the two dominates?")] if ours else [])]
        if not unchanged:
            text.append(_("This model changes the sum once more, by LayerNorm or a factor, before the first layer."))
        drawn: Any = SUMS.draw(setting)
        [panels] = drawn
        if any(panel.overflows for panel in panels):
            said = _("The colour scale ends at {limit:.2f}; a few values lie beyond it.")
            text.append(said.format(limit=panels[0].end))
        controls.look_for(i18n.paragraph(*text), words)
        with maths:
            terms = " + ".join(TERMS[name] for name in embedding.terms(trace, side))
            total = (FACTOR if ours and scaled else "") + terms
            formula_box.formula(FORMULA % (total if unchanged else rf"f({total})"), section="3.4, 3.5", code=CODE)
        unavailable.tell(trace, f"{side}.position", N_("Positions: {reason}."))
        controls.draw(drawn, key="embedding_sums", share=max(1.0, len(panels) / 3))
        st.caption(_("Labels count tokens from 1, pos from 0: the second token, 2, has pos = 1."))

        st.header(_("Two tokens"), anchor=False)
        pair = embedding.repeated(trace, side) or (0, 1)
        left, right, numbers = st.columns([2, 2, 6], gap="large")
        first = url_widgets.draw(FIRST, setting, "embedding", place=left, default=pair[0])
        second = url_widgets.draw(SECOND, setting, "embedding", place=right, default=pair[1])
        compared = embedding.compare(trace, side, first, second)
        columns = [_("distance"), _("cosine")]
        distances = pd.DataFrame({_(name): values for name, values in compared.items()}, index=columns).T
        four_digits: Any = {column: {"format": "%.4f"} for column in columns}
        numbers.dataframe(distances, column_config=four_digits)
        ids = trace.meta["ids"][side]
        if ids[first] == ids[second] and first != second:
            remark = _("One word in two positions: the inputs are equal too. Positions differ only inside attention.")
            if f"{side}.position" in trace:
                remark = _("One word in two positions: the embeddings are equal, the inputs are not.")
            st.text(remark)

        st.header(_("Every token in numbers"), anchor=False)
        table = embedding.table(trace, side).rename(columns=_)
        st.dataframe(table, hide_index=True)
        downloads.csv(table, f"embedding-{side}")
