"""What methods read from a Trace: tensors, weights and how the model is built."""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, MissingTensor, TraceError
from visformer.trace import Trace
from visformer.trace.blocks import Blocks, StackBlocks

Floats = NDArray[np.float64]
Side = Literal["src", "tgt"]


def tolerance(trace: Trace, exact: float, *, roundings: int = 1) -> float:
    """Return the relative error to accept of what a model computed: ``exact``, or more if its dtype rounds more."""
    eps = {"bfloat16": 2.0**-7, "float16": 2.0**-10}.get(str(trace.meta.get("dtype")), 0.0)
    return max(exact, eps * float(np.sqrt(roundings)))


def place_of(path: str) -> tuple[Literal["encoder", "decoder"], int, Literal["self_attn", "cross_attn"]]:
    """Split the path of an attention, such as "decoder.0.cross_attn".

    Raises:
        TraceError: it is none.
    """
    match = re.fullmatch(r"(encoder|decoder)\.(\d+)\.(self_attn|cross_attn)", path)
    if match is None:
        raise TraceError(N_("{path!r} is not the path of an attention, such as 'decoder.0.cross_attn'."), path=path)
    return match[1], int(match[2]), match[3]  # type: ignore[return-value]


def read(trace: Trace, names: Sequence[str], method: str) -> list[Floats]:
    """Read tensors and weights in float64.

    Raises:
        MissingTensor: the message lists all that are not there, with the reason or how to record them.
    """
    lacking = [name for name in names if name not in trace and name not in trace.params]
    for name in lacking:
        if (reason := trace.lacks(name)) is not None:
            raise MissingTensor(N_("{name} is needed for {method}: {reason}."), name=name, method=method, reason=reason)
    if lacking:
        raise MissingTensor(
            N_(
                "This trace lacks {names}, which {method} needs: pass record=visformer.analysis.needed(model, "
                "{method!r}) to model.trace. A family whose weights cannot be read has no such numbers."
            ),
            names=", ".join(lacking),
            method=method,
        )
    return [optional(trace, name) for name in names]


def optional(trace: Trace, name: str) -> Floats:
    """Read a tensor or weight in float64; 0 if it is not there, as of a bias that the model has not."""
    tensor = trace.tensors.get(name, trace.params.get(name))
    return np.zeros(()) if tensor is None else tensor.value.astype(np.float64)


def blocks_of(trace: Trace, method: str) -> Blocks:
    """Return the architecture.

    Raises:
        TraceError: the Trace does not tell it.
    """
    if trace.blocks is None:
        raise TraceError(N_("This trace does not say how its model is built, which {method} needs."), method=method)
    return trace.blocks


def depth(stack: StackBlocks | None, method: str) -> int:
    """Return the number of layers, each of which has attention; 0 without a stack.

    Raises:
        TraceError: some layers have none.
    """
    if stack is not None and stack.attention_layers is not None:
        raise TraceError(
            N_("{method} needs attention in every layer: this model mixes it with layers of other kinds."),
            method=method,
        )
    return 0 if stack is None else stack.n_layers
