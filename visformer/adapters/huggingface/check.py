"""What a model of transformers is held against when it is taken, and a Trace before it is given away."""

from collections.abc import Mapping

import numpy as np
import torch

from visformer.adapters.huggingface.run import Output
from visformer.errors import N_, TraceError
from visformer.trace import TracedTensor


def agree(eager: list[Output], traced: list[Output], tensors: Mapping[str, TracedTensor]) -> bool:
    """Whether a traced pass gave the outputs and the patterns of the model's own eager one, part by part."""
    for own, ours in zip(eager, traced, strict=True):
        loose = 5e-2 if _is_half(own.value.dtype) else 1e-4  # what another order of the same sums may make
        if not torch.allclose(own.value, ours.value, atol=loose * float(own.value.abs().max()), rtol=0):
            return False
        for path, pattern in own.patterns.items():
            found = tensors.get(f"{path}.pattern")
            if found is None or not np.allclose(pattern[0].float().cpu().numpy(), found.value, atol=loose):
                return False
    return True


def check_rows(tensors: Mapping[str, TracedTensor], dtype: torch.dtype) -> None:
    """Each row of a pattern and its sink sums to 1, or is all zeros, as far as ``dtype``, the model's own, is exact.

    Raises:
        TraceError: names the pattern.
    """
    loose = 2e-2 if _is_half(dtype) else 1e-4
    for name, tensor in tensors.items():
        if not name.endswith(".pattern"):
            continue
        total = tensor.value.sum(axis=-1)
        if (sink := tensors.get(f"{name.removesuffix('.pattern')}.sink")) is not None:
            total = total + sink.value
        if not bool(np.all((abs(total - 1) < loose) | (abs(total) < loose))):
            worst = float(total.flat[abs(total - 1).argmax()])
            raise TraceError(N_("{name} is not an attention pattern: a row sums to {total}."), name=name, total=worst)


def _is_half(dtype: torch.dtype) -> bool:
    return torch.finfo(dtype).bits < 32
