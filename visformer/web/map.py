"""Pack the messages of the whole model.

One has every head, what enters the stacks, the stream's lengths and the predictions; a small one has the open place.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.panel import telling_limit
from visformer.pictures import map as model_map
from visformer.pictures.style import RAMPS, SYMBOLS, visible
from visformer.trace import Trace
from visformer.web.chunks import Focus
from visformer.web.message import Numbers, write_message
from visformer.web.payload import heads_of
from visformer.web.places import Cell, Inside, Key

ROWS = 16
"""Dimensions shown of each vector, evenly spaced: more would be thinner than a pixel."""

FOCUS_BYTES = 250_000
"""Up to this size the message holds the weights of a whole layer, above it those of the head whose lines are drawn."""

_TEXT = {
    "play": N_("Play"),
    "play_rest": N_("Play the other {n} words"),
    "pause": N_("Pause"),
    "back": N_("One step back"),
    "on": N_("One step on"),
    "time": N_("Where the play is"),
    "step": N_("Step {step} of {steps}"),
    "to_end": N_("to the end of the play"),
    "speed": N_("Speed"),
    "zoom_in": N_("Zoom in (+, or Ctrl and wheel)"),
    "zoom_out": N_("Zoom out (-)"),
    "zoom_whole": N_("The whole model"),
    "keep": N_("PNG"),
    "keep_about": N_("Save this picture as a PNG file, at twice the screen resolution"),
    "svg": N_("SVG"),
    "svg_about": N_("Save this picture as an SVG file, sharp at every size"),
    "video": N_("Video"),
    "video_about": N_("Record the play from the beginning as a WebM file, as fast as it plays"),
    "cancel": N_("Cancel ({share} %)"),
    "no_video": N_("This browser cannot record WebM. Chrome, Edge and Firefox can, and so can a screen recorder."),
    "picture": N_("The whole model. Arrow keys choose a head, and in a head a cell; Space plays, + and - zoom."),
    "encoder": N_("Encoder"),
    "decoder": N_("Decoder"),
    "layer": N_("Layer {layer}"),
    "self_attn": N_("Self-attention"),
    "cross_attn": N_("Cross-attention"),
    "ffn": N_("Feed-forward"),
    "embed": N_("Embedding"),
    "position": N_("Position"),
    "input": N_("Their sum"),
    "encoder_does": N_("reads the text"),
    "decoder_does": N_("writes words"),
    "strips": N_("Token + position"),
    "strands": N_("One vector per token"),
    "keys_values": N_("keys, values"),
    "ffn_input": N_("x: {n} numbers of each token"),
    "ffn_first": N_("times W₁, plus b₁"),
    "ffn_relu": N_("{n} units after ReLU; {share} % are not 0"),
    "ffn_units": N_("{n} units after the activation"),
    "ffn_second": N_("times W₂, plus b₂"),
    "ffn_out": N_("{n} numbers, added to the stream"),
    "say_inside_relu": N_(
        "Each token by itself: W₁ makes {d_ff} units of its {d_model} numbers, ReLU sets those below 0 to 0, W₂ makes "
        "{d_model} numbers of the rest."
    ),
    "say_inside": N_(
        "Each token by itself: from its {d_model} numbers, the first matrix and the activation compute {d_ff} units; "
        "the second makes {d_model} numbers of these."
    ),
    "about_strand": N_(
        "The encoder's output (memory) for “{token}”: a vector of {d_model} numbers. Each cross-attention computes a "
        "key and a value from it; the decoder reads these."
    ),
    "norm": N_("length {norm}"),
    "folded": N_("{n} layers more"),
    "unnamed": N_("{n} more"),
    "head": N_("{stack}, layer {layer}, head {head}"),
    "one_head": N_("Head {head}"),
    "one_cell": N_("“{query}” reads “{key}”"),
    "about_cell": N_("“{query}” reads “{key}”: weight {weight}. Click, or press +, to see its sum."),
    "about_cell_touch": N_("“{query}” reads “{key}”: weight {weight}. Tap to see its sum."),
    "say_cell": N_("“{query}” reads “{key}”: q · k is {product}, the score {score}, the weight {weight}."),
    "say_cell_plain": N_("“{query}” reads “{key}”: weight {weight}."),
    "products": N_("q · k, the sum of {n} products"),
    "dimension": N_("dimension {i}"),
    "other_products": N_("{n} others"),
    "score": N_("Score"),
    "weight": N_("Weight"),
    "weights": N_("Softmax: the weights of the row of “{query}”"),
    "other_keys": N_("{n} other keys"),
    "sink": N_("sink"),
    "in_head": N_("Head {head}: “{query}” reads most “{key}” ({weight})."),
    "about_head": N_("Click to follow it, double-click to zoom in."),
    "about_ffn": N_("After it, the vectors of the stream are {norm} long on average."),
    "about_block": N_("Every sublayer: {block}; x enters it, f(x) is what it computes, LN is layer norm."),
    "about_special": N_("{token} is no part of the text: the model marks a beginning or an end with it."),
    "about_lacks": N_("It is not shown here: {reason}."),
    "about_strip": N_("{n} of the {d_model} numbers of each token, from {low} to {high}."),
    "at_rest_self": N_("Each word is joined to the word it reads most."),
    "at_rest_head": N_("The lines are those of {head}."),
    "say_play_input": N_("The text is cut into {n} tokens, and each becomes a list of {d_model} numbers."),
    "say_play_encoder": N_("Encoder: in each of its {layers} layers, every word reads all the others."),
    "say_play_decoder": N_("In each of {layers} layers, every word reads itself and those before it."),
    "say_play_first": N_("The decoder begins with “{token}” alone. In each layer it reads the encoder's vectors."),
    "say_tokens": N_("The text is cut into {n} tokens."),
    "say_embed": N_("Each token becomes a vector: a list of {d_model} numbers."),
    "say_position": N_("What tells the places apart is added: without it, the order of the words would be lost."),
    "say_encoder_self_attn": N_("Encoder, layer {layer}: in {heads} heads, every token reads every other."),
    "say_decoder_self_attn": N_("Layer {layer}: each token reads itself and those before it."),
    "say_cross_attn": N_("Layer {layer}: each token reads the source."),
    "say_ffn": N_("Feed-forward, layer {layer}: each token by itself. The vectors are {norm} long on average."),
    "say_ffn_plain": N_("Feed-forward, layer {layer}: each token by itself."),
    "say_memory": N_(
        "The encoder hands over one vector for each of the {n} tokens. Every layer of the decoder computes keys and "
        "values from them."
    ),
    "say_handed": N_(
        "So the encoder hands over {n_src} vectors, one for each token of the source. For each word that it writes, "
        "the decoder reads them anew."
    ),
    "say_start": N_("The decoder begins with “{token}” alone."),
    "say_first_self_attn": N_("Layer {layer}: nothing is written yet, so that “{token}” reads only itself."),
    "say_word_self_attn": N_("Layer {layer}: “{token}” reads the words written so far."),
    "say_word_cross_attn": N_("Layer {layer}: “{token}” asks the source."),
    "say_word_ffn": N_("Layer {layer}: the feed-forward network works on the vector of “{token}”."),
    "say_word_layers": N_("“{token}” goes through the same layers: it reads the words so far, then the source."),
    "say_softmax": N_("Softmax: “{next}” gets {probability}."),
    "say_back": N_("“{next}” is written, and goes back in as the next input."),
    "say_end": N_("“{next}” ends the text."),
    "say_done": N_("The last layer is done: one vector for each token, which now holds what it read in the others."),
    "say_logits": N_("Softmax at the last token: “{next}” would follow with {probability}."),
}

_ASKS = {"zh": N_("It asks for Chinese."), "en": N_("It asks for English.")}
"""What the first token of the decoder's input tells a translator, by the language."""

_JOINED = {
    "zh": N_("Each Chinese word is joined to the English word it reads most."),
    "en": N_("Each English word is joined to the Chinese word it reads most."),
}
_JOINED_OTHERS = N_("Each word below the decoder is joined to the word of the source it reads most.")
"""What the lines of a cross-attention join at rest, by the language of the translation."""


def pack_map(
    trace: Trace,
    *,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    focus: Focus | None = None,
    file: str = "",
    to: str = "",
) -> bytes:
    """Pack the message for ``mountMap``.

    Args:
        trace: with :data:`visformer.pictures.map.RECORD`, as far as the model has it.
        gettext: translates the words on the picture.
        lang: the language of ``gettext``.
        focus: the head whose weights are drawn as lines at first.
        file: prefix of the PNG's file name.
        to: see :func:`visformer.web.message.write_message`.
    """
    numbers = Numbers()
    stacks = {stack: model_map.layers(trace, stack) for stack in model_map.SIDES}
    header = {
        **heads_of(trace, numbers, gettext, focus, focus_bytes=FOCUS_BYTES),
        "columns": [_column(trace, stack, layers, numbers, gettext) for stack, layers in stacks.items() if layers],
        "steps": predicted(trace),
        "forced": bool(trace.meta.get("forced")),
        **said_of(str(trace.meta.get("to")), gettext),
        "focus": None if focus is None else {"stack": focus.stack, "layer": focus.layer, "head": focus.head},
        "ramps": RAMPS,
        "symbols": SYMBOLS,
        "file": file,
        "sentence": trace.about,
        "text": {"lang": lang, **{name: gettext(text) for name, text in (_TEXT | _said_of_input(trace)).items()}},
    }
    return write_message("map", header, numbers, to=to)


def _said_of_input(trace: Trace) -> dict[str, str]:
    """The words of the drawing that are others when the input is a picture."""
    return {"encoder_does": N_("reads the picture")} if "grid" in trace.meta else {}


def said_of(to: str, gettext: Callable[[str], str]) -> dict[str, str]:
    """Return the texts that depend on the language of the translation: what it is asked for by, and what lines join."""
    asked = _ASKS.get(to)
    return {"asks": gettext(asked) if asked else "", "joined": gettext(_JOINED.get(to, _JOINED_OTHERS))}


def _column(
    trace: Trace, stack: str, layers: tuple[model_map.DrawnLayer, ...], numbers: Numbers, gettext: Callable[[str], str]
) -> dict[str, Any]:
    side = model_map.SIDES[stack]
    return {
        "stack": stack,
        "side": side,
        "block": model_map.block(trace, stack),
        "strips": [_strip(name, rows, numbers) for name, rows in model_map.added(trace, side).items()],
        "layers": [
            {"number": layer.number, "sublayers": [_sublayer(sublayer, gettext) for sublayer in layer.sublayers]}
            for layer in layers
        ],
    }


def _sublayer(sublayer: model_map.DrawnSublayer, gettext: Callable[[str], str]) -> dict[str, Any]:
    lengths = None if sublayer.norms is None else [float(f"{norm:.4g}") for norm in sublayer.norms]
    return {"kind": sublayer.kind, "norms": lengths, "lacks": gettext(sublayer.lacks) if sublayer.lacks else ""}


def _strip(name: str, rows: NDArray[np.floating], numbers: Numbers) -> dict[str, Any]:
    """Describe vectors, a column for each token, and append evenly spaced ones of their numbers."""
    places = np.linspace(0, rows.shape[1] - 1, min(ROWS, rows.shape[1])).round().astype(int)  # sin and cos
    shown = np.asarray(rows[:, places].T, dtype="<f4")  # (dimension, token)
    return {
        "name": name,
        "at": numbers.add(shown),
        "shape": shown.shape,
        "limit": telling_limit(rows),
        "low": float(f"{rows.min():.4g}"),
        "high": float(f"{rows.max():.4g}"),
        "d_model": rows.shape[1],
    }


def predicted(trace: Trace) -> list[Mapping[str, Any]]:
    """Return what each row of the decoder predicts: its likeliest tokens, and how likely the one that follows was."""
    return [
        {
            "tokens": [visible(token) for token in step.tokens],
            "probabilities": [float(f"{share:.4g}") for share in step.probabilities],
            "following": None if step.following is None else float(f"{step.following:.4g}"),
            "chosen": step.chosen,
        }
        for step in model_map.steps(trace)
    ]


def pack_place(
    zoom: str,
    *,
    opened: int = 0,
    focus: Mapping[str, Any] | None = None,
    way: Mapping[str, str] | None = None,
    cell: Cell | None = None,
    inside: Inside | None = None,
    lacks: str = "",
    gettext: Callable[[str], str] = str,
    to: str = "",
) -> bytes:
    """Pack the message that follows that of :func:`pack_map`.

    Args:
        zoom: the place as a text, see :class:`visformer.web.places.Zoom`; "": the whole model.
        opened: how often a state was restored: the browser goes to the place each time, and follows the head in focus.
        focus: that head, see :func:`pack_map`.
        way: "label" and "href" of the page that shows this place.
        cell: if the place is a cell.
        inside: if the place is a feed-forward network.
        lacks: why the cell has no sum.
        gettext: translates.
        to: see :func:`visformer.web.message.write_message`.
    """
    numbers = Numbers()
    header = {
        "zoom": zoom,
        "opened": opened,
        "focus": focus,
        "way": way,
        "cell": cell and _summed(cell, lacks, gettext),
        "inside": inside and _inside(inside, numbers),
    }
    return write_message("place", header, numbers, to=to)


def _inside(inside: Inside, numbers: Numbers) -> dict[str, Any]:
    rows = {
        name: {
            "at": numbers.add(np.asarray(values, dtype="<f4")),
            "shape": values.shape,
            "limit": telling_limit(values, share=0.9),
        }
        for name, values in inside.rows.items()
    }
    return {"rows": rows, "active": None if inside.active is None else round(100 * inside.active)}


def _summed(cell: Cell, lacks: str, gettext: Callable[[str], str]) -> dict[str, Any]:
    total = cell.sum and {
        "terms": [
            {"dimension": term.dimension, "q": _short(term.q), "k": _short(term.k), "product": _short(term.product)}
            for term in cell.sum.terms
        ],
        "n": cell.sum.d_k - len(cell.sum.terms),
        "others": _short(cell.sum.others),
        "d_k": cell.sum.d_k,
        "product": _short(cell.sum.product),
        "score": _short(cell.sum.score),
        "written": gettext(cell.sum.written),
        "hidden": cell.sum.hidden,
        "masked": gettext(cell.sum.masked),
        "softmax": cell.sum.softmax,
    }
    return {
        "weight": _short(cell.weight),
        "sum": total,
        "keys": [_key(key) for key in cell.keys],
        "n": cell.n_others,
        "others": _short(cell.others),
        "sink": None if cell.sink is None else _short(cell.sink),
        "lacks": lacks,
    }


def _key(key: Key) -> dict[str, Any]:
    """A key; the score of a masked one is "−∞", which is no JSON number."""
    score: float | str | None = key.score
    if key.score is not None:
        score = _short(key.score) if isfinite(key.score) else "−∞"
    return {"place": key.place, "score": score, "weight": _short(key.weight)}


def _short(number: float) -> float:
    return float(f"{number:.7g}")
