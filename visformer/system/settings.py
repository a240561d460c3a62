"""The operator's environment variables. Each is declared once; ``visformer doctor`` and the docs list it from here.

A variable is read on each call, so that ``visformer run --model`` can still set it. An empty one counts as unset.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from visformer.errors import N_, VisformerError
from visformer.system import limits

T = TypeVar("T")


@dataclass(frozen=True)
class Variable(Generic[T]):
    """One environment variable; call it to read it."""

    name: str
    what: str
    default: T
    by_default: str  # the default as shown to people
    parse: Callable[[str], T]  # raises ValueError with a message that says what is needed

    def __call__(self, environ: Mapping[str, str] = os.environ) -> T:
        """Return the current value.

        Raises:
            VisformerError: the variable's value is invalid.
        """
        text = environ.get(self.name, "")
        try:
            return self.parse(text) if text else self.default
        except ValueError as error:
            raise VisformerError(
                N_("{name}={value}: {needed}"), name=self.name, value=text, needed=error.args[0]
            ) from None


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(N_("write 1 for on, 0 for off."))
    return text == "1"


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(N_("expected a whole number: 0, 1, 2 …"))
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def _hosts(text: str) -> tuple[str, ...]:
    hosts = _names(text.lower())
    if any(re.search(r"[/:]", host) for host in hosts):
        raise ValueError(N_("write names alone, without http:// and port: app.example.org, *.example.org or *."))
    return hosts


_SITE = re.compile(r"https?://[\w.*-]+(:\d+)?|\*", re.ASCII)


def _sites(text: str) -> tuple[str, ...]:
    if not all(map(_SITE.fullmatch, sites := _names(text))):
        raise ValueError(N_("sites are needed, such as https://moodle.example.org, separated by commas; * is any."))
    return sites


def _page(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s#?]+", text):
        raise ValueError(N_("the address of a page is needed, such as https://example.org/visformer/."))
    return text


MODEL = Variable(
    "VISFORMER_MODEL",
    N_("the model that pages show first: a bundled name, a folder, or a hub id; `visformer run --model` sets it too"),
    "en-zh",
    "en-zh",
    str,
)
MODELS = Variable[tuple[str, ...]](
    "VISFORMER_MODELS", N_("further models to choose from, separated by commas"), (), N_("none"), _names
)
ANY_MODEL = Variable("VISFORMER_ANY_MODEL", N_("`1`: visitors may type any hub id"), False, N_("off"), _switch)
LESSONS = Variable[Path | None](
    "VISFORMER_LESSONS", N_("a folder with guided lessons of your own"), None, N_("none"), Path
)
ATLASES = Variable[tuple[str, ...]](
    "VISFORMER_ATLASES",
    N_("atlases of your own, separated by commas: folders that `visformer atlas` wrote; `visformer run --atlas` too"),
    (),
    N_("none"),
    _names,
)
HOSTS = Variable[tuple[str, ...]](
    "VISFORMER_HOSTS",
    N_("names that visitors reach the server by, separated by commas; `*.example.org`: all below it; `*`: any"),
    ("localhost",),
    N_("`localhost`; an IP address always works"),
    _hosts,
)
AUTO = "auto"
PROCESSES = Variable[int | None](
    "VISFORMER_PROCESSES",
    N_(
        "worker processes, for a room; `auto`, which `visformer run --room` sets: half of the cores, 2 to 4; `0`: the "
        "server computes itself"
    ),
    0,
    "0",
    lambda text: None if text == AUTO else _number(text),
)
MEMORY = Variable[int](
    "VISFORMER_MEMORY",
    N_("megabytes of memory for models besides the first, uploads and generated files together"),
    limits.KEPT_BYTES,
    f"{limits.KEPT_BYTES // 10**6}",
    lambda text: _number(text) * 10**6,
)
TRACE_BYTES = Variable[int | None](
    "VISFORMER_TRACE_BYTES",
    N_("bytes that one computation may record; the scores of a layer count even if nothing is recorded"),
    None,
    f"{limits.MAX_TRACE_BYTES}",
    _number,
)


def trace_bytes() -> int:
    """Return how many bytes a Trace may take."""
    return TRACE_BYTES() or limits.MAX_TRACE_BYTES


FRAME_ANCESTORS = Variable[tuple[str, ...]](
    "VISFORMER_FRAME_ANCESTORS",
    N_("sites that may show the app inside a page of theirs, separated by commas; `*`: any"),
    (),
    N_("none but its own"),
    _sites,
)
SITE = Variable[str](
    "VISFORMER_SITE",
    N_(
        "address of a page that `visformer site` wrote: the QR code of *The whole model* and *Attention* leads there, "
        "where phones compute by themselves"
    ),
    "",
    N_("none"),
    _page,
)

# Read by the libraries themselves; listed for operators of this app.
THREADS = Variable("OMP_NUM_THREADS", N_("threads torch uses"), "", N_("half of the cores"), str)
HUB = "https://huggingface.co"
HF_ENDPOINT = Variable("HF_ENDPOINT", N_("a mirror of the Hugging Face hub"), HUB, HUB, str)
HF_HOME = Variable("HF_HOME", N_("where downloaded models are stored"), "", "~/.cache/huggingface", str)
HF_HUB_OFFLINE = Variable(
    "HF_HUB_OFFLINE", N_("`1`: only models already downloaded, without network access"), "", N_("off"), str
)

SETTINGS: tuple[Variable[object], ...] = tuple(each for each in globals().values() if isinstance(each, Variable))


def check() -> None:
    """Read every setting once, so that an invalid one stops the server at startup, not on a visitor's page.

    Raises:
        VisformerError: a setting is invalid; names the first.
    """
    for setting in SETTINGS:
        setting()
