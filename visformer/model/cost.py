"""What self-attention costs for n tokens, in time and memory, measured; and what was measured when this was built."""

import json
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
D_MODEL, N_HEADS, REPEATS = 256, 8, 5  # the width and the heads of the bundled translator
_FILE = Path(__file__).with_name("cost.json")


class Cost(NamedTuple):
    """The cost of one self-attention layer for a sentence.

    Attributes:
        n: tokens.
        milliseconds: the median of five runs.
        mib: of the weights, (head, query, key), float32.
    """

    n: int
    milliseconds: float
    mib: float


def measure(lengths: Sequence[int] = LENGTHS) -> list[Cost]:
    """Run a self-attention layer of the bundled translator's size on random vectors of each length, on this machine."""
    import torch

    from visformer.model.attention import MultiHeadAttention, attention

    layer = MultiHeadAttention(D_MODEL, N_HEADS).eval()
    costs = []
    with torch.inference_mode():
        for n in lengths:
            x, seconds = torch.randn(1, n, D_MODEL), []
            layer(x, x, x)  # the first run also allocates
            for _ in range(REPEATS):
                start = perf_counter()
                layer(x, x, x)
                seconds.append(perf_counter() - start)
            heads = torch.randn(N_HEADS, n, D_MODEL // N_HEADS)
            _, pattern = attention(heads, heads, heads)
            costs.append(Cost(n, median(seconds) * 1e3, pattern.nbytes / 2**20))
    return costs


def measure_here(_model: object) -> list[Cost]:
    """Measure where long computations run, whatever the model there is."""
    return measure()


@cache
def recorded() -> tuple[str, list[Cost]]:
    """Return the processor that the stored figures were measured on, and the figures."""
    found = json.loads(_FILE.read_text(encoding="utf-8"))
    return found["processor"], [Cost(*row) for row in found["costs"]]


def record() -> None:
    """Measure here and store the figures: ``python -c "from visformer.model import cost; cost.record()"``."""
    rows = [[cost.n, round(cost.milliseconds, 3), round(cost.mib, 4)] for cost in measure()]
    _FILE.write_text(json.dumps({"processor": _processor(), "costs": rows}) + "\n", encoding="utf-8")


def _processor() -> str:
    """Return the name of the processor, as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
