"""Tokens as vocabularies write them, and as a reader sees them: marks of spaces and of joins, and bytes. Text only."""

import re
from collections.abc import Sequence
from functools import lru_cache

SPACE = "▁"
"""How SentencePiece writes a space."""

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_JOINED = re.compile(r"##\S")


def shown(tokens: Sequence[str], raw: Sequence[bytes | None]) -> tuple[str, ...]:
    """What a reader sees for each token.

    Without the marks that vocabularies write for a leading space or for the lack of one; "␣" for a lone space;
    for a character that several tokens share that character with their numbers, 龘₁ 龘₂ 龘₃.

    Args:
        tokens: as the vocabulary writes them.
        raw: what each stands for; None: it is shown as it is written.
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


def cleaned(tokens: Sequence[str], special: Sequence[bool]) -> tuple[str, ...]:
    """As :func:`shown`, of tokens of which nothing is known but how they are written: ĠThe, ▁The, ##ing.

    Where none bears such a mark, they stay as they are, as special ones always do.
    """
    is_bytes = any(token.startswith(("Ġ", "Ċ")) for token in tokens) and all(
        kept or is_byte_level(token) for token, kept in zip(tokens, special, strict=True)
    )
    joins = any(_JOINED.match(token) for token in tokens)
    if not (is_bytes or joins or any(token.startswith(SPACE) for token in tokens)):
        return tuple(tokens)
    pairs = zip(tokens, special, strict=True)
    return shown(tokens, [None if kept else bytes_of(one, byte_level=is_bytes, joins=joins) for one, kept in pairs])


def is_byte_level(token: str) -> bool:
    """Whether it is written in the letters for bytes."""
    return all(character in byte_letters() for character in token)


def bytes_of(token: str, *, byte_level: bool, joins: bool) -> bytes:
    """What a token stands for, of a vocabulary that writes bytes as letters, or ``##`` before what joins a word."""
    if byte_level and is_byte_level(token):
        return bytes(byte_letters()[character] for character in token)
    if match := BYTE.fullmatch(token):
        return bytes([int(match[1], 16)])
    if joins:
        return token.removeprefix("##").encode(errors="replace")
    return token.replace(SPACE, " ").encode(errors="replace")


def _spelled(raw: Sequence[bytes | None], at: int) -> tuple[int, str | None]:
    """The fewest tokens from ``at`` on whose bytes spell text, as (end, text); (at + 1, None) where none do."""
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
    """The letters that byte-level vocabularies write for bytes: printable ones as they are, others from U+0100 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(others)}
