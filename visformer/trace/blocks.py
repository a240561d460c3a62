"""What a model consists of: its stacks, and the order of sublayers and norms in their blocks. No arrays here."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from visformer.errors import N_, TraceError

Sublayer = Literal["self_attn", "cross_attn", "ffn"]
Norm = Literal["pre", "post", "both", "output", "unknown"]

_MOST = 100_000
"""Largest number of layers or heads in a file, far above that of any model: whoever draws them counts up to it."""


@dataclass(frozen=True)
class StackBlocks:
    """A stack of blocks, all of one kind, except that a hybrid model has attention in some of them only.

    Args:
        n_layers: number of blocks.
        sublayers: of "self_attn", "cross_attn" and "ffn", in the order in which they run.
        norm: where a block normalises: "pre": x + sublayer(norm(x)); "post": norm(x + sublayer(x)), as in the paper;
            "both": x + norm(sublayer(norm(x))) (Gemma 2); "output": x + norm(sublayer(x)) (OLMo 2); "unknown": another
            way, or not known, and then ``sublayers`` are the usual ones and ``parallel`` is False.
        parallel: whether attention and feed-forward read the same x, and both outputs are added to it (GPT-J).
        final_norm: whether the output of the last block is normalised; False if not known.
        n_heads: attention heads per layer.
        n_kv_heads: heads of keys and values, fewer in grouped-query attention; None: not known.
        attention_layers: of a hybrid model the layers that have attention, ascending from 0; None: all.
    """

    n_layers: int
    sublayers: tuple[Sublayer, ...]
    norm: Norm
    parallel: bool
    final_norm: bool
    n_heads: int
    n_kv_heads: int | None
    attention_layers: tuple[int, ...] | None


@dataclass(frozen=True)
class Blocks:
    """A model's architecture.

    Args:
        encoder: None: it has none.
        decoder: None: it has none.
        position: positional encoding, a key of :data:`visformer.model.positions.DESCRIBED`.
        logits: whether it ends with logits, of tokens or, for a classifier, of labels.
    """

    encoder: StackBlocks | None
    decoder: StackBlocks | None
    position: str
    logits: bool

    def to_json(self) -> dict[str, Any]:
        """Describe it in JSON values, as ``meta["blocks"]`` of a Trace does.

        Returns:
            A dict of dicts, lists, texts and numbers.
        """
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values

    @classmethod
    def from_json(cls, value: Any) -> "Blocks":
        """Read what :meth:`to_json` returned, or a file holds in its place.

        Args:
            value: any JSON value.

        Returns:
            The architecture.

        Raises:
            TraceError: it describes none; the message names the part that is wrong.
        """
        _require_fields(value, cls, "")
        stacks = {part: _stack(value[part], f"[{part!r}]") for part in ("encoder", "decoder")}
        _require(any(stacks.values()), "")
        _require(isinstance(value["position"], str) and value["position"].isidentifier(), "['position']")
        _require(type(value["logits"]) is bool, "['logits']")
        if stacks["encoder"] is not None:
            _require("cross_attn" not in stacks["encoder"].sublayers, "['encoder']['sublayers']")
        elif stacks["decoder"] is not None:
            _require("cross_attn" not in stacks["decoder"].sublayers, "['decoder']['sublayers']")
        return cls(**stacks, position=value["position"], logits=value["logits"])


def _stack(value: Any, place: str) -> StackBlocks | None:
    """Read one stack; ``place``: where it is, for the message."""
    if value is None:
        return None
    _require_fields(value, StackBlocks, place)
    sublayers, layers = value["sublayers"], value["attention_layers"]
    known = isinstance(sublayers, list) and all(each in get_args(Sublayer) for each in sublayers)
    right = {
        "n_layers": _is_number(value["n_layers"], least=0),
        "sublayers": known and 0 < len(sublayers) == len(set(sublayers)),
        "norm": value["norm"] in get_args(Norm),
        "parallel": type(value["parallel"]) is bool,
        "final_norm": type(value["final_norm"]) is bool,
        "n_heads": _is_number(value["n_heads"], least=1),
        "n_kv_heads": value["n_kv_heads"] is None or _is_number(value["n_kv_heads"], least=1),
    }
    for name, valid in right.items():
        _require(valid, f"{place}[{name!r}]")
    numbered = isinstance(layers, list) and all(_is_number(i, least=0) and i < value["n_layers"] for i in layers)
    ascending = layers is None or (numbered and layers == sorted(set(layers)))
    _require(ascending, f"{place}['attention_layers']")
    lists = {"sublayers": tuple(sublayers), "attention_layers": None if layers is None else tuple(layers)}
    return StackBlocks(**{name: value[name] for name in right} | lists)


def _is_number(value: Any, *, least: int) -> bool:
    return type(value) is int and least <= value <= _MOST


def _require_fields(value: Any, kind: type[Blocks | StackBlocks], place: str) -> None:
    """Refuse what lacks a field; fields that a later version adds are let through."""
    _require(isinstance(value, dict) and {each.name for each in fields(kind)} <= set(value), place)


def _require(valid: bool, place: str) -> None:
    if not valid:
        raise TraceError(N_("its {what} do not match what a Trace writes"), what=f"meta['blocks']{place}")
