"""The operator's environment variables. Each is declared once; ``visformer doctor`` and the docs list it from here.

A variable is read on each call, so that ``visformer run --model`` can still set it. An empty one counts as unset.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from visformer.errors import N_, VisformerError

T = TypeVar("T")


@dataclass(frozen=True)
class Setting(Generic[T]):
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
        raise ValueError(N_("a whole number is needed: 0, 1, 2 …"))
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in text.split(","))))


MODEL = Setting(
    "VISFORMER_MODEL",
    N_("the model that pages show first: a bundled name, a folder, or a hub id; `visformer run --model` sets it too"),
    "en-zh",
    "en-zh",
    str,
)
MODELS = Setting[tuple[str, ...]](
    "VISFORMER_MODELS", N_("further models to choose from, separated by commas"), (), N_("none"), _names
)
ANY_MODEL = Setting("VISFORMER_ANY_MODEL", N_("`1`: visitors may type any hub id"), False, N_("off"), _switch)
LESSONS = Setting[Path | None](
    "VISFORMER_LESSONS", N_("a folder with guided lessons of your own"), None, N_("none"), Path
)
PROCESSES = Setting[int | None](
    "VISFORMER_PROCESSES",
    N_("processes that compute for a room (`asgi.py`); `0`: the server computes itself"),
    None,
    N_("half of the cores, 2 to 4"),
    _number,
)

# Read by the libraries themselves; listed for operators of this app.
THREADS = Setting("OMP_NUM_THREADS", N_("threads that torch computes with"), "", N_("half of the cores"), str)
HUB = "https://huggingface.co"
HF_ENDPOINT = Setting("HF_ENDPOINT", N_("a mirror of the Hugging Face hub"), HUB, HUB, str)
HF_HOME = Setting("HF_HOME", N_("where downloaded models are kept"), "", "~/.cache/huggingface", str)
HF_HUB_OFFLINE = Setting(
    "HF_HUB_OFFLINE", N_("`1`: only what is already there, without a look at the network"), "", N_("off"), str
)

SETTINGS: tuple[Setting[object], ...] = tuple(each for each in globals().values() if isinstance(each, Setting))


def check() -> None:
    """Read every setting once, so that an invalid one stops the server at startup, not on a visitor's page.

    Raises:
        VisformerError: a setting is invalid; names the first.
    """
    for setting in SETTINGS:
        setting()
