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


def check_text(text: str, box: str = N_("This text")) -> None:
    """Raise a :class:`TextError` for an empty or too long text; ``box``: the name of its input, a message id."""
    if len(text) > limits.MAX_CHARACTERS:
        raise TextError(
            N_("{box}: {given} characters; at most {limit} can be shown. Shorten the text, or keep one sentence."),
            box=box,
            given=len(text),
            limit=limits.MAX_CHARACTERS,
        )
    if not text.strip():
        raise NoTextError(N_("There is no sentence yet: type one, or choose an example."))


def check_tokens(given: int, model_limit: int | None = None, *, box: str = N_("This text")) -> None:
    """Raise a :class:`TextError` for too many tokens; ``box`` as in :func:`check_text`."""
    limit = min(limits.MAX_TOKENS, model_limit or limits.MAX_TOKENS)
    if given > limit:
        raise TextError(
            N_("{box}: {given} tokens; at most {limit} can be shown. Shorten the text, or keep one sentence."),
            box=box,
            given=given,
            limit=limit,
        )
