"""Sliders for the sizes of the untrained Transformer; together they choose a model by its name."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from visformer.app.serving.checks import check_untrained
from visformer.app.session.boxes import MODEL_BOX, gettext, model
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot
from visformer.errors import N_, ConfigError
from visformer.model.positions import POSITIONS
from visformer.model.untrained import Untrained
from visformer.system.limits import UNTRAINED

_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_INNER_WIDTHS = (32, 64, 128, 256, 512, 1024, 2048)
_NORMS = {"post": N_("post-norm"), "pre": N_("pre-norm")}
_POSITIONS: Mapping[str, str] = {name: kind.label for name, kind in POSITIONS.items()}


def settings() -> None:
    """Draw the sliders and their summary. An invalid name, or too large a model, is left to the page to refuse."""
    _ = gettext()
    try:
        shown = Untrained.named(model() or "")
        check_untrained(shown)
    except ConfigError:
        shown = Untrained()
    for name, value in asdict(shown).items():
        _slot(name).set(value)
    with st.popover(_("Size and seed"), width="stretch"):
        left, right = st.columns(2)
        with left:
            _slider("d_model", _WIDTHS, label=_("Width: d_model"))
            _slider("n_encoder_layers", label=_("Encoder layers"))
            _slider("d_ff", _INNER_WIDTHS, label=_("Inner width: d_ff"))
        with right:
            heads = [n for n in range(1, UNTRAINED["n_heads"][1] + 1) if shown.d_model % n == 0]
            _slider("n_heads", heads, label=_("Heads"))
            _slider("n_decoder_layers", label=_("Decoder layers"))
            st.number_input(_("Random seed"), *UNTRAINED["seed"], key=_slot("seed").key, on_change=_take)
        _choice("norm", _NORMS, label=_("Layer normalisation"))
        _choice("position", _POSITIONS, label=_("Positional encoding"))
    summary = _(
        "d_model {d_model}, {n_heads} heads, {n_encoder_layers} + {n_decoder_layers} layers, random weights: "
        "what attention looks like before anything is learned."
    )
    st.caption(summary.format(**{name: plain(value) for name, value in asdict(shown).items()}))


def _slider(name: str, steps: Sequence[int] = (), *, label: str) -> None:
    """Draw a slider over these steps, or over all allowed values; a link may set a value between two steps."""
    least, most = UNTRAINED[name]
    options = sorted({*(steps or range(least, most + 1)), _slot(name).get()})
    st.select_slider(label, options, key=_slot(name).key, on_change=_take)


def _choice(name: str, options: Mapping[str, str], *, label: str) -> None:
    _ = gettext()
    st.segmented_control(
        label,
        list(options),
        format_func=lambda value: _(options[value]),
        key=_slot(name).key,
        on_change=_take,
        required=True,
    )


def _take() -> None:
    """Choose the model that the sliders describe, with the most heads, up to the chosen number, that divide d_model."""
    chosen = {name: _slot(name).get() for name in asdict(Untrained())}
    chosen["n_heads"] = max(n for n in range(1, chosen["n_heads"] + 1) if chosen["d_model"] % n == 0)
    MODEL_BOX.set(Untrained(**chosen).name)


def _slot(name: str) -> Slot[Any]:
    return Slot(f"untrained_{name}", None)
