"""Effects: what weights, values and layers do to the prediction."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from visformer.adapters.checkpoints import TRANSLATOR
from visformer.analysis.effects.weight_effects import DRAWS, EXACT_TOKENS
from visformer.analysis.methods import METHODS as BY_NAME
from visformer.app.session import address, boxes, selection
from visformer.app.session.markdown import plain
from visformer.app.session.page import page_named
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, formula_box, pick, tables, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures import effects
from visformer.pictures.compare import PAGE as COMPARE
from visformer.pictures.effects import EFFECTS, LENS, METHODS, PAGE, PARTS, PATCHING, SHUFFLED
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace
from visformer.trace.stacks import shape_of
from visformer.web.panels import Click

FORMULA = r"\Delta = \log p\,(y \mid \sym{pattern}{\alpha_{qk}} = 0) - \log p\,(y)"
OF_LABEL = r"\Delta = z_y(\sym{pattern}{\alpha_{qk}} = 0) - z_y"
FORMULAS = {
    "shuffled": r"\mathrm{TV} = \tfrac12 \textstyle\sum_w | p\,(w \mid \sym{pattern}{\alpha_{\pi}}) - p\,(w) |",
    "patching": r"\frac{\sym{out}{\mathrm{patched}} - \mathrm{corrupt}}{\mathrm{clean} - \mathrm{corrupt}}",
    "lens": r"\mathrm{LN}(\sym{embed}{x_l})\, W_U",
}
CODE = (
    ("analysis/effects/weight_effects.py", "weight_effects"),
    ("analysis/effects/weight_effects.py", "shuffle_effect"),
    ("analysis/effects/patching.py", "patching"),
    ("analysis/effects/lens.py", "logit_lens"),
    ("analysis/effects/lens.py", "direct_attribution"),
)
CODE_OF = {"weights": CODE[:1], "shuffled": CODE[1:2], "patching": CODE[2:3], "lens": CODE[3:5]}
SOURCES = {
    "weights": N_("Serrano & Smith 2019"),
    "shuffled": N_("Jain & Wallace 2019, § 4.2"),
    "patching": N_("Meng et al. 2022, § 2"),
    "lens": N_("nostalgebraist 2020; Elhage et al. 2021"),
}
NO_LOGITS = N_("This model predicts neither tokens nor labels, so there is no prediction to have an effect on.")
NO_LENS = N_("The lens is of models that predict next tokens; this one predicts labels or hidden tokens.")

LIMITS = N_(
    "Measured on this model and this text alone: what a change does, not why. Parts that can stand in for each other "
    "all seem to do nothing."
)

# Products that a page computes without being asked: about a second. A layer has 12 · d_model² for each token.
AT_ONCE = 1.2e11
BACK = 3  # a pass and its gradient take about as long as three passes

CLICKED: Slot[tuple[tuple[object, ...], Click | None]] = Slot("patching_clicked", ((), None), resets=True)
ASKED: Slot[tuple[object, ...] | None] = Slot("effects_asked", None, resets=True)
R = TypeVar("R")

_ = boxes.gettext()


def draw() -> None:
    """Draw the page. A session keeps what is called on a click: no global of this script may hold a Trace."""
    trace = controls.current_trace()
    if trace is None:
        return
    switch, maths = st.columns([52, 48], gap="small", vertical_alignment="center")
    with switch:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="effects_view"))
    bar = st.container()
    views: dict[str, Callable[[Trace, Any], None]] = {
        "weights": weights,
        "shuffled": shuffled,
        "methods": partial(methods, maths=maths),  # with the formula of the method that is chosen
        "patching": patching,
        "lens": lens,
    }
    if view is not METHODS:
        with maths:
            tex = FORMULAS.get(view.view, FORMULA if unavailable.predicts(trace) else OF_LABEL)
            formula_box.formula(tex, source=SOURCES[view.view], code=CODE_OF[view.view], page="effects")
    lacks = "" if view is METHODS else NO_LOGITS if not unavailable.has_logits(trace) else ""
    if view is LENS and not lacks and not unavailable.predicts(trace):
        lacks = NO_LENS
    if lacks:
        unavailable.say(lacks)
        unavailable.elsewhere()
        return
    controls.look_for(_(view.look_for))
    try:
        views[view.view](trace, bar)
    except VisformerError as error:  # such as a model whose weights cannot be changed
        st.info(plain(error.localized(_)))
    st.caption(_(LIMITS))


def weights(trace: Trace, bar: Any) -> None:
    """Draw the weights of a head and their effects; one cell is told in words: that locked in the explorer, if any."""
    setting, locked = select(EFFECTS, trace, bar), selection.chosen()
    cell = locked.query, locked.key
    n_queries, n_keys = trace[f"{setting.path}.pattern"].shape[1:]
    runs = n_queries * n_keys if max(n_queries, n_keys) <= EXACT_TOKENS else BACK * n_queries
    measured = measure(
        trace, runs, setting, lambda: (effects.draw_weights(setting, cell), effects.describe_weight(setting, cell))
    )
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_weights", on_click=lock)


def lock(click: Click) -> None:
    if click.row is not None and click.column is not None:
        selection.keep_place(query=click.row, key=click.column)


def shuffled(trace: Trace, bar: Any) -> None:
    """Draw how far the output moves with other weights, and say what that means."""
    setting = select(SHUFFLED, trace, bar)
    runs = DRAWS if setting["weights"] == "shuffled" else 1
    measured = measure(trace, runs, setting, lambda: (SHUFFLED.draw(setting), effects.describe_shuffled(setting)))
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_shuffled")


def methods(trace: Trace, bar: Any, maths: Any) -> None:
    """Draw what each row takes from each token by a method and, of the translator, how well all of them do."""
    setting = controls.setting_of(METHODS, trace)
    with bar, st.container(horizontal=True, vertical_alignment="bottom"):
        pick.selected_stack(setting)
        url_widgets.draw(METHODS.option("method"), setting, "effects", width=320)
        if BY_NAME[setting["method"]].of == "model":
            answer(setting)
    method, tokens = BY_NAME[setting["method"]], [len(trace.tokens.get(side, ())) for side in ("src", "tgt")]
    with maths:
        code = (formula_box.place_of(method.compute),)
        formula_box.formula(method.formula, source=_(method.paper), code=code, page="effects")
    runs = sum(tokens) + BACK * tokens[-1] if method.of == "model" else 1
    shown = measure(trace, runs, setting, lambda: METHODS.draw(setting))
    if shown is None:
        return
    controls.draw(shown, key="effects_methods")
    if boxes.model() == TRANSLATOR and setting.kind == "cross_attn":
        compare_methods(str(trace.meta["to"]))


def compare_methods(to: str) -> None:
    """Draw how the methods do, and say that none is best by every measure."""
    sizes, found = effects.method_measures(to)
    names = effects.method_titles() | {"random": N_("a random order")}
    said = _(
        "The same methods on {hand} pairs that a person aligned (the curves, too) and on {grammar} of the grammar, "
        "each with its interval (0.95)"
    )
    title = said.format(hand=plain(sizes["by hand"]), grammar=plain(sizes["grammar"]))
    rows = []
    for one in found:
        row = {_("method"): _(names[one.method])}
        for name, label in effects.MEASURES.items():
            interval = "{:.2f} ({:.2f} – {:.2f})".format(*one.values[name]) if name in one.values else ""
            row[_(label)] = interval.replace("-", "−")
        rows.append(row)
    st.caption(title)
    tables.draw(pd.DataFrame(rows), title=title)

    def best(measure: str, sign: int) -> str:
        """Name the best method, apart from hiding tokens, which wins by construction."""
        having = [
            one for one in found if one.method in BY_NAME and not BY_NAME[one.method].hides and measure in one.values
        ]
        return _(effects.method_titles()[min(having, key=lambda one: sign * one.values[measure][0]).method])

    said = _(
        "Apart from hiding tokens, best by alignment error: {error}; by deletion: {deletion}; "
        "by insertion: {insertion}."
    )
    st.text(
        said.format(error=best("by hand prediction", 1), deletion=best("deletion", 1), insertion=best("insertion", -1))
    )
    st.caption(
        _(
            "Of an alignment error, lower is better; of methods of one layer, the layer was chosen on other pairs. "
            "It says that a method points to the words that a person would link, not that it explains the model. "
            "Hiding tokens wins the curves by construction: it has measured their first step. "
            "No method is best by every measure."
        )
    )


def patching(trace: Trace, bar: Any) -> None:
    """Draw what patching brings back, of a bundled pair or of the sentence and a second one."""
    setting = controls.setting_of(PATCHING, trace)
    with bar:
        place, pair, own = st.columns([30, 35, 35], gap="medium", vertical_alignment="bottom")
    with place:
        pick.selected_stack(setting)
    setting["bundled"] = 0
    has_pairs = bool(effects.bundled_pairs(setting))
    if has_pairs:
        url_widgets.draw(PATCHING.option("bundled"), setting, "effects", place=pair)
    url_widgets.draw(PATCHING.option("corrupt"), setting, "effects", place=own if has_pairs else pair)
    with bar, st.container(horizontal=True, vertical_alignment="bottom"):
        answer(setting)
        url_widgets.draw(PATCHING.option("runs"), setting, "effects")
    if not has_pairs and not setting["corrupt"].strip():
        st.info(_(effects.NO_PAIRS))
        return
    n_layers, n_heads, _queries, n_keys = shape_of(trace.layers(setting["stack"]))
    runs = n_layers * (n_heads + n_keys) if setting["runs"] != "gradient" else 2 * BACK
    measured = measure(trace, runs, setting, lambda: (PATCHING.draw(setting), effects.describe_runs(setting)))
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_patching", on_click=partial(keep_click, request_of(setting)))
        of, click = CLICKED.get()
        if click is not None and of == request_of(setting):
            carry_over(setting, click)


def keep_click(request: tuple[object, ...], click: Click) -> None:
    CLICKED.set((request, click))


def carry_over(setting: Setting, click: Click) -> None:
    """Say what the clicked value brings back, and link to the whole run with it."""
    if click.row is None or click.column is None:  # a label
        return
    of = effects.patched_value(setting, click.panel, click.row, click.column)
    pair, places = effects.patch_maps(setting).pair, {"layer": of.layer + 1, "what": f"{of.index + 1} · {of.label}"}
    said = _("Head {what} of layer {layer}: {share:.2f} of the answer comes back.")
    if click.panel != "heads":
        said = _("Token {what}, before layer {layer}: {share:.2f} of the answer comes back.")
    st.text(said.format(share=of.share, **places).replace("-", "−"))
    chosen = {"view": "edited", "patch": of.patch, "patch_from": str(pair.clean)}
    chosen |= {"patch_layer": str(of.layer + 1), "patch_at": str(of.index + 1)}
    choices = {f"{COMPARE.name}_{name}": value for name, value in chosen.items()}
    state = replace(address.common(), text=str(pair.corrupt), target="", choices=choices)
    if state.fits:
        label = _("The corrupt run with and without this value")
        st.page_link(page_named("compare"), label=label, query_params=address.to_query(state))


def lens(trace: Trace, _bar: Any) -> None:
    """Draw the logit lens and, of a pre-norm model, the parts of a logit."""
    setting = controls.setting_of(LENS, trace)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for option in LENS.options:
            url_widgets.draw(option, setting, "effects", width=260)
    with st.spinner(_("Measuring …")):
        controls.draw(LENS.draw(setting), key="effects_lens")
    parts = controls.setting_of(PARTS, trace)
    parts.update(setting)
    try:
        controls.draw(PARTS.draw(parts), key="effects_parts")
    except VisformerError as error:  # such as a post-norm model, of which no path adds linearly
        st.caption(plain(error.localized(_)))


# What views share -----------------------------------------------------------------------------------------------------


def select(picture: Picture, trace: Trace, bar: Any) -> Setting:
    """Draw the head in focus, which all pages share, and the picture's own options."""
    setting = controls.setting_of(picture, trace)
    with bar:
        place, own = st.columns([63, 37], gap="medium", vertical_alignment="bottom")
        asked = st.container(horizontal=True, vertical_alignment="bottom")
    with place:
        pick.selected(setting, picture)
    if "of" in picture.names:
        with asked:
            answer(setting)
    with own, st.container(horizontal=True, vertical_alignment="bottom"):
        url_widgets.draw_all(picture, setting, "effects")
    return setting


def answer(setting: Setting) -> None:
    """Draw what is explained: what each row predicts, or an answer in a row; of a classifier a label."""
    setting |= {"of": 0, "answer": ""}
    if effects.answer_rows(setting):
        url_widgets.draw(EFFECTS.option("of"), setting, "effects", width=220)
    if setting["of"] or not effects.predicts_next(setting):
        url_widgets.draw(EFFECTS.option("answer"), setting, "effects", width=220)


def measure(trace: Trace, runs: int, setting: Setting, compute: Callable[[], R]) -> R | None:
    """Measure; what takes longer than a second or two waits for a click, and can be cancelled.

    Args:
        trace: of the text.
        runs: number of passes.
        setting: what is measured.
        compute: measures it and makes its picture.

    Returns:
        Its result; None: the visitor has not asked for it.
    """
    blocks = trace.blocks
    layers = sum(stack.n_layers for stack in (blocks.encoder, blocks.decoder) if stack) if blocks else 1
    tokens = sum(len(trace.tokens.get(side, ())) for side in ("src", "tgt"))
    if runs * tokens * layers * 12 * (controls.width() or 0) ** 2 <= AT_ONCE:
        with st.spinner(_("Measuring …")):
            return compute()
    request = request_of(setting)
    start, place = st.empty(), st.empty()  # in one, the old button would stay beside Cancel, which moves once it goes
    if ASKED.get() != request:
        with start.container(horizontal=True, vertical_alignment="center"):
            st.button(_("Measure"), on_click=ASKED.set, args=(request,), type="primary", key="effects_measure")
            st.caption(_("{n} passes of this model, one after another").format(n=runs))
        return None
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, _("Measuring …"))
        st.button(_("Cancel"), on_click=ASKED.clear, key="effects_cancel")
    told_on = partial(setting.source.measure, on_progress=lambda share: bar.progress(share, _("Measuring …")))
    setting.source = replace(setting.source, measure=told_on)
    found = compute()
    place.empty()
    return found


def request_of(setting: Setting) -> tuple[object, ...]:
    return boxes.source(), boxes.target(), boxes.model(), *setting.items()


draw()
