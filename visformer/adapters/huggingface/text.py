"""A transformers tokenizer as visformer needs it: ids, the text displayed for each, specials and words."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from threading import RLock
from typing import Any

from visformer.adapters.base import ONE_LANGUAGE
from visformer.adapters.huggingface.chat import Roles, read_chat
from visformer.errors import N_, VisformerError
from visformer.model.tokenizer import detect_language, merge_ranks, merged
from visformer.trace.tokens import SPACE, byte_letters, bytes_of, is_byte_level, shown

_NO_LIMIT = 10**9
"""The library writes no limit as a number of thirty digits."""

_LATIN_LETTER = re.compile(r"[^\W\d_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


class HubText:
    """Text to ids and back. Thread-safe, by a lock: the library's tokenizers are not."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._lock = RLock()
        decoder = str(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", ""))
        self._byte_level = "ByteLevel" in decoder
        self._word_piece = "WordPiece" in decoder
        unknown = {tokenizer.unk_token_id}  # special to the library, but it represents text
        marks = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}  # <|im_start|> and the like
        self._special = frozenset({*tokenizer.all_special_ids, *marks} - unknown) | set(self._languages().values())
        limit = getattr(tokenizer, "model_max_length", None) or _NO_LIMIT
        self.max_tokens = int(limit) if limit < _NO_LIMIT else None
        model = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
        self.has_template = bool(getattr(tokenizer, "chat_template", None))
        self.scheme = "" if model is None else type(model).__name__

    def __reduce__(self) -> tuple[type["HubText"], tuple[Any]]:
        return HubText, (self._tokenizer,)  # without the lock

    def __len__(self) -> int:
        return len(self._tokenizer)

    def pieces(self, text: str) -> tuple[str, ...]:
        """The pieces of a text inside which letters are merged: words with their leading space."""
        library = self._tokenizer.backend_tokenizer
        plain = library.normalizer.normalize_str(text) if library.normalizer else text
        cut = library.pre_tokenizer.pre_tokenize_str(plain) if library.pre_tokenizer else [(plain, None)]
        return tuple(self._readable(piece) for piece, _ in cut)

    def merging(self, piece: str) -> list[tuple[str, ...]]:
        """Like :meth:`visformer.model.tokenizer.Tokenizer.merging`, for a vocabulary whose scheme is "BPE"."""
        if self._byte_level:
            letters = {byte: letter for letter, byte in byte_letters().items()}
            parts = [letters[byte] for byte in piece.encode()]
        else:
            vocabulary = self._tokenizer.get_vocab()
            parts = []
            for letter in piece.replace(" ", SPACE):
                parts += [letter] if letter in vocabulary else [f"<0x{byte:02X}>" for byte in letter.encode()]
        return [tuple(map(self._readable, step)) for step in merged(parts, self._ranks)]

    def _readable(self, token: str) -> str:
        """A token with its leading space as a plain space, and bytes that are not valid text as ``<0xE4>``."""
        if not self._byte_level or not is_byte_level(token):
            return token.replace(SPACE, " ")
        raw = bytes(byte_letters()[character] for character in token)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in raw)

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        return merge_ranks(self._tokenizer.backend_tokenizer)

    def encode(self, text: str, pair: str | None = None) -> tuple[list[int], list[int]]:
        """Ids of a text or a pair, with the specials that the model expects, and the segment (0 or 1) of each id."""
        with self._lock, self._in_its_language(text):
            encoding = self._tokenize(text, pair, return_token_type_ids=True)
        ids = [int(i) for i in encoding["input_ids"]]
        segments = [int(i) for i in encoding.get("token_type_ids") or [0] * len(ids)]
        begin = self._tokenizer.bos_token_id
        if begin is not None and ids[:2] == [begin] * 2 and text.lstrip().startswith(self._tokenizer.bos_token):
            return ids[1:], segments[1:]  # a chat template has written it already
        return ids, segments

    def chat(self, messages: Any, *, prompting: bool = False) -> tuple[list[int], Roles]:
        """Ids of messages and the role of each, see :func:`visformer.adapters.huggingface.chat.read_chat`."""
        with self._lock:
            return read_chat(self._tokenizer, messages, prompting=prompting)

    def encode_target(self, text: str, language: int | None = None) -> list[int]:
        """Ids that a decoder's rows predict for this target; ``language``: the language id it begins with, if any."""
        with self._lock:
            ids = [int(i) for i in self._tokenize(text_target=text)["input_ids"]]
        if language is not None and ids[:1] != [language] and ids and ids[0] in self._special:
            ids[0] = language
        return ids

    def encode_plain(self, text: str) -> list[int]:
        """Ids without specials."""
        if not text:  # some tokenizers begin each text with a space
            return []
        with self._lock:
            return [int(i) for i in self._tokenize(text, add_special_tokens=False)["input_ids"]]

    def _tokenize(self, *texts: str | None, **options: Any) -> Any:
        """Call the tokenizer without its warning about texts that are too long: our TextError reports those."""
        return self._tokenizer(*texts, verbose=False, **options)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; specials are omitted."""
        with self._lock:
            plain = [i for i in ids if i not in self._special]
            return str(self._tokenizer.decode(plain, skip_special_tokens=True)).strip()

    def is_special(self, ids: Sequence[int]) -> tuple[bool, ...]:
        """Whether each id is special, that is, stands for no text."""
        return tuple(i in self._special for i in ids)

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id, see :func:`visformer.trace.tokens.shown`."""
        tokens = self._tokens(ids)
        return shown(tokens, [self._bytes(i, token) for i, token in zip(ids, tokens, strict=True)])

    def spelled(self, i: int) -> str:
        """An id as the vocabulary spells it, with "␣" for a space."""
        return self._readable(self._tokens([i])[0]).replace(" ", "␣")

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The word that each id belongs to, counted from 0. Chinese has no spaces: each token is a word of its own."""
        tokens, shown, special = self._tokens(ids), self.shown(ids), self.is_special(ids)
        begins = (
            special[at] or special[at - 1] or not self._continues(tokens[at], shown, at) for at in range(1, len(tokens))
        )
        return tuple(accumulate(begins, initial=0))[: len(tokens)]

    def language_id(self, to: str | None, source: Callable[[], str]) -> int | None:
        """The id that the target begins with in a multilingual model; None for other models.

        Args:
            to: the tokenizer's own code ("zh", "zh_CN", "zho_Hans"), or its beginning; None: English for a Chinese
                source, else Chinese.
            source: returns the sentence.

        Raises:
            VisformerError: no such language, or the model is not multilingual.
        """
        codes = self._languages()
        if not codes:
            if to is not None:
                raise VisformerError(ONE_LANGUAGE, to=to)
            return None
        wanted = to or ("en" if detect_language(source()) == "zh" else "zh")
        code = _closest(wanted, tuple(codes))
        if code is None:
            raise VisformerError(
                N_("to={to!r} is not a language of this model: choose one of {codes}."),
                to=wanted,
                codes=", ".join(sorted(codes)),
            )
        return codes[code]

    def _languages(self) -> dict[str, int]:
        """Language code to id; empty unless the tokenizer has language tokens."""
        tokenizer = self._tokenizer
        if getattr(tokenizer, "src_lang", None) is None:
            return {}
        known = getattr(tokenizer, "lang_code_to_id", None) or getattr(tokenizer, "lang_token_to_id", None)
        codes = known or {t: tokenizer.convert_tokens_to_ids(t) for t in tokenizer.all_special_tokens}
        plain = {str(code).strip("_"): int(i) for code, i in codes.items()}
        return {code: i for code, i in plain.items() if re.fullmatch(r"[a-z]{2,3}(_[A-Za-z]+)?", code)}

    @contextmanager
    def _in_its_language(self, text: str) -> Iterator[None]:
        """Tell a multilingual tokenizer the language of the source, as far as its script shows that: else the caller's.

        Chinese is told apart from what is written in letters, but English not from French.
        """
        codes, given = tuple(self._languages()), getattr(self._tokenizer, "src_lang", None)
        code = _closest(detect_language(text), codes) if codes else None
        if code is None or (_is_chinese(str(given)) == _is_chinese(code)):
            yield
            return
        self._tokenizer.src_lang = code
        try:
            yield
        finally:
            self._tokenizer.src_lang = given

    def _tokens(self, ids: Sequence[int]) -> list[str]:
        with self._lock:
            tokens = self._tokenizer.convert_ids_to_tokens(list(ids))
        # A model may have embeddings for more ids than its tokenizer has tokens.
        return [f"#{i}" if token is None else str(token) for i, token in zip(ids, tokens, strict=True)]

    def _bytes(self, i: int, token: str) -> bytes | None:
        """The bytes of a token; None for a special one."""
        if i in self._special:
            return None
        return bytes_of(token, byte_level=self._byte_level, joins=self._word_piece)

    def _continues(self, token: str, shown: tuple[str, ...], at: int) -> bool:
        if self.scheme == "WordLevel":
            return False
        if self._word_piece:
            return token.startswith("##")
        if token.startswith((SPACE, "Ġ")):
            return False
        if shown[at][-1] in _NUMBERS[1:] and shown[at][:-1] == shown[at - 1][:-1]:
            return True  # the next part of the same character
        return bool(_LATIN_LETTER.match(shown[at])) and bool(_LATIN_LETTER.search(shown[at - 1][-1:]))


_NUMBERS = tuple(chr(0x2081 + n) for n in range(9))


def _is_chinese(code: str) -> bool:
    return code.startswith("zh")


def _closest(wanted: str, codes: tuple[str, ...]) -> str | None:
    """The code itself, or the first that begins with it; Simplified for Chinese."""
    beginnings = {"zh": ("zh", "zh_CN", "zho_Hans"), "en": ("en", "en_XX", "eng_Latn")}.get(wanted, (wanted,))
    for beginning in beginnings:
        if beginning in codes:
            return beginning
    return next((code for code in sorted(codes) if code.startswith(f"{wanted}_")), None)
