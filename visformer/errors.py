"""The errors that callers and visitors may see. Each holds an English message id and its parameters.

The id is a gettext message id (a ``str.format`` template), so that pages can show the error in the visitor's language:
``error.localized(translations.gettext)``. ``str(error)``, which shells, notebooks, the command line and logs show, is
in the language of the environment (``i18n.preferred``); ``error.args[0]`` is always in English.
"""

from collections.abc import Callable
from functools import partial
from string import Formatter
from typing import Any

from visformer import i18n


class Message(str):
    """A message id; as a parameter of an error, it is translated with the error."""

    __slots__ = ()


def translated(text: str, gettext: Callable[[str], str]) -> str:
    """Translate a text if it is a message id.

    Args:
        text: a message id, or any other text.
        gettext: translates a message id.

    Returns:
        The message in the visitor's language; other text unchanged.
    """
    return gettext(text) if isinstance(text, Message) else text


def N_(message: str) -> Message:
    """Mark a message for translation without translating it (gettext's usual name).

    Args:
        message: English text, with ``{names}`` for its values.

    Returns:
        The same text as a Message.
    """
    return Message(message)


_LONGEST = 600
"""Characters of one value in a message: a value may be a text, or hold millions of numbers."""


class _Formatter(Formatter):
    """``str.format`` with a conversion more, for languages with quotation marks of their own: ``“{name!q}”``.

    What is long is shown by its beginning and its end.
    """

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        """Return the value, for "q" as ``repr`` escapes it, but without its quotation marks."""
        return repr(str(value))[1:-1] if conversion == "q" else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return the text of a value."""
        text: str = super().format_field(value, format_spec)
        if len(text) <= _LONGEST or isinstance(value, Message | VisformerError):
            return text
        return f"{text[: _LONGEST * 2 // 3]} … {text[-_LONGEST // 3 :]}"


_FORMATTER = _Formatter()


class VisformerError(ValueError):
    """Base class of all errors. The message says what was passed and how to fix it."""

    def __init__(self, message_id: str, **params: object) -> None:
        super().__init__(_FORMATTER.vformat(message_id, (), params))
        self.message_id = message_id
        self.params = params

    def localized(self, gettext: Callable[[str], str]) -> str:
        """Return the message in the visitor's language.

        Args:
            gettext: translates a message id.

        Returns:
            The message with its values filled in.
        """
        params = {
            name: v.localized(gettext) if isinstance(v, VisformerError) else gettext(v) if isinstance(v, Message) else v
            for name, v in self.params.items()
        }
        return _FORMATTER.vformat(gettext(self.message_id), (), params)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.message_id, **self.params), ()

    def __str__(self) -> str:
        language = i18n.preferred()
        return str(self.args[0]) if language == i18n.ENGLISH else self.localized(i18n.translations(language).gettext)


class ArgumentError(VisformerError, TypeError):
    """An argument is not of the type that a function takes; the message names both."""


class ConfigError(VisformerError):
    """An invalid TransformerConfig or other configuration."""


class ShapeError(VisformerError):
    """Tensors or arrays have incompatible shapes."""


class NumberError(VisformerError):
    """A number that was typed is missing, or nothing can be computed from it."""


class TextError(VisformerError):
    """A sentence cannot be processed: it is empty, too long, or not valid Unicode."""


class NoTextError(TextError):
    """There is no sentence yet: nothing has gone wrong."""


class LinkError(VisformerError):
    """A value in a link or in a saved state is invalid."""


class LessonError(VisformerError):
    """A lesson file, or a link to a lesson, is invalid."""


class CheckpointError(VisformerError):
    """A checkpoint is missing, damaged or not for this model."""


class TraceError(VisformerError):
    """The arrays and labels of a Trace do not match, or a file holds no Trace."""


class MissingTensor(VisformerError, KeyError):
    """A Trace does not hold a tensor; the message says why, and which tensors it holds."""


class BudgetError(VisformerError):
    """A recording or a picture would exceed a size limit."""


class BusyError(VisformerError):
    """Too many requests are being processed; the same request may succeed in a few seconds."""


class DeadlineError(VisformerError):
    """Work that took longer than one visitor may keep the others waiting."""


class ShortageError(VisformerError):
    """The machine does not have enough memory."""


class EditError(VisformerError):
    """An edit cannot be applied to the model; such edits are never silently ignored."""


class DataError(VisformerError):
    """A data file cannot be read; the message names file and line."""
