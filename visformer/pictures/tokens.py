"""From letters to tokens: what each token is, and how letters were merged into it (section 5.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from visformer.errors import N_
from visformer.pictures.registry.options import Choice
from visformer.pictures.registry.picture import Page
from visformer.trace import Trace

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


PAGE = Page(name="tokens", section="see", order=20, title=N_("Tokens"), where="tokens")
