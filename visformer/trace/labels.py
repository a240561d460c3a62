"""Check the labels in the file of a Trace, which anybody may have written. No NumPy."""

from collections.abc import Mapping
from typing import Any

from visformer.errors import N_, TraceError
from visformer.trace.blocks import Blocks
from visformer.trace.names import PREFIX

SIDES = ("src", "tgt", "next", f"{PREFIX}src", f"{PREFIX}tgt")
"""The encoder's input; the decoder's input (starts with the language token, no end); what each of its rows predicts;
and these inputs with the keys that come before them."""

_TEXTS = ("model", "source", "target", "to", "position", "quantity")
_SHARES = ("confidence", "unsure_below")


def check_labels(labels: Any) -> None:
    """Refuse labels that a Trace would not write.

    Raises:
        TraceError: the message names them.
    """
    _require(isinstance(labels, dict), "labels")
    kinds: dict[str, tuple[type, ...]] = {
        "tokens": (str,),
        "special": (bool,),
        "words": (int,),
        "roles": (str, type(None)),
    }
    for label, allowed in kinds.items():
        sides = labels.get(label, {} if label == "roles" else None)
        _require(isinstance(sides, dict) and set(sides) <= set(SIDES), label)
        for side, values in sides.items():
            _require(isinstance(values, list) and all(type(value) in allowed for value in values), f"{label}[{side!r}]")
            _require(all(can_be_written(value) for value in values if type(value) is str), f"{label}[{side!r}]")
    _check_meta(labels.get("meta"))


def _check_meta(meta: Any) -> None:
    _require(isinstance(meta, dict), "meta")
    for name in _TEXTS:
        text = meta.get(name)
        _require(text is None or (isinstance(text, str) and can_be_written(text)), f"meta[{name!r}]")
    missing = meta.get("missing", [])
    pairs = isinstance(missing, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in missing
    )
    _require(pairs, "meta['missing']")
    ids = meta.get("ids", {})
    numbers = isinstance(ids, Mapping) and all(
        isinstance(row, list) and all(type(i) is int for i in row) for row in ids.values()
    )
    _require(numbers, "meta['ids']")
    likeliest = meta.get("likeliest", [])
    texts = isinstance(likeliest, list) and all(
        isinstance(row, list) and all(isinstance(text, str) and can_be_written(text) for text in row)
        for row in likeliest
    )
    _require(texts, "meta['likeliest']")
    for name in _SHARES:
        share = meta.get(name, 0.0)
        _require(type(share) in (int, float) and 0 <= share <= 1, f"meta[{name!r}]")
    _require(type(meta.get("n_kv_heads")) in (int, type(None)), "meta['n_kv_heads']")
    _require(isinstance(meta.get("windows", []), list | type(None)), "meta['windows']")
    grid = meta.get("grid", [1, 1])
    _require(isinstance(grid, list) and len(grid) == 2 and all(type(n) is int and n > 0 for n in grid), "meta['grid']")
    patches = meta.get("patches", ["src", 0])
    is_place = isinstance(patches, list) and len(patches) == 2 and patches[0] in SIDES
    _require(is_place and type(patches[1]) is int and patches[1] >= 0, "meta['patches']")
    if meta.get("blocks") is not None:
        Blocks.from_json(meta["blocks"])


def can_be_written(text: str) -> bool:
    """Whether text is free of lone surrogates: JSON can spell them, but UTF-8 cannot encode them."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _require(valid: bool, what: str) -> None:
    if not valid:
        raise TraceError(N_("its {what} do not match what a Trace writes"), what=what)
