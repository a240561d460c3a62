"""What a visitor may ask for, and why: every limit of the pages stands here."""

from collections.abc import Mapping

from visformer.errors import N_, CheckpointError, ConfigError, TextError
from visformer.model.untrained import Untrained

MAX_CHARACTERS = 1_000
"""About ten sentences. Longer text would be cut into more tokens than a picture can label, and is refused before
any work is done on it."""

MAX_TOKENS = 256
"""Attention has n * n weights for each head: at 256 tokens the cells of the large picture are 2 pixels wide."""

UNTRAINED: Mapping[str, tuple[int, int]] = {
    "d_model": (8, 512),
    "n_heads": (1, 16),
    "n_encoder_layers": (1, 6),
    "n_decoder_layers": (1, 6),
    "d_ff": (8, 2048),
    "seed": (0, 9999),
}
"""Least and most of an untrained Transformer. The largest is the paper's base model, with the 16 heads of its big one:
48 million weights, 193 MB, made in a second. Without a layer there would be no picture."""

UNTRAINED_BENCHES = 4
"""Untrained Transformers that are kept; each is made again from its seed, so they never push out one that is loaded."""

BENCHES = 3
"""Models besides the first that are kept loaded; the one that was used longest ago goes. With the largest weights that
are downloaded here, three fill 3 * 8 GiB (float16 in the file, float32 in memory)."""

TRACE_BYTES = 256 * 2**20
"""Traces kept of the first model, for all visitors together: a short sentence's takes 50 kB, the longest's 20 MB."""

OTHER_TRACE_BYTES = 64 * 2**20
"""Of each model besides it."""

DOWNLOAD_BYTES = 4 * 2**30
"""Largest download that a visitor can start. In memory it may need twice as much: many files are float16."""

SESSIONS = 1_000
"""Visitors at once, in one process: two full lecture halls. One who has left is not counted."""

ROOMS = 100
"""Presenters whose rooms follow them at once, in one process; a room holds one state of a few kB."""

FOLLOWERS = 500
"""Phones of one room: a lecture hall. Each runs its page again when the presenter goes on."""

ROOM_SECONDS = 4 * 60 * 60
"""For which a room is kept without its presenter doing anything: a long workshop with its breaks."""

LESSON_BYTES = 40_000
"""Of a lesson as a file: three times what twelve steps in two languages take. It is read in a quarter of a second."""

LESSON_STEPS = 40
"""More than an hour has room for; each is a dot on the page."""

LESSON_DEPTH = 6
"""Of what stands inside what in a lesson; its own form needs four."""

LESSON_TITLE = 60
"""Characters: one line."""

LESSON_TEXT = 500
"""Characters: three lines or four; the picture needs the room."""

LESSON_LINK = 3_000
"""Characters of a lesson in an address, which has to hold what is chosen, too."""


def check_untrained(wanted: Untrained) -> None:
    """Refuse what would take a server's memory or time from others.

    Raises:
        ConfigError: says the limits, what was given, and where larger ones can be had.
    """
    for name, (least, most) in UNTRAINED.items():
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
    """Refuse a model whose weights would not fit into memory.

    Raises:
        CheckpointError: says the limit, the size, and what the operator can do.
    """
    if nbytes > DOWNLOAD_BYTES:
        raise CheckpointError(
            N_(
                "{name!r} is {size} large, and at most {limit} are downloaded from here. The operator can put it into "
                "the cache or a folder; it then takes up to twice its size in memory."
            ),
            name=name,
            size=size(nbytes),
            limit=size(DOWNLOAD_BYTES),
        )


def size(nbytes: int) -> str:
    """Bytes as people write them, three digits at least: "88 kB", "548 MB", "4.29 GB"."""
    for unit, factor, digits in (("GB", 10**9, 2), ("MB", 10**6, 0), ("kB", 10**3, 0)):
        if nbytes >= factor:
            return f"{nbytes / factor:.{digits}f} {unit}"
    return f"{nbytes} B"


def check_text(text: str, box: str = N_("This text")) -> None:
    """Refuse text that is empty or too long, before a model sees it.

    Args:
        text: as typed.
        box: message id of where it stands.

    Raises:
        TextError: says the limit, what was given, and what to do.
    """
    if not text.strip():
        raise TextError(N_("There is no sentence yet: type one, or choose an example."))
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            N_("{box}: {given} characters, and at most {limit} can be shown. Shorten it, or take one sentence."),
            box=box,
            given=len(text),
            limit=MAX_CHARACTERS,
        )


def check_tokens(given: int, model_limit: int | None = None, *, box: str = N_("This text")) -> None:
    """Refuse a sentence of too many tokens.

    Args:
        given: how many there are.
        model_limit: the model's own limit, if it has one.
        box: message id of where it stands.

    Raises:
        TextError: says the limit, what was given, and what to do.
    """
    limit = min(MAX_TOKENS, model_limit or MAX_TOKENS)
    if given > limit:
        raise TextError(
            N_("{box}: {given} tokens, and at most {limit} can be shown. Shorten it, or take one sentence."),
            box=box,
            given=given,
            limit=limit,
        )
