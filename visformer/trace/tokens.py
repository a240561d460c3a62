"""Tokens as displayed, without a vocabulary's marks of spaces, joins and bytes, and the likeliest next tokens."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

SPACE = "▁"
"""How SentencePiece writes a space."""

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_JOINED = re.compile(r"##\S")
_MARK = re.compile(r"(␣|##)?(?=.)", re.DOTALL)
_Token = TypeVar("_Token")


def shown(tokens: Sequence[str], raw: Sequence[bytes | None]) -> tuple[str, ...]:
    """The text displayed for each token.

    It has no marks for a leading space or for the lack of one, see :func:`distinguished`. A lone space is "␣". Tokens
    that share one character are that character, numbered: 龘₁ 龘₂ 龘₃.

    Args:
        tokens: as spelled in the vocabulary.
        raw: the bytes of each token; None: it is displayed as spelled.
    """
    result = [token if part is None else "" for token, part in zip(tokens, raw, strict=True)]
    at = 0
    while at < len(raw):
        part = raw[at]
        if part is None:
            at += 1
            continue
        end, text = _spelled(raw, at)
        if text is None:
            result[at] = "".join(f"<0x{byte:02X}>" for byte in part)
        elif end == at + 1:
            result[at] = text.removeprefix(" ") or "␣"
        else:
            shared = text.strip() or "␣"
            result[at:end] = [f"{shared}{chr(0x2081 + n)}" for n in range(end - at)]
        at = end
    return tuple(result)


def patch_names(rows: int, columns: int) -> tuple[str, ...]:
    """The name of each patch of a picture, row by row: "r1c1" the first of the first row."""
    return tuple(f"r{row}c{column}" for row in range(1, rows + 1) for column in range(1, columns + 1))


def distinguished(texts: Sequence[str], tokens: Sequence[_Token], spelled: Callable[[_Token], str]) -> tuple[str, ...]:
    """Mark different tokens that look alike: "␣the" after a space, "##the" inside a word, "the" otherwise.

    Args:
        texts: the text displayed for each token, see :func:`shown`.
        tokens: what tells them apart: ids, or their spellings.
        spelled: maps a token to its spelling, with "␣" for a space.
    """
    looks = defaultdict(set)
    for text, token in zip(texts, tokens, strict=True):
        looks[text].add(token)

    def marked(text: str, token: _Token) -> str:
        mark = _MARK.match(spelled(token)) if len(looks[text]) > 1 else None
        return text if mark is None else mark[0] + text

    return tuple(map(marked, texts, tokens))


def cleaned(tokens: Sequence[str], special: Sequence[bool]) -> tuple[str, ...]:
    """Like :func:`shown`, for tokens known only by their spelling: ĠThe, ▁The, ##ing.

    Special tokens stay as they are, and so do all others if none has such a mark.
    """
    is_bytes = any(token.startswith(("Ġ", "Ċ")) for token in tokens) and all(
        kept or is_byte_level(token) for token, kept in zip(tokens, special, strict=True)
    )
    joins = any(_JOINED.match(token) for token in tokens)
    if not (is_bytes or joins or any(token.startswith(SPACE) for token in tokens)):
        return tuple(tokens)
    pairs = zip(tokens, special, strict=True)
    raw = [None if kept else bytes_of(token, byte_level=is_bytes, joins=joins) for token, kept in pairs]
    return distinguished(shown(tokens, raw), tokens, lambda token: re.sub(f"^[Ġ{SPACE}]", "␣", token))


def is_byte_level(token: str) -> bool:
    """Whether a token consists of the letters that stand for bytes."""
    return all(character in byte_letters() for character in token)


def bytes_of(token: str, *, byte_level: bool, joins: bool) -> bytes:
    """The bytes of a token; ``byte_level``: letters stand for bytes, ``joins``: ``##`` marks a word's continuation."""
    if byte_level and is_byte_level(token):
        return bytes(byte_letters()[character] for character in token)
    if match := BYTE.fullmatch(token):
        return bytes([int(match[1], 16)])
    if joins:
        return token.removeprefix("##").encode(errors="replace")
    return token.replace(SPACE, " ").encode(errors="replace")


def _spelled(raw: Sequence[bytes | None], at: int) -> tuple[int, str | None]:
    """The fewest tokens from ``at`` on whose bytes are valid text, as (end, text); (at + 1, None) if there are none."""
    gathered = b""
    for end in range(at, min(at + 8, len(raw))):
        part = raw[end]
        if part is None:
            break
        gathered += part
        try:
            return end + 1, gathered.decode()
        except UnicodeDecodeError:
            continue
    return at + 1, None


@lru_cache(maxsize=1)
def byte_letters() -> dict[str, int]:
    """The letters by which byte-level vocabularies spell bytes: printable ones unchanged, others from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(others)}


CANDIDATES = 5
"""How many of the likeliest next tokens have a name in a Trace, and are shown."""


def likeliest(logits: NDArray[np.floating]) -> tuple[int, ...]:
    """Return the ids of the :data:`CANDIDATES` largest logits of a row, (vocab,), largest first, then lowest id."""
    row = np.where(np.isnan(logits), -np.inf, logits)
    least = np.partition(row, -min(CANDIDATES, len(row)))[-min(CANDIDATES, len(row))]
    (ids,) = np.nonzero(row >= least)
    return tuple(ids[np.argsort(-row[ids], kind="stable")][:CANDIDATES].tolist())


_ENDS = re.compile(r"[.!?。！？…]+[\"'”’)\]」』）]*")
"""A token that ends a sentence: its mark, or a line break."""


def sentences_of(tokens: Sequence[str], special: Sequence[bool]) -> tuple[int, ...]:
    """Return the number of the sentence that each token belongs to, from 0.

    A sentence ends behind a token that is only a full stop, a question mark or an exclamation mark, or has a line
    break; marks and special tokens that follow belong to it.
    """
    numbers, number, has_ended = [], 0, False
    for token, is_special in zip(tokens, special, strict=True):
        ends = not is_special and (_ENDS.fullmatch(token.strip(" ␣")) is not None or "\n" in token)
        if has_ended and not ends and not is_special and any(map(str.isalnum, token)):
            number, has_ended = number + 1, False
        has_ended = has_ended or ends
        numbers.append(number)
    return tuple(numbers)
