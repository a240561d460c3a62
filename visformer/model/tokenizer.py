"""Text to token ids and back, without loss: byte-pair encoding with byte fallback (the ``tokenizers`` library).

One vocabulary serves both languages. A token includes the space before its word, as in " went". So that a Latin
word is the same token at the start of a sentence and inside Chinese text, :func:`_space_out` adds a space there
too; :func:`_unspace` removes exactly that space.
"""

import json
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import accumulate, pairwise
from pathlib import Path

from tokenizers import Regex, pre_tokenizers
from tokenizers import Tokenizer as _Library
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from visformer.errors import N_, CheckpointError, TextError
from visformer.system.files import remedy_of, whole

PAD, EOS, EN, ZH = "<pad>", "</s>", "<en>", "<zh>"
SPECIALS = (PAD, EOS, EN, ZH)
"""Ids 0 to 3. <en> and <zh> begin a target sentence and name its language. They are not "added tokens" of the
library, so a visitor who types "</s>" gets four characters, not an end of sentence."""

LANGUAGE_TOKEN = {"en": EN, "zh": ZH}

_ASCII = string.ascii_letters + string.digits + string.punctuation + " "
_BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_HAN = r"\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = _HAN + r"\u3000-\u303f\uff00-\uffef"  # with full-width punctuation
_TO_SPACE = re.compile(rf"(^|(?<=[{_CJK}]))(?= *[^\W{_CJK}])")
_TO_UNSPACE = re.compile(rf"(^|(?<=[{_CJK}])) (?= *[^\W{_CJK}])")
_HAN_CHARACTER = re.compile(rf"[{_HAN}]")
_LATIN_LETTER = re.compile(rf"[^\W\d_{_HAN}]")

# A word with its leading space; a run of Chinese; one digit; one punctuation mark; one whitespace character.
_SPLIT = r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})| ?(?:(?!\p{Han})[\p{L}\p{M}])+|\p{Han}+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]|\s"


def _space_out(text: str) -> str:
    return _TO_SPACE.sub(" ", text)


def _unspace(text: str) -> str:
    return _TO_UNSPACE.sub("", text)


def detect_language(text: str) -> str:
    """Return "zh" if the text has at least as many Chinese characters as other words, else "en".

    A Chinese sentence with a Latin name counts as Chinese, an English one with 东北 in brackets as English.
    """
    han = len(_HAN_CHARACTER.findall(text))
    return "zh" if han and han >= len(re.findall(rf"{_LATIN_LETTER.pattern}+", text)) else "en"


def require_unicode(text: str) -> None:
    """Refuse text that UTF-8 cannot encode.

    Raises:
        TextError: the text has a lone surrogate; the message says where.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TextError(
            N_("Character {place} of the text, U+{code:04X}, is half of a surrogate pair: remove it."),
            place=error.start + 1,
            code=ord(text[error.start]),
        ) from error


class Tokenizer:
    """Byte-pair encoding over a vocabulary in which ids 0..3 are special and 4..259 are single bytes."""

    def __init__(self, library: _Library) -> None:
        self._library = library
        self._tokens = tuple(str(library.id_to_token(i)) for i in range(library.get_vocab_size()))
        missing = [token for token in (*SPECIALS, *_BYTES) if library.token_to_id(token) is None]
        if missing:
            raise CheckpointError(
                N_("This tokenizer lacks {n} tokens, {first!r} first."), n=len(missing), first=missing[0]
            )

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a ``tokenizer.json``.

        Raises:
            CheckpointError: no such file, or not a tokenizer.
        """
        try:
            return cls(_Library.from_file(str(path)))
        except CheckpointError:
            raise
        except Exception as error:  # the library raises a bare Exception
            raise CheckpointError(
                N_("The tokenizer {path} cannot be read ({reason}): {remedy}."),
                path=path,
                reason=error,
                remedy=remedy_of(Path(path)),
            ) from error

    def save(self, path: str | Path) -> None:
        """Write ``tokenizer.json``."""
        with whole(path) as partial:
            self._library.save(str(partial), pretty=False)  # a page without a server loads it, too

    @classmethod
    def train(cls, words: Sequence[str], *, vocab_size: int, min_frequency: int = 2) -> "Tokenizer":
        """Learn merges inside words.

        Args:
            words: pieces as :func:`training_words` cuts them; a merge never crosses their boundaries.
            vocab_size: number of ids after training, specials and bytes included.
            min_frequency: a character or pair that occurs less often gets no token of its own.
        """
        seen = Counter(character for word in words for character in word)
        alphabet = {character for character, count in seen.items() if count >= min_frequency} | set(_ASCII)
        trainer = BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=[*SPECIALS, *_BYTES],
            initial_alphabet=list(_ASCII),
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        learner = _Library(BPE())
        learner.train_from_iterator(words, trainer)
        learned = json.loads(learner.to_str())["model"]
        return cls(_plain(learned["vocab"], [(left, right) for left, right in learned["merges"]]))

    def with_dropout(self, dropout: float, *, seed: int) -> "Tokenizer":
        """Return a copy that lacks each merge with probability ``dropout`` (after Provilkov et al. 2020).

        The paper samples anew at every merge; sampling once per batch of text can be seeded and costs no speed.
        """
        rng = random.Random(seed)
        model = json.loads(self._library.to_str())["model"]
        kept = [(left, right) for left, right in model["merges"] if rng.random() >= dropout]
        return Tokenizer(_plain(model["vocab"], kept))

    scheme = "BPE"
    """The tokenization algorithm."""

    def __len__(self) -> int:
        return len(self._tokens)

    def token_id(self, token: str) -> int:
        """The id of a token of the vocabulary."""
        token_id = self._library.token_to_id(token)
        if token_id is None:
            raise KeyError(token)
        return int(token_id)

    def encode(self, text: str) -> list[int]:
        """The ids of the text, without specials. :meth:`decode` restores any Unicode text exactly.

        Raises:
            TextError: the text has a lone surrogate, which UTF-8 cannot encode.
        """
        require_unicode(text)
        ids: list[int] = self._library.encode(_space_out(text), add_special_tokens=False).ids
        return ids

    def pieces(self, text: str) -> tuple[str, ...]:
        """The pieces of a text inside which letters are merged: words with their leading space, runs of Chinese."""
        return tuple(piece for piece, _ in self._library.pre_tokenizer.pre_tokenize_str(_space_out(text)))

    def merging(self, piece: str) -> list[tuple[str, ...]]:
        """How a piece becomes tokens (Sennrich et al. 2016, section 3.2): letters first, then one merge at a time.

        Each step merges the adjacent pair whose merge was learned first. A character that is not a token is replaced
        by its bytes, ``<0xE4>``.

        Args:
            piece: one of :meth:`pieces`.

        Returns:
            The parts after 0, 1, 2 ... merges; the last are the tokens that :meth:`encode` returns the ids of.
        """
        known = self._library.token_to_id
        parts = [part for letter in piece for part in ([letter] if known(letter) is not None else _as_bytes(letter))]
        return merged(parts, self._ranks)

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        return merge_ranks(self._library)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; specials are omitted, bytes that form no character become U+FFFD."""
        raw = b"".join(self._bytes(i) for i in ids if i >= len(SPECIALS))
        return _unspace(raw.decode("utf-8", errors="replace"))

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id.

        A token without its leading space; "␣" for a lone space; for each byte of a character that character and
        the byte's number, 龘₁ 龘₂ 龘₃; ``<0xE4>`` for a byte that is part of no printable character.
        """
        result = [self._tokens[i].removeprefix(" ") or "␣" for i in ids]
        for start, end, character in self._characters_in_bytes(ids):
            result[start:end] = [f"{character}{chr(0x2081 + n)}" for n in range(end - start)]
        return tuple(result)

    def spelled(self, i: int) -> str:
        """An id as the vocabulary spells it, with "␣" for a space."""
        return self._tokens[i].replace(" ", "␣")

    def _characters_in_bytes(self, ids: Sequence[int]) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, character) of each run of byte tokens that spell one printable character."""
        at = 0
        while at < len(ids):
            lead = self._bytes(ids[at])[0] if self._is_byte(ids[at]) else 0
            end = at + (2 if lead >> 5 == 0b110 else 3 if lead >> 4 == 0b1110 else 4 if lead >> 3 == 0b11110 else 1)
            if end > at + 1 and all(self._is_byte(i) for i in ids[at:end]):
                character = b"".join(self._bytes(i) for i in ids[at:end]).decode("utf-8", errors="replace")
                if len(character) == 1 and character != "\ufffd" and character.isprintable():
                    yield at, end, character
                    at = end - 1
            at += 1

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return (start, end) of each token of ``encode(text)`` in ``text``, without its leading space.

        All bytes of a character have that character's span.
        """
        spaced = _space_out(text)
        added = {match.start() + n for n, match in enumerate(_TO_SPACE.finditer(text))}  # positions in ``spaced``
        origin = [0]
        for place in range(len(spaced)):
            origin.append(origin[-1] + (place not in added))
        character = [place for place, c in enumerate(spaced) for _ in c.encode()]  # of each byte
        spans, at = [], 0
        for i in self.encode(text):
            raw = self._bytes(i)
            first = at + (len(raw) > 1 and raw[:1] == b" ")
            at += len(raw)
            spans.append((origin[character[first]], origin[character[at - 1] + 1]))
        return tuple(spans)

    def is_special(self, ids: Sequence[int]) -> tuple[bool, ...]:
        """Whether each id is special, that is, stands for no text."""
        return tuple(i < len(SPECIALS) for i in ids)

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The word that each id belongs to, counted from 0: parts of one Latin word, or bytes of one character.

        Chinese writes no spaces, so each Chinese token is a word of its own.
        """
        begins = (not self._continues(before, here) for before, here in pairwise(ids))
        return tuple(accumulate(begins, initial=0))[: len(ids)]

    def _continues(self, before: int, here: int) -> bool:
        if before < len(SPECIALS) or here < len(SPECIALS):
            return False
        if self._is_byte(here):  # continuation bytes of UTF-8 are 0b10xxxxxx
            return (self._bytes(here)[0] & 0xC0) == 0x80
        return bool(_LATIN_LETTER.match(self._tokens[here])) and bool(_LATIN_LETTER.search(self._tokens[before][-1:]))

    def _is_byte(self, i: int) -> bool:
        return len(SPECIALS) <= i < len(SPECIALS) + len(_BYTES)

    def _bytes(self, i: int) -> bytes:
        if self._is_byte(i):
            return bytes([i - len(SPECIALS)])
        return self._tokens[i].encode()


def merge_ranks(library: _Library) -> dict[tuple[str, str], int]:
    """The pairs that a byte-pair vocabulary merges, ranked in the order learned; empty for other vocabularies."""
    merges = json.loads(library.to_str())["model"].get("merges", ())
    return {(left, right): rank for rank, (left, right) in enumerate(merges)}


def merged(parts: list[str], ranks: dict[tuple[str, str], int]) -> list[tuple[str, ...]]:
    """The parts after 0, 1, 2 ... merges, each of the pair with the lowest rank, until none is left."""
    steps = [tuple(parts)]
    while True:
        pair_ranks = [ranks.get(pair, len(ranks)) for pair in pairwise(parts)]
        if not pair_ranks or min(pair_ranks) == len(ranks):
            return steps
        at = pair_ranks.index(min(pair_ranks))
        parts = [*parts[:at], parts[at] + parts[at + 1], *parts[at + 2 :]]
        steps.append(tuple(parts))


def _as_bytes(character: str) -> list[str]:
    return [_BYTES[byte] for byte in character.encode()]


def training_words(text: str, cut_chinese: Callable[[str], Iterable[str]]) -> list[str]:
    """Cut a sentence into the pieces inside which merges are learned.

    Args:
        text: a sentence of either language.
        cut_chinese: segments a run of Chinese characters into words, so that no token spans parts of two words.
    """
    pieces: list[str] = []
    for piece, _ in _pre_tokenizer().pre_tokenize_str(_space_out(text)):
        pieces.extend(cut_chinese(piece) if _HAN_CHARACTER.match(piece) else [piece])
    return pieces


def jieba_words(run: str) -> Iterator[str]:
    """Segment a run of Chinese characters into words (jieba), and compounds into their two words: 东北|大学."""
    import jieba

    for word in jieba.lcut(run):
        halves = [(word[:i], word[i:]) for i in range(2, len(word) - 1)]
        yield from next((h for h in halves if all(jieba.dt.FREQ.get(part) for part in h)), [word])


def _plain(vocab: dict[str, int], merges: list[tuple[str, str]]) -> _Library:
    """A tokenizer without "added tokens", which the library would recognise inside text that a visitor types."""
    library = _Library(BPE(vocab=vocab, merges=merges, byte_fallback=True))
    library.pre_tokenizer = _pre_tokenizer()
    return library


@cache
def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated")
