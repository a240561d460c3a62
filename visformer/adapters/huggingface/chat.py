"""Messages as a chat template writes them: their token ids, and the role of the message that each token is part of.

Templates differ in everything: where headers stand, whether a system's text is part of the user's turn (Gemma,
Mistral), whether a text is stripped. So nothing is known of a template here. The messages are written a second time
with a mark in place of each of their texts; what stands between the marks is the template's own. It has the role None,
as have headers such as ``<|start_header_id|>user<|end_header_id|>``. Only if that and the texts together are exactly
what the template wrote of the messages themselves is it known which token is part of which message.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from visformer.adapters.requests import ids_in
from visformer.errors import N_, TextError

Roles = tuple[str | None, ...]

_MARK = re.compile("\ue000([0-9]+)\ue001")
"""In place of a text: characters for private use, which no template looks for."""

_NAMES = ("role", "type")
"""What a template reads to decide what to write, and does not write as it is."""


def is_chat(text: object) -> bool:
    """Whether this is a list of messages."""
    return isinstance(text, list | tuple) and bool(text) and all(isinstance(each, Mapping) for each in text)


def read_chat(tokenizer: Any, messages: Any, *, prompting: bool = False) -> tuple[list[int], Roles]:
    """Write messages with the tokenizer's chat template.

    Args:
        tokenizer: a transformers tokenizer.
        messages: mappings with "role" and "content", and what else the template reads.
        prompting: whether the beginning of an answer follows, as the template writes it.

    Returns:
        The ids, and the role of each: None for what the template writes itself, and for all where it changes the texts,
        or where the tokenizer does not say which characters a token stands for.

    Raises:
        TextError: the tokenizer has no chat template, or the template refuses the messages.
    """

    def write(given: Any, **options: Any) -> Any:
        return tokenizer.apply_chat_template(given, add_generation_prompt=prompting, **options)

    try:
        ids: list[int] = ids_in(write(messages, return_dict=True))
    except Exception as error:  # a template's own: no template, an unknown role, a missing field
        raise not_written(error) from error
    spans = spans_of(messages, lambda given: write(given, tokenize=False))
    return ids, roles_of(tokenizer, ids, *spans) if spans else (None,) * len(ids)


def not_written(error: Exception) -> TextError:
    """Return why messages cannot be written, by a template's own error."""
    return TextError(
        N_("These messages cannot be written with the tokenizer's chat template: {reason}."),
        reason=str(error).splitlines()[0].rstrip("."),
    )


def spans_of(messages: Any, write: Callable[[Any], str]) -> tuple[str, Roles] | None:
    """What the template writes, and the role of each character; None: it does not write the texts as they are."""
    texts: list[tuple[str, str]] = []  # role and text, by the number of its mark
    marked = []
    for message in messages:
        marked.append(_marked(message, str(message.get("role") or ""), texts))
    try:
        pieces = _MARK.split(write(marked))  # what the template writes, and the numbers of marks, in turn
        written = write(messages)
    except Exception:  # a template's own: it reads the texts, and refuses marks
        return None
    parts = [_stripped(texts[int(piece)][1]) if i % 2 else f"({re.escape(piece)})" for i, piece in enumerate(pieces)]
    match = re.fullmatch("".join(parts), written, flags=re.DOTALL)
    if match is None:
        return None
    roles: list[str | None] = []
    for i, piece in enumerate(pieces):
        roles += [texts[int(piece)][0] if i % 2 else None] * len(match[i + 1])
    return written, tuple(roles)


def _marked(value: Any, role: str, texts: list[tuple[str, str]], name: str = "") -> Any:
    """A copy of a message, or of a part of it, with a mark in place of each text, which is added to ``texts``."""
    if isinstance(value, Mapping):
        return {name: _marked(each, role, texts, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(each, role, texts, name) for each in value]
    if not isinstance(value, str) or not value.strip() or name in _NAMES:
        return value
    texts.append((role, value))
    return f"\ue000{len(texts) - 1}\ue001"


def _stripped(text: str) -> str:
    """A pattern of a text with or without the space around it, as a group."""
    forms = dict.fromkeys((text, text.lstrip(), text.rstrip(), text.strip()))
    return f"({'|'.join(map(re.escape, forms))})"


def roles_of(tokenizer: Any, ids: list[int], written: str, roles: Roles, *, specials: bool = False) -> Roles:
    """The role of each token: that of the first of its characters that is part of a message.

    Args:
        tokenizer: a transformers tokenizer.
        ids: the tokens.
        written: what they spell.
        roles: of each of its characters.
        specials: whether the tokenizer has added its own tokens, such as the one that begins a text.
    """
    try:
        encoding = tokenizer(written, add_special_tokens=specials, return_offsets_mapping=True, verbose=False)
    except NotImplementedError:  # not one of the library tokenizers
        return (None,) * len(ids)
    if [*encoding["input_ids"]] != ids:
        return (None,) * len(ids)
    ranges = (roles[start:end] for start, end in encoding["offset_mapping"])
    return tuple(next((role for role in each if role is not None), None) for each in ranges)
