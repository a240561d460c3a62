"""The explorer's texts. Indices become 1-based only when the browser writes them."""

from collections.abc import Callable
from typing import Any

from visformer.errors import N_
from visformer.panel import map_scale, speakers, ticks
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand

_TEXT = {
    "stacks": N_("Which attention is shown"),
    "overview": N_("All heads: a row for each layer, a column for each head. Choose with the arrow keys."),
    "head": N_("{stack}, layer {layer}, head {head}. Shift and the arrow keys move between cells."),
    "place": N_("Layer {layer} · Head {head}"),
    "rows": N_("reads (query)"),
    "columns": N_("is read (key)"),
    "reads": N_("{query} reads {key}"),
    "reads_most": N_("{token} reads most: {most}"),
    "read_most": N_("{token} is read most by: {most}"),
    "strong": N_("{token} {weight}"),
    "hover": N_("Point at a cell or a token to see its exact weight."),
    "click": N_("Click to enlarge this head, Shift-click to show it with the others."),
    "locked": N_("locked, Escape unlocks"),
    "hover_touch": N_("Tap a cell or a token to see its exact weight."),
    "click_touch": N_("Tap to enlarge this head."),
    "locked_touch": N_("locked, another tap unlocks"),
    "sums": N_("Each row sums to 1."),
    "share": N_("Heads {first} to {last} share the same keys and values."),
    "window_back": N_("Layer {layer} has a sliding window: each token reads itself and the {n} before it."),
    "window_around": N_("Layer {layer} has a sliding window: each token reads up to {n} on either side."),
    "hint": N_("Click to lock, Shift-click to add. Press ? for the keys and the meaning of the scores."),
    "hint_touch": N_("Tap to lock. ? explains the scores."),
    "legend": N_("Colour scale from weight 0 to weight 1, on a square-root scale."),
    "views": N_("Type of view"),
    "more": N_("More controls"),
    "less": N_("Fewer controls"),
    "view_tokens": N_("Shaded text"),
    "view_tokens_about": N_("Choose a word: what does it read?"),
    "view_heatmap": N_("Heatmap"),
    "view_heatmap_about": N_("Each row is a word that reads, each column a word that is read."),
    "view_arcs": N_("Arcs"),
    "view_arcs_about": N_("A line leads from each word to what it reads. Shift-click adds heads."),
    "view_layer": N_("One layer"),
    "view_layer_about": N_("All heads of this layer side by side. Click one to enlarge it."),
    "combine": N_("Head"),
    "combine_one": N_("this one"),
    "combine_mean": N_("average"),
    "combine_max": N_("maximum"),
    "mean_of_layer": N_("Layer {layer} · average of its heads"),
    "max_of_layer": N_("Layer {layer} · maximum of its heads"),
    "mean_of_chosen": N_("Average of {n} chosen heads"),
    "max_of_chosen": N_("Maximum of {n} chosen heads"),
    "order": N_("Order"),
    "order_place": N_("by layer and head"),
    "order_similarity": N_("by similarity"),
    "order_similarity_about": N_(
        "Most similar to the selected head first: the Bhattacharyya coefficient of the patterns in the thumbnails."
    ),
    "limit": N_("Show"),
    "limit_none": N_("all weights"),
    "limit_weight": N_("weights at least"),
    "limit_mass": N_("largest summing to"),
    "merging": N_("whole words"),
    "merging_about": N_("Join sub-words into words: the sum over keys, the mean over queries."),
    "hiding": N_("hide special tokens"),
    "hiding_about": N_("Leave out tokens that stand for no text; the weight hidden with them is shown."),
    "roles": N_("Whose words are shown"),
    "role_about": N_("Leave out the words of this role, or show them again; the weight hidden with them is shown."),
    "renormalising": N_("renormalise rows"),
    "renormalising_about": N_("Divide each row by the sum of its remaining weights."),
    "rows_of": N_("Rows"),
    "rows_both": N_("input → prediction"),
    "rows_input": N_("input"),
    "rows_prediction": N_("prediction"),
    "rows_about": N_(
        "The input of a decoder's row is one token, its prediction the next: by which of the two it is named, joined "
        "to words and counted as special."
    ),
    "hidden": N_("weight hidden, mean over rows: {mass}"),
    "part": N_("Part {n} of {all}"),
    "hidden_row": N_("weight hidden in this row: {mass}"),
    "zoom_in": N_("Zoom in (Ctrl and wheel, or double-click)"),
    "zoom_out": N_("Zoom out"),
    "zoom_whole": N_("The whole matrix"),
    "help": N_("Shortcuts and scores"),
    "keep": N_("PNG"),
    "keep_about": N_("Save this picture as a PNG file, at twice the screen resolution"),
}

_WEIGHT_TEXT = {
    "reads_share": N_("Of all that {query} reads here, {share} is {key}."),
    "reads_nothing": N_("{key} stands for no word: that is where a row reads that looks for nothing in particular."),
}
"""Besides, of attention weights only."""

_MAP_TEXT = {
    "rows": N_("query"),
    "columns": N_("key"),
    "reads": N_("{query} · {key}"),
    "reads_most": N_("Furthest from 0 in the row of {token}: {most}"),
    "read_most": N_("Furthest from 0 in the column of {token}: {most}"),
    "hover": N_("Point at a cell or a token to see its exact value."),
    "hover_touch": N_("Tap a cell or a token to see its exact value."),
    "hint": N_("Click to lock, Shift-click to add. Press ? for the keys."),
    "hint_touch": N_("Tap to lock."),
    "help": N_("Shortcuts"),
    "view_heatmap_about": N_("One head as a matrix: a row for each query."),
    "view_arcs_about": N_("Lines, the stronger the further from 0, dashed below 0; Shift-click adds heads."),
    "view_tokens_about": N_("Choose a token: the others are coloured by their values with it."),
    "order_similarity_about": N_("Most similar to the selected head first: the cosine of the thumbnails."),
    "merging_about": N_("Join sub-words into words: the mean over keys and queries."),
    "hiding_about": N_("Leave out tokens that stand for no text."),
    "role_about": N_("Leave out the words of this role, or show them again."),
}
"""In place of what is true of attention weights only."""

_LONG_TEXT = {
    "view_tokens_about": N_("Choose a sentence: what does it read?"),
    "view_heatmap_about": N_("A map of all words: drag to move it, turn the wheel or pinch to zoom."),
    "view_heatmap_about_touch": N_("A map of all words: pinch to zoom, drag to move it."),
    "view_arcs_about": N_("A line leads from each sentence to what it reads. Shift-click adds heads."),
    "zoom_in": N_("Zoom in (wheel, pinch or double-click)"),
    "zoom_whole": N_("The whole map"),
    "reads_most_here": N_("{token} reads most of these: {most}"),
    "read_most_here": N_("{token} is read most by these: {most}"),
    "find": N_("Find"),
    "find_count": N_("{n} of {all}"),
    "find_none": N_("not found"),
    "pooling": N_("What a cell shows"),
    "pooling_largest": N_("largest"),
    "pooling_mean": N_("mean"),
    "cell_one": N_("Each cell shows one weight."),
    "cell_largest": N_("Each cell shows the largest of {n} × {n} weights."),
    "cell_mean": N_("Each cell shows the mean of {n} × {n} weights."),
    "cell_coming": N_("A coarse picture, until finer weights arrive."),
    "cell_absent": N_("A coarse picture: the app computes the single weights of a text so long."),
    "cell_computed": N_("The weights of the words that are left are being computed."),
    "cell_left": N_("What is left out has no rows and columns here, at any zoom; the thumbnails have the whole text."),
    "largest_of": N_("the largest of {n} × {n} weights around here"),
    "edges": N_("Bars: at the right what each word gives to others, below what it gets from them."),
    "edges_cross": N_("Bars below: what each word gets."),
    "rows_hint": N_("Drag along the words at the left to add up what they read."),
    "rows_hint_touch": N_("Tap the words at the left to add up what they read."),
    "rows_sum": N_("“{words}” together reads most: {most}"),
    "links_sentences": N_("Strongest links between sentences"),
    "links_about": N_("First what is read furthest beyond its length; what a sentence reads of itself is left out."),
    "links_words": N_("Strongest links in sight"),
    "sentence": N_("sentence {n} “{words}”"),
    "scope_sentences": N_("Shown by sentence."),
    "scope_open": N_("Show the words of this pair"),
    "scope_inside": N_("The words of sentence {row}, and what they read in sentence {column}."),
    "scope_close": N_("All sentences"),
    "is_long": N_(
        "This text is long, and its weights are computed where you look: words cannot be joined, heads combined, or "
        "small weights left out."
    ),
}
"""Besides, or in place of others, of a text whose heads are computed on demand."""

_KEYS = (
    ("← → ↑ ↓", N_("another head or layer")),
    ("Shift + ← → ↑ ↓", N_("another cell")),
    ("s", N_("another attention: encoder, decoder, cross")),
    ("v", N_("another view: shaded text, heatmap, arcs, layer")),
    ("m", N_("this head, the average, the maximum")),
    ("l", N_("all heads of the layer together")),
    ("o", N_("another order of the heads")),
    ("w", N_("whole words or their parts")),
    ("x", N_("with or without special tokens")),
    ("+ − 0", N_("zoom in, zoom out, the whole matrix")),
    ("Esc", N_("unlock")),
    ("p", N_("present: the picture alone, large")),
    ("?", N_("show or hide this list")),
)

_SHORT_KEYS = ("m", "w")
"""Keys for what is derived from all weights, which a long text does not have."""

_LONG_KEYS = (
    ("f", N_("find a word; Enter: the next place")),
    ("Enter", N_("the words of the two sentences that are chosen")),
)

_SIDES = (("src", N_("Source")), ("tgt", N_("Target")))
_ONLY = N_("Text")


def words(trace: Trace, gettext: Callable[[str], str], lang: str) -> dict[str, Any]:
    """Return the texts of the header: fixed texts, the keyboard shortcuts, and a title for each line of tokens."""
    sides = [(side, title) for side, title in _SIDES if trace.tokens.get(side)]
    chosen = map_scale(trace)
    is_map = chosen["scale"] != "weight"
    is_long = any(isinstance(tensor, PatternOnDemand) for tensor in trace.tensors.values())
    own = _MAP_TEXT if is_map else _WEIGHT_TEXT | (_LONG_TEXT if is_long else {})
    text = {name: gettext(text) for name, text in (_TEXT | own).items()}
    keys = [(key, about) for key, about in _KEYS if not is_long or key not in _SHORT_KEYS]
    if is_long:
        keys[-3:-3] = _LONG_KEYS
    if is_map:
        (low, _), *_, (high, _) = ticks(chosen["scale"], chosen["limit"])
        quantity = trace.meta.get("quantity") or gettext(N_("Values"))
        sentence = gettext(N_("{quantity}: colours from {low} to {high}."))
        text["sums"] = text["legend"] = sentence.format(quantity=quantity, low=low, high=high)
    return {
        "text": {"lang": lang, **text},
        "roles": [
            {"name": one.name, "label": gettext(one.label), "colour": one.colour} for one in speakers(trace).values()
        ],
        "keys": [(key, gettext(about)) for key, about in keys],
        "sides": [
            {"side": side, "title": gettext(title if len(sides) == len(_SIDES) else _ONLY)} for side, title in sides
        ],
    }
