"""All limits with their reasons: numbers beyond which something is refused, left out or evicted from memory.

``visformer doctor --limits`` and docs/security.md list them from here. In code, ``limits.MAX_TOKENS`` is an ordinary
number.
"""

from dataclasses import dataclass
from typing import TypeVar

from visformer.errors import N_

Ranges = dict[str, tuple[int, int]]
"""Minimum and maximum by name."""

_T = TypeVar("_T", int, Ranges)


@dataclass(frozen=True)
class Limit:
    """One limit, as listed by ``visformer doctor`` and the docs."""

    name: str  # of its constant, or of the option in .streamlit/config.toml
    value: int | Ranges
    unit: str
    what: str
    reason: str  # or what happens beyond it

    def __str__(self) -> str:
        """Return the value formatted for people."""
        if not isinstance(self.value, int):
            return "; ".join(f"{name} {least}–{most:,}" for name, (least, most) in self.value.items())
        return size(self.value) if self.unit == "bytes" else f"{self.value:,}"


class _Number(int):
    about: tuple[str, str, str]


class _Sizes(Ranges):
    about: tuple[str, str, str]


def limit(value: _T, unit: str, what: str, reason: str) -> _T:
    """Declare a limit: return the value, with the other columns of its :class:`Limit` attached."""
    described = _Number(value) if isinstance(value, int) else _Sizes(value)
    described.about = (unit, what, reason)
    return described


def size(nbytes: int) -> str:
    """Format a number of bytes: "88 kB", "548 MB", "4.29 GB"."""
    for unit, factor, digits in (("GB", 10**9, 2), ("MB", 10**6, 0), ("kB", 10**3, 0)):
        if nbytes >= factor:
            return f"{nbytes / factor:.{digits}f} {unit}"
    return f"{nbytes} B"


# fmt: off

# Texts and models -----------------------------------------------------------------------------------------------------

MAX_CHARACTERS = limit(
    1_000, "characters", N_("Characters of a text"),
    N_("about ten sentences; a longer text is refused before any work is done"),
)
LONG_CHARACTERS = limit(
    100_000, "characters", N_("Characters of a long text"),
    N_("forty pages, on the page Attention; how many tokens of it are shown, model and memory decide"),
)
MAX_TOKENS = limit(
    256, "tokens", N_("Tokens of a text on a page"),
    N_("weights grow with the square; cells are 2 pixels wide; in Python the model's own limit counts"),
)
NEW_TOKENS = limit(
    40, "tokens", N_("Tokens that a decoder adds to a text"),
    N_("a decoder may never stop by itself; `max_new_tokens` in Python sets another number"),
)
UNTRAINED = limit(
    {
        "d_model": (8, 512), "n_heads": (1, 16), "n_encoder_layers": (1, 6), "n_decoder_layers": (1, 6),
        "d_ff": (8, 2048), "seed": (0, 9999),
    },
    "least and most", N_("Sizes of an untrained model"),
    N_("the largest is the paper's base model with 16 heads: 193 MB, made in a second"),
)
BATCH = limit(
    32, "texts", N_("Texts in one pass"),
    N_("more take a processor no less time each; `batch=` in Python sets another number"),
)
WINDOW = limit(
    128, "texts", N_("Texts read ahead"),
    N_("to put those of similar length into one pass; with `batch=`, as many as that"),
)

# Memory ---------------------------------------------------------------------------------------------------------------

KEPT_BYTES = limit(
    380 * 10**6, "bytes", N_("Models besides the first one, uploads and generated files"),
    N_(
        "together; what was used longest ago makes room; the largest untrained model and files beside it fit; "
        "`VISFORMER_MEMORY` sets another number, GPT-2 needs 550 MB"
    ),
)
OWN_KEPT_BYTES = limit(
    4 * 10**9, "bytes", N_("The same under `visformer run`"),
    N_("on one's own machine, where models with a billion parameters may be tried"),
)
BENCHES = limit(
    16, "models", N_("Other models whose vocabularies are kept"),
    N_("a few megabytes each; the least recently used is dropped"),
)
MAX_TRACE_BYTES = limit(
    512 * 2**20, "bytes", N_("Size of a Trace"),
    N_(
        "estimated before anything is computed; all tensors of 24 heads at 512 tokens take about 300 MB; the scores of "
        "one layer count even if nothing is recorded"
    ),
)
WHOLE_BYTES = limit(
    64 * 2**20, "bytes", N_("Weights of a long text that a page keeps"),
    N_("474 tokens with 72 heads; of a longer text, heads are computed when they are looked at"),
)
BATCH_BYTES = limit(
    128 * 10**6, "bytes", N_("Values of the texts in one pass"),
    N_("estimated: what is recorded, one layer and the logits; fewer texts then share a pass"),
)
TRACE_BYTES = limit(
    256 * 2**20, "bytes", N_("Cached Traces and decodings"),
    N_("shared by all visitors; the least recently used are dropped; a short sentence takes 50 kB, the longest 20 MB"),
)
MESSAGE_BYTES = limit(
    8_000_000, "bytes", N_("Browser messages cached with each Trace"), N_("for reruns of a page")
)
FREED_BYTES = limit(
    256 * 2**20, "bytes", N_("Freed memory kept for the next request"),
    N_("returning it and asking for it again would cost a sixth of the forward pass"),
)

# Pictures and files ---------------------------------------------------------------------------------------------------

MATCHED = limit(
    300_000_000, "weights", N_("Weights compared where the heads of two models are matched"),
    N_("a second; all pairs of 24 heads at 256 tokens, of 144 heads at 120 tokens"),
)
MAX_WANTED = limit(8, "heads", N_("Heads that a browser may ask for at a time"), N_("more than a view shows"))
MOST_HEADS = limit(12, "heads", N_("Heads side by side"), N_("more would be too small to read"))
HEAD_PERCENT = limit(200, "percent", N_("Percent that a link may scale a head to"), N_("as far as the slider goes"))
PAGE_BYTES = limit(
    16_000_000, "bytes", N_("Exact weights in a saved page"),
    N_("333 tokens with the bundled model; beyond that, only the heads nearest the selected one are exact"),
)
MAX_NUMBERS = limit(
    2_000_000, "numbers", N_("Numbers exported as text"),
    N_("166 tokens with the bundled model, 100 MB of CSV; use safetensors for more"),
)
HANDOUT_BYTES = limit(
    32_000_000, "bytes", N_("Numbers of a lesson saved as a page"),
    N_("forty steps of 75 tokens with the bundled model; what a browser still opens"),
)
PICTURE_WEIGHTS = limit(
    16_000_000, "weights", N_("Weights in a picture of all heads"),
    N_("1,024 heads at 125 tokens, a file that programs still open"),
)
PNG_SIDE = limit(20_000, "pixels", N_("Pixels per side of a PNG"), N_("what image viewers can open"))
WAVES = limit(
    16, "dimensions", N_("Curves of a positional encoding"), N_("eight pairs, one for each colour; all would be 40 MB")
)
LAB_ROWS = limit(
    64, "rows", N_("Rows of a worked example's table"), N_("computed in the server's own process; nobody reads more")
)
LAB_WIDTH = limit(
    512, "dimensions", N_("d_model and heads of a worked example"), N_("d_model of the paper's base model")
)
LAB_ENCODING = limit(
    64, "dimensions", N_("Dimensions of a positional encoding example"), N_("more columns would not be readable")
)
LAB_BASE = limit(
    10**9, "", N_("Base of a positional encoding example"), N_("five more zeros than the paper's 10,000")
)

# Visitors and rooms ---------------------------------------------------------------------------------------------------

WORK_SECONDS = limit(
    30, "seconds", N_("Seconds that one computation may take"),
    N_("of CPU time; a beam search over the longest sentence takes 10; it also ends once nobody waits for it"),
)
LONG_SECONDS = limit(
    300, "seconds", N_("Wall-clock seconds of a long computation"),
    N_("it gives way to all else, so that 30 s of CPU time may take minutes; an ordinary sentence has 30 s"),
)
GRACE_SECONDS = limit(
    5, "seconds", N_("Seconds that a process has to end a computation"),
    N_("it may be in the middle of one large product; then the process is replaced"),
)
PAGES = limit(
    4, "pages", N_("Pages drawn at a time"),
    N_(
        "they share one interpreter; a session draws one, and while it waits for the model another page has the place; "
        "new visitors have half of them"
    ),
)
FOLLOWERS = limit(
    1, "sessions", N_("Followers drawn at a time"),
    N_("each once for all that its presenter has shown meanwhile: other visitors have the other places"),
)
SHARE = limit(
    3, "computations", N_("Computations of one visitor at a time"),
    N_("waiting or running: the page, the one that it no longer needs, and a file; others get their turn in between"),
)
TRAININGS = limit(
    4, "trainings", N_("Trainings that are watched at a time"),
    N_("one a room or visitor; one process trains them in turn, so that four are each four times slower; then whoever "
       "has several makes room for others, and a visitor for a room"),
)
TRAININGS_KEPT = limit(
    16, "trainings", N_("Trainings whose moments are kept"),
    N_("in memory, to go back in time; some hundred moments each, mostly below a megabyte; the oldest go first"),
)
LEARNING_BYTES = limit(
    100_000, "bytes", N_("Moments of trainings in one message"),
    N_("some twenty; a browser asks for the rest when they have arrived, so that no message of its own brings all"),
)
ORDINARY = limit(
    64, "tokens", N_("Tokens of an ordinary computation"),
    N_("times beams or changes; larger computations, other models and files share one place of their own"),
)
LISTED = limit(
    100, "sentences", N_("Sentences of a visitor's list"),
    N_("each is computed once for each head; a hundred take 20 s of CPU time with the bundled translator"),
)
EDITS = limit(
    500, "changes", N_("Changes of masks in a link"), N_("each is a rectangle of cells, and looked for in every layer")
)
PATCH_VALUES = limit(
    4_096, "values", N_("Values of a patch that is saved or linked"),
    N_("one token of a large model's residual stream; as text they take some 80 kB"),
)
QUEUE = limit(
    60, "requests", N_("Requests waiting for the model"),
    N_("a room pressing Enter together, and as many long ones; then whoever has computed most is asked to try again"),
)
SESSIONS = limit(
    1_000, "visitors", N_("Visitors at once"),
    N_("in one process: two full lecture halls; the next visitor is asked to try again"),
)
OPENINGS = limit(
    300, "websockets", N_("Websockets opened from one address at once"),
    N_("a lecture hall behind one address; each makes the server run a page; later ones wait for their turn"),
)
OPENING_RATE = limit(
    5, "websockets", N_("Websockets opened from one address a second, later"), N_("as many pages as a core draws")
)
ROOMS = limit(
    1_000, "rooms", N_("Rooms that follow a presenter"),
    N_("at once, in one process; one for each visitor, so that they never run out earlier; each holds a few kB"),
)
ROOM_SECONDS = limit(
    10 * 60, "seconds", N_("Seconds that a room waits for its presenter"),
    N_("whose browser is not connected: reloaded, asleep, or in another network; then the room is closed"),
)
WRONG_CODES = limit(
    1_000, "codes", N_("Wrong codes of rooms in a minute"),
    N_("of all visitors; each has one try; a full server may come with an old code, but nobody finds one by trying"),
)
GUESSES = limit(
    1_000, "people", N_("People who answer a question to a room"), N_("as many as visitors; each holds some 300 bytes")
)
GUESSES_ADDRESS = limit(
    500, "people", N_("The same from one network address"),
    N_("and as many as it has had phones in the room at a time: a full lecture hall may be behind one, and nobody else "
       "is refused because of it"),
)
GUESSES_ALONE = limit(
    10, "people", N_("The same from one that never had as many phones in the room at a time"),
    N_("people beside each other whose phones sleep once they have answered"),
)
GUESS_NAME = limit(
    40, "characters", N_("Characters of a name given with a guess"), N_("one line on a phone; the rest is cut")
)
GUESS_WORDS = limit(
    60, "words", N_("Words to choose from in a question to a room"), N_("each is a button as large as a thumb")
)

# Lessons --------------------------------------------------------------------------------------------------------------

LESSON_BYTES = limit(
    40_000, "bytes", N_("Size of a lesson file"),
    N_("three times what twelve steps in two languages take; parsed in a quarter of a second"),
)
LESSON_STEPS = limit(
    40, "steps", N_("Steps of a lesson"), N_("more than an hour has room for; each is a dot on the page")
)
LESSON_DEPTH = limit(6, "levels", N_("Nesting of a lesson's file"), N_("its format needs four"))
LESSON_TITLE = limit(60, "characters", N_("Characters of a lesson's title"), N_("one line"))
LESSON_TEXT = limit(
    500, "characters", N_("Characters of a lesson's text"), N_("three lines or four: the picture needs the room")
)
LESSON_HINTS = limit(5, "hints", N_("Hints of a lesson's step"), N_("each is a line above the picture"))
LESSON_LINK = limit(
    3_000, "characters", N_("Characters of a lesson in a link"), N_("the link also has to hold the current settings")
)

# Links and uploads ----------------------------------------------------------------------------------------------------

LINK_CHARACTERS = limit(
    3_800, "characters", N_("Characters of a link"),
    N_("with the server's own address they fit into 4 kB; browsers and proxies cut longer ones"),
)
CHOICE_CHARACTERS = limit(
    200, "characters", N_("Characters of one setting in a link"),
    N_("a longer one, such as many changed cells, is left out of the link"),
)
SENT_BYTES = limit(
    500_000, "bytes", N_("Size of a message that a browser sends"),
    N_("every table of a worked example filled to the last cell; each connection can make the server keep this much"),
)
SENT_RATE = limit(
    100_000, "bytes", N_("Bytes a second that a browser sends"),
    N_("each message counts as 2 kB more; six seconds' worth may come at once, then the connection ends"),
)
WIDGET_DEPTH = limit(
    8, "levels", N_("Nesting of a widget's value from a browser"), N_("a table's own needs four")
)
WIDGETS = limit(
    1_000, "widgets", N_("Widgets in one message of a browser"), N_("no page has two hundred; the rest is left out")
)
UPLOADS = limit(
    2, "files", N_("Uploaded files kept for a visitor"), N_("one is read as soon as it is there; the older ones go")
)
STATE_BYTES = limit(
    64_000, "bytes", N_("Size of an uploaded state file"), N_("twenty times the longest sentence and its target")
)
PICTURE_PIXELS = limit(
    30_000_000, "pixels", N_("Pixels of a picture in a file"),
    N_("90 MB once they are decoded, and twice that when it is turned upright; a file may say any number"),
)
PICTURE_MEGABYTES = limit(
    30, "megabytes", N_("Megabytes of a picture that a visitor chooses"),
    N_("a phone's photograph has 3 to 12; the browser scales it down before it is sent"),
)
PICTURE_BYTES = limit(
    1_000_000, "bytes", N_("Size of a picture that is sent as it is"),
    N_("fits into an upload; a larger one is scaled down"),
)
PICTURE_SIDE = limit(
    1_024, "pixels", N_("Pixels per side of an uploaded picture that is kept"),
    N_("3 MB at most; a larger one is scaled, and models of transformers scale it again, mostly to 224"),
)
PICTURES = limit(
    8, "pictures", N_("Uploaded pictures kept for a visitor"),
    N_("to go back to; one more, and the one that was not shown for longest goes; all of them with the session"),
)
ATLAS_BYTES = limit(
    4_000_000, "bytes", N_("Size of a table of an atlas that is one file"),
    N_("compressed; those of 72 heads have 180 kB together, and an upload has a limit of its own"),
)
ATLAS_DECODED = limit(
    32_000_000, "bytes", N_("Size of its tables once they are decoded"),
    N_("together: those of 3,000 heads like the bundled ones; no more is kept in memory"),
)
ATLAS_FOOTER = limit(
    64_000, "bytes", N_("Size of what such a table says of itself"),
    N_("its columns and sizes, which are decoded before anything is known: four times those of the widest table"),
)
ATLAS_ROWS = limit(200_000, "rows", N_("Rows of such a table"), N_("64 positions of 3,000 heads"))
ATLAS_HEADS = limit(3_000, "heads", N_("Heads of such an atlas"), N_("twice those of the largest GPT-2"))
ATLAS_NUMBER = limit(
    10**9, "", N_("Largest number in such an atlas"),
    N_("of either sign, so that no sum or square overflows; counts may have 15 digits"),
)
ATLAS_BESIDE = limit(
    500, "heads", N_("Other heads drawn beside one of an atlas"),
    N_("of each statistic; of more, as many in even steps from the lowest to the highest"),
)
UPLOAD_MEMORY = limit(
    800_000_000, "bytes", N_("Memory of the process that reads an atlas"),
    N_("address space: libraries take 490 MB of it and fill a quarter; the process ends with the file"),
)

# Streamlit's own, which .streamlit/config.toml sets ------------------------------------------------------------------

_SERVER = {
    "server.maxUploadSize": limit(
        1, "megabytes", N_("Megabytes of any upload"), N_("an atlas of 1,000 heads; states and lessons are smaller")
    ),
    "server.maxMessageSize": limit(
        20, "megabytes", N_("Megabytes of one message"),
        N_("of ours: the longest has 4; what a browser sends has a limit of its own"),
    ),
}
# fmt: on

LIMITS = [
    Limit(name, value, *value.about)
    for name, value in {**globals(), **_SERVER}.items()
    if isinstance(value, _Number | _Sizes)
]
"""All limits, in the order of declaration."""
