"""The views of the page about effects: their controls, the picture, and what it says in words."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from visformer.adapters.bundled import TRANSLATOR
from visformer.analysis.effects.shuffling import DRAWS
from visformer.analysis.effects.weight_effects import EXACT_TOKENS
from visformer.analysis.methods import METHODS as BY_NAME
from visformer.app.session import address, boxes, selection
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, formula_box, pick, tables, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures.compare import PAGE as COMPARE
from visformer.pictures.effects import EFFECTS, LENS, METHODS, PARTS, PATCHING, SHUFFLED
from visformer.pictures.experiments import methods as attributions
from visformer.pictures.experiments import patched
from visformer.pictures.experiments import shuffled as shuffling
from visformer.pictures.experiments.weights import told
from visformer.pictures.experiments.weights import weights as drawn
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace
from visformer.trace.stacks import shape_of
from visformer.web.panels import Click
from visformer.web.selection import Selection

_AT_ONCE = 1.2e11
"""Products that a page computes without being asked: about a second. A layer has 12 · d_model² for each token."""

_BACK = 3  # a pass and its gradient take about as long as three passes
_CLICKED: Slot[tuple[tuple[object, ...], Click | None]] = Slot("patching_clicked", ((), None), resets=True)
_ASKED: Slot[tuple[object, ...] | None] = Slot("effects_asked", None, resets=True)
_R = TypeVar("_R")


def predicts(trace: Trace) -> bool:
    """Whether the model predicts next tokens."""
    has_logits = trace.blocks is None or trace.blocks.logits
    return "decoder" in unavailable.kind_of(trace) and has_logits and trace.lacks("logits") is None


def _selected(picture: Picture, trace: Trace, bar: Any) -> Setting:
    """Draw the head in focus, which all pages share, and the picture's own options."""
    setting = controls.setting_of(picture, trace)
    with bar:
        place, own = st.columns([63, 37], gap="medium", vertical_alignment="bottom")
    with place:
        pick.selected(setting, picture)
    with own, st.container(horizontal=True, vertical_alignment="bottom"):
        url_widgets.draw_all(picture, setting, "effects")
    return setting


def _lock(click: Click) -> None:
    if click.row is not None and click.column is not None:
        selection.keep_place(query=click.row, key=click.column)


def _request(setting: Setting) -> tuple[object, ...]:
    return boxes.source(), boxes.target(), boxes.model(), *setting.items()


def _measured(trace: Trace, runs: int, setting: Setting, draw: Callable[[], _R]) -> _R | None:
    """Draw what is measured; what takes longer than a second or two waits for a click, and can be cancelled.

    Args:
        trace: of the text.
        runs: number of passes.
        setting: what is measured.
        draw: measures and draws it.

    Returns:
        Its result; None: the visitor has not asked for it.
    """
    _, blocks = boxes.gettext(), trace.blocks
    layers = sum(stack.n_layers for stack in (blocks.encoder, blocks.decoder) if stack) if blocks else 1
    tokens = sum(len(trace.tokens.get(side, ())) for side in ("src", "tgt"))
    if runs * tokens * layers * 12 * (controls.width() or 0) ** 2 <= _AT_ONCE:
        with st.spinner(_("Measuring …")):
            return draw()
    request = _request(setting)
    start, place = st.empty(), st.empty()  # in one, the old button would stay beside Cancel, which moves once it goes
    if _ASKED.get() != request:
        with start.container(horizontal=True, vertical_alignment="center"):
            st.button(_("Measure"), on_click=_ASKED.set, args=(request,), type="primary", key="effects_measure")
            st.caption(_("{n} passes of this model, one after another").format(n=runs))
        return None
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, _("Measuring …"))
        st.button(_("Cancel"), on_click=_ASKED.clear, key="effects_cancel")
    measure = partial(setting.source.measure, on_progress=lambda share: bar.progress(share, _("Measuring …")))
    setting.source = replace(setting.source, measure=measure)
    drawn = draw()
    place.empty()
    return drawn


def weights(trace: Trace, bar: Any) -> None:
    """Draw the weights of a head and their effects; one cell is told in words: that locked in the explorer, if any."""
    setting, locked = _selected(EFFECTS, trace, bar), selection.chosen()
    cell = locked.query, locked.key
    n_queries, n_keys = trace[f"{setting.path}.pattern"].shape[1:]
    runs = n_queries * n_keys if max(n_queries, n_keys) <= EXACT_TOKENS else _BACK * n_queries
    measured = _measured(trace, runs, setting, lambda: (drawn(setting, cell), told(setting, cell)))
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_weights", on_click=_lock)


def of_cell(trace: Trace, place: Selection) -> str:
    """Say what the weight of the locked cell of a head does, in the visitor's language."""
    given: dict[str, Any] = {"stack": place.stack, "layer": place.layer, "head": place.head, "how": "zero"}
    return told(controls.setting_of(EFFECTS, trace, **given), (place.query, place.key), alone=True)


def shuffled(trace: Trace, bar: Any) -> None:
    """Draw how far the output moves with other weights, and say what that means."""
    setting = _selected(SHUFFLED, trace, bar)
    runs = DRAWS if setting["weights"] == "shuffled" else 1
    measured = _measured(trace, runs, setting, lambda: (SHUFFLED.draw(setting), shuffling.meaning(setting)))
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_shuffled")


def methods(trace: Trace, bar: Any, maths: Any) -> None:
    """Draw what each row takes from each token by a method and, of the translator, how well all of them do.

    Args:
        trace: of the text.
        bar: for the controls.
        maths: for the formula of the method.
    """
    setting = controls.setting_of(METHODS, trace)
    with bar, st.container(horizontal=True, vertical_alignment="bottom"):
        pick.selected_stack(setting)
        url_widgets.draw(METHODS.option("method"), setting, "effects", width=320)
    method, tokens = BY_NAME[setting["method"]], [len(trace.tokens.get(side, ())) for side in ("src", "tgt")]
    with maths:
        code = (formula_box.place_of(method.compute),)
        formula_box.formula(method.formula, source=method.paper, code=code, page="effects")
    runs = sum(tokens) + _BACK * tokens[-1] if method.of == "model" else 1
    shown = _measured(trace, runs, setting, lambda: METHODS.draw(setting))
    if shown is None:
        return
    controls.draw(shown, key="effects_methods")
    if boxes.model() == TRANSLATOR and setting.kind == "cross_attn":
        _compared(str(trace.meta["to"]))


def _compared(to: str) -> None:
    """Draw how the methods do, and say that none is best by every measure."""
    import pandas as pd  # the first picture does without

    _, (sizes, found) = boxes.gettext(), attributions.measures(to)
    names = attributions.titles() | {"random": N_("a random order")}
    said = _(
        "The same methods on {hand} pairs that a person aligned (the curves, too) and on {grammar} of the grammar, "
        "each with its interval (0.95)"
    )
    title = said.format(hand=plain(sizes["by hand"]), grammar=plain(sizes["grammar"]))
    rows = [
        {_("method"): _(names[one.method])}
        | {_(label): _interval(one.values.get(name)) for name, label in attributions.MEASURES.items()}
        for one in found
    ]
    st.caption(title)
    tables.draw(pd.DataFrame(rows), title=title)
    st.text(_best(found))
    st.caption(
        _(
            "Of an alignment error, lower is better; of methods of one layer, the layer was chosen on other pairs. "
            "It says that a method points to the words that a person would link, not that it explains the model. "
            "Hiding tokens wins the curves by construction: it has measured their first step. "
            "No method is best by every measure."
        )
    )


def _best(found: "list[attributions.Measure]") -> str:
    """Say which method is best by each measure, apart from hiding tokens, which wins by construction."""
    _, among = boxes.gettext(), [one for one in found if one.method in BY_NAME and not BY_NAME[one.method].hides]

    def named(measure: str, sign: int) -> str:
        having = [one for one in among if measure in one.values]
        best = min(having, key=lambda one: sign * one.values[measure][0])
        return _(attributions.titles()[best.method])

    said = _(
        "Apart from hiding tokens, best by alignment error: {error}; by deletion: {deletion}; "
        "by insertion: {insertion}."
    )
    places = {"error": ("by hand prediction", 1), "deletion": ("deletion", 1), "insertion": ("insertion", -1)}
    return said.format(**{name: named(*place) for name, place in places.items()})


def _interval(number: tuple[float, float, float] | None) -> str:
    return "" if number is None else "{:.2f} ({:.2f} – {:.2f})".format(*number).replace("-", "−")


def patching(trace: Trace, bar: Any) -> None:
    """Draw what patching brings back, of a bundled pair or of the sentence and a second one."""
    _, setting = boxes.gettext(), controls.setting_of(PATCHING, trace)
    with bar:
        place, pair, own = st.columns([30, 35, 35], gap="medium", vertical_alignment="bottom")
    with place:
        pick.selected_stack(setting)
    setting["bundled"] = 0
    has_pairs = bool(patched.pairs(setting))
    if has_pairs:
        url_widgets.draw(PATCHING.option("bundled"), setting, "effects", place=pair)
    url_widgets.draw(PATCHING.option("corrupt"), setting, "effects", place=own if has_pairs else pair)
    if not has_pairs and not setting["corrupt"].strip():
        st.info(_(patched.NO_PAIRS))
        return
    n_layers, n_heads, _queries, n_keys = shape_of(trace.layers(setting.part, setting.kind))
    runs = n_layers * (n_heads + n_keys)
    measured = _measured(trace, runs, setting, lambda: (PATCHING.draw(setting), patched.difference(setting)))
    if measured is not None:
        st.text(measured[1])
        controls.draw(measured[0], key="effects_patching", on_click=partial(_keep_click, _request(setting)))
        of, click = _CLICKED.get()
        if click is not None and of == _request(setting):
            _carry_over(setting, click)


def _keep_click(request: tuple[object, ...], click: Click) -> None:
    _CLICKED.set((request, click))


def _carry_over(setting: Setting, click: Click) -> None:
    """Say what the clicked value brings back, and link to the whole run with it."""
    if click.row is None or click.column is None:  # a label
        return
    _, of = boxes.gettext(), patched.place(setting, click.panel, click.row, click.column)
    pair, places = patched.patches(setting).pair, {"layer": of.layer + 1, "what": f"{of.index + 1} · {of.label}"}
    said = _("Head {what} of layer {layer}: {share:.2f} of the answer comes back.")
    if click.panel != "heads":
        said = _("Token {what}, before layer {layer}: {share:.2f} of the answer comes back.")
    st.text(said.format(share=of.share, **places).replace("-", "−"))
    chosen = {"view": "edited", "patch": of.patch, "patch_from": pair.clean}
    chosen |= {"patch_layer": str(of.layer + 1), "patch_at": str(of.index + 1)}
    choices = {f"{COMPARE.name}_{name}": value for name, value in chosen.items()}
    state = replace(address.common(), text=pair.corrupt, target="", choices=choices)
    if state.fits:
        label = _("The corrupt run with and without this value")
        st.page_link("pages/research/compare.py", label=label, query_params=address.address(state))


def lens(trace: Trace, _bar: Any) -> None:
    """Draw the logit lens and, of a pre-norm model, the parts of a logit."""
    _, setting = boxes.gettext(), controls.setting_of(LENS, trace)
    with st.spinner(_("Measuring …")):
        controls.draw(LENS.draw(setting), key="effects_lens")
    setting = controls.setting_of(PARTS, trace)
    place, picture = st.empty(), st.container()
    url_widgets.draw(PARTS.option("row"), setting, "effects", place=place, width=260)
    with picture:
        try:
            controls.draw(PARTS.draw(setting), key="effects_parts")
        except VisformerError as error:  # such as a post-norm model, of which no path adds linearly
            place.empty()
            st.info(plain(error.localized(_)))
