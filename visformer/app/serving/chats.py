"""A chat as a text: each message begins on a line of its own with its role and a colon, such as "user: Why?"."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_BEGINS = re.compile(r"^(system|user|assistant|tool)[:：][^\S\n]*", re.MULTILINE)


@dataclass(frozen=True)
class ChatMessage(Mapping[str, str]):
    """A message as chat templates read it; hashable, since what a model is given is a key of the cache."""

    role: str
    content: str

    def __getitem__(self, name: str) -> str:
        if name in self.__dataclass_fields__:
            return str(getattr(self, name))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


def messages_of(text: str) -> tuple[ChatMessage, ...]:
    """Return the messages of a chat; (): the text does not begin with a role, so it is none."""
    if not _BEGINS.match(text.lstrip()):
        return ()
    _, *parts = _BEGINS.split(text.lstrip())
    return tuple(ChatMessage(role, content.strip()) for role, content in zip(parts[::2], parts[1::2], strict=True))


def text_of(messages: Sequence[ChatMessage]) -> str:
    """Return a chat as a text; a line of a message that begins like another message is indented."""
    said = ((each.role, _BEGINS.sub(r" \g<0>", each.content)) for each in messages)
    return "\n".join(f"{role}: {content}" for role, content in said)


def asking(text: str) -> tuple[ChatMessage, ...]:
    """Return a chat without the answer at its end; a text that is no chat is what a user says."""
    chat = messages_of(text) or (ChatMessage("user", text.strip()),)
    return chat[:-1] if len(chat) > 1 and chat[-1].role == "assistant" else chat
