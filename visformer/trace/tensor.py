"""One array of a Trace with labelled axes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from visformer.errors import N_, TraceError
from visformer.system.arguments import checked_class
from visformer.trace.names import Axis


@checked_class
@dataclass(frozen=True, eq=False, repr=False)
class TracedTensor(NDArrayOperatorsMixin):
    """One array with labelled axes. Arithmetic and NumPy's functions take it as its ``value``; results have no labels.

    Args:
        name: its name, see :mod:`visformer.trace.names`.
        value: read-only; float32, or bool for a mask.
        axes: one for each dimension of ``value``.
    """

    name: str
    value: NDArray[Any]
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if self.value.ndim != len(self.axes):
            raise TraceError(
                N_("{name} has shape {shape}, but {n} axes are named: {axes}."),
                name=self.name,
                shape=self.value.shape,
                n=len(self.axes),
                axes=", ".join(axis.name for axis in self.axes),
            )
        view = self.value.view()
        view.flags.writeable = False
        object.__setattr__(self, "value", view)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    @property
    def nbytes(self) -> int:
        """The bytes that it holds."""
        return self.value.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32, or bool of a mask."""
        return self.value.dtype

    def __getattr__(self, name: str) -> Any:
        """Attributes and methods of NumPy's arrays, such as ``T`` and ``mean``; results have no labels."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.value, name)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Any:
        """Index into ``value`` as in plain NumPy; the result has no labels."""
        return self.value[index]

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis.name} {size}" for axis, size in zip(self.axes, self.shape, strict=True))
        return f"TracedTensor({self.name}: {axes}; {self.value.dtype})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        options = {name: _values(given) if name == "out" else _value(given) for name, given in options.items()}
        return getattr(ufunc, method)(*_values(inputs), **options)


def _values(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_value, arrays))


def _value(array: Any) -> Any:
    return array.value if isinstance(array, TracedTensor) else array
