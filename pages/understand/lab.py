"""The course notes by topic: the idea, worked examples that can be changed, misprints, live pages and classes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from visformer.app.session import address, boxes, presentation_steps, run, slots
from visformer.app.session.markdown import plain
from visformer.app.session.page import page_named
from visformer.app.session.slots import Slot, widget_key
from visformer.app.widgets import controls, formula_box, pick, tables, url_widgets, waiting
from visformer.errors import N_, NumberError, ShapeError, VisformerError
from visformer.formulas import Floats
from visformer.model import cost
from visformer.pictures import course, lab
from visformer.pictures.course import TOPICS, Topic
from visformer.pictures.lab import EXAMPLE, HEAD, SAMPLE, SYMBOL
from visformer.pictures.registry.setting import Setting, Source
from visformer.pictures.worked import Arrays, Worked, compute, trimmed
from visformer.system import limits

CHOSEN: Slot[str] = Slot("lab_example", "")
TOPIC: Slot[str | None] = Slot("lab_topic", None)
SEARCH = "lab_search"
MEASURED: Slot[list[cost.Cost] | None] = Slot("lab_measured", None)
FOUND, SHOWN = 8, 60  # results of a search that are shown, and characters of what each says
NARROWEST, DIGIT, ROW = 48, 8, 26  # pixels: five tables fit beside each other in two rows

_ = boxes.gettext()


def choose() -> tuple[Topic, Worked]:
    """Draw the topics, the search and the examples of the topic; return what is chosen."""
    nothing, names = url_widgets.nothing(), [*lab.examples()]
    # The link's example tells the topic, which the widget of the examples depends on.
    address.take(CHOSEN.key, lambda text: CHOSEN.set(EXAMPLE.read(text, nothing)), go_back=CHOSEN.clear)
    presentation_steps.begin_options(CHOSEN.key, names)
    if CHOSEN.get() not in names:
        CHOSEN.set(names[0])
    topic = next(topic for topic in TOPICS if lab.examples()[CHOSEN.get()] in topic.examples)
    TOPIC.set(topic.name)
    titles = {each.name: f"{number} {_(each.title)}" for number, each in enumerate(TOPICS, start=1)}
    st.pills(
        _("Topic"),
        [*titles],
        format_func=lambda name: plain(titles[name]),
        key=TOPIC.key,
        on_change=open_topic,
        label_visibility="collapsed",
    )
    heading, beside = st.columns([58, 42], vertical_alignment="center")
    heading.header(_(topic.title), anchor=False)
    search(beside)
    st.markdown(plain(_(topic.idea)))
    chosen = CHOSEN.get()
    if len(topic.examples) > 1:
        box = Slot(widget_key(CHOSEN.key, topic.name), chosen)
        box.set(chosen)
        examples = {each.name: _(each.title) for each in topic.examples}
        label, take = _("Worked example or experiment"), partial(take_example, box)
        st.selectbox(label, [*examples], format_func=examples.__getitem__, key=box.key, on_change=take)
    address.show(CHOSEN.key, None if chosen == names[0] else chosen)
    presentation_steps.offer_options(CHOSEN.key, names, chosen, [_(each.title) for each in lab.examples().values()])
    return topic, lab.examples()[chosen]


def take_example(box: Slot[str]) -> None:
    """Open the example that was chosen in the box of its topic."""
    CHOSEN.set(box.get())


def open_topic() -> None:
    """Open the first example of the topic that was chosen; a topic chosen again stays."""
    for topic in TOPICS:
        if topic.name == TOPIC.get():
            CHOSEN.set(topic.examples[0].name)


def search(place: Any) -> None:
    """Draw the search box at this place, and what it finds below."""
    words = place.text_input(
        _("Search"),
        key=SEARCH,
        placeholder=_("Search: a word, a number, a class …"),
        max_chars=limits.MAX_CHARACTERS,
        label_visibility="collapsed",
    )
    if not words.strip():
        return
    found = course.search(words, _)
    if not found:
        st.text(
            _("Nothing on this page has “{words}”: try another word, or a topic above.").format(words=words.strip())
        )
    hits = st.container(gap="xxsmall", key="lab_found")
    for place in found[:FOUND]:
        title = plain(" › ".join(_(each) for each in (place.topic.title, place.part) if each))
        said = plain(place.text if len(place.text) <= SHOWN else f"{place.text[:SHOWN]}…")
        label, name = f"{title} :gray[{said}]" if said else title, place.example.name
        hits.button(label, key=f"lab_found_{name}", on_click=go, args=(name,), type="tertiary")


def go(name: str) -> None:
    """Open an example that a search found."""
    CHOSEN.set(name)
    Slot(SEARCH, "").set("")


def draw_live(topic: Topic) -> None:
    """Draw the links to the pages that show a topic live."""
    with st.container(horizontal=True, key="lab_live"):
        for live in topic.live:
            kept = {name: text for name, text in address.to_query().items() if name in ("v", "lang")}
            link = {"v": "2", **kept, **{name: text for name, text in live.choices.items() if text}}
            st.page_link(
                page_named(live.page), label=plain(_(live.label)), icon=":material/play_circle:", query_params=link
            )


def draw_cost() -> None:
    """Draw what a self-attention layer costs, as it was measured, and offer to measure it here."""
    from visformer.pictures.charts.positions import curves_over

    st.subheader(_("Measured"), anchor=False)
    processor, costs = cost.recorded()
    said = _(
        "One self-attention layer, d_model {d_model}, {n_heads} heads, measured on {processor}; medians of {runs}."
    )
    here = MEASURED.get()
    if here is not None:
        processor, costs = _("this server"), [cost.Cost(*each) for each in here]
    n = np.array([each.n for each in costs], dtype=np.float64)
    times = np.array([each.milliseconds for each in costs])
    curves = {_("milliseconds"): times, _("a line of n² through the last"): times[-1] * (n / n[-1]) ** 2}
    axes = (_("n"), _("milliseconds"))
    title = _("Time of self-attention for n tokens")
    controls.draw(curves_over(curves, n, axes=axes, title=title, log="xy", theme=formula_box.theme()), key="lab_cost")
    told = {"d_model": cost.D_MODEL, "n_heads": cost.N_HEADS, "processor": plain(processor), "runs": cost.REPEATS}
    st.caption(said.format(**told))
    waiting.offer_long_run(
        _("Measure here"),
        lambda: [(_("Time of self-attention for n tokens"), cost.measure_here)],
        key="lab_measure",
        keep=lambda found: MEASURED.set(found[0]),
        too_long=_("Try again when fewer people are here."),
    )
    table = pd.DataFrame(
        {_("n"): n.astype(int), _("milliseconds"): times, _("weights, MiB"): [each.mib for each in costs]}
    )
    tables.draw(table, title=title)


def draw_words(topic: Topic) -> None:
    """Draw what a topic has in words: classes, misprints and comparisons."""
    if topic.claims:
        st.subheader(_(course.MISPRINTS), anchor=False)
        formula_box.draw_claims(topic.claims)
    for table in topic.tables:
        st.subheader(_(table.title), anchor=False)
        draw_table(table.columns, table.rows)
    if topic.classes:
        st.subheader(_(course.NAMES), anchor=False)
        rows = tuple((each.notes, each.ours, each.torch, each.shapes) for each in topic.classes)
        with st.container(key="lab_names"):
            draw_table((N_("in the notes"), N_("here"), N_("in torch"), N_("shapes")), rows)


def draw_table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> None:
    """Draw a table of words; names, which are no messages, stay as they are."""
    names = [plain(_(name)) for name in columns]
    st.table(pd.DataFrame([[plain(_(cell)) for cell in row] for row in rows], columns=names).set_index(names[0]))


def draw_places(arrays: Arrays, at: Mapping[str, int]) -> dict[str, int]:
    """Draw a slider for each axis of which one index is shown, unless it is in ``at``; return all indices."""
    setting, sizes = Setting(Source(), values={"example": example.name}), example.choices(arrays)
    indices = {**at}
    for option in (SAMPLE, HEAD):
        if option.name in sizes and option.name not in at:
            indices[option.name] = url_widgets.draw(pick.counted(option, sizes[option.name]), setting, "lab")
    return indices


def edit_table(values: Floats, rows: tuple[str, ...], key: str, *, fixed: bool) -> Floats:
    """Draw an editable table. Unless fixed, it has an empty column to fill in; empty cells are ignored."""
    table = pd.DataFrame(values, index=rows or None, columns=[str(i) for i in range(values.shape[1])])
    if values.shape[1] > 1 and not fixed:
        table["+"] = np.nan
    longest = max(len(f"{value:g}") for value in values.flat)
    width = max(NARROWEST, (longest + 3) * DIGIT)
    edited = st.data_editor(
        table,
        num_rows="fixed" if rows or fixed else "add",
        hide_index=not rows,
        column_config={name: st.column_config.NumberColumn(width=width) for name in table},
        width="content",
        row_height=ROW,
        placeholder="",
        key=key,
    )
    if len(edited) > limits.LAB_ROWS:
        raise ShapeError(
            N_("The table has {rows} rows, and at most {limit} are computed: take some away."),
            rows=len(edited),
            limit=limits.LAB_ROWS,
        )
    numbers = edited.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    return numbers if fixed else trimmed(numbers)


topic, example = choose()
name, title, line = example.name, _(example.title), _("{title}: {remark}")
run.current().caption = title
draw_live(topic)
st.caption(
    _(
        "Change any number, and everything after it is recomputed; an orange frame marks a printed number that is "
        "wrong. "
        "Clear a row or column to remove it; fill one in to add it."
    )
)
main, side = st.columns([68, 32], gap="large")
with side:
    formula_box.formula(example.formula, section=example.section, code=example.code)
    st.button(_("Reset"), key="lab_reset", on_click=slots.renew, args=("lab",))
with main:
    chosen, typed = st.container(horizontal=True), st.container(horizontal=True, key="lab_inputs")
with chosen:
    at = draw_places(example.inputs, {})
inputs: dict[str, Floats] = {}  # the visitor's
for input_name, values in example.inputs.items():
    place, label = example.place(input_name, at), _(input_name)
    key = "_".join(map(str, ("lab", example.name, input_name, *at.values(), slots.version("lab"))))
    with typed, st.container(width="content", gap="xxsmall"):
        if values.size == 1:
            edited = np.full((1, 1), st.number_input(label, value=int(values.item()), key=key, width=130))
        else:
            symbol = SYMBOL.get(input_name)  # a caption would be too faint in colour
            st.markdown(formula_box.coloured_text(label, symbol) if symbol else label, width="content")
            edited = edit_table(values[place], example.labels(input_name, example.inputs), key, fixed=bool(place))
        inputs[input_name] = edited
        if place and values.size > 1:
            inputs[input_name] = values.copy()
            inputs[input_name][place] = edited
    tables.present(label, [[f"{value:g}" for value in row] for row in edited])
if lab.LabView(example, inputs, at).changed:
    run.current().unlinked = _("The link opens the example with its own numbers: those that you typed are not in it.")
try:
    results = compute(example, inputs)
except VisformerError as error:
    st.badge(_("Check the numbers") if isinstance(error, NumberError) else _("The shapes do not fit"), color="red")
    st.text(error.localized(_))
    run.current().caption = line.format(title=title, remark=error.localized(_))
    if example.instead:
        st.button(_("Show the closest one that fits"), on_click=CHOSEN.set, args=(example.instead,))
else:
    with chosen:
        view = lab.LabView(example, inputs, draw_places(results, at))
    shown = lab.drawn(view, results, _)
    if example.curves is not None:
        curves = lab.curves(example, inputs, results, theme=formula_box.theme(), gettext=_)
        controls.draw(curves, key=f"lab_{name}_curves")
    if shown:
        controls.draw(lab.in_rows(shown), key=f"lab_{name}")
    if view.changed:
        st.text(_("These inputs have been changed: the printed values belong to the original ones."))
    remarks = {
        title: remark for title, remark in example.remarks.items() if not (view.changed and title in example.printed)
    }
    st.text("\n".join(line.format(title=_(title), remark=_(remark)) for title, remark in remarks.items()))
if topic.name == "cost":
    draw_cost()
draw_words(topic)
