"""What a visitor may ask for, and why: every limit of the pages stands here."""

from visformer.errors import N_, TextError

MAX_CHARACTERS = 1_000
"""About ten sentences. Longer text would be cut into more tokens than a picture can label, and is refused before
any work is done on it."""

MAX_TOKENS = 256
"""Attention has n * n weights for each head: at 256 tokens the cells of the large picture are 2 pixels wide."""


def check_text(text: str) -> None:
    """Refuse text that is empty or too long, before a model sees it.

    Raises:
        TextError: says the limit, what was given, and what to do.
    """
    if not text.strip():
        raise TextError(N_("There is no sentence yet: type one, or choose an example."))
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            N_("This text has {given} characters, and at most {limit} can be shown: shorten it, or take one sentence."),
            given=len(text),
            limit=MAX_CHARACTERS,
        )


def check_tokens(given: int, model_limit: int | None = None) -> None:
    """Refuse a sentence of too many tokens.

    Args:
        given: how many there are.
        model_limit: the model's own limit, if it has one.

    Raises:
        TextError: says the limit, what was given, and what to do.
    """
    limit = min(MAX_TOKENS, model_limit or MAX_TOKENS)
    if given > limit:
        raise TextError(
            N_("This text has {given} tokens, and at most {limit} can be shown: shorten it, or take one sentence."),
            given=given,
            limit=limit,
        )
