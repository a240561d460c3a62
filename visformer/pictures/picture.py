"""A picture and what a model makes of it: which patches a word or a patch reads, and what blocking some changes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from visformer import formulas
from visformer.adapters.checkpoints import CAPTIONER
from visformer.errors import N_, VisformerError
from visformer.panel import Labels, Panel, numbered, telling_limit, tokens_of, traced
from visformer.pictures.registry.options import Choice, PlaceOption
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import PATTERNS, Setting
from visformer.scenes import COLOURS, may_be_scene
from visformer.trace import Trace

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel
    from visformer.edits import Block

WHITE = 255
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PLACES = (
    N_("at the top left"), N_("at the top"), N_("at the top right"),
    N_("on the left"), N_("in the middle"), N_("on the right"),
    N_("at the bottom left"), N_("at the bottom"), N_("at the bottom right"),
)  # fmt: skip
"""The nine places of a scene, row by row."""
_ARROWS = "↖↑↗←•→↙↓↘"
COLOUR_NAMES = dict(
    zip(COLOURS, (N_("red"), N_("orange"), N_("yellow"), N_("green"), N_("blue"), N_("purple")), strict=True)
)


def objects(trace: Trace) -> dict[int, Bools]:
    """Find the objects of a scene: for each of the nine places where one is, the patches that show it.

    Of no other picture is that known.
    """
    if "src.pixels" not in trace or not may_be_scene(trace.image):
        return {}
    drawn = (trace.image != WHITE).any(axis=2)
    (rows, columns), (height, width) = trace.meta["grid"], drawn.shape
    y, x = np.indices(drawn.shape)
    place = 3 * (3 * y // height) + 3 * x // width
    found = {}
    for at in range(len(PLACES)):
        shown = (drawn & (place == at)).reshape(rows, height // rows, columns, width // columns).any(axis=(1, 3))
        if shown.any():
            found[at] = shown.ravel()
    return found


def parts(trace: Trace) -> dict[int, Bools]:
    """Find what of a picture can be blocked as one, by its place: the objects of a scene, else each ninth of it."""
    rows, columns = trace.meta["grid"]
    y, x = np.indices((rows, columns))
    place = (3 * ((2 * y + 1) * 3 // (2 * rows)) + (2 * x + 1) * 3 // (2 * columns)).ravel()  # of a patch's middle
    return objects(trace) or {int(at): place == at for at in np.unique(place)}


def short_name(trace: Trace, at: int) -> tuple[str, str]:
    """Return the colour of the object at a place, as a message id, and an arrow to that place."""
    rows, columns = (3 * i // n for i, n in zip(np.indices(trace.image.shape[:2]), trace.image.shape[:2], strict=True))
    pixels = trace.image[3 * rows + columns == at].astype(np.float64)
    pixel = pixels[np.abs(pixels - WHITE).sum(axis=1).argmax()]
    return COLOUR_NAMES[min(COLOURS, key=lambda name: np.abs(pixel - COLOURS[name]).sum())], _ARROWS[at]


def written(trace: Trace) -> list[int]:
    """Return the rows of the decoder that predict a word: all but the end, and those before the last patch."""
    side, patches = trace.patches
    first = patches.stop - 1 if side == "tgt" else 0
    return [row for row, special in enumerate(trace.special["next"]) if row >= first and not special]


def writes(trace: Trace) -> bool:
    """Whether the model writes words, and at least one of them after the picture."""
    return "next" in trace.tokens and bool(written(trace))


def stack_of_patches(trace: Trace) -> str:
    """Return the attention in which patches read each other: of a decoder-only model they are among its tokens."""
    return "encoder.self_attn" if trace.patches[0] == "src" else "decoder.self_attn"


def reading_stack(trace: Trace) -> str:
    """Return the attention by which words read patches: a decoder-only model has both in one row."""
    return "decoder.cross_attn" if trace.patches[0] == "src" else "decoder.self_attn"


def word_weights(trace: Trace, head: tuple[int, int] | None = None) -> Floats:
    """Return how much each word reads each patch: the attention of the row that predicts the word.

    Args:
        trace: of a model that writes about a picture, with its patterns.
        head: layer and head, from 0; None: the mean of all heads and layers.

    Returns:
        (word, patch); each row sums to 1, or to less where a row reads words as well.

    Raises:
        VisformerError: no word is written after the picture.
    """
    if not writes(trace):
        raise VisformerError(
            N_("{model} writes no word after this picture: give a text with it, or choose a model that writes."),
            model=trace.meta.get("model"),
        )
    _, patches = trace.patches
    return _weights(trace, reading_stack(trace), head)[written(trace)][:, patches]


def _weights(trace: Trace, stack: str, head: Any) -> Floats:
    layers = trace.layers(stack)
    if head is None:
        every = np.concatenate([each.value for each in layers.values()])
        mean: Floats = every.mean(axis=0, dtype=np.float64)  # (query, key)
        return mean
    return np.asarray(layers[head[0]].value[head[1]], dtype=np.float64)


def telling_word(trace: Trace) -> int:
    """Return the word, from 0, that gives most of its weight to one object, by the mean of all heads and layers.

    Of a decoder-only model the last one, which it adds itself; where no object is known, the first.
    """
    weights, found = word_weights(trace), objects(trace).values()
    if reading_stack(trace) == "decoder.self_attn":
        return len(weights) - 1
    return int(np.max([weights[:, patches].sum(axis=1) for patches in found], axis=0).argmax()) if found else 0


def telling_patch(trace: Trace) -> int:
    """Return the patch that :func:`telling_word` reads most; without words the first token."""
    if not writes(trace):
        return 0
    return trace.patches[1].start + int(word_weights(trace)[telling_word(trace)].argmax())


def telling_head(trace: Trace) -> tuple[int, int]:
    """Return the head, layer and head from 0, whose patches read the rest of their own object most.

    By the mean, over all patches that show an object, of the weight on the other patches of that object.
    """
    among = slice(trace.patches[1].start, trace.patches[1].stop)
    scores = {
        (layer, head): np.mean([_together(pattern, patches) for patches in objects(trace).values()] or [0])
        for layer, each in trace.layers(stack_of_patches(trace)).items()
        for head, pattern in enumerate(each.value[:, among, among])
    }
    return max(scores, key=scores.__getitem__)


def _reader(trace: Trace) -> str:
    """Return that head as an option names it; of a picture whose objects are not known the mean."""
    return ".".join(str(i + 1) for i in telling_head(trace)) if objects(trace) else MEAN


def _together(pattern: NDArray[Any], patches: Bools) -> float:
    """The weight that patches give to each other, not to themselves, on average."""
    own = pattern[np.ix_(patches, patches)]
    return float((own.sum() - np.trace(own)) / len(own))


def reading(trace: Trace, word: int, head: tuple[int, int] | None = None, gettext: Any = str) -> list[Panel]:
    """Draw the picture, clear where a word reads it, and how much each word reads of each object and of one patch.

    The patch is the one that the word reads most.

    Pointing at a word shows what that word reads; pointing at a patch, which words read it.

    Args:
        trace: as for :func:`word_weights`.
        word: whose reading is shown, from 0.
        head: see :func:`word_weights`.
        gettext: translates the names of places.
    """
    weights, found = word_weights(trace, head), objects(trace)
    patch = int(weights[word].argmax())
    sums = [weights[:, patches].sum(axis=1) for patches in found.values()]
    if found or reading_stack(trace) == "decoder.self_attn":  # else words read nothing but the picture
        sums.append(weights.sum(axis=1) - np.sum(sums, axis=0))
    table = np.stack([*sums, weights[:, patch]], axis=1)  # (word, column)
    pointed = np.repeat(table[None], weights.shape[1], axis=0)  # (patch, word, column)
    pointed[..., -1] = weights.T
    known = (short_name(trace, at) for at in found)
    names = [
        *(f"{gettext(colour)} {arrow}" for colour, arrow in known),
        *([gettext(N_("elsewhere") if found else N_("the picture"))] if len(sums) > len(found) else []),
        gettext(N_("this patch")),
    ]
    picture = _picture(
        trace,
        "picture",
        N_("the picture, clear where the word reads it"),
        weights[word],
        patch=patch,
        limit=float(np.median(weights.max(axis=1))),
        follows="words",
        whole=np.repeat(weights, table.shape[1], axis=0),
    )
    chosen = np.zeros(table.shape, dtype=bool)
    chosen[word] = True
    words = Panel(
        name="words",
        symbol="pattern",
        title=N_("how much each word reads of it"),
        values=table,
        rows=_words(trace),
        columns=Labels(tuple(names)),
        scale="weight",
        outlined=chosen,
        click="keeps",
        follows="picture",
        whole=pointed,
    )
    return [picture, words]


def _words(trace: Trace) -> Labels:
    every, rows = tokens_of(trace, "next", N_("word")), written(trace)
    return replace(every, texts=tuple(every.texts[row] for row in rows), special=())


def _picture(
    trace: Trace,
    name: str,
    title: str,
    values: Any,
    *,
    patch: int | None = None,
    whole: Any = None,
    limit: float = 1.0,
    **settings: Any,
) -> Panel:
    """Draw the picture below a veil; ``values``: (patch,); ``patch``: the one to outline."""
    rows, columns = trace.meta["grid"]
    outlined = None if patch is None else (np.arange(rows * columns) == patch).reshape(rows, columns)
    return Panel(
        name=name,
        title=title,
        values=np.asarray(values, dtype=np.float32).reshape(rows, columns),
        rows=numbered(rows, N_("row"), first=1),
        columns=numbered(columns, N_("column"), first=1),
        scale="unsigned",
        limit=limit,
        outlined=outlined,
        picture=trace.image,
        whole=None if whole is None else np.reshape(whole, (-1, rows, columns)),
        **{"symbol": "pattern", "click": "keeps", **settings},
    )


def vectors(trace: Trace, patch: int) -> list[list[Panel]]:
    """Draw how a patch becomes a vector: its pixels, their embedding, its position, the sum; and who is near it.

    Args:
        trace: of a model that reads pictures, with its "src.*", or "tgt.input" of a decoder-only one.
        patch: which token, from 0, as for :func:`between`; pointing at another patch shows that one.

    Returns:
        What the model stores: most add the embedding and the position of a patch in one step, and show the sum alone.
    """
    (rows, columns), (side, patches) = trace.meta["grid"], trace.patches
    own = patch - patches.start if patch in patches else None
    pixels = trace["src.pixels"].value
    clear = np.ones(len(pixels))
    colours = pixels.reshape(len(pixels), 3, -1)  # (patch, colour, pixel)
    known = [name for name in ("embed", "position", "input") if f"{side}.{name}" in trace]
    limit = telling_limit(*(trace[f"{side}.{name}"].value for name in known)) if known else 1.0

    def strip(name: str, title: str, before: str) -> Panel:
        every = trace[f"{side}.{name}"].value[:, None]  # (token, 1, d_model)
        below = traced(trace, f"{side}.{name}", title=title).columns
        return Panel(
            name=name, title=title, values=every[patch], rows=Labels(("",), written=False), columns=below, limit=limit,
            before=before, follows="picture", whole=every[patches.start : patches.stop],
        )  # fmt: skip

    titles = {
        "embed": (N_("times the matrix, plus its bias: the embedding"), "→"),
        "position": (N_("the learned position"), "+"),
        "input": (N_("their sum"), "=") if "embed" in known else (N_("the vector that enters the first layer"), "→"),
    }
    steps = [strip(name, *titles[name]) for name in known]
    if own is not None:
        numbers = Panel(
            name="pixels",
            symbol="input",
            title=N_("the numbers of this patch"),
            values=colours[own],
            rows=Labels((N_("red"), N_("green"), N_("blue"))),
            columns=numbered(colours.shape[2], N_("pixel"), first=1),
            scale="unsigned",
            limit=1.0,
            follows="picture",
            whole=colours,
        )
        steps.insert(0, numbers)
    lines = [
        [_picture(trace, "picture", N_("the picture: choose a patch"), clear, patch=own)],
        *([steps] if steps else []),
    ]
    if "position" not in known or own is None:
        return lines
    near = similar_positions(trace)
    return [
        *lines,
        [
            Panel(
                name="near",
                symbol="position",
                title=N_("how similar its position is to others"),
                values=near[own].reshape(rows, columns),
                rows=numbered(rows, N_("row"), first=1),
                columns=numbered(columns, N_("column"), first=1),
                limit=1.0,
                outlined=(np.arange(rows * columns) == own).reshape(rows, columns),
                follows="picture",
                whole=near.reshape(-1, rows, columns),
            )
        ],
    ]


def similar_positions(trace: Trace) -> Floats:
    """Return the cosine of each two learned positions: (patch, patch)."""
    every = np.asarray(trace["src.position"].value, dtype=np.float64)
    unit = every / np.linalg.norm(every, axis=1, keepdims=True)
    cosines: Floats = unit @ unit.T
    return cosines


def patch_weights(trace: Trace, head: tuple[int, int] | None = None) -> Floats:
    """Return how much each token reads each patch, in the layers that patches are in; see :func:`between`.

    Returns:
        (token, patch); each row sums to 1, or to less where tokens that stand for no patch are read as well.
    """
    return _weights(trace, stack_of_patches(trace), head)[:, trace.patches[1]]


def between(trace: Trace, patch: int, head: tuple[int, int] | None = None) -> list[Panel]:
    """Draw which patches a token reads in the layers that patches are in, in one head or on average.

    Args:
        trace: of a model that reads pictures, with its patterns.
        patch: which token, from 0: a patch, or one that stands for none, such as [CLS] or a word beside the picture.
        head: as for :func:`word_weights`.
    """
    (_, patches), weights = trace.patches, patch_weights(trace, head)
    among = weights[patches]
    how: dict[str, Any] = {"limit": float(np.median(among.max(axis=1)))}
    read = N_("clear: what it reads")
    if patch not in patches:
        return [_picture(trace, "read", read, weights[patch], **how)]
    clear, own = np.full(len(patches), how["limit"]), patch - patches.start
    reads = N_("the patch that reads")
    return [
        _picture(trace, "picture", reads, clear, patch=own, follows="read", whole=among.T, **how),
        _picture(trace, "read", read, weights[patch], follows="picture", whole=among, before="→", **how),
    ]


# What blocking changes ------------------------------------------------------------------------------------------------

_LABELS = 5  # of a classifier, the likeliest ones


@dataclass(frozen=True, eq=False)
class Blocked:
    """What a model makes of a picture while some patches cannot be read.

    Args:
        before: the words as it is: of a captioner its caption, of a decoder-only model its text and what it predicts
            next, of a classifier the likeliest labels.
        after: the words while the patches are blocked.
        kept: which words of each are in the other, in the same order; labels in any.
        weights: what each word of ``before`` gave to these patches, the mean of all heads and layers; None: of labels.
        chances: the probability of each word of ``before``, after the words before it: (before or blocked, word).
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    kept: tuple[Bools, Bools]
    weights: Floats | None
    chances: Floats


def blocking(
    model: "TracedModel",
    source: Any,
    target: Any = None,
    *,
    patches: tuple[int, ...],
    everywhere: bool,
    to: str | None = None,
) -> Blocked:
    """Compare what a model makes of a picture with and without a block of some patches: words cannot read them.

    Args:
        model: a captioner, a decoder that reads pictures among its tokens, or a classifier of pictures.
        source: the picture, or a description of it; of a decoder what its :meth:`trace` takes for both.
        target: the caption, or what follows the text; None: the model's own, or nothing.
        patches: from 0, row by row.
        everywhere: whether other patches cannot read them, either; otherwise words or, of a classifier, [CLS] and the
            like.
        to: language of the caption.
    """
    record = (*PATTERNS, "logits")
    plain = model.trace(source, target, to=to, record=record)
    edits = [
        edit for patch in patches for edit in _blocks(plain, plain.patches[1].start + patch, everywhere=everywhere)
    ]
    if "next" not in plain.tokens:
        return _of_labels(plain, model.trace(source, edits=edits, record=("logits",)))
    ids, language = plain.meta["ids"]["next"], plain.meta["to"]
    if reading_stack(plain) == "decoder.cross_attn":
        own = model.trace(source, to=language, edits=edits, record=("logits",))
        forced = model.trace(source, ids[:-1], to=language, edits=edits, record=("logits",))
    else:
        own = forced = model.trace(source, target, edits=edits, record=("logits",))
    rows = written(plain)
    before = tuple(plain.tokens["next"][row] for row in rows)
    after = tuple(own.tokens["next"][row] for row in written(own))
    chances = [formulas.softmax(each["logits"].value)[rows, [ids[row] for row in rows]] for each in (plain, forced)]
    weights = word_weights(plain)[:, list(patches)].sum(axis=1)
    return Blocked(before, after, _kept(before, after), weights, np.asarray(chances, dtype=np.float64))


def _blocks(trace: Trace, token: int, *, everywhere: bool) -> list["Block"]:
    """Return the edits that keep a token from being read: in all layers, by all others or by those without a patch."""
    from visformer.edits import Block

    side, patches = trace.patches
    if reading_stack(trace) == "decoder.cross_attn" and "tgt" in trace.tokens:
        return [Block(path, key=token) for path in ("decoder.*.cross_attn", *["encoder.*.self_attn"] * everywhere)]
    path, n = stack_of_patches(trace).replace(".", ".*."), len(trace.tokens[side])
    if everywhere:
        return [Block(path, key=token)]
    readers = [(0, patches.start), (patches.stop, n)] if side == "src" else [(patches.stop - 1, n)]
    return [Block(path, query=rows, key=token) for rows in readers if rows[0] < rows[1]]


def _of_labels(plain: Trace, blocked: Trace) -> Blocked:
    """Compare the likeliest labels."""
    labels = plain.meta["labels"]
    chances = [formulas.softmax(each["logits"].value) for each in (plain, blocked)]
    first, then = (np.argsort(-each, kind="stable")[:_LABELS] for each in chances)
    before, after = (tuple(labels[at] for at in each) for each in (first, then))
    kept = np.isin(first, then), np.isin(then, first)
    return Blocked(before, after, kept, None, np.asarray([each[first] for each in chances], dtype=np.float64))


def can_be_blocked(trace: Trace) -> bool:
    """Whether it can be seen what a block of patches changes: the model predicts words, or one label of a picture."""
    predicts = writes(trace) if "next" in trace.tokens else bool(trace.meta.get("labels"))
    return predicts and trace.lacks("logits") is None


def is_read_beside_patches(trace: Trace) -> bool:
    """Whether patches are read by tokens that stand for none: words, or [CLS] and the like."""
    return "next" in trace.tokens or len(trace.tokens["src"]) > len(trace.patches[1])


def _kept(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[Bools, Bools]:
    kept = np.zeros(len(before), dtype=bool), np.zeros(len(after), dtype=bool)
    for a, b, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        kept[0][a : a + size] = kept[1][b : b + size] = True
    return kept


def changes(trace: Trace, at: int, found: Blocked, gettext: Any = str) -> list[Panel]:
    """Draw what may be read, and for each word what it gave to the part and how probable it is before and after.

    Words that are not there while the part is blocked are outlined.

    Args:
        trace: of the model.
        at: the place of the part whose patches are blocked, see :func:`parts`.
        found: by :func:`blocking`.
        gettext: translates the heads of the columns.
    """
    columns = [N_("probability"), N_("while blocked")]
    values = [*found.chances]
    title, rows = N_("the likeliest labels, and what the block changes"), Labels(found.before)
    if found.weights is not None:
        columns, values = [N_("weight on it"), *columns], [found.weights, *values]
        title, rows = N_("each word, and what the block changes"), _words(trace)
    return [
        _picture(trace, "picture", N_("the picture, without what is blocked"), ~parts(trace)[at], click="locks"),
        Panel(
            name="words",
            symbol="out",
            title=title,
            values=np.stack(values, axis=1),
            rows=rows,
            columns=Labels(tuple(map(gettext, columns))),
            scale="weight",
            outlined=np.repeat(~found.kept[0][:, None], len(columns), axis=1),
        ),
    ]


# The page -------------------------------------------------------------------------------------------------------------

MEAN = "mean"
_BUNDLED = {0: 4, 1: 4}  # heads of each layer of the bundled captioner


def head_of(value: str) -> tuple[int, int] | None:
    """Return layer and head, from 0, that an option names; None: the mean of all."""
    if value == MEAN:
        return None
    layer, head = value.split(".")
    return int(layer) - 1, int(head) - 1


def _heads(stack: Callable[[Trace], str]) -> Any:
    def values(setting: Setting) -> Mapping[str, str]:
        said, trace = setting.gettext(N_("Layer {layer}, head {head}")), _trace(setting)
        known = _BUNDLED
        if trace is not None:
            known = {at: each.shape[0] for at, each in trace.layers(stack(trace)).items()}
        return {MEAN: N_("Mean of all heads")} | {
            f"{layer + 1}.{head + 1}": said.format(layer=layer + 1, head=head + 1)
            for layer, n_heads in known.items()
            for head in range(n_heads)
        }

    return values


def _trace(setting: Setting) -> Trace | None:
    """Return the Trace; None: the command line lists its options before there is one."""
    with suppress(VisformerError):
        return setting.patterns
    return None


def _places(setting: Setting) -> Mapping[int, str]:
    trace = _trace(setting)
    return {at: PLACES[at] for at in (range(len(PLACES)) if trace is None else parts(trace))}


def _readers(setting: Setting) -> Mapping[str, str]:
    """Return for whom patches can be blocked."""
    trace = _trace(setting)
    if trace is not None and "next" not in trace.tokens:
        others = {"cross": N_("tokens without a patch")} if is_read_beside_patches(trace) else {}
        return {**others, "all": N_("every token")}
    return {"cross": N_("words"), "all": N_("words and patches")}


def _beside(setting: Setting) -> tuple[str, ...]:
    """Return the tokens that patches are among."""
    trace = setting.patterns
    return trace.tokens[trace.patches[0]]


def _told(setting: Setting) -> tuple[str, ...]:
    return _words(setting.patterns).texts


def blocked(setting: Setting) -> Blocked:
    """Return what blocking the part of a setting changes."""
    patches = np.flatnonzero(parts(setting.patterns)[setting["object"]])
    found: Blocked = setting.source.measure(
        blocking, patches=tuple(map(int, patches)), everywhere=setting["where"] == "all"
    )
    return found


WORD = PlaceOption(
    name="word", label=N_("Word"),
    help="From 1; by default the one that gives most to an object, or that the model adds.",
    among=lambda setting: range(len(_told(setting))), tokens=_told,
    default=lambda setting: telling_word(setting.patterns), per=_told,
)  # fmt: skip
PATCH = PlaceOption(
    name="patch", label=N_("Patch"),
    help="From 1, row by row, after [CLS] and the like; by default the one that the word reads most, or the first.",
    among=lambda setting: range(len(_beside(setting))), tokens=_beside,
    default=lambda setting: telling_patch(setting.patterns),
    per=lambda setting: crc32(repr((_beside(setting), setting.patterns.image.tobytes())).encode()),
)  # fmt: skip
HEAD = Choice(
    name="heads", link="head", label=N_("Head"), help="Layer and head, such as 2.4; by default the mean of all.",
    widget="selectbox",
    values=_heads(reading_stack), default=MEAN,
)  # fmt: skip
READER = replace(
    HEAD, name="encoder_heads", link="encoder_head",
    help="Layer and head, such as 1.2, or mean; by default the one that stays in an object, if objects are known.",
    values=_heads(stack_of_patches), default=lambda setting: _reader(setting.patterns),
)  # fmt: skip
OBJECT = Choice(
    name="object", label=N_("Blocked part"),
    help="Its place, from 0, row by row: an object of a scene, else a ninth of the picture; by default the middle one.",
    values=_places, default=lambda setting: ([*_places(setting)] or [0])[len(_places(setting)) // 2],
    per=lambda setting: str([*_places(setting)]), widget="selectbox",
)  # fmt: skip
WHERE = Choice(
    name="where", label=N_("Blocked for"),
    help="Who cannot read it: cross, the words, or [CLS] and the like; all, other patches as well.",
    values=_readers,
)  # fmt: skip
READING = Picture(
    name="picture-words", view="words", title=N_("What a word reads"), in_handouts=False,
    look_for=N_("Point at a word: the more it reads a patch, the clearer the patch. Point at a patch: who reads it?"),
    needs=("*.pattern",), options=(WORD, HEAD),
    draw=lambda setting: reading(setting.trace, setting["word"], head_of(setting["heads"]), setting.gettext),
)  # fmt: skip
VECTORS = Picture(
    name="picture-patches", view="patches", title=N_("Patches"), in_handouts=False,
    look_for=N_("A patch is treated as a word is: its numbers become a vector, and its place is added."),
    needs=("src.*", "tgt.input"), options=(PATCH,), draw=lambda setting: vectors(setting.trace, setting["patch"]),
)  # fmt: skip
BETWEEN = Picture(
    name="picture-heads", view="heads", title=N_("Between patches"), in_handouts=False,
    look_for=N_("Choose a token, or click a patch: the more it reads of a patch, the clearer that one."),
    needs=("*.pattern",), options=(PATCH, READER),
    draw=lambda setting: between(setting.trace, setting["patch"], head_of(setting["encoder_heads"])),
)  # fmt: skip
BLOCKING = Picture(
    name="picture-block", view="block", title=N_("Block a part"), in_handouts=False,
    look_for=N_("Nobody may read the patches of one part, such as an object. What does that change?"),
    needs=("*.pattern",), options=(OBJECT, WHERE),
    draw=lambda setting: changes(setting.trace, setting["object"], blocked(setting), setting.gettext),
)  # fmt: skip
PAGE = Page(
    name="picture", section="see", order=60, title=N_("Picture and words"),
    about=N_("A Transformer that reads a picture: which part of it each word, or each patch, reads."),
    views=(READING, BETWEEN, VECTORS, BLOCKING), where="attention", model=CAPTIONER,
)  # fmt: skip
