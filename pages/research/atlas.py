"""Atlas: every head over a whole corpus, and one head with its examples; and a visitor's own file."""

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from visformer.analysis.atlas import Atlas, bundled_names, roles, similar_heads
from visformer.analysis.known_heads import LABELS
from visformer.app.serving.capacity import drawing
from visformer.app.serving.models import MODEL, offered
from visformer.app.session import address, atlases, boxes, measured, selection, slots
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import EXPLORER, State
from visformer.app.widgets import controls, formula_box, url_widgets
from visformer.errors import N_, DataError, VisformerError
from visformer.i18n import paragraph
from visformer.panel import Panel
from visformer.pictures.atlas import (
    ABOUT,
    ATLAS,
    CHART,
    HEAD,
    HEADS,
    PAGE,
    STATISTIC,
    STATISTICS,
    shown,
)
from visformer.pictures.heads import place_of
from visformer.pictures.registry.setting import Setting, Source
from visformer.system import limits
from visformer.trace.stacks import STACKS
from visformer.web.panels import Click
from visformer.web.selection import Selection

FORMULA = r"""&\sym{pattern}{s_h} \pm 1.96\, \sigma_h / \sqrt{n} \qquad
1 - \max_i\, |\sym{pattern}{s_{h,i}} - \sym{pattern}{s_{g,i}}|"""
CODE = (
    ("analysis/atlas/roles.py", "roles"),
    ("analysis/atlas/roles.py", "interval"),
    ("analysis/atlas/likeness.py", "similar_heads"),
)
TOLD = N_("Interval of a mean over n texts; similarity of two heads")

Place = tuple[str, int, int]
UPLOAD, BOX = "atlas_file", Slot("atlas_open", False)
WRONG: Slot[VisformerError | None] = Slot("atlas_file_problem", None)
FEW = 6  # examples at first
STACK_LABELS = {stack.name: stack.label for stack in STACKS}
LIMIT = N_("It says where a head reads in these texts: not why, nor what the model makes of it.")
FEWER = N_("Of the other heads of an attention at most {n} are drawn, in even steps from the lowest to the highest.")
CUT = N_("A text longer than {limit} characters is cut here, and cannot be opened.")
ABSENT = N_(
    "There is no atlas of {model} here: visformer atlas --model {model} makes one, which can be opened above. This is "
    "that of {shown}."
)
NO_MODEL = N_(
    "This app does not have the model {model}: its examples are shown as texts. They open in the explorer where the "
    "app is started with it, by visformer run --model."
)
OTHER_WEIGHTS = N_("This atlas is of other weights than the {model} here: what an example opens may differ from it.")

_ = boxes.gettext()


def draw() -> None:
    """Draw the page. A session keeps what is called on a click: no global of this script may hold an atlas."""
    words, beside = st.columns([50, 50], gap="medium", vertical_alignment="center")
    with words:
        controls.look_for(_(HEADS.look_for))
    with beside:
        formula_box.formula(FORMULA, code=CODE, source=TOLD)
    try:
        draw_heads(setting_of())
    except DataError as error:
        st.text(error.localized(_))


def setting_of() -> Setting:
    """Return the setting of the page, with the atlas that is chosen; the head is the selection of all pages."""
    setting = controls.setting_of(HEADS, None)
    setting.source = replace(setting.source, atlas=atlases.atlas, atlases=atlases.names())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        url_widgets.draw(ATLAS, setting, PAGE.name, width=210, format_func=name_of)
        setting.source.atlas(setting["atlas"])  # says why it cannot be read
        url_widgets.draw(STATISTIC, setting, PAGE.name, width=210)
        for name in ("role", "token"):
            url_widgets.draw(HEADS.option(name), setting, PAGE.name, width=200)
        for name in ("at_least", "at_most"):
            url_widgets.draw(HEADS.option(name), setting, PAGE.name, width=150, format="%.3f")
        draw_upload()
    setting["stack"], setting["layer"], setting["head"] = selected_place(setting.source.atlas(setting["atlas"]))
    return setting


def name_of(name: str) -> str:
    return _("Your file") if name == atlases.OWN else name


def selected_place(atlas: Atlas) -> Place:
    """Return the selected head, or the nearest that the atlas has."""
    chosen, heads = selection.chosen(), atlas.heads
    within = heads[heads["stack"] == chosen.stack]
    within = within if len(within) else heads[heads["stack"] == heads["stack"].iloc[0]]
    layer = within.loc[(within["layer"] - chosen.layer).abs().idxmin(), "layer"]
    row = within[within["layer"] == layer]
    row = row.loc[(row["head"] - chosen.head).abs().idxmin()]
    return str(row["stack"]), int(row["layer"]), int(row["head"])


def draw_heads(setting: Setting) -> None:
    """Draw the map, and below it the selected head."""
    atlas, passing = setting.source.atlas(setting["atlas"]), shown(setting)
    if setting["atlas"] not in bundled_names() and atlases.opens_with(atlas) == (boxes.model() or MODEL):
        measured.keep({"roles": measured.HeadTable.of(roles(atlas), is_own=True)})
    panels: Any = HEADS.draw(setting)
    left, right = st.columns([45, 55], gap="medium")
    with left:
        controls.draw(panels, key="atlas_heads", share=0.9, on_click=partial(focus, panels))
    said = _("{n} of {all} heads. {about} Means over {texts} texts of {model}; outlined: the selected head.")
    told = said.format(
        n=int(passing.notna().sum()),
        all=len(passing),
        about=_(ABOUT[setting["statistic"]]),
        texts=f"{int(atlas.heads['texts'].max()):,}",
        model=plain(atlas.about["model"]),
    )
    with left:
        st.caption(told)
        draw_remarks(atlas)
    with right:
        draw_head(setting, atlas)
    place = (setting["stack"], setting["layer"], setting["head"])
    draw_similar(_("Heads like it"), similar_heads(atlas, *place))
    draw_examples(atlas, place)
    st.caption(
        paragraph(
            _("Dot: mean over all rows; line: standard deviation of the texts' own means; faint: the other heads."),
            _(
                "Over the texts, each text counts once, with the mean of its rows; for entropy, as a share of the "
                "largest that its rows can have."
            ),
            _(FEWER).format(n=limits.ATLAS_BESIDE) if len(passing) > limits.ATLAS_BESIDE else "",
            _("Heads are alike by how far they read and by the shares of their weight, not by single cells."),
            _(LIMIT),
        )
    )


def draw_remarks(atlas: Atlas) -> None:
    """Say where the atlas is not of the visitor's model, or of one that is not here."""
    model = str(atlas.about["model"])
    if atlases.opens_with(atlas) is None:
        st.text(_(NO_MODEL).format(model=model))
    elif atlases.is_of_other_weights(atlas):
        st.text(_(OTHER_WEIGHTS).format(model=model))
    if (wanted := atlases.missing()) is not None:
        st.text(_(ABSENT).format(model=wanted, shown=model))


def focus(panels: list[Panel], click: Click) -> None:
    if click.row is not None and click.column is not None:
        selection.keep_place(**place_of(click.panel, click.row, click.column, panels), query=None)


def draw_head(setting: Setting, atlas: Atlas) -> None:
    """Draw what the selected head is: its roles, what silencing it does, and its distribution over the corpus."""
    place = (setting["stack"], setting["layer"], setting["head"])
    st.header(place_name(place), anchor=False)
    st.text("\n".join(filter(None, [*told_roles(atlas, place), told_effect(atlas, place)])))
    url_widgets.draw(CHART, setting, PAGE.name, label_visibility="collapsed")
    try:
        controls.draw(HEAD.draw(setting), key="atlas_head")
    except DataError as error:  # a statistic that no text has
        st.text(error.localized(_))


def place_name(place: Place) -> str:
    said = _("{attention}: layer {layer}, head {head}")
    return said.format(attention=_(STACK_LABELS[place[0]]), layer=place[1] + 1, head=place[2] + 1)


def told_roles(atlas: Atlas, place: Place) -> list[str]:
    found = roles(atlas)
    own = found[(found[["stack", "layer", "head"]] == [*place]).all(axis=1)]
    if not len(own):
        return [_("It has no role: no statistic of it is high and above most heads of this attention.")]
    said = _("{role}: {score} ({low} – {high})")
    return [
        said.format(role=_(LABELS[row.label]), score=f"{row.score:.3f}", low=f"{row.low:.3f}", high=f"{row.high:.3f}")
        for row in own.itertuples()
    ]


def told_effect(atlas: Atlas, place: Place) -> str:
    if atlas.effects is None:
        return _("What silencing it does was not measured: visformer atlas --effects does.")
    rows = atlas.effects[(atlas.effects[["stack", "layer", "head"]] == [*place]).all(axis=1)]
    if not len(rows):
        return ""
    row = rows.iloc[0]
    numbers = {name: f"{row[name]:+.4f}".replace("-", "−") for name in ("effect", "low", "high")}
    said = _("Silenced, the target costs {effect} nats a token ({low} to {high}, {n} texts).")
    return said.format(**numbers, n=int(row["n"]))


def draw_similar(title: str, found: Any) -> None:
    """Draw a button for each head that is like the selected one."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(title, width="content")
        for i, row in enumerate(found.itertuples()):
            said = _("{attention} {layer}·{head} ({similarity})")
            label = said.format(
                attention=_(STACK_LABELS[row.stack]),
                layer=row.layer + 1,
                head=row.head + 1,
                similarity=f"{row.similarity:.2f}",
            )
            place = {"stack": row.stack, "layer": int(row.layer), "head": int(row.head)}
            differs = _("offset") if row.differs == "offsets" else _(STATISTICS[row.differs])
            about = _("They differ most in: {part}").format(part=differs)
            select = partial(selection.keep_place, **place, query=None)
            st.button(label, key=f"atlas_like_{i}", help=about, on_click=select, type="tertiary")


def draw_examples(atlas: Atlas, place: Place) -> None:
    """List the texts in which the head is most itself; one click opens one in the explorer."""
    model = atlases.opens_with(atlas)
    rows = atlas.examples[(atlas.examples[["stack", "layer", "head"]] == [*place]).all(axis=1)].sort_values("rank")
    if not len(rows):
        st.text(_("No text of the corpus has a cell of it that could be an example."))
        return
    title = st.container(horizontal=True, vertical_alignment="center")
    title.caption(_("Its examples: where it exceeds equal weights most"), width="content")
    few = len(rows) > FEW and not title.toggle(_("All {n}").format(n=len(rows)), key="atlas_all_examples")
    is_cut = False
    for row in rows.head(FEW if few else None).itertuples():
        told = (row.text, row.target, row.pair, row.query_token, row.key_token)
        is_long = any(len(each) > limits.MAX_CHARACTERS for each in told if isinstance(each, str))
        is_cut |= is_long
        said = _("{query} reads {key} ({weight}): {text}")
        text = said.format(
            query=cut(row.query_token),
            key=cut(row.key_token),
            weight=f"{row.weight:.2f}",
            text=one_line(row.text, row.target),
        )
        if model is None or is_long:
            st.text(text)
            continue
        button, words = st.columns([1, 8], vertical_alignment="center", gap="small")
        label, opened = (
            _("Open {n}").format(n=plain(row.rank)),
            partial(address.restore, opened_state(row, place, model), ()),
        )
        button.button(label, key=f"atlas_example_{row.rank}", on_click=opened)
        words.text(text)
    if is_cut:
        st.caption(_(CUT).format(limit=limits.MAX_CHARACTERS))


def one_line(text: str, target: Any) -> str:
    told = f"{cut(text)} → {cut(target)}" if isinstance(target, str) else cut(text)
    return " ".join(told.split())


def cut(text: str) -> str:
    """Return as much of a text as a page takes anywhere: the corpus may have any."""
    return text if len(text) <= limits.MAX_CHARACTERS else f"{text[: limits.MAX_CHARACTERS]}…"


def opened_state(row: Any, place: Place, model: str) -> State:
    """Return the state in which an example is open: its texts, its model, and the cell of the head."""
    second = next((each for each in (row.target, row.pair) if isinstance(each, str)), "")
    stack, layer, head = place
    chosen = Selection(stack=stack, layer=layer, head=head, query=int(row.query), key=int(row.key))
    named = "" if model == offered()[0] else model
    common = address.common()
    return replace(common, page=EXPLORER, model=named, text=row.text, target=second, selection=chosen)


# A file of one's own --------------------------------------------------------------------------------------------------


def draw_upload() -> None:
    with st.popover(_("Open an atlas"), type="tertiary", on_change="rerun", key=BOX.key):
        if BOX.get():
            st.caption(
                _(
                    "The file atlas.zip that `visformer atlas --data … --model … --out … --zip` writes into its "
                    "folder. It is kept in memory, for your visit only."
                )
            )
            key = f"{UPLOAD}_{slots.version(UPLOAD)}"
            st.file_uploader(_("Atlas (zip)"), "zip", max_upload_size=1, key=key, on_change=open_file, args=(key,))
            if (error := WRONG.pop()) is not None:
                st.text(error.localized(_))


@drawing()
def open_file(key: str) -> None:
    """Open an uploaded atlas, before the page runs again."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    slots.renew(UPLOAD)
    try:
        atlases.open_own(uploaded.getvalue())
    except VisformerError as error:
        WRONG.set(error)
        return
    BOX.set(False)
    setting = Setting(Source(atlases=atlases.names()))
    Slot(slots.widget_key(ATLAS.key(PAGE.name, setting), ATLAS.per and ATLAS.per(setting)), "").set(atlases.OWN)


draw()
