"""Checks of a transformers model when it is wrapped, and of each Trace before it is returned."""

from collections.abc import Mapping

import numpy as np
import torch

from visformer.adapters.huggingface.run import Output
from visformer.errors import N_, TraceError
from visformer.trace import Trace, TracedTensor


def agree(eager: list[Output], traced: list[Output], tensors: Mapping[str, TracedTensor]) -> bool:
    """Whether a traced pass has the same outputs and patterns as the model's own eager pass, part by part."""
    for own, ours in zip(eager, traced, strict=True):
        tolerance = 5e-2 if _is_half(own.value.dtype) else 1e-4  # for sums in another order
        if not torch.allclose(own.value, ours.value, atol=tolerance * float(own.value.abs().max()), rtol=0):
            return False
        for path, pattern in own.patterns.items():
            recorded = tensors.get(f"{path}.pattern")
            if recorded is None or not np.allclose(pattern[0].float().cpu().numpy(), recorded.value, atol=tolerance):
                return False
    return True


def check_rows(tensors: Mapping[str, TracedTensor], dtype: torch.dtype) -> None:
    """Check that each row of a pattern sums to 1 with its sink, or is all zeros, within the precision of ``dtype``.

    Raises:
        TraceError: the message names the pattern.
    """
    tolerance = 2e-2 if _is_half(dtype) else 1e-4
    for name, tensor in tensors.items():
        if not name.endswith(".pattern"):
            continue
        total = tensor.value.sum(axis=-1)
        if (sink := tensors.get(f"{name.removesuffix('.pattern')}.sink")) is not None:
            total = total + sink.value
        if not bool(np.all((abs(total - 1) < tolerance) | (abs(total) < tolerance))):
            worst = float(total.flat[abs(total - 1).argmax()])
            raise TraceError(N_("{name} is not an attention pattern: a row sums to {total}."), name=name, total=worst)


def same(alone: Trace, padded: Trace, dtype: torch.dtype) -> bool:
    """Whether two Traces of the same text hold the same values, within the precision of ``dtype``."""
    tolerance = 5e-2 if _is_half(dtype) else 1e-4
    return all(
        np.allclose(padded[name].value, tensor.value, atol=tolerance * float(abs(tensor.value).max()), rtol=0)
        for name, tensor in alone.tensors.items()
    )


def _is_half(dtype: torch.dtype) -> bool:
    return torch.finfo(dtype).bits < 32
