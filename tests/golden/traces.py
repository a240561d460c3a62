"""The content of a saved Trace, as plain values."""

from tests.golden.compare import SAVED, numbers
from visformer import Trace, export

OPTIONAL = ("encoder.0.self_attn.q", "decoder.0.self_attn.pattern", "decoder.0.cross_attn.pattern", "src.position")
"""Some tensors that a model may lack; the Trace then gives a reason."""


def saved_traces():
    """Return the paths of the saved Traces, sorted."""
    return sorted(SAVED.glob("*.safetensors"))


def content(path):
    """Read a file and return its content as plain values."""
    trace = Trace.load(path)
    lines = export.to_csv(trace).splitlines()
    return {
        "file": path.name,
        "about": trace.about,
        "repr": repr(trace),
        "tokens": _lists(trace.tokens),
        "special": _lists(trace.special),
        "words": _lists(trace.words),
        "roles": _lists(trace.roles),
        "meta": dict(trace.meta),
        "tensors": [_tensor(trace[tensor]) for tensor in trace.names()],
        "params": [_tensor(tensor) for tensor in trace.params.values()],
        "lacks": {tensor: str(reason) for tensor in OPTIONAL if (reason := trace.lacks(tensor))},
        "csv": [*lines[:4], f"… {len(lines)} lines in all …"],
    }


def _lists(sides):
    return {side: list(values) for side, values in sides.items()}


def _tensor(tensor):
    axes = " ".join(f"{axis.name}:{axis.side}" if axis.side else axis.name for axis in tensor.axes)
    return {"name": tensor.name, "axes": axes, "type": str(tensor.value.dtype), **numbers(tensor.value)}
