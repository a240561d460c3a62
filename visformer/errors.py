"""The errors a caller or a visitor can meet. Each holds an English message id and its parameters.

The id is a gettext message id (a ``str.format`` template), so that a page can show the same error in the
visitor's language: ``error.localized(translations.gettext)``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any


class Message(str):
    """A message id; as a parameter of an error it is translated with it."""

    __slots__ = ()


def translated(text: str, gettext: Callable[[str], str]) -> str:
    """Translate a text where it is a message id.

    Args:
        text: a message id, or any other text.
        gettext: translates a message id.

    Returns:
        The message in the visitor's language; other text as it is.
    """
    return gettext(text) if isinstance(text, Message) else text


def N_(message: str) -> Message:
    """Mark a message for translation without translating it (gettext's usual name).

    Args:
        message: English, with ``{names}`` for its values.

    Returns:
        The same text, known as a message.
    """
    return Message(message)


class VisformerError(ValueError):
    """The family. The message says what was given and what to do about it."""

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(message_id.format(**params))
        self.message_id = message_id
        self.params = params

    def localized(self, gettext: Callable[[str], str]) -> str:
        """The message through ``gettext``, in the visitor's language.

        Args:
            gettext: translates a message id.

        Returns:
            The message, with its values filled in.
        """
        params = {name: gettext(v) if isinstance(v, Message) else v for name, v in self.params.items()}
        return gettext(self.message_id).format(**params)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.message_id, **self.params), ()

    def __str__(self) -> str:
        return str(self.args[0])


class ConfigError(VisformerError):
    """A TransformerConfig that describes no Transformer."""


class ShapeError(VisformerError):
    """Tensors or arrays whose shapes do not fit together."""


class TextError(VisformerError):
    """A sentence that cannot be run: empty, too long, or not valid Unicode."""


class LinkError(VisformerError):
    """Something in a link, or in the file of a state, that cannot be opened."""


class LessonError(VisformerError):
    """Something in the file of a guided lesson, or of a link to one, that makes no sense."""


class CheckpointError(VisformerError):
    """A checkpoint that is missing, damaged or not for this model."""


class TraceError(VisformerError):
    """A Trace whose arrays and labels do not fit, or a file that holds none."""


class MissingTensor(VisformerError, KeyError):
    """A tensor that a Trace does not hold; the message says why, and what there is."""


class BudgetError(VisformerError):
    """A recording or a picture that would hold more than allowed."""


class BusyError(VisformerError):
    """More was asked for at once than can be computed soon. The same request may be answered in a few seconds."""


class DeadlineError(VisformerError):
    """Work that took longer than one visitor may keep the others waiting."""


class ShortageError(VisformerError):
    """The machine had not enough memory for this."""


class EditError(VisformerError):
    """An edit that the model cannot honour. It is never ignored."""


class DataError(VisformerError):
    """A data file that cannot be read; the message names file and line."""
