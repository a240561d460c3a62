"""Checks of a visitor's input against the limits; errors name the limit, the input and a remedy."""

from visformer.errors import N_, CheckpointError, ConfigError, NoTextError, TextError
from visformer.model.untrained import Untrained
from visformer.system import limits
from visformer.system.cache import CACHE


def check_untrained(wanted: Untrained) -> None:
    """Raise a :class:`ConfigError` for sizes that would take too much of a shared server's memory or time."""
    for name, (least, most) in limits.UNTRAINED.items():
        given = getattr(wanted, name)
        if not least <= given <= most:
            raise ConfigError(
                N_(
                    "{name}={given}: an untrained Transformer can have {least} to {most} here. In Python there is no "
                    "limit: visformer.load({model!r})."
                ),
                name=name,
                given=given,
                least=least,
                most=most,
                model=wanted.name,
            )


def check_download(name: str, nbytes: int) -> None:
    """Raise a :class:`CheckpointError` for a model whose weights would not fit into memory."""
    if nbytes > CACHE.most():
        raise CheckpointError(
            N_(
                "{name!r} is {size}, and models may take {limit} of memory here, where weights of 16 bits take twice "
                "their size. The operator can set more: VISFORMER_MEMORY."
            ),
            name=name,
            size=limits.size(nbytes),
            limit=limits.size(CACHE.most()),
        )


_CHARACTERS = N_("{box}: {given:,} characters; at most {limit:,} can be shown. Shorten the text.")
_CHARACTERS_HERE = N_(
    "{box}: {given:,} characters; at most {limit:,} can be shown here, and more on the page Attention. Shorten the "
    "text, or keep one sentence."
)
_TOKENS = N_("{box}: {given:,} tokens, and this model takes at most {limit:,}. Shorten the text.")
_TOKENS_HERE = N_(
    "{box}: {given:,} tokens; at most {limit:,} can be shown here, and more on the page Attention. Shorten the text, "
    "or keep one sentence."
)


def check_text(text: str, box: str = N_("This text"), *, is_long: bool = False) -> None:
    """Raise a :class:`TextError` for an empty or too long text.

    Args:
        text: what was typed.
        box: the name of its input, a message id.
        is_long: whether it is for a picture that can show long texts.
    """
    limit = limits.LONG_CHARACTERS if is_long else limits.MAX_CHARACTERS
    if len(text) > limit:
        said = _CHARACTERS if is_long else _CHARACTERS_HERE
        raise TextError(said, box=box, given=len(text), limit=int(limit))
    if not text.strip():
        raise NoTextError(N_("There is no sentence yet: type one, or choose an example."))


def check_tokens(
    given: int, model_limit: int | None = None, *, box: str = N_("This text"), is_long: bool = False
) -> None:
    """Raise a :class:`TextError` for too many tokens; ``box`` and ``is_long`` as in :func:`check_text`."""
    if model_limit is not None and given > model_limit:
        raise TextError(_TOKENS, box=box, given=given, limit=model_limit)
    if not is_long and given > limits.MAX_TOKENS:
        raise TextError(_TOKENS_HERE, box=box, given=given, limit=int(limits.MAX_TOKENS))
