"""The engine that runs the translator in a browser, without a server: its worker's script, and the files it loads."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visformer.system import limits
from visformer.web.bundle import script
from visformer.web.map import said_of

FILES = {"weights": "model.safetensors", "tokenizer": "tokenizer.json"}
"""What the engine loads of a checkpoint's folder."""


def worker() -> str:
    """Return the script of the worker; ``static/engine/worker.js`` documents its messages."""
    return script("serve(self)", serve="engine/worker.js")


def load_message(folder: Path, *, base: str = "") -> dict[str, Any]:
    """Return the message that makes a worker load a model.

    Args:
        folder: a checkpoint of a translator.
        base: the address of that folder, relative to the worker's script or absolute; ends with "/" unless it is empty.

    Returns:
        A JSON object; each file has its size and digest, which the engine compares with what arrives.
    """
    return {
        "kind": "load",
        **{key: {"url": base + name, **_seal(folder / name)} for key, name in FILES.items()},
        "about": {"name": folder.name, "limits": {"characters": limits.MAX_CHARACTERS, "tokens": limits.MAX_TOKENS}},
    }


def map_texts(gettext: Callable[[str], str] = str) -> dict[str, dict[str, str]]:
    """Return ``said`` of the worker's messages: the texts that depend on the direction, by target language."""
    return {to: said_of(to, gettext) for to in ("en", "zh")}


def _seal(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
