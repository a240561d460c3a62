"""The side bar: the lessons, the pages, and the model that the numbers come from: which, its download, its sizes."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from visformer.adapters.checkpoints import CAPTIONER, GPT, GPT_2, TRANSLATOR, model_of, steps
from visformer.adapters.learning.recipe import Recipe, is_trained_name
from visformer.adapters.names import is_broken_name
from visformer.app.lessons import lesson_menu
from visformer.app.presentation import following
from visformer.app.serving.checks import check_untrained
from visformer.app.serving.model_downloads import Download, Phase, download_of, is_to_be_downloaded
from visformer.app.serving.models import label, offered, require_allowed
from visformer.app.serving.trainings import RUNS
from visformer.app.session import address, boxes
from visformer.app.session.boxes import MODEL_BOX, gettext
from visformer.app.session.markdown import plain
from visformer.app.session.page import all_pages, current_page
from visformer.app.session.slots import Slot
from visformer.app.shell import timeline
from visformer.app.widgets import component, locator
from visformer.errors import N_, ConfigError, VisformerError
from visformer.i18n import Gettext
from visformer.model.positions import POSITIONS
from visformer.model.untrained import Untrained, is_untrained_name
from visformer.pictures.registry.picture import SECTIONS
from visformer.pictures.registry.picture import pages as registered
from visformer.system import settings
from visformer.system.limits import UNTRAINED, size

_KINDS = {
    TRANSLATOR: N_("Translator {name}"),
    GPT: N_("Decoder {name}"),
    GPT_2: N_("Decoder {name}"),
    CAPTIONER: N_("Captioner {name}"),
}
_ABOUT = {
    TRANSLATOR: N_(
        "Our own Transformer translates between English and Chinese. It is small and makes mistakes; its attention is "
        "real all the same: every number here was computed by it."
    ),
    GPT: N_(
        "Our own decoder-only model, of GPT's type: it reads English and Chinese and predicts what follows. It is "
        "small; some of its heads look for what came after the same token before (induction heads)."
    ),
    GPT_2: N_(
        "The same model as mini-gpt, trained on the same data from another random start: what both do is no accident "
        "of one training."
    ),
    CAPTIONER: N_(
        "Our own Transformer describes a picture of one to three shapes in English or Chinese. Its encoder reads the "
        "picture's patches as the translator's reads words."
    ),
}
"""What the chooser says about the bundled models."""


def draw() -> None:
    """Draw the side bar; its links carry the state that all pages share."""
    _, link = boxes.gettext(), address.to_query()
    with st.sidebar:
        with st.container(key="brand"):
            st.header("Visformer", anchor=False)
        lesson_menu.entry()
        for section, title in SECTIONS.items():
            # less, and the links overlap
            with _section(section, _(title)), st.container(gap="xsmall", key=f"pages_{section}"):
                for each in (page for page in registered().values() if page.section == section):
                    st.page_link(all_pages()[each.name], query_params=link, help=plain(_(each.about)))
        _model_chooser()


def _section(name: str, title: str) -> Any:
    """Return where the pages of a section are: those for research are folded unless one of them is open."""
    if name == "research":
        return st.expander(
            plain(title), expanded=registered()[current_page()].section == name, key=name, type="compact"
        )
    st.caption(plain(title))
    return nullcontext()


def _model_chooser() -> None:
    """Draw the choice between the bundled translator, an untrained Transformer and the operator's models."""
    _ = boxes.gettext()
    first, *others = offered()
    if MODEL_BOX.get() is None:
        boxes.MODEL_BOX.set(first)
    chosen = str(MODEL_BOX.get())
    boxes.keep_choice(boxes.MODEL)
    shown = registered()[current_page()]
    has_own = bool(boxes.own_model()) or not shown.has_sentence  # numbers of its own
    st.selectbox(
        _("Other pages' model") if has_own else _("Model"),
        list(dict.fromkeys([first, boxes.untrained(), *others, *RUNS.models(following.owner()), chosen])),
        format_func=partial(_shown_name, _),
        key=boxes.MODEL,
        on_change=partial(boxes.fit_sentence, before=boxes.may_show_pictures()),
        accept_new_options=settings.ANY_MODEL(),
        help=_(
            "Every page looks inside this model, but Course notes, Atlas and Learning, and Picture and words unless it "
            "reads pictures."
        ),
    )
    with st.container(gap=None):  # feeds take up no room
        component.locator_view()
        locator.send("picture")
    timeline.switch()
    if is_untrained_name(chosen):
        _untrained_sliders()
    elif is_trained_name(chosen):
        with suppress(VisformerError):
            recipe = Recipe.named(chosen)
            said = _("Trained here for {step} steps, seed {seed}: {task}. It knows nothing else.")
            st.caption(said.format(step=plain(recipe.step), seed=plain(recipe.seed), task=_(recipe.about.title)))
    elif is_broken_name(chosen):
        st.caption(_("One thing in this model is wrong. The pictures show what: find it."))
    elif model_of(chosen)[0] in _ABOUT:
        st.caption(_(_ABOUT[model_of(chosen)[0]]))
    elif chosen != first:
        with suppress(VisformerError):  # the page shows the error
            require_allowed(chosen)
            _offer_download(chosen)


def _shown_name(_: Gettext, name: str) -> str:
    """Return the name under which a visitor sees a model."""
    if is_untrained_name(name):
        return _("Untrained model")
    if is_trained_name(name):
        with suppress(VisformerError):
            recipe = Recipe.named(name)
            is_usual = recipe.variant == next(iter(recipe.about.variants))
            how = recipe.about.title if is_usual else recipe.options.label
            return _("Trained here: {how}").format(how=_(how))
    model, moment = model_of(name)
    if moment is not None:  # of the translator, say: its name is too long beside the step
        step = dict(enumerate(steps(model))).get(moment, moment)
        return _("{model} · step {step}").format(model=label(model), step=f"{step:,}")
    return _(_KINDS[name]).format(name=name) if name in _KINDS else label(name)


_VISITOR = Slot("visitor", "")
_INTERVAL = 0.5  # seconds between updates of a running download


def _offer_download(name: str) -> None:
    """Draw the panel, unless the model is on this server already."""
    if is_to_be_downloaded(name):
        download = download_of(name)
        st.fragment(_download_panel, run_every=_INTERVAL if download.is_busy else None)(
            download, was_busy=download.is_busy
        )


def _download_panel(download: Download, *, was_busy: bool) -> None:
    phase = download.phase
    if phase is Phase.HERE or download.is_busy != was_busy:
        if phase is Phase.HERE:
            download_of.clear(download.name)
        st.rerun()  # the whole page: for the model, or for a fragment that updates as often as it has to
    from huggingface_hub import constants

    _, visitor, hub = gettext(), _visitor_id(), plain(urlsplit(constants.ENDPOINT).netloc)
    match phase:
        case Phase.OFFERED:
            st.caption(_("{size} from {hub}, to be kept here for everyone.").format(size=size(download.total), hub=hub))
            st.button(_("Download"), on_click=download.start, args=(visitor,), type="primary", width="stretch")
        case Phase.RUNNING:
            progress = _("{done} of {total}").format(done=size(download.done), total=size(download.total))
            st.progress(min(1.0, download.done / max(1, download.total)), text=progress)
            if download.is_wanted_by(visitor):
                st.button(_("Cancel"), on_click=download.cancel, args=(visitor,), width="stretch")
            else:
                st.caption(_("Another visitor is downloading it."))
        case Phase.FAILED:  # the page shows the error: there is no room for it here
            st.button(_("Try again"), on_click=download.ask_again, width="stretch")
        case _:
            st.caption(_("Asking {hub} for its size …").format(hub=hub))


def _visitor_id() -> str:
    """Return an id of this session: only sessions that started or joined a download can cancel it."""
    _VISITOR.set(_VISITOR.get() or secrets.token_hex(8))
    return _VISITOR.get()


_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_INNER_WIDTHS = (32, 64, 128, 256, 512, 1024, 2048)
_NORMS = {"post": N_("post-norm"), "pre": N_("pre-norm")}
_POSITIONS: Mapping[str, str] = {name: kind.label for name, kind in POSITIONS.items()}


def _untrained_sliders() -> None:
    """Draw the sliders and their summary. An invalid name, or too large a model, is left to the page to refuse."""
    _ = gettext()
    try:
        shown = Untrained.named(MODEL_BOX.get() or "")
        check_untrained(shown)
    except ConfigError:
        shown = Untrained()
    for name, value in asdict(shown).items():
        _size_slot(name).set(value)
    with st.popover(_("Size and seed"), width="stretch"):
        left, right = st.columns(2)
        with left:
            _size_slider("d_model", _WIDTHS, label=_("Width: d_model"))
            _size_slider("n_encoder_layers", label=_("Encoder layers"))
            _size_slider("d_ff", _INNER_WIDTHS, label=_("Inner width: d_ff"))
        with right:
            heads = [n for n in range(1, UNTRAINED["n_heads"][1] + 1) if shown.d_model % n == 0]
            _size_slider("n_heads", heads, label=_("Heads: n_heads"))
            _size_slider("n_decoder_layers", label=_("Decoder layers"))
            st.number_input(_("Random seed"), *UNTRAINED["seed"], key=_size_slot("seed").key, on_change=_take_sizes)
        _size_choice("norm", _NORMS, label=_("Layer normalisation"))
        _size_choice("position", _POSITIONS, label=_("Positional encoding"))
    summary = _(
        "d_model {d_model}, {n_heads} heads, {n_encoder_layers} + {n_decoder_layers} layers, random weights: "
        "what attention looks like before anything is learned."
    )
    st.caption(summary.format(**{name: plain(value) for name, value in asdict(shown).items()}))


def _size_slider(name: str, steps: Sequence[int] = (), *, label: str) -> None:
    """Draw a slider over these steps, or over all allowed values; a link may set a value between two steps."""
    least, most = UNTRAINED[name]
    options = sorted({*(steps or range(least, most + 1)), _size_slot(name).get()})
    st.select_slider(label, options, key=_size_slot(name).key, on_change=_take_sizes)


def _size_choice(name: str, options: Mapping[str, str], *, label: str) -> None:
    _ = gettext()
    st.segmented_control(
        label,
        list(options),
        format_func=lambda value: _(options[value]),
        key=_size_slot(name).key,
        on_change=_take_sizes,
        required=True,
    )


def _take_sizes() -> None:
    """Choose the model that the sliders describe, with the most heads, up to the chosen number, that divide d_model."""
    chosen = {name: _size_slot(name).get() for name in asdict(Untrained())}
    chosen["n_heads"] = max(n for n in range(1, chosen["n_heads"] + 1) if chosen["d_model"] % n == 0)
    MODEL_BOX.set(Untrained(**chosen).name)


def _size_slot(name: str) -> Slot[Any]:
    return Slot(f"untrained_{name}", None)
