"""From letters to the first layer's input: tokens, ids, embedding + positional encoding (sections 3.4, 3.5, 5.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.model.positions import PAPERS, POSITIONS, Position
from visformer.panel import Panel, telling_limit, traced
from visformer.pictures.registry.options import QUERY, STACK, Choice, Flag
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

Side = Literal["src", "tgt"]
RECORD = ("src.*", "tgt.*")
"""Globs over the tensors that these pictures need."""


def terms(trace: Trace, side: Side) -> tuple[str, ...]:
    """Return the tensors that the model adds up for each token: "embed", "segment", "position"."""
    return tuple(name for name in ("embed", "segment", "position") if f"{side}.{name}" in trace)


def enters_as_it_is(trace: Trace, side: Side) -> bool:
    """Whether the sum enters the first layer unchanged; some models normalise, project or scale it first."""
    total, entering = _total(trace, side), trace[f"{side}.input"].value
    return total.shape == entering.shape and np.allclose(total, entering, rtol=1e-4, atol=1e-5)


def sums(trace: Trace, side: Side, *, scaled: bool = True) -> list[Panel]:
    """Draw the summands and their sum on one colour scale, and the first layer's input if it differs.

    Args:
        trace: with :data:`RECORD`.
        side: "src" or "tgt".
        scaled: whether to include the factor sqrt(d_model), as our models do; the sum without it is never computed.
    """
    ours = f"{side}.embedding" in trace.params
    titles = {
        "embed": N_("embedding × √d_model") if ours else N_("embedding"),
        "segment": N_("token type: which of two texts"),
        "position": POSITIONS.get(trace.meta.get("position", PAPERS), Position).title,
    }
    panels = [traced(trace, f"{side}.{name}", title=titles[name], before="+") for name in terms(trace, side)]
    embed = replace(panels[0] if panels else traced(trace, f"{side}.embed", title=titles["embed"]), before="")
    if not scaled:
        embed = traced(trace, f"{side}.embedding", title=N_("embedding"), name="embed")
    panels = [embed, *(replace(panel, rows=embed.rows) for panel in panels[1:])]
    panels = [replace(panel, symbol="out" if panel.name == "segment" else "") for panel in panels]
    if len(panels) > 1:
        values = sum((panel.values for panel in panels[1:]), start=panels[0].values)
        panels.append(
            replace(embed, name="input", title=N_("their sum"), values=values, before="=", note=_shape(embed))
        )
    limit = telling_limit(*(panel.values for panel in panels))
    below = replace(embed.columns, written=False)  # once for all: they stand below each other, dimension by dimension
    panels = [replace(embed, limit=limit), *(replace(panel, limit=limit, columns=below) for panel in panels[1:])]
    if not enters_as_it_is(trace, side):
        entering = traced(trace, f"{side}.input", title=N_("what enters the first layer"), name="input", before="→")
        panels.append(replace(entering, rows=embed.rows))
    return panels


def table(trace: Trace, side: Side) -> "DataFrame":
    """Tabulate for each token the norms of the summands and of the sum, and the angle of embedding and sum in degrees.

    Column names are message ids. For our models both with the factor sqrt(d_model) and without; the factor keeps the
    encoding from dominating the embedding.
    """
    from pandas import DataFrame

    embed, total, ids = trace[f"{side}.embed"].value, _total(trace, side), trace.tokens[side]
    columns: dict[str, Any] = {N_("token"): ids, N_("no."): range(1, len(ids) + 1), "pos": range(len(ids))}
    ours = f"{side}.embedding" in trace.params
    raw = trace.params[f"{side}.embedding"].value if ours else embed
    columns[N_("|embedding|")] = _norm(raw)
    if ours:
        columns[N_("|embedding · √d|")] = _norm(embed)
    columns |= {
        label: _norm(trace[f"{side}.{name}"].value)
        for label, name in ((N_("|token type|"), "segment"), ("|PE|", "position"))
        if f"{side}.{name}" in trace
    }
    if len(terms(trace, side)) > 1:
        columns[N_("|sum|")] = _norm(total)
        columns[N_("∠ embedding · √d, sum (°)") if ours else N_("∠ embedding, sum (°)")] = _angle(embed, total)
    if ours:
        columns[N_("∠ embedding, embedding + PE (°)")] = _angle(raw, raw + trace[f"{side}.position"].value)
    if not enters_as_it_is(trace, side):
        columns["|x|"] = _norm(trace[f"{side}.input"].value)
    return DataFrame(columns)


def compare(trace: Trace, side: Side, first: int, second: int) -> dict[str, tuple[float, float]]:
    """Return distance and cosine of two tokens (from 0) by message id: as embeddings, as encodings, and as inputs."""
    total = N_("sum") if enters_as_it_is(trace, side) else "x"
    parts = {N_("embedding"): "embed", "PE": "position", total: "input"}
    result = {}
    for label, part in parts.items():
        if f"{side}.{part}" in trace:
            a, b = trace[f"{side}.{part}"].value[[first, second]]
            lengths = float(np.linalg.norm(a) * np.linalg.norm(b)) or 1.0
            result[label] = (float(np.linalg.norm(a - b)), float(a @ b) / lengths)
    return result


def repeated(trace: Trace, side: Side) -> tuple[int, int] | None:
    """Return the first two positions of a token that occurs twice, or None."""
    ids = trace.meta["ids"][side]
    return next(((ids.index(token), place) for place, token in enumerate(ids) if token in ids[:place]), None)


def _total(trace: Trace, side: Side) -> NDArray[np.float32]:
    """Return the sum of the summands, (token, d_model)."""
    total: NDArray[np.float32] = np.sum([trace[f"{side}.{name}"].value for name in terms(trace, side)], axis=0)
    return total


def _norm(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms: NDArray[np.float32] = np.linalg.norm(rows, axis=-1)
    return norms


def _angle(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    cosine = (a * b).sum(axis=-1) / np.maximum(_norm(a) * _norm(b), np.finfo(np.float32).tiny)
    angle: NDArray[np.float32] = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angle


def _shape(panel: Panel) -> str:
    return f"({', '.join(map(str, panel.values.shape))})"


# Letters to ids -------------------------------------------------------------------------------------------------------

_BYTE = re.compile(r"<0x[0-9A-F]{2}>|.[₁-₈]")
MEANINGS = {
    "<pad>": N_("pads a shorter sentence"),
    "</s>": N_("the sentence ends here"),
    "<en>": N_("begins a target in English"),
    "<zh>": N_("begins a target in Chinese"),
    "<s>": N_("a text begins here"),
    "[CLS]": N_("a text begins here; the final vector here often represents the whole text"),
    "[SEP]": N_("the sentence ends here"),
    "[PAD]": N_("pads a shorter sentence"),
    "<|endoftext|>": N_("separates one text from the next"),
}
UNKNOWN = ("<unk>", "[UNK]")
_UNKNOWN = N_("{tokens}: text not in the vocabulary. The model knows no more about it.")
_BYTES = N_("{tokens}: a character not in the vocabulary, byte by byte.")
_COPIED = N_("Copied piece by piece: {tokens}. In cross-attention, its rows read the same pieces of the sentence.")

ORDINARY = N_("A token without a remark is a word, a character or a punctuation mark.")


@dataclass(frozen=True)
class Row:
    """A row of the table of tokens: its number from 1; ``meaning``: a message id, "" for what :data:`ORDINARY` says."""

    number: int
    token: str
    id: int
    meaning: str


def rows(trace: Trace, side: str) -> list[Row]:
    """Return a row for every token of a side."""
    tokens, ids, words = trace.tokens[side], trace.meta["ids"][side], trace.words[side]
    return [
        Row(place + 1, token, int(i), _meaning(token, special=special, alone=words.count(words[place]) == 1))
        for place, (token, i, special) in enumerate(zip(tokens, ids, trace.special[side], strict=True))
    ]


def cuts(trace: Trace, side: str) -> list[tuple[str, ...]]:
    """Return the tokens of each word of a side, without special tokens."""
    words: dict[int, list[str]] = {}
    for token, word, special in zip(trace.tokens[side], trace.words[side], trace.special[side], strict=True):
        if not special:
            words.setdefault(word, []).append(token)
    return [tuple(parts) for parts in words.values()]


def hints(trace: Trace) -> list[tuple[str, str]]:
    """Return hints as (message id, tokens concerned): on unknown text, characters split into bytes, and copied words.

    Each shows the first such character or word only.
    """
    plain = [
        token
        for side in ("src", "tgt")
        for token, special in zip(trace.tokens.get(side, ()), trace.special.get(side, ()), strict=True)
        if not special
    ]
    unknown = next((token for token in plain if token in UNKNOWN), None)
    messages: list[tuple[str, str]] = [] if unknown is None else [(_UNKNOWN, unknown)]
    at = next((i for i, token in enumerate(plain) if _BYTE.fullmatch(token)), None)
    if at is not None:
        first = plain[at]
        rest = takewhile(lambda token: token[:-1] == first[:-1] and token > first, plain[at + 1 :])
        messages.append((_BYTES, " ".join([first, *rest])))
    if copied := _copied(trace):
        messages.append((_COPIED, copied))
    return messages


def _copied(trace: Trace) -> str:
    """Return the first word of several tokens that stands in the source and in the target alike; "" if none does."""
    if not {"src", "tgt"} <= {*trace.tokens} or trace.meta.get("forced"):
        return ""
    source = [word for word in cuts(trace, "src") if len(word) > 1 and not any(map(_BYTE.fullmatch, word))]
    return next(("".join(word) for word in cuts(trace, "tgt") if word in source), "")


def _meaning(token: str, *, special: bool, alone: bool) -> str:
    if special:
        return MEANINGS.get(token, N_("one of the model's special tokens: it stands for no text"))
    if token in UNKNOWN:
        return N_("stands for a word not in the vocabulary")
    if _BYTE.fullmatch(token):
        return N_("one byte of a character not in the vocabulary")
    return "" if alone else N_("part of a word")


def merges(steps: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the pair merged at each step; the first step has none."""
    joined: list[tuple[str, ...]] = [()]
    for before, after in pairwise(steps):
        at = next(i for i, part in enumerate(after) if part != before[i])
        joined.append((before[at], before[at + 1]))
    return joined


def text_of(trace: Trace, side: str) -> str:
    """Return the text of a side's tokens; a decoder-only model reads sentence and continuation as one text."""
    source, target = (str(trace.meta.get(name) or "") for name in ("source", "target"))
    if "src" not in trace.tokens:
        return source + target
    return source if side == "src" else target


def piece_of(text: Any, words: str) -> Choice | None:
    """Make the option for the pre-token whose merges are shown; None if each is a single character."""
    pieces = [piece for piece in dict.fromkeys(text.pieces(words)) if len(piece.strip()) > 1]
    if not pieces:
        return None
    return Choice(
        name="piece",
        label=N_("Piece of the text"),
        values={piece: piece.strip() for piece in pieces},
        spell=lambda piece: str(pieces.index(piece) + 1),
        default=max(pieces, key=len),
        per=lambda _: words,
        widget="selectbox",
    )


# The page -------------------------------------------------------------------------------------------------------------

SIDE = replace(STACK, link="side", also={"src": "encoder.self_attn", "tgt": "decoder.self_attn"})
SCALED = Flag(name="scaled", label=N_("times √d_model"), help="On by default; 0: without.", default=True)
FIRST, SECOND = (
    replace(QUERY, name="first", label=N_("One token")),
    replace(QUERY, name="second", label=N_("Another token")),
)
LETTERS = View(
    view="letters",
    title=N_("Letters to ids"),
    look_for=N_(
        "A word in the vocabulary is one token; any other is built from pieces in the vocabulary. "
        "Which of your words are cut?"
    ),
    where="tokens",
)
SUMS = Picture(
    name="embedding",
    view="sums",
    title=N_("Vectors"),
    look_for=N_("The same columns, one above the other, on one colour scale."),
    needs=RECORD,
    options=(SIDE, SCALED),
    draw=lambda setting: [sums(setting.trace, setting.side, scaled=setting["scaled"])],
)
PAGE = Page(
    name="embedding",
    section="see",
    order=20,
    title=N_("Embedding + position"),
    about=N_("From letters to tokens and ids, to vectors that know their place."),
    views=(LETTERS, SUMS),
    where="embedding",
)
